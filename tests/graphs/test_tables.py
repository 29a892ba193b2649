"""How CSV, Parquet and frames are read."""

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs import tables
from costa.graphs.files import read_folder

Write = Callable[..., Path]
EdgesOf = Callable[[Data], list[list[int]]]
FEATURES = "id,age,height\nann,31,1.7\nbob,40,1.8\ncy,29,1.6\n"


def test_csv_as_it_comes(write: Write, edges_of: EdgesOf, folder: Path) -> None:
    # A byte order mark, Windows line ends, quotes, blanks around cells, other columns, empty lines at the end.
    edges = 'source, target ,when\r\n"Smith, Ann" ,bob,1999\r\n\r\n\r\n'
    (folder / "edges.csv").write_bytes(b"\xef\xbb\xbf" + edges.encode())
    data = read_folder(write(folder, features__csv='id,0\n"Smith, Ann", 1e0\nbob,2'))
    assert data.node_ids == ["Smith, Ann", "bob"]
    assert data.x.tolist() == [[1], [2]]
    assert edges_of(data) == [[0, 1], [1, 0]]


def test_column_names_that_are_numbers(write: Write, folder: Path) -> None:
    data = read_folder(write(folder, edges__csv="source,target\n0,1\n", features__csv="0,1,2\n1,2,3\n4,5,6\n"))
    assert data.x.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_parquet(folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"source": [7, 8], "target": [8, 9], "weight": [1, 3]}), folder / "edges.parquet")
    parquet.write_table(
        pyarrow.table({"id": [9, 8, 7], "a": [1, 2, 3], "b": [0.5, 0.25, 0.0], "c": [True, False, True]}),
        folder / "features.parquet",
    )
    parquet.write_table(pyarrow.table({"id": ["7", "8", "9"], "label": [5, None, 4]}), folder / "nodes.parquet")
    data = read_folder(folder)
    assert data.node_ids == ["7", "8", "9"]
    assert data.x.tolist() == [[3, 0, 1], [2, 0.25, 0], [1, 0.5, 1]]
    assert data.edge_weight.tolist() == [1, 1, 3, 3]
    assert data.y.tolist() == [1, -1, 0]
    assert data.label_names == ["4", "5"]


def test_parquet_without_pyarrow_names_the_extra(write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"costa-gcl\[tables\]"):
        read_folder(write(folder, features__csv=FEATURES, edges__parquet=""))


@pytest.fixture
def written(folder: Path) -> Callable[[str], Path]:
    def write_csv(text: str) -> Path:
        (folder / "table.csv").write_text(text, encoding="utf-8", newline="")
        return folder / "table.csv"

    return write_csv


# no number alone, which would be a lost first row
CELL = st.text(st.sampled_from("ab 1\u2028\x0c\x1e\x85é'"), max_size=3)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=3), min_size=1, max_size=5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    last=st.sampled_from(["", "\n", "\n\n"]),
)
def test_the_quick_way_to_split_is_the_csv_module(rows: list[list[str]], end: str, last: str) -> None:
    text = end.join(map(",".join, rows)) + last

    def outcome(split: Callable[..., Any]) -> Any:
        try:
            return split(text, ",", "it")
        except InputError as error:
            return str(error)

    assert outcome(tables._split_plain) == outcome(tables._split_quoted)


def test_quotes_and_commas_in_cells(written: Callable[[str], Path]) -> None:
    table = tables.read_table(written('id,what\n"Smith, Ann","5"" nail"\nbob,"two\r\nlines"\ncy,5" nail\n'))
    assert table.text("id") == ["Smith, Ann", "bob", "cy"]
    assert table.text("what") == ['5" nail', "two\r\nlines", '5" nail']


def test_repeated_cells_are_kept_once(written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SHARED", 3)
    rows = [("a a", f"value {row}") for row in range(6)]
    table = tables.read_table(written('"x","y"\n' + "\n".join(map(",".join, rows))))
    assert list(zip(table.columns["x"], table.columns["y"], strict=True)) == rows
    assert len(set(map(id, table.columns["x"]))) == 1
