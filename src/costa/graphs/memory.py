"""Read a user's own graph from objects in memory: PyG, NetworkX, scipy, NumPy, pandas and polars."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.arrays import Features, Links, adjacency_links, as_features, as_labels, as_links
from costa.graphs.assembly import assemble, check_informative, make_features, undirected
from costa.graphs.benchmarks import BENCHMARKS
from costa.graphs.checks import check_edges, check_graph
from costa.graphs.tables import Column, Table, from_frame, is_missing
from costa.nn.sparse import from_coo

logger = logging.getLogger(__name__)


def as_graph(graph: Any, features: Any = None, nodes: Any = None, *, labels: Any = None) -> Data:
    """Convert any supported object to a graph; see :mod:`costa.graphs.assembly` for edges, weights and labels.

    The input is not modified. A benchmark's ``Data`` from ``load_graph`` comes back unchanged; any other has its
    edges made undirected, duplicates merged and self-loops removed, and keeps its other attributes.

    Args:
        graph: A ``torch_geometric.data.Data``; a NetworkX graph, whose numeric node attributes are the features and
            whose ``label`` is the label; a scipy sparse adjacency matrix; an edge array of row numbers, 2 × edges
            or edges × 2; a pandas or polars frame with ``source``, ``target`` and perhaps ``weight``; what
            ``load_graph`` takes; or a tuple of these arguments. ``x`` of a Data may be dense, CSR or COO.
        features: An array, a scipy matrix (which stays sparse), or a frame, perhaps with an ``id``; made from the
            edges if left out.
        nodes: A frame with ``id`` and perhaps ``label``.
        labels: One for each node, in the nodes' order; None, NaN or a negative number if unlabelled.

    Raises:
        InputError: Something does not fit; the message says where and what to do.

    Example:
        >>> graph = as_graph(np.array([[0, 1], [1, 2], [2, 1]]), np.eye(3), labels=["a", "b", None])
        >>> graph.edge_index.tolist(), graph.y.tolist(), graph.label_names
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [0, 1, -1], ['a', 'b'])
    """
    if isinstance(graph, tuple):
        return as_graph(*graph, labels=labels)
    if isinstance(graph, str | os.PathLike):
        from costa.graphs import load_graph

        return load_graph(graph, features=features, nodes=nodes)
    if isinstance(graph, Data):
        if features is not None or nodes is not None or labels is not None:
            raise InputError("a Data brings its own features and labels; set its x and y instead of giving others.")
        data = _from_data(graph)
    else:
        data = _from_parts(graph, features, nodes, labels)
    check_graph(data)
    return data


def _from_data(given: Data) -> Data:
    data = copy.copy(given)
    x = data.x
    if isinstance(x, torch.Tensor) and x.layout == torch.sparse_coo and x.sparse_dim() == x.dim() == 2:
        data.x = from_coo(x)
    if data.get("name") in {benchmark.name for benchmark in BENCHMARKS}:
        return data
    if data.x is None:
        check_edges(data.edge_index, int(data.num_nodes or 0))
    else:
        check_graph(data)
    n = int(data.num_nodes)
    weight = data.get("edge_weight")
    links = Links("the Data", data.edge_index.cpu().numpy(), None if weight is None else weight.double().cpu().numpy())
    edge_index, edge_weight = undirected(links, n)
    device = data.edge_index.device
    data.edge_index = edge_index.to(device)
    if edge_weight is not None:
        data.edge_weight = edge_weight.to(device)
    if data.x is None:
        data.x, data.x_from_edges = make_features(edge_index, edge_weight, n, "the Data").to(device), True
    else:
        check_informative(data.x, "x of the Data")
    return data


def _from_parts(graph: Any, features: Any, nodes: Any, labels: Any) -> Data:
    edges: Table | Links
    node_table = None if nodes is None else _frame(nodes, "the node table")
    matrix = None if features is None else _features(features)
    if _is_a(graph, "networkx", "Graph"):
        edges, attributes, graph_nodes = networkx_tables(graph, "the NetworkX graph")
        matrix, node_table = matrix or attributes, node_table or graph_nodes
    else:
        edges = _edges(graph)
    if labels is not None:
        if node_table is not None and "label" in node_table.columns:
            raise InputError("labels were given twice, as labels and in the nodes; give them once.")
        labels = _labels(labels)
    return assemble(edges, matrix, node_table, labels)


def _edges(graph: Any) -> Table | Links:
    if scipy.sparse.issparse(graph):
        return adjacency_links(graph, "the adjacency matrix")
    if _is_frame(graph):
        return from_frame(graph, "the edge table")
    array = _array(graph)
    if array is None:
        raise InputError(
            f"a {type(graph).__name__} is not a graph that costa can read; give a PyG Data, a NetworkX graph, a scipy"
            " adjacency matrix, an edge array, or a pandas or polars frame."
        )
    return as_links(array, None, "the edge array")


def _features(features: Any) -> Table | Features:
    if _is_frame(features):
        return from_frame(features, "the feature table")
    matrix = features if scipy.sparse.issparse(features) else _array(features)
    if matrix is None:
        raise InputError(
            f"a {type(features).__name__} cannot be read as features; give an array, a scipy matrix or a frame."
        )
    return as_features(matrix, "the feature array", "the feature array")


def _frame(nodes: Any, where: str) -> Table:
    if not _is_frame(nodes):
        raise InputError(f"nodes must be a pandas or polars frame with the column id, not a {type(nodes).__name__}.")
    return from_frame(nodes, where)


def _labels(labels: Any) -> list[str]:
    if getattr(labels, "ndim", 1) != 1:
        raise InputError(f"the labels have the shape {tuple(labels.shape)}; give one for each node.")
    return as_labels(labels)


def _array(given: Any) -> np.ndarray | None:
    if isinstance(given, torch.Tensor):
        return given.detach().cpu().numpy() if given.layout == torch.strided else None
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        try:
            return np.asarray(given)
        except ValueError:  # rows of different length
            return None
    return None


def _is_a(given: Any, package: str, name: str) -> bool:
    """Whether an object is an instance of a class or its subclass, without importing the package."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__)
    return (package, name) in kinds


def _is_frame(given: Any) -> bool:
    return _is_a(given, "pandas", "DataFrame") or _is_a(given, "polars", "DataFrame")


def networkx_tables(graph: Any, where: str) -> tuple[Table, Table | None, Table]:
    """Edges, features and nodes of a NetworkX graph, directed or not, simple or not.

    Numeric node attributes are the features and must be on every node; others are left out with a warning. If any edge
    has a weight, an edge without one has weight 1, as in NetworkX.
    """
    links = list(graph.edges(data="weight"))
    source, target, weight = (list(column) for column in zip(*links, strict=True)) if links else ([], [], [])
    ends: dict[str, Column] = {"source": _names(source), "target": _names(target)}
    if any(value is not None for value in weight):
        ends["weight"] = [1 if value is None else value for value in weight]
    ids = _names(graph)
    attributes = dict.fromkeys(k for _, node in graph.nodes(data=True) for k in node if k not in ("id", "label"))
    numeric, other = {}, []
    for name in attributes:
        values = [node.get(name) for _, node in graph.nodes(data=True)]
        kinds = {isinstance(value, int | float | np.number | np.bool_) for value in values if not is_missing(value)}
        if kinds == {False}:
            other.append(str(name))
            continue
        if None in values:
            lacking = ids[values.index(None)]
            raise InputError(
                f"{where} has the attribute {name!r} on some nodes but not on {lacking!r}; "
                f"give it to every node or to none."
            )
        numeric[str(name)] = values
    if other:
        logger.warning("%s: node attributes that are not numbers are left out: %s.", where, ", ".join(other))
    columns: dict[str, Column] = {"id": ids}
    if any("label" in node for _, node in graph.nodes(data=True)):
        columns["label"] = [node.get("label") for _, node in graph.nodes(data=True)]
    features = Table(where, where, {"id": ids} | numeric, len(ids)) if numeric else None
    return Table(where, where, ends, len(source)), features, Table(where, where, columns, len(ids))


def _names(nodes: Any) -> list[str]:
    return [str(node) for node in nodes]
