"""Assemble a graph from edges, features and nodes, whatever their source.

**Nodes.** Their order is that of the node table if there is one, else of the feature rows, else the order in which
the edges first name them. Features with ids are matched by id; otherwise their rows follow the node table, or the ids
are the row numbers 0 … n − 1. A node without an edge is kept.

**Edges.** The graph is undirected, in whichever direction an edge is listed. Rows with the same source and target are
one edge and their weights add up; the larger weight of the two directions counts, so listing an undirected edge both
ways does not double it: w_{ij} = max(Σ w(i→j), Σ w(j→i)). A weight of 0 means no edge. Self-loops are dropped, because
the encoders add their own.

**Labels.** Text becomes codes 0, 1, … in sorted order (numbers by value), with the text in ``label_names``; an
empty label becomes −1, unlabelled.

**Missing features** are made from the edges (:mod:`costa.graphs.structure`), with a warning.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Container, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from torch import Tensor

from costa.errors import InputError
from costa.graphs.arrays import Features, Links, check_size
from costa.graphs.structure import COLUMNS, WHAT, structural_features
from costa.graphs.tables import Table, is_number
from costa.nn.sparse import from_scipy, is_csr, to_scipy

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)


def assemble(
    edges: Table | Links,
    features: Table | Features | None = None,
    nodes: Table | None = None,
    labels: Sequence[str] | None = None,
) -> Data:
    """The graph, with ``node_ids`` and ``label_names`` to translate rows and codes back.

    Args:
        edges: A table with ``source``, ``target`` and perhaps ``weight``, or links between row numbers.
        features: A table of numbers, perhaps with an ``id``; or a matrix.
        nodes: A table with ``id`` and perhaps ``label``.
        labels: Labels that replace the table's, one for each node in the nodes' order.

    Raises:
        InputError: Something does not fit; the message says where and what to do.
    """
    from torch_geometric.data import Data

    if isinstance(features, Table):
        features = table_features(features)
    if nodes is not None:
        ids, known_as = nodes.unique_ids(), f"an id in {nodes.short}"
    elif features is not None and features.ids is not None:
        ids, known_as = features.ids, f"an id in {features.short}"
    elif features is not None:
        ids = [str(row) for row in range(features.x.shape[0])]
        known_as = f"a row number of {features.short} (0 to {len(ids) - 1})"
    elif isinstance(edges, Table):
        ends = (edges.ids(end) for end in ("source", "target"))
        ids, known_as = list(dict.fromkeys(chain.from_iterable(zip(*ends, strict=True)))), "an id"
    else:
        count = edges.num_nodes if edges.num_nodes is not None else int(edges.index.max(initial=-1)) + 1
        ids, known_as = [str(row) for row in range(count)], "a row number"
    matched = None if features is None else _match(features, ids, nodes)
    links = number_ends(edges, ids, known_as) if isinstance(edges, Table) else edges
    edge_index, edge_weight = undirected(links, len(ids))

    if labels is None:
        labels = [""] * len(ids) if nodes is None else _labels(nodes)
    if len(labels) != len(ids):
        raise InputError(f"there are {len(labels)} labels for {len(ids)} nodes; give one each, empty if unlabelled.")
    y, label_names = encode_labels(labels)
    x = make_features(edge_index, edge_weight, len(ids), links.where) if matched is None else matched
    data = Data(x=x, edge_index=edge_index, y=y)
    if matched is None:
        data.x_from_edges = True
    if edge_weight is not None:
        data.edge_weight = edge_weight
    data.node_ids = ids
    data.label_names = label_names
    return data


def _labels(nodes: Table) -> list[str]:
    """The column ``label``; if there is none, no node is labelled."""
    if "label" in nodes.columns:
        return nodes.text("label")
    missing_labels(nodes.where, list(nodes.columns))
    return [""] * nodes.rows


def missing_labels(where: str, columns: Sequence[str]) -> None:
    """Warn that a table of nodes has no labels if it has other columns, because one of them may be meant."""
    others = [name for name in columns if name != "id"]
    if others:
        logger.warning(
            "%s has no column 'label', so no node is labelled; its %s not read. Name the column of labels 'label'.",
            where,
            f"column {others[0]!r} is" if len(others) == 1 else f"columns {', '.join(map(repr, others))} are",
        )


def table_features(table: Table) -> Features:
    """All columns but ``id``, unscaled."""
    ids = table.unique_ids() if "id" in table.columns else None
    names = [name for name in table.columns if name != "id"]
    check_size((table.rows, len(names)), table.where)
    x = np.empty((table.rows, len(names)), dtype=np.float32)
    for column, name in enumerate(names):
        x[:, column] = table.numbers(name)
    return Features(table.where, table.short, x, ids)


def _match(features: Features, ids: list[str], nodes: Table | None) -> Tensor:
    """The feature rows in the order of the nodes."""
    x = features.x
    check_informative(_tensor(x), features.where)
    if features.ids == ids or nodes is None:
        return _tensor(x)
    if features.ids is None:
        if x.shape[0] != len(ids):
            raise InputError(
                f"{features.where} has {x.shape[0]} rows, but {nodes.short} lists {len(ids)} nodes; "
                f"give one row for each node."
            )
        return _tensor(x)
    row_of = {node: row for row, node in enumerate(features.ids)}
    missing = next((node for node in ids if node not in row_of), None)
    if missing is not None:
        raise InputError(f"{features.where} has no row for the node {missing!r} of {nodes.short}; add it.")
    if len(row_of) > len(ids):
        known = set(ids)
        extra = next(node for node in features.ids if node not in known)
        raise InputError(
            f"{features.where} has a row for {extra!r}, which {nodes.short} does not list; "
            f"add it there or drop the row."
        )
    return _tensor(x[[row_of[node] for node in ids]])


def _tensor(x: NDArray[np.float32] | csr_array) -> Tensor:
    return from_scipy(x) if issparse(x) else torch.from_numpy(x)


def check_informative(x: Tensor, where: str) -> None:
    """Refuse features that are all 0, from which no encoder can learn; warn if all nodes have the same features."""
    values = x.values() if is_csr(x) else x
    if not values.any():
        raise InputError(
            f"{where} holds nothing but zeros; give features, or leave them out to have them made from the edges."
        )
    if x.size(0) > 1 and _same_rows(x):
        logger.warning(
            "%s has the same features for every node, so they cannot tell nodes apart; leave them out to have them made"
            " from the edges.",
            where,
        )


def _same_rows(x: Tensor) -> bool:
    if is_csr(x):
        matrix = to_scipy(x.cpu())
        return int((matrix.min(axis=0) != matrix.max(axis=0)).sum()) == 0
    return bool((x.amin(0) == x.amax(0)).all())


def number_ends(table: Table, ids: list[str], known_as: str) -> Links:
    """The edges of a table as links between positions in ``ids``."""
    number = {node: i for i, node in enumerate(ids)}
    index = np.empty((2, table.rows), dtype=np.int64)
    for end, name in enumerate(("source", "target")):
        cells = table.ids(name)
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


def encode_labels(labels: Sequence[str]) -> tuple[Tensor, list[str]]:
    """Labels as codes in sorted order, −1 if empty, and the sorted labels.

    >>> encode_labels(["10", "", "9"])
    (tensor([ 1, -1,  0]), ['9', '10'])
    """
    given = set(labels) - {""}
    numeric = all(is_number(label) and math.isfinite(float(label)) for label in given)
    names = sorted(given, key=lambda label: (float(label), label)) if numeric else sorted(given)
    code = {"": -1} | {name: i for i, name in enumerate(names)}
    return torch.tensor([code[label] for label in labels], dtype=torch.long), names


def make_features(edge_index: Tensor, edge_weight: Tensor | None, n: int, where: str) -> Tensor:
    """Features from the edges; the warning comes first, because a large graph takes a while."""
    if not edge_index.numel():
        raise InputError(
            f"{where} gives neither features nor edges, so there is nothing to learn from; give one of them."
        )
    logger.warning("%s comes without node features; %d columns are made from the edges: %s.", where, COLUMNS, WHAT)
    return structural_features(edge_index, edge_weight, n)
