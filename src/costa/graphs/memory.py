"""Read a user's own graph from objects in memory: PyG, NetworkX, scipy, NumPy, pandas and polars."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data, HeteroData

from costa.errors import InputError
from costa.graphs.arrays import Features, Links, adjacency_links, as_features, as_links
from costa.graphs.assembly import assemble, undirected
from costa.graphs.benchmarks import BENCHMARKS, is_benchmark
from costa.graphs.checks import check_edges, check_graph
from costa.graphs.columns import Columns, Said, said_by, with_columns
from costa.graphs.features import check_informative, make_features
from costa.graphs.hetero import merge_types
from costa.graphs.labels import encode_labels, labels_of
from costa.graphs.roles import node_table, unread
from costa.graphs.tables import Column, Table, from_frame
from costa.nn.sparse import from_coo

logger = logging.getLogger(__name__)


def as_graph(
    graph: Any,
    features: Any = None,
    nodes: Any = None,
    *,
    labels: Any = None,
    columns: Said = None,
) -> Data:
    """Convert any supported object to a graph; see :mod:`costa.graphs.assembly` for edges, weights and labels.

    The input is not modified. Edges become undirected, duplicates are merged and self-loops removed. A ``Data`` keeps
    its other attributes; it is a benchmark only if it has that benchmark's name and sizes.

    Args:
        graph: A ``torch_geometric.data.Data``, or a ``HeteroData`` (:mod:`costa.graphs.hetero`); a NetworkX graph,
            whose node attributes are the features and whose ``label`` is the label; a scipy sparse adjacency matrix; an
            edge array of row numbers, 2 × edges or edges × 2; a pandas or polars frame with ``source``, ``target`` and
            perhaps ``weight``; what ``load_graph`` takes; or a tuple of these arguments. ``x`` of a Data may be dense,
            CSR or COO.
        features: An array, a scipy matrix (which stays sparse), or a frame, perhaps with ids and labels; made from the
            edges if left out.
        nodes: A frame with ``id`` and perhaps ``label``; its other columns are the features if there are no others.
        labels: One for each node, in the nodes' order, None, NaN or −1 if unlabelled; or by id, in a dictionary or a
            pandas series.
        columns: What columns are that would be taken for something else, such as ``{"customer": "id"}``; or the
            ``columns`` of another graph, to have its features.

    Raises:
        InputError: Something does not fit; the message says where and what to do.

    Example:
        >>> graph = as_graph(np.array([[0, 1], [1, 2], [2, 1]]), np.eye(3), labels=["a", "b", None])
        >>> graph.edge_index.tolist(), graph.y.tolist(), graph.label_names
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [0, 1, -1], ['a', 'b'])
    """
    if isinstance(graph, tuple):
        given = dict(zip(("graph", "features", "nodes"), graph, strict=False))
        if len(graph) > 3 or not graph:
            raise InputError(f"a tuple of {len(graph)} is not a graph; give edges, features and nodes, in this order.")
        beside = {name: value for name, value in (("features", features), ("nodes", nodes)) if value is not None}
        twice = [name for name in beside if given.get(name) is not None]
        if twice:
            raise InputError(f"{twice[0]} were given twice, inside and beside the tuple; give them once.")
        return as_graph(**given | beside, labels=labels, columns=columns)
    if isinstance(graph, str | os.PathLike):
        from costa.graphs import load_graph

        data = load_graph(graph, features=features, nodes=nodes, columns=columns)
        return data if labels is None else _with_labels(data, labels)
    if isinstance(graph, Data | HeteroData):
        if features is not None or nodes is not None or labels is not None:
            raise InputError("a Data brings its own features and labels; set its x and y instead of giving others.")
        data = _from_data(merge_types(graph) if isinstance(graph, HeteroData) else graph)
        if isinstance(columns, Columns):
            data = with_columns(data, columns)
    else:
        data = _from_parts(graph, features, nodes, labels, columns)
    check_graph(data)
    return data


def _with_labels(data: Data, labels: Any) -> Data:
    if data.y is not None and bool((data.y >= 0).any()):
        raise InputError(
            f"{data.name} has labels of its own; leave out the labels that you give, or give its y others."
        )
    texts = labels_of(labels, data.get("node_ids") or range(data.num_nodes))
    if len(texts) != data.num_nodes:
        raise InputError(
            f"there are {len(texts)} labels for {data.num_nodes} nodes; give one each, empty if unlabelled."
        )
    data.y, data.label_names = encode_labels(texts)
    return data


def _from_data(given: Data) -> Data:
    data = copy.copy(given)
    x = data.x
    if isinstance(x, torch.Tensor) and x.layout == torch.sparse_coo and x.sparse_dim() == x.dim() == 2:
        data.x = from_coo(x)
    if data.x is None:
        check_edges(data.edge_index, int(data.num_nodes or 0))
    else:
        check_graph(data)
    n = int(data.num_nodes)
    weight = data.get("edge_weight")
    if data.get("edge_attr") is not None:
        logger.warning("edge_attr of the Data is not read; if it holds weights, make it edge_weight.")
        del data.edge_attr  # its rows would belong to other edges
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
    # what is stored of a run must not pass for a benchmark's
    if data.get("name") in {benchmark.name for benchmark in BENCHMARKS} and not is_benchmark(data):
        data.name += "-data"
    return data


def _from_parts(graph: Any, features: Any, nodes: Any, labels: Any, columns: Said) -> Data:
    edges: Table | Links
    tables = None if nodes is None else _frame(nodes, "the node table")
    matrix = None if features is None else _features(features)
    if _is_a(graph, "networkx", "Graph"):
        edges, graph_nodes = networkx_tables(graph, "the NetworkX graph")
        tables = tables or graph_nodes
    else:
        edges = _edges(graph)
    if isinstance(edges, Links):
        for table in (tables, matrix):
            if isinstance(table, Table):
                _check_positions(edges, table, said_by(columns))
    return assemble(edges, matrix, tables, labels, columns)


def _check_positions(links: Links, table: Table, columns: Mapping[str, str]) -> None:
    """Refuse ids that are whole numbers in another order than the rows, if links between row numbers may mean them."""
    ends = dict.fromkeys(map(str, np.unique(links.index).tolist()))
    named = node_table(table, ends, links.where, columns)
    if "id" not in named.columns or not ends:
        return
    ids = named.text("id")
    if ends.keys() <= set(ids) and ids != [str(row) for row in range(len(ids))]:
        raise InputError(
            f"{links.where} names nodes by number, and {table.where} has these numbers as ids in another order than its"
            " rows; give the edges as a frame with the columns source and target if they are ids, or leave the ids out."
        )


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


def networkx_tables(graph: Any, where: str) -> tuple[Table, Table]:
    """Edges and nodes of a NetworkX graph, directed or not, simple or not.

    Node attributes are columns; one that is an array has a column for each number. If any edge has a weight, an edge
    without one has weight 1, as in NetworkX.
    """
    links = list(graph.edges(data=True))
    source, target, about = (list(column) for column in zip(*links, strict=True)) if links else ([], [], [])
    ends: dict[str, Column] = {"source": _names(source), "target": _names(target)}
    if any(edge.get("weight") is not None for edge in about):
        ends["weight"] = [1 if edge.get("weight") is None else edge["weight"] for edge in about]
    others = dict.fromkeys(str(key) for edge in about for key in edge if key not in ("weight", "id"))
    unread(f"the edges of {where}", list(others), "an edge has two ends and perhaps a weight")
    ids = _names(graph)
    columns: dict[str, Column] = {"id": ids}
    nodes = [node for _, node in graph.nodes(data=True)]
    for key in dict.fromkeys(key for node in nodes for key in node if key != "id"):
        values = [node.get(key) for node in nodes]
        columns |= _attribute(str(key), values, ids, where)
    return Table(where, where, ends, len(source)), Table(where, where, columns, len(ids))


def _attribute(name: str, values: list[Any], ids: list[str], where: str) -> dict[str, Column]:
    """A node attribute as a column, or as one for each number if the nodes have arrays of one length."""
    lists = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    if not any(isinstance(value, list | tuple | dict | set) for value in lists):
        return {name: lists}
    lengths = [len(value) if isinstance(value, list | tuple) else None for value in lists]
    odd = next(
        (node for node, length in zip(ids, lengths, strict=True) if length in (None, 0) or length != lengths[0]), None
    )
    if odd is not None:
        raise InputError(
            f"{where} has the attribute {name!r}, which is an array on some nodes and something else, or of another"
            f" length, on {odd!r}; give every node an array of one length."
        )
    return {f"{name}[{place}]": [value[place] for value in lists] for place in range(len(lists[0]))}


def _names(nodes: Any) -> list[str]:
    return [str(node) for node in nodes]
