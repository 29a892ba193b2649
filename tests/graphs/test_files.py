import builtins
import logging
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.files import read_folder

EDGES = "source,target\nann,bob\nbob,cy\n"
FEATURES = "id,age,height\nann,31,1.7\nbob,40,1.8\ncy,29,1.6\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people").mkdir()
    return tmp_path / "people"


def write(folder: Path, **files: str) -> Path:
    """Write text files; a double underscore in the name stands for the dot."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def edges_of(data: Data) -> list[list[int]]:
    return data.edge_index.T.tolist()


def test_strings_as_ids(folder: Path) -> None:
    data = read_folder(write(folder, edges__csv=EDGES, features__csv=FEATURES))
    assert data.name == "people"
    assert data.node_ids == ["ann", "bob", "cy"]
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert torch.equal(data.x, torch.tensor([[31, 1.7], [40, 1.8], [29, 1.6]]))
    assert data.x.dtype == torch.float32
    assert data.y.tolist() == [-1, -1, -1]
    assert data.label_names == []
    assert "edge_weight" not in data


def test_ids_stay_with_their_nodes_in_a_subgraph(folder: Path) -> None:
    data = read_folder(write(folder, edges__csv=EDGES, features__csv=FEATURES))
    part = data.subgraph(torch.tensor([True, False, True]))
    assert part.node_ids == ["ann", "cy"]
    assert part.x.size(0) == 2


def test_nodes_decide_the_order(folder: Path) -> None:
    nodes = "id,label\ncy,b\nbob,\nann,a\n"
    data = read_folder(write(folder, edges__csv=EDGES, features__csv=FEATURES, nodes__csv=nodes))
    assert data.node_ids == ["cy", "bob", "ann"]
    assert data.x[:, 0].tolist() == [29, 40, 31]
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.y.tolist() == [1, -1, 0]
    assert data.label_names == ["a", "b"]


def test_features_without_ids_follow_the_nodes(folder: Path) -> None:
    write(folder, edges__csv="source,target\nz,x\n", nodes__csv="id\nz\ny\nx\n")
    np.save(folder / "features.npy", np.arange(6).reshape(3, 2))
    data = read_folder(folder)
    assert data.node_ids == ["z", "y", "x"]
    assert data.x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert edges_of(data) == [[0, 2], [2, 0]]


def test_row_numbers_as_ids_and_isolated_nodes(folder: Path) -> None:
    write(folder, edges__tsv="target\tsource\n3\t0\n")
    np.save(folder / "features.npy", np.eye(5))
    data = read_folder(folder)
    assert data.node_ids == ["0", "1", "2", "3", "4"]
    assert data.num_nodes == 5
    assert edges_of(data) == [[0, 3], [3, 0]]


def test_a_graph_without_edges(folder: Path) -> None:
    data = read_folder(write(folder, edges__csv="source,target,weight\n", features__csv=FEATURES))
    assert data.edge_index.shape == (2, 0)
    assert data.edge_index.dtype == torch.int64
    assert data.edge_weight.shape == (0,)


def test_direction_duplicates_and_self_loops(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    edges = "source,target\nann,bob\nbob,ann\nann,bob\ncy,cy\ncy,ann\n"
    with caplog.at_level(logging.INFO, logger="costa"):
        data = read_folder(write(folder, edges__csv=edges, features__csv=FEATURES))
    assert edges_of(data) == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert "1 self-loops dropped" in caplog.text


def test_weights(folder: Path) -> None:
    edges = (
        "source,target,weight\n"
        "ann,bob,2\nbob,ann,2\n"  # one edge listed both ways: 2, not 4
        "bob,cy,1\nbob,cy,0.5\ncy,bob,1.25\n"  # 1.5 one way, 1.25 the other
        "cy,cy,9\n"
    )
    data = read_folder(write(folder, edges__csv=edges, features__csv=FEATURES))
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 1.5, 1.5]
    assert data.edge_weight.dtype == torch.float32


# Multiples of 1/4: their sums are exact in float32, in any order.
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 40).map(lambda w: w / 4)), max_size=30)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, random=st.randoms())
def test_weights_against_a_plain_twin_in_any_order(
    rows: list[tuple[int, int, float]], random: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    oneway: dict[tuple[int, int], float] = defaultdict(float)
    for i, j, w in rows:
        oneway[i, j] += w
    joined = {(i, j) for a, b in oneway if a != b for i, j in ((a, b), (b, a))}
    expected = {(i, j): max(oneway.get((i, j), 0), oneway.get((j, i), 0)) for i, j in joined}

    random.shuffle(rows)
    folder = tmp_path_factory.mktemp("graph")
    write(folder, edges__csv="source,target,weight\n" + "".join(f"{i},{j},{w}\n" for i, j, w in rows))
    np.save(folder / "features.npy", np.eye(5))
    data = read_folder(folder)
    found = dict(zip(map(tuple, edges_of(data)), data.edge_weight.tolist(), strict=True))
    assert found == expected
    assert len(found) == data.num_edges


def test_numeric_labels_keep_their_order(folder: Path) -> None:
    write(folder, edges__csv="source,target\n", nodes__csv="id,label\n" + "".join(f"{i},{i % 12}\n" for i in range(24)))
    np.save(folder / "features.npy", np.eye(24))
    data = read_folder(folder)
    assert data.y.tolist() == [i % 12 for i in range(24)]
    assert data.label_names == [str(i) for i in range(12)]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["-1", "1"], ["-1", "1"]),
        (["1.0", "1", "1.00", "01", "1e0", "0"], ["0", "01", "1", "1.0", "1.00", "1e0"]),
        (["nan", "2", "10"], ["10", "2", "nan"]),
        (["10", "2", "x"], ["10", "2", "x"]),
    ],
)
def test_label_order(labels: list[str], names: list[str], folder: Path) -> None:
    nodes = "id,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    write(folder, edges__csv="source,target\n", nodes__csv=nodes)
    np.save(folder / "features.npy", np.eye(len(labels)))
    data = read_folder(folder)
    assert data.label_names == names
    assert [data.label_names[code] for code in data.y] == labels


def test_csv_as_it_comes(folder: Path) -> None:
    # A byte order mark, Windows line ends, quotes, blanks around cells, other columns, empty lines at the end.
    edges = 'source, target ,when\r\n"Smith, Ann" ,bob,1999\r\n\r\n\r\n'
    (folder / "edges.csv").write_bytes(b"\xef\xbb\xbf" + edges.encode())
    data = read_folder(write(folder, features__csv='id,0\n"Smith, Ann", 1e0\nbob,2'))
    assert data.node_ids == ["Smith, Ann", "bob"]
    assert data.x.tolist() == [[1], [2]]
    assert edges_of(data) == [[0, 1], [1, 0]]


def test_column_names_that_are_numbers(folder: Path) -> None:
    data = read_folder(write(folder, edges__csv="source,target\n0,1\n", features__csv="0,1,2\n1,2,3\n4,5,6\n"))
    assert data.x.tolist() == [[1, 2, 3], [4, 5, 6]]


SAVERS: dict[str, Callable[[Path, np.ndarray], None]] = {
    "npy": lambda path, x: np.save(path / "features.npy", x),
    "fortran order": lambda path, x: np.save(path / "features.npy", np.asfortranarray(x)),
    "npz": lambda path, x: np.savez_compressed(path / "features.npz", x),
    "sparse": lambda path, x: scipy.sparse.save_npz(path / "features.npz", scipy.sparse.csr_matrix(x)),
    "sparse array": lambda path, x: scipy.sparse.save_npz(path / "features.npz", scipy.sparse.coo_array(x)),
    "csv": lambda path, x: np.savetxt(path / "features.csv", x, delimiter=",", header="a,b", comments=""),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("kind", SAVERS)
def test_every_kind_of_feature_file(kind: str, dtype: Any, folder: Path) -> None:
    x = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    SAVERS[kind](folder, x)
    data = read_folder(write(folder, edges__csv="source,target\n0,2\n"))
    assert data.x.dtype == torch.float32
    assert data.x.is_contiguous()
    assert data.x.tolist() == x.astype(float).tolist()


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


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"a": [1.0, None]}, "value for node '1' that is missing, NaN"),
        ({"a": [None, 1]}, "value for node '0' that is missing, NaN"),
        ({"a": [1, 2], "b": ["x", "1"]}, "'x' in row 1 of the column 'b', which is not a number"),
        ({"a": [1, 2], "__index_level_0__": [3, 4]}, "a column without a name"),
    ],
)
def test_parquet_features_that_are_no_numbers(columns: dict[str, Any], sentence: str, folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), folder / "features.parquet")
    with pytest.raises(InputError, match=sentence):
        read_folder(write(folder, edges__csv="source,target\n"))


def test_a_file_that_is_no_parquet(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_folder(write(folder, features__csv=FEATURES, edges__parquet="source,target\n"))


def test_parquet_without_pyarrow_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"costa-gcl\[tables\]"):
        read_folder(write(folder, features__csv=FEATURES, edges__parquet=""))


BAD: dict[str, tuple[dict[str, str], str]] = {
    "no edges": ({"features__csv": FEATURES}, r"no edges file; put one of edges\.csv, edges\.tsv, edges\.parquet"),
    "no features": ({"edges__csv": EDGES}, r"no features file; put one of features\.npy"),
    "two edges": ({"edges__csv": EDGES, "edges__tsv": EDGES, "features__csv": FEATURES}, "edges.csv and edges.tsv"),
    "no source": ({"edges__csv": "from,target\n", "features__csv": FEATURES}, "no column 'source', only from, target"),
    "no target": ({"edges__csv": "source,to\n", "features__csv": FEATURES}, "no column 'target', only source, to"),
    "no id": ({"edges__csv": EDGES, "features__csv": FEATURES, "nodes__csv": "name\nann\n"}, "no column 'id'"),
    "unknown source": (
        {"edges__csv": EDGES + "dan,ann\n", "features__csv": FEATURES},
        r"source 'dan' in row 3, which is not an id in features\.csv",
    ),
    "unknown target": (
        {"edges__csv": "source,target\n0,2\n", "features__csv": "a\n1\n2\n"},
        r"target '2' in row 1, which is not a row number of features\.csv \(0 to 1\)",
    ),
    "empty id": ({"edges__csv": EDGES + "ann, \n", "features__csv": FEATURES}, "an empty target in row 3"),
    "id twice": ({"edges__csv": EDGES, "features__csv": FEATURES + "ann,1,1\n"}, "the id 'ann' twice"),
    "node twice": (
        {"edges__csv": EDGES, "features__csv": FEATURES, "nodes__csv": "id\nann\nbob\nann\n"},
        r"nodes\.csv' lists the id 'ann' twice",
    ),
    "text": (
        {"edges__csv": EDGES, "features__csv": FEATURES.replace("40", "forty")},
        "'forty' in row 2 of the column 'age', which is not a number",
    ),
    "gap": ({"edges__csv": EDGES, "features__csv": FEATURES.replace("40", "")}, "'' in row 2 of the column 'age'"),
    "ragged": ({"edges__csv": EDGES, "features__csv": FEATURES + "dan,1\n"}, "2 cells in row 4, but .* has 3"),
    "ragged edges": ({"edges__csv": EDGES + "cy,ann,3\n", "features__csv": FEATURES}, "3 cells in row 3, but .* has 2"),
    "empty line": ({"edges__csv": "source,target\n", "features__csv": "a\n1\n\n2\n"}, "0 cells in row 2"),
    "NaN": ({"edges__csv": EDGES, "features__csv": FEATURES.replace("40", "nan")}, "value for node 'bob' that is"),
    "inf": ({"edges__csv": EDGES, "features__csv": FEATURES.replace("29", "-inf")}, "value for node 'cy' that is"),
    "too large": ({"edges__csv": EDGES, "features__csv": FEATURES.replace("31", "1e39")}, "value for node 'ann' that"),
    "too few rows": (
        {"edges__csv": EDGES, "features__csv": FEATURES, "nodes__csv": "id\nann\nbob\ncy\ndan\n"},
        r"has 3 rows, but nodes\.csv lists 4 nodes",
    ),
    "other rows": (
        {"edges__csv": EDGES, "features__csv": FEATURES, "nodes__csv": "id\nann\nbob\ndan\n"},
        r"no row for the node 'dan' of nodes\.csv",
    ),
    "empty edges": ({"edges__csv": "", "features__csv": FEATURES}, r"edges\.csv' is empty"),
    "empty features": ({"edges__csv": EDGES, "features__csv": ""}, r"features\.csv' is empty"),
    "no rows": ({"edges__csv": EDGES, "features__csv": "id,age\n"}, "0 rows of 1 features"),
    "no columns": ({"edges__csv": EDGES, "features__csv": "id\nann\nbob\ncy\n"}, "3 rows of 0 features"),
    "empty nodes": ({"edges__csv": EDGES, "features__csv": FEATURES, "nodes__csv": ""}, r"nodes\.csv' is empty"),
    "no header": ({"edges__csv": "source,target\n", "features__csv": "0.5,1\n2,3\n"}, "is all numbers"),
    "pandas index": ({"edges__csv": "source,target\n", "features__csv": ",a\n0,1\n1,2\n"}, "column without a name"),
    "same name": ({"edges__csv": EDGES, "features__csv": "id,a,a\n"}, "two columns named 'a'"),
    "negative weight": (
        {"edges__csv": "source,target,weight\nann,bob,1\nann,cy,-2\n", "features__csv": FEATURES},
        "the weight -2 in row 2",
    ),
    "NaN weight": (
        {"edges__csv": "source,target,weight\nann,bob,nan\n", "features__csv": FEATURES},
        "the weight nan in row 1",
    ),
    "text weight": (
        {"edges__csv": "source,target,weight\nann,bob,much\n", "features__csv": FEATURES},
        "'much' in row 1 of the column 'weight'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_each_fault_has_its_sentence(case: str, folder: Path) -> None:
    files, sentence = BAD[case]
    with pytest.raises(InputError, match=sentence) as error:
        read_folder(write(folder, **files))
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_text_that_is_not_utf8(folder: Path) -> None:
    (folder / "edges.csv").write_bytes(b"source,target\nJos\xe9,ann\n")
    with pytest.raises(InputError, match="cannot be read as UTF-8"):
        read_folder(write(folder, features__csv=FEATURES))


def test_arrays_that_are_no_feature_matrix(folder: Path) -> None:
    write(folder, edges__csv="source,target\n")
    for array, sentence in [
        (np.ones(3), r"has the shape \(3,\)"),
        (np.array([["a"], ["b"]]), "holds <U1 values"),
        (np.ones((2, 2)) * 1j, "holds complex128 values"),
        (np.array([[1], ["a"]], dtype=object), "cannot be read as a NumPy file of numbers"),
        (np.ones((0, 2)), "0 rows of 2 features"),
        (np.array([[1.0], [np.nan]]), "value for node '1' that is missing, NaN"),
        (np.array([[1e300], [1.0]]), "value for node '0' .* too large for float32"),
    ]:
        np.save(folder / "features.npy", array)
        with pytest.raises(InputError, match=sentence):
            read_folder(folder)
    (folder / "features.npy").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be read as a NumPy file"):
        read_folder(folder)


def test_archives_that_are_no_feature_matrix(folder: Path) -> None:
    write(folder, edges__csv="source,target\n")
    np.savez(folder / "features.npz", a=np.eye(2), b=np.eye(2))
    with pytest.raises(InputError, match="holds a, b; save exactly one"):
        read_folder(folder)
    (folder / "features.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="cannot be read as a NumPy file"):
        read_folder(folder)
