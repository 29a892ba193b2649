"""A graph of one's own: a folder, files named one by one, GraphML."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from costa.graphs.files import read_files, read_folder

Write = Callable[..., Path]
EdgesOf = Callable[[Data], list[list[int]]]
EDGES = "source,target\nann,bob\nbob,cy\n"
FEATURES = "id,age,height\nann,31,1.7\nbob,40,1.8\ncy,29,1.6\n"


def test_strings_as_ids(write: Write, edges_of: EdgesOf, folder: Path) -> None:
    data = read_folder(write(folder, edges__csv=EDGES, features__csv=FEATURES))
    assert data.name == "people"
    assert data.node_ids == ["ann", "bob", "cy"]
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert torch.equal(data.x, torch.tensor([[31, 1.7], [40, 1.8], [29, 1.6]]))
    assert data.x.dtype == torch.float32
    assert data.y.tolist() == [-1, -1, -1]
    assert data.label_names == []
    assert "edge_weight" not in data


def test_ids_stay_with_their_nodes_in_a_subgraph(write: Write, folder: Path) -> None:
    data = read_folder(write(folder, edges__csv=EDGES, features__csv=FEATURES))
    part = data.subgraph(torch.tensor([True, False, True]))
    assert part.node_ids == ["ann", "cy"]
    assert part.x.size(0) == 2


def test_files_named_one_by_one(write: Write, edges_of: EdgesOf, tmp_path: Path) -> None:
    write(tmp_path, links__tsv="source\ttarget\nz\tx\n", people__csv="id,label\nz,1\ny,\nx,2\n")
    scipy.sparse.save_npz(tmp_path / "words.npz", scipy.sparse.csr_array(np.eye(3)))
    data = read_files(tmp_path / "links.tsv", tmp_path / "words.npz", tmp_path / "people.csv")
    assert (data.name, data.node_ids, data.y.tolist()) == ("links", ["z", "y", "x"], [0, -1, 1])
    assert edges_of(data) == [[0, 2], [2, 0]]
    assert torch.equal(data.x, torch.eye(3))


def test_graphml(edges_of: EdgesOf, tmp_path: Path) -> None:
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
    assert data.feature_names == ["age", "tall"]
    assert data.x.tolist() == [[31, 1], [40, 1], [29, 0]]
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 1, 1]
    assert (data.y.tolist(), data.label_names) == ([1, 0, 1], ["a", "b"])
    assert [column.kind for column in data.columns.columns] == ["number", "flag", "constant"]
