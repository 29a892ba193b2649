"""Ids find their rows, whatever they are."""

import numpy as np
import pytest

from costa.graphs import numbering
from costa.graphs.numbering import Numbering

pyarrow = pytest.importorskip("pyarrow")

WORDS = ["", "a", "b", "ab", "12345678", "123456789", "1234567812345678", "1234567812345679", "é", "żółć żółć"]
KINDS = {
    "row numbers": [0, 1, 2, 3],
    "dense": [7, 3, 5, 4, -2],
    "not dense": [10**15, -5, 3, 10**17, 0],
    "far apart": [-(2**63), 2**63 - 1, 0],
    "text": WORDS[1:],
    "numbers as text": ["08", "8", "9", "1.0"],
}
ASKED = [0, 1, 3, 4, -2, -3, 8, 6, -5, 10**15, 10**15 + 1, 2**63 - 1, -(2**63), 1234567890123456789]


def expected(ids, values):
    places = {str(each): row for row, each in enumerate(ids)}
    return [places.get(str(value), -1) for value in values]


@pytest.mark.parametrize("ids", KINDS.values(), ids=KINDS)
def test_ids_are_found_as_text_and_as_numbers(ids):
    known = Numbering(pyarrow.chunked_array([ids[:2], ids[2:]]), len(ids), "an id")
    for values in (ids, list(reversed(ids)), [], ASKED, WORDS, [str(value) for value in ASKED], ["08", "1.0"]):
        kinds = [pyarrow.int64()] if values is ASKED else [None]
        kinds += [pyarrow.string(), pyarrow.large_string()] if values and isinstance(values[0], str) else []
        for kind in kinds:
            array = pyarrow.array(values, kind or (None if values else pyarrow.string()))
            assert known.rows(array).tolist() == expected(ids, values), (values, kind)


def test_a_slice_of_text_is_looked_up():
    known = Numbering(pyarrow.chunked_array([pyarrow.array(WORDS).slice(3, 5)]), 5, "an id")
    assert known.rows(pyarrow.array(WORDS).slice(2, 3)).tolist() == [-1, 0, 1]
    assert "ab" in known
    assert "b" not in known
    assert known.name(0) == "ab"


def test_texts_of_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(numbering, "_hashes", lambda text: np.arange(len(text), dtype=np.uint64) // 5)
    known = Numbering(pyarrow.chunked_array([WORDS[1:]]), len(WORDS) - 1, "an id")
    monkeypatch.setattr(numbering, "_hashes", lambda text: np.zeros(len(text), dtype=np.uint64))
    assert known.rows(pyarrow.array(["ab", "none", "a", "123456789"])).tolist() == [2, -1, 0, 4]


@pytest.mark.parametrize("ids", [KINDS["dense"], KINDS["not dense"], KINDS["text"]])
def test_a_table_is_made_once(ids, monkeypatch):
    made = []
    for name in ("_Array", "_Numbers", "_Texts"):
        kind = getattr(numbering, name)
        monkeypatch.setattr(numbering, name, lambda ids, kind=kind: made.append(kind) or kind(ids))
    known = Numbering(pyarrow.chunked_array([ids]), len(ids), "an id")
    for _ in range(3):
        assert known.rows(pyarrow.array(ids)).tolist() == list(range(len(ids)))
    assert len(made) == 1


def test_many_random_texts(monkeypatch):
    monkeypatch.setattr(numbering, "HASHED", 100)
    rng = np.random.default_rng(0)
    ids = ["".join(rng.choice(list("ab"), rng.integers(1, 30))) for _ in range(700)]
    ids = list(dict.fromkeys(ids))
    known = Numbering(pyarrow.chunked_array([ids]), len(ids), "an id")
    order = rng.permutation(len(ids))
    assert known.rows(pyarrow.array([ids[row] for row in order])).tolist() == order.tolist()
