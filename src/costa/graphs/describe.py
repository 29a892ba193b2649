"""Describe a graph in one line."""

from __future__ import annotations

from torch_geometric.data import Data

from costa.graphs.labels import classes_of
from costa.graphs.storage import StoredGraph
from costa.wording import counted


def describe(graph: Data) -> str:
    """Name, size and number of classes, in one line; on how many nodes, if some have no label.

    >>> from costa.graphs import load_graph
    >>> describe(load_graph("digits"))
    'digits: 1,797 nodes, 7,522 edges, 64 features, 10 classes'
    """
    edges = counted(count_edges(graph), "edge")
    weighted = " (weighted)" if graph.get("edge_weight") is not None else ""
    y = graph.get("y")
    classes = 0 if y is None else len(classes_of(y))
    labels = "1 class" if classes == 1 else f"{classes} classes" if classes else "no labels"
    if classes and (labelled := int((y >= 0).sum())) < graph.num_nodes:
        labels += f" on {labelled:,} of the nodes"
    nodes, features = counted(graph.num_nodes, "node"), counted(graph.num_features, "feature")
    return f"{graph.name}: {nodes}, {edges}{weighted}, {features}, {labels}"


def count_edges(graph: Data) -> int:
    """The number of edges, each counted once."""
    loops = 0 if isinstance(graph, StoredGraph) else int((graph.edge_index[0] == graph.edge_index[1]).sum())
    return (graph.num_edges - loops) // 2 + loops


def is_labelled(graph: Data) -> bool:
    """Whether the labels have at least two classes (-1 means unlabelled)."""
    y = graph.get("y")
    return y is not None and len(classes_of(y)) > 1
