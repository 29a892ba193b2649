"""Files that are complete or absent."""

import json
import multiprocessing

import pytest

from costa.errors import InputError
from costa.writing import check_place, locked, replacing, write_csv


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("older")
    with replacing(path) as temporary:
        temporary.write_text("newer")
        assert path.read_text() == "older"
    assert path.read_text() == "newer"
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_older_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("older")
    with pytest.raises(UnicodeEncodeError), replacing(path) as temporary:
        temporary.write_text("half, and then ε", encoding="ascii")
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def _count(folder, times):
    for _ in range(times):
        with locked(folder), replacing(folder / "count.json") as temporary:
            temporary.write_text(json.dumps(json.loads((folder / "count.json").read_text()) + 1))


def test_a_table_that_fails_leaves_the_older_one(tmp_path):
    path = tmp_path / "a.csv"
    write_csv(path, ("id", "name"), [(1, "a,b"), (2, "é")])
    assert path.read_text(encoding="utf-8") == 'id,name\n1,"a,b"\n2,é\n'
    with pytest.raises(ZeroDivisionError):
        write_csv(path, ("id",), ((1 / row,) for row in (1, 0)))
    assert path.read_text(encoding="utf-8").startswith("id,name\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    check_place(tmp_path / "new.csv")
    for wrong in (tmp_path, tmp_path / "no" / "a.csv"):
        with pytest.raises(InputError, match="cannot be written"):
            check_place(wrong)


def test_nobody_reads_what_another_is_about_to_replace(tmp_path):
    (tmp_path / "count.json").write_text("0")
    processes = [multiprocessing.get_context("fork").Process(target=_count, args=(tmp_path, 100)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert json.loads((tmp_path / "count.json").read_text()) == 300
