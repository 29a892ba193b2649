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
from costa.graphs import tables
from costa.graphs.files import read_files, read_folder

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
    joined = {(i, j) for (a, b), w in oneway.items() if a != b and w for i, j in ((a, b), (b, a))}
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


def test_parquet_without_pyarrow_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_files_named_one_by_one(tmp_path: Path) -> None:
    write(tmp_path, links__tsv="source\ttarget\nz\tx\n", people__csv="id,label\nz,1\ny,\nx,2\n")
    scipy.sparse.save_npz(tmp_path / "words.npz", scipy.sparse.csr_array(np.eye(3)))
    data = read_files(tmp_path / "links.tsv", tmp_path / "words.npz", tmp_path / "people.csv")
    assert (data.name, data.node_ids, data.y.tolist()) == ("links", ["z", "y", "x"], [0, -1, 1])
    assert edges_of(data) == [[0, 2], [2, 0]]
    assert torch.equal(data.x, torch.eye(3))


def test_without_features_the_edges_say_which_nodes_there_are(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = read_folder(write(folder, edges__csv="source,target\nbob,ann\ncy,bob\n"))
    assert data.node_ids == ["bob", "ann", "cy"]
    assert data.x.shape == (3, 33)
    assert caplog.messages == [
        f"{str(folder / 'edges.csv')!r} comes without node features; 33 columns are made from the edges: "
        "log(1 + degree) and 32 eigenvectors of the normalised adjacency."
    ]
    named = read_folder(write(folder, nodes__csv="id\nann\nbob\ncy\ndan\n"))
    assert named.node_ids == ["ann", "bob", "cy", "dan"]
    assert named.x.shape == (4, 33)


def test_a_bundle(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mine.npz",
        edge_index=np.array([[0, 1], [1, 2]], dtype=np.int32),
        edge_weight=np.array([2, 3]),
        x=np.eye(3),
        y=np.array([7, -1, 4]),
        node_ids=np.array(["ann", "bob", "cy"]),
    )
    data = read_files(tmp_path / "mine.npz")
    assert (data.name, data.node_ids) == ("mine", ["ann", "bob", "cy"])
    assert (data.y.tolist(), data.label_names) == ([1, -1, 0], ["4", "7"])
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 3, 3]
    (tmp_path / "people.csv").write_text("id,label\nx,b\ny,a\nz,b\n")
    np.save(tmp_path / "other.npy", np.ones((3, 1)) * [[1], [2], [3]])
    other = read_files(tmp_path / "mine.npz", tmp_path / "other.npy", tmp_path / "people.csv")
    assert (other.node_ids, other.y.tolist(), other.x.tolist()) == (["x", "y", "z"], [1, 0, 1], [[1], [2], [3]])


def test_a_public_benchmark_file_is_a_bundle(data_dir: Path) -> None:
    from costa.graphs import load_graph

    data = read_files(data_dir / "Photo" / "raw" / "amazon_electronics_photo.npz")
    known = load_graph("amazon-photo", data_dir=data_dir)
    assert torch.equal(data.edge_index, known.edge_index)
    assert torch.equal(data.y, known.y)
    assert torch.equal((data.x > 0).float(), known.x)


def test_graphml(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import networkx as nx

    graph = nx.DiGraph()
    for node, age, label in (("ann", 31, "b"), ("bob", 40, "a"), ("cy", 29, "b")):
        graph.add_node(node, age=age, tall=age > 30, label=label, motto="hm")
    graph.add_edge("ann", "bob", weight=2.0)
    graph.add_edge("bob", "ann", weight=0.5)
    graph.add_edge("bob", "cy")
    nx.write_graphml(graph, tmp_path / "people.graphml")
    data = read_files(tmp_path / "people.graphml")
    assert (data.name, data.node_ids) == ("people", ["ann", "bob", "cy"])
    assert data.x.tolist() == [[31, 1], [40, 1], [29, 0]]
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 1, 1]
    assert (data.y.tolist(), data.label_names) == ([1, 0, 1], ["a", "b"])
    assert "node attributes that are not numbers are left out: motto." in caplog.text
