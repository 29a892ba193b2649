"""Assemble a graph from edges, features and nodes, whatever their source.

**Nodes.** Their order is that of the node table if there is one, else of the feature rows, else the order in which
the edges first name them. Features with ids are matched by id; otherwise their rows follow the node table, or the ids
are the row numbers 0 … n − 1. A node without an edge is kept.

**Edges.** The graph is undirected, in whichever direction an edge is listed. Rows with the same source and target are
one edge and their weights add up; the larger weight of the two directions counts, so listing an undirected edge both
ways does not double it: w_{ij} = max(Σ w(i→j), Σ w(j→i)). A weight of 0 means no edge. Self-loops are dropped, because
the encoders add their own.

**Labels** (:mod:`costa.graphs.labels`) are those of the node table, else of the feature table.

**Features** are the other columns of the feature table, or of the node table if there is no feature table. If there are
none at all they are made from the edges (:mod:`costa.graphs.structure`), with a warning. Which column is what
is the matter of :mod:`costa.graphs.roles`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Container, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from costa.errors import InputError
from costa.graphs.arrays import Features, Links, check_room, check_size
from costa.graphs.columns import Columns, Said, fit_columns, said_by
from costa.graphs.features import as_tensor, count_of, ids_of, make_features, rows_of
from costa.graphs.kinds import ROLES, said_of
from costa.graphs.labels import as_labels, check_once, encode_labels, label_column, labels_of
from costa.graphs.roles import check_said, edge_table, node_table, others, unread
from costa.graphs.tables import Table, is_number, require_column

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)

LIKE_LABELS = ("class", "classes", "labels", "target", "y", "category", "modularity_class")
"""What labels are often called, in small letters."""
NODE = 200
"""Bytes for each node, of its id as text and of features that are made from the edges."""


def assemble(
    edges: Table | Links,
    features: Table | Features | None = None,
    nodes: Table | None = None,
    labels: Any = None,
    columns: Said = None,
) -> Data:
    """The graph, with ``node_ids`` and ``label_names`` to translate rows and codes back.

    If the features are a table's, it has the ``table``, its rows in the nodes' order and without ids and labels; the
    ``columns`` that say what becomes of it; and the ``feature_names`` of x.

    Args:
        edges: A table of edges, or links between row numbers.
        features: A table, perhaps with ids and labels; or a matrix.
        nodes: A table of ids, perhaps with labels.
        labels: Labels beside the tables, see :func:`costa.graphs.labels.labels_of`.
        columns: What the user says that columns of the nodes and the features are; or what a model has decided.

    Raises:
        InputError: Something does not fit; the message says where and what to do.
    """
    from torch_geometric.data import Data

    ends, fitted = list[list[str]](), columns if isinstance(columns, Columns) else None
    given = said_by(columns)
    if fitted is None:
        tables = [table for table in (nodes, features) if isinstance(table, Table)]
        check_said(given, [name for table in tables for name in table.columns])
    if isinstance(edges, Table):
        edges = edge_table(edges)
        ends = [edges.ids(end) for end in ("source", "target")]
    named = dict.fromkeys(chain.from_iterable(zip(*ends, strict=True)))
    if nodes is not None:
        nodes = node_table(nodes, named, edges.where, given)
        require_column("id", list(nodes.columns), nodes.where)
    if isinstance(features, Table):
        known, known_from = named, edges.where
        if nodes is not None:
            known, known_from = dict.fromkeys(nodes.ids("id")), nodes.where
        features = node_table(features, known, known_from, given)
        check_size((features.rows, len(others(features.columns))), features.where)
    elif features is None and nodes is not None and others(nodes.columns):
        features = nodes
    if nodes is not None and features is not None and features is not nodes:
        unread(nodes.where, others(nodes.columns), f"{features.where} has the features")

    own = None if features is None else ids_of(features)
    ids, known_as = _number(edges, named, features, own, nodes)
    rows = None if features is None or nodes is None else rows_of(features, own, ids, nodes)
    links = edges if isinstance(edges, Links) else number_ends(edges, ends, ids, known_as)
    edge_index, edge_weight = undirected(links, len(ids))

    tables = [] if nodes is None else [nodes]
    data = Data(edge_index=edge_index)
    if edge_weight is not None:
        data.edge_weight = edge_weight
    if isinstance(features, Table):
        features = features.take(rows)
        tables += [features] if nodes is not features else []
        data.table = features.without(*ROLES)
        data.columns = fitted or fit_columns(data.table, said_of(data.table.columns, given))
        data.feature_names = data.columns.names
        _warn_of_labels(data.table, labels is None and not any("label" in table.columns for table in tables))
    if isinstance(features, Features):
        data.x = as_tensor(features.x if rows is None else features.x[rows], features.where)
    elif features is not None and data.feature_names:
        data.x = as_tensor(data.columns.transform(data.table), features.where)
    else:
        data.x, data.x_from_edges = make_features(edge_index, edge_weight, len(ids), links.where), True
    data.y, data.label_names = _labels(labels, tables, ids)
    data.node_ids = ids
    return data


def _number(
    edges: Table | Links,
    named: Collection[str],
    features: Table | Features | None,
    own: list[str] | None,
    nodes: Table | None,
) -> tuple[list[str], str]:
    """The ids of the nodes in order, and what an id is in an error message."""
    if nodes is not None:
        return nodes.unique_ids(), f"an id in {nodes.short}"
    if features is not None and own is not None:
        return own, f"an id in {features.short}"
    if features is not None:
        n = count_of(features)
        return [str(row) for row in range(n)], f"a row number of {features.short} (0 to {n - 1})"
    if isinstance(edges, Table):
        return list(named), "an id"
    n = edges.num_nodes if edges.num_nodes is not None else int(edges.index.max(initial=-1)) + 1
    what = f"{edges.where} names node {n - 1}, and as many nodes need at least"
    check_room(n * NODE, what, "number the nodes from 0 without gaps, or give the edges as a table of ids")
    return [str(row) for row in range(n)], "a row number"


def _warn_of_labels(features: Table, unlabelled: bool) -> None:
    """Say that a column of an unlabelled graph is a feature though it is called like labels."""
    name = next((name for name in features.columns if name.casefold() in LIKE_LABELS), None)
    if unlabelled and name is not None:
        logger.warning(
            "%s: the column %r is a feature; if it is the label, say --columns %s=label.", features.where, name, name
        )


def _labels(labels: Any, tables: Sequence[Table], ids: Sequence[str]) -> tuple[Tensor, list[str]]:
    """The labels of the nodes: those given, or those of the one table that has some."""
    labelled = [table for table in tables if "label" in table.columns]
    check_once([*(["the labels"] if labels is not None else []), *map(label_column, labelled)])
    where = f"the labels in {labelled[0].where}" if labelled else "the labels"
    if labels is not None:
        texts = labels_of(labels, ids)
    else:
        texts = as_labels(labelled[0].columns["label"], where) if labelled else [""] * len(ids)
    if len(texts) != len(ids):
        raise InputError(f"there are {len(texts)} labels for {len(ids)} nodes; give one each, empty if unlabelled.")
    return encode_labels(texts, where)


def number_ends(table: Table, ends: Sequence[Sequence[str]], ids: list[str], known_as: str) -> Links:
    """The edges of a table as links between positions in ``ids``."""
    number = {node: i for i, node in enumerate(ids)}
    index = np.empty((2, table.rows), dtype=np.int64)
    for end, (name, cells) in enumerate(zip(("source", "target"), ends, strict=True)):
        try:
            index[end] = np.fromiter(map(number.__getitem__, cells), dtype=np.int64, count=table.rows)
        except KeyError as error:
            unknown = error.args[0]
            raise InputError(
                f"{table.where} has the {name} {unknown!r} in row {cells.index(unknown) + 1}, which is not {known_as}"
                + remedy(unknown, number)
            ) from None
    weight = None
    if "weight" in table.columns:
        weight = table.numbers("weight").astype(np.float64)
        if (weight < 0).any():
            row = int(np.flatnonzero(weight < 0)[0])
            raise InputError(
                f"{table.where} has the weight {weight[row]:g} in row {row + 1}; weights must be 0 or more."
            )
    return Links(table.where, index, weight)


def remedy(unknown: str, known: Container[str]) -> str:
    """What to do about an unknown id."""
    if is_number(unknown) and math.isfinite(float(unknown)) and float(unknown).is_integer():
        whole = str(int(float(unknown)))
        if whole in known:
            return f", though {whole!r} is; write ids the same way everywhere."
    for other in (unknown.lower(), unknown.upper(), unknown.title()):
        if other in known:
            return f", though {other!r} is; write ids with the same capital letters everywhere."
    return "; add that node or drop the row."


def undirected(links: Links, n: int) -> tuple[Tensor, Tensor | None]:
    """``edge_index`` with both directions of each edge, sorted, and the weights if there are any."""
    from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

    edge_index, weight = torch.from_numpy(links.index), None
    if links.num_nodes not in (None, n):
        raise InputError(
            f"{links.where} has {links.num_nodes} rows, but there are {n} nodes; give one row for each node."
        )
    if links.index.size:
        low, high = int(links.index.min()), int(links.index.max())
        if low < 0 or high >= n:
            node = low if low < 0 else high
            raise InputError(
                f"{links.where} names node {node}, but there are only the nodes 0 to {n - 1}; drop the edge, or give"
                " the node its features."
            )
    if links.weight is not None:
        _check_weights(links.weight, links)
        weight = torch.from_numpy(links.weight).float()
        edge_index, weight = edge_index[:, weight > 0], weight[weight > 0]
    before = edge_index.size(1)
    edge_index, weight = remove_self_loops(edge_index, weight)
    if not edge_index.numel():
        logger.warning("%s joins no two nodes; vectors will use each node's own features only.", links.where)
    if edge_index.size(1) < before:
        logger.info("%s: %d self-loops dropped", links.where, before - edge_index.size(1))
    if weight is None:
        return to_undirected(edge_index, num_nodes=n), None
    edge_index, weight = coalesce(edge_index, weight, num_nodes=n, reduce="sum")
    edge_index, weight = to_undirected(edge_index, weight, num_nodes=n, reduce="max")
    return edge_index, weight


def _check_weights(weight: NDArray[np.float64], links: Links) -> None:
    bad = np.flatnonzero(~((weight >= 0) & (weight <= np.finfo(np.float32).max)))
    if bad.size:
        source, target = links.index[:, bad[0]].tolist()
        raise InputError(
            f"{links.where} has the weight {weight[bad[0]]:g} between the nodes {source} and {target}; "
            f"weights must be finite and 0 or more."
        )
