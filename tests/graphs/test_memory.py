"""One graph, by every way in."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs import as_graph, load_graph
from costa.nn import SparseMatrix

IDS = ["ann", "bob", "cy", "dan"]
X = np.array([[31, 1.5], [40, 2.0], [29, 0.0], [8, -1.0]], dtype=np.float32)
LABELS = ["red", "", "blue", "red"]
CODES = [1, -1, 0, 1]
# Listed both ways, repeated, a self-loop, a weight of zero; dan has no edge.
ROWS = [(0, 1, 2.0), (1, 0, 0.5), (1, 2, 1.0), (1, 2, 0.25), (2, 2, 9.0), (0, 2, 0.0)]
EDGE_INDEX = [[0, 1, 1, 2], [1, 0, 2, 1]]
EDGE_WEIGHT = [2.0, 2.0, 1.25, 1.25]


def edge_columns(weighted: bool) -> dict[str, list[Any]]:
    kept = ROWS if weighted else ROWS[:-1]
    columns = {"source": [IDS[i] for i, _, _ in kept], "target": [IDS[j] for _, j, _ in kept]}
    return columns | ({"weight": [w for _, _, w in kept]} if weighted else {})


def feature_columns() -> dict[str, list[Any]]:
    # in another order than the nodes
    return {"id": IDS[::-1], "age": X[::-1, 0].tolist(), "height": X[::-1, 1].tolist()}


def node_columns() -> dict[str, list[Any]]:
    return {"id": IDS, "label": [label or None for label in LABELS]}


def edge_array(weighted: bool) -> np.ndarray:
    return np.array([(i, j) for i, j, _ in (ROWS if weighted else ROWS[:-1])])


def frames(module: str, weighted: bool) -> Data:
    package = pytest.importorskip(module)
    return as_graph(
        *(package.DataFrame(columns) for columns in (edge_columns(weighted), feature_columns(), node_columns()))
    )


def pandas_index(weighted: bool) -> Data:
    pandas = pytest.importorskip("pandas")
    edges, features, nodes = (pandas.DataFrame(c) for c in (edge_columns(weighted), feature_columns(), node_columns()))
    return as_graph(edges, features.set_index("id"), nodes.set_index("id"))


def networkx(weighted: bool) -> Data:
    graph = nx.MultiDiGraph()
    for node, (age, height), label in zip(IDS, X.tolist(), LABELS, strict=True):
        graph.add_node(node, age=age, height=height, **({"label": label} if label else {}))
    for i, j, weight in ROWS if weighted else ROWS[:-1]:
        graph.add_edge(IDS[i], IDS[j], **({"weight": weight} if weighted else {}))
    return as_graph(graph)


def adjacency(weighted: bool) -> Data:
    rows = ROWS if weighted else [(i, j, 1.0) for i, j in dict.fromkeys((i, j) for i, j, _ in ROWS[:-1])]
    source, target, weight = zip(*rows, strict=True)
    matrix = scipy.sparse.coo_array((np.array(weight), (source, target)), shape=(4, 4))
    return as_graph(matrix, scipy.sparse.csr_array(X), labels=LABELS)


def pyg(weighted: bool) -> Data:
    data = Data(torch.from_numpy(X), torch.from_numpy(edge_array(weighted).T).contiguous(), y=torch.tensor(CODES))
    if weighted:
        data.edge_weight = torch.tensor([w for _, _, w in ROWS])
    return as_graph(data)


def csv_folder(weighted: bool, folder: Path) -> Data:
    def write(name: str, columns: dict[str, list[Any]]) -> None:
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        lines = (",".join("" if cell is None else str(cell) for cell in row) for row in rows)
        (folder / name).write_text("\n".join(lines))

    write("edges.csv", edge_columns(weighted))
    write("features.csv", feature_columns())
    write("nodes.csv", node_columns())
    return load_graph(folder)


def parquet_folder(weighted: bool, folder: Path) -> Data:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, columns in (
        ("edges", edge_columns(weighted)),
        ("features", feature_columns()),
        ("nodes", node_columns()),
    ):
        parquet.write_table(pyarrow.table(columns), folder / f"{name}.parquet")
    return as_graph(folder)


def bundle(weighted: bool, folder: Path) -> Data:
    weight = {"edge_weight": np.array([w for _, _, w in ROWS])} if weighted else {}
    names = np.array(LABELS)
    np.savez(folder / "g.npz", edge_index=edge_array(weighted).T, x=X, y=names, node_ids=np.array(IDS), **weight)
    return load_graph(folder / "g.npz")


def graphml(weighted: bool, folder: Path) -> Data:
    graph = nx.MultiDiGraph()
    for node, (age, height), label in zip(IDS, X.tolist(), LABELS, strict=True):
        graph.add_node(node, age=age, height=height, **({"label": label} if label else {}))
    for i, j, weight in ROWS if weighted else ROWS[:-1]:
        graph.add_edge(IDS[i], IDS[j], **({"weight": weight} if weighted else {}))
    nx.write_graphml(graph, folder / "g.graphml")
    return load_graph(folder / "g.graphml")


WAYS: dict[str, Callable[[bool, Path], Data]] = {
    "csv": csv_folder,
    "parquet": parquet_folder,
    "bundle": bundle,
    "graphml": graphml,
    "pandas": lambda weighted, folder: frames("pandas", weighted),
    "pandas with ids as the index": lambda weighted, folder: pandas_index(weighted),
    "polars": lambda weighted, folder: frames("polars", weighted),
    "networkx": lambda weighted, folder: networkx(weighted),
    "scipy": lambda weighted, folder: adjacency(weighted),
    "pyg": lambda weighted, folder: pyg(weighted),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_same_graph(way: str, weighted: bool, tmp_path: Path) -> None:
    graph = WAYS[way](weighted, tmp_path)
    assert graph.edge_index.tolist() == EDGE_INDEX
    assert graph.edge_index.dtype == torch.int64
    assert graph.x.tolist() == X.tolist()
    assert graph.x.dtype == torch.float32
    assert graph.y.tolist() == CODES
    if weighted:
        assert graph.edge_weight.tolist() == EDGE_WEIGHT
        assert graph.edge_weight.dtype == torch.float32
    else:
        assert "edge_weight" not in graph
    if way == "pyg":
        assert "node_ids" not in graph
    else:
        assert graph.node_ids == (["0", "1", "2", "3"] if way == "scipy" else IDS)
        assert graph.label_names == ["blue", "red"]


@pytest.mark.parametrize("edges", [edge_array(False), edge_array(False).T, edge_array(False).tolist()])
@pytest.mark.parametrize("tensors", [False, True])
def test_edge_arrays(edges: Any, tensors: bool) -> None:
    features: Any = torch.from_numpy(X) if tensors else X
    given = torch.as_tensor(np.asarray(edges)) if tensors else edges
    for graph in (as_graph(given, features, labels=[1, -1, 0, 1]), as_graph((given, features), labels=[1, None, 0, 1])):
        assert graph.edge_index.tolist() == EDGE_INDEX
        assert graph.x.tolist() == X.tolist()
        assert graph.y.tolist() == CODES
        assert graph.label_names == ["0", "1"]


def test_two_edges_are_two_rows() -> None:
    assert as_graph(np.array([[0, 1], [2, 3]]), X).edge_index.tolist() == [[0, 1, 2, 3], [2, 3, 0, 1]]


def test_ids_of_a_frame_come_out_beside_an_edge_array() -> None:
    pandas = pytest.importorskip("pandas")
    graph = as_graph(np.array([[0], [3]]), pandas.DataFrame({"id": IDS, "age": X[:, 0]}))
    assert graph.node_ids == IDS
    assert graph.edge_index.tolist() == [[0, 3], [3, 0]]


def test_pandas_with_gaps_in_whole_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    for kind in ("float64", "Int64"):
        nodes = pandas.DataFrame({"id": [7, 8, 9], "label": pandas.array([1, None, 10], dtype=kind)})
        graph = as_graph(pandas.DataFrame({"source": [7.0], "target": ["8"]}), X[:3], nodes)
        assert graph.node_ids == ["7", "8", "9"]
        assert (graph.y.tolist(), graph.label_names) == ([0, -1, 1], ["1", "10"])
        assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert as_graph(np.array([[0], [1]]), X[:3], labels=["a", pandas.NA, "b"]).y.tolist() == [0, -1, 1]


def test_a_gap_in_a_frame_has_its_sentence() -> None:
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"source": [0], "target": [1]})
    with pytest.raises(InputError, match=r"the edge table has an empty target in row 1; give an id or drop the row"):
        as_graph(pandas.DataFrame({"source": [0], "target": pandas.array([None], dtype="string")}), np.eye(2))
    twice = pandas.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(InputError, match=r"the feature table has two columns named 'a'; rename one of them"):
        as_graph(edges, twice)


def test_networkx_with_features_given() -> None:
    graph = nx.path_graph(4)
    made = as_graph(graph, X, labels=np.array([0, 1, 1, 0]))
    assert made.node_ids == ["0", "1", "2", "3"]
    assert made.x.tolist() == X.tolist()
    assert made.y.tolist() == [0, 1, 1, 0]
    assert made.num_edges == 6
    with pytest.raises(InputError, match=r"has 4 rows, but the NetworkX graph lists 3 nodes"):
        as_graph(nx.path_graph(3), X)


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({0: 1.0, 1: "forty", 2: 3.0}, "has 'forty' in row 2 of the column 'age', which is not a number"),
        ({0: [1, 2], 1: [3], 2: [4, 5]}, "is an array on some nodes and something else, or of another length, on '1'"),
        ({0: [1, 2], 1: [3, 4]}, "is an array on some nodes and something else, or of another length, on '2'"),
    ],
)
def test_networkx_attributes_that_are_no_features(attributes: dict[int, Any], sentence: str) -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, attributes, "age")
    with pytest.raises(InputError, match=sentence):
        as_graph(graph)


def test_networkx_subclasses_are_networkx_graphs() -> None:
    class Roads(nx.MultiDiGraph):
        pass

    roads = Roads()
    roads.add_edge("a", "b", length=3)
    assert as_graph(roads, np.eye(2)).node_ids == ["a", "b"]


@pytest.mark.parametrize("graph", [Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=4), nx.star_graph(3)])
def test_without_features_they_are_made_and_it_is_said(graph: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = as_graph(graph)
    assert made.x.shape == (4, 33)
    assert "comes without node features; 33 columns are made from the edges" in caplog.text


def test_a_data_keeps_what_it_has_and_is_left_as_it_was() -> None:
    given = Data(torch.from_numpy(X), torch.tensor([[0, 2], [1, 2]]), y=torch.tensor(CODES))
    given.train_mask = torch.tensor([True, False, True, False])
    given.node_ids = IDS
    made = as_graph(given)
    assert given.edge_index.tolist() == [[0, 2], [1, 2]]
    assert made.edge_index.tolist() == [[0, 1], [1, 0]]
    assert made.x is given.x
    assert torch.equal(made.train_mask, given.train_mask)
    assert made.node_ids == IDS
    again = as_graph(made)
    assert torch.equal(again.edge_index, made.edge_index)


def test_a_benchmark_is_one_by_its_content() -> None:
    graph = load_graph("digits")
    again = as_graph(graph)
    assert (again.name, torch.equal(again.edge_index, graph.edge_index)) == ("digits", True)
    graph.edge_index = graph.edge_index[:, :5]
    other = as_graph(graph)
    assert (graph.name, other.name, other.num_edges) == ("digits", "digits-data", 10)
    words = load_graph("words")
    assert as_graph(words).name == "words"
    words.x = words.x.to_dense() * 2
    assert as_graph(words).name == "words-data"


def test_what_a_data_has_beside_is_not_lost_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    given = Data(torch.from_numpy(X), torch.tensor([[0, 2], [1, 2]]), edge_attr=torch.ones(2, 3))
    made = as_graph(given)
    assert "edge_attr of the Data is not read; if it holds weights, make it edge_weight." in caplog.text
    assert "edge_attr" not in made
    assert given.edge_attr.shape == (2, 3)


def test_arrays_on_the_nodes_of_networkx_are_columns() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {node: np.array([node, 2.5]) for node in graph}, "place")
    nx.set_node_attributes(graph, {node: torch.tensor([node + 1]) for node in graph}, "rank")
    made = as_graph(graph)
    assert made.feature_names == ["place[0]", "place[1]", "rank[0]"]
    assert made.x.tolist() == [[0, 2.5, 1], [1, 2.5, 2], [2, 2.5, 3]]


def test_attributes_of_edges_that_are_not_read_are_said(caplog: pytest.LogCaptureFixture) -> None:
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 2.0, "length")
    as_graph(graph, np.eye(3))
    assert "the edges of the NetworkX graph: the column 'length' is not read" in caplog.text


def test_features_beside_a_tuple_are_read_and_not_twice() -> None:
    edges = np.array([[0], [3]])
    assert as_graph((edges,), X).x.tolist() == X.tolist()
    with pytest.raises(InputError, match=r"features were given twice, inside and beside the tuple; give them once"):
        as_graph((edges, X), X)
    with pytest.raises(InputError, match=r"a tuple of 4 is not a graph"):
        as_graph((edges, X, None, None))


def test_labels_beside_a_graph_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"digits has labels of its own"):
        as_graph("digits", labels=[0] * 1797)
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\nbob,cy\n")
    labelled = as_graph(tmp_path, labels=["b", None, "a"])
    assert (labelled.y.tolist(), labelled.label_names) == ([1, -1, 0], ["a", "b"])
    with pytest.raises(InputError, match=r"there are 2 labels for 3 nodes"):
        as_graph(tmp_path, labels=["b", "a"])


def test_labels_are_given_once() -> None:
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: "a", 1: "b"}, "label")
    with pytest.raises(InputError, match=r"labels are given twice"):
        as_graph(graph, np.eye(2), labels=["a", "b"])


def test_optional_packages_are_imported_only_with_an_object_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pandas", "polars", "pyarrow", "networkx"):
        monkeypatch.setitem(sys.modules, package, None)  # an import would fail
    assert as_graph(np.array([[0, 1, 2], [1, 2, 0]]), np.eye(3), labels=[1, 0, None]).num_edges == 6
    assert as_graph(Data(torch.eye(2), torch.tensor([[0], [1]]))).num_edges == 2


@pytest.mark.parametrize("layout", ["dense", "csr", "coo"])
def test_a_data_may_have_sparse_features(layout: str) -> None:
    x = torch.eye(4, 50)
    given = {"dense": x, "csr": SparseMatrix.from_dense(x).a, "coo": x.to_sparse_coo()}[layout]
    made = as_graph(Data(x=given, edge_index=torch.tensor([[0, 1], [1, 2]])))
    assert torch.equal(made.x.to_dense(), x)
    assert (made.x.layout == torch.sparse_csr) == (layout != "dense")
    assert (made.x is given) == (layout != "coo")
    assert (made.num_nodes, made.num_features) == (4, 50)
    assert torch.equal(made.clone().to("cpu").x.to_dense(), x)


def test_sparse_features_that_say_nothing_are_refused_or_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    edges, same = np.array([[0, 1], [1, 2]]), np.zeros((3, 50))
    with pytest.raises(InputError, match=r"nothing but zeros"):
        as_graph(edges, scipy.sparse.csr_array(same))
    same[:, 4] = 2
    as_graph(edges, scipy.sparse.csr_array(same))
    assert "the same features for every node" in caplog.text
    caplog.clear()
    same[0, 4] = 0
    as_graph(edges, scipy.sparse.csr_array(same))
    assert not caplog.text
