"""The features of the nodes: whose rows they are, what is refused, and what is made if there are none."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from torch import Tensor

from costa.errors import InputError
from costa.graphs.arrays import Features
from costa.graphs.structure import COLUMNS, WHAT, structural_features
from costa.graphs.tables import Table
from costa.nn.sparse import from_scipy, is_csr, to_scipy

logger = logging.getLogger(__name__)


def ids_of(features: Table | Features) -> list[str] | None:
    """The ids of the rows, if they have any."""
    if isinstance(features, Table):
        return features.unique_ids() if "id" in features.columns else None
    return features.ids


def count_of(features: Table | Features) -> int:
    """The number of rows."""
    return features.rows if isinstance(features, Table) else int(features.x.shape[0])


def rows_of(features: Table | Features, own: list[str] | None, ids: Sequence[str], nodes: Table) -> list[int] | None:
    """The row of each node of a table of nodes; None if the rows are in the nodes' order.

    Args:
        features: The features.
        own: The ids of their rows; without any, the rows follow the nodes.
        ids: The ids of the nodes.
        nodes: The table that these are from.
    """
    if own is None:
        if count_of(features) != len(ids):
            raise InputError(
                f"{features.where} has {count_of(features)} rows, but {nodes.short} lists {len(ids)} nodes; "
                f"give one row for each node."
            )
        if ids != (numbers := [str(row) for row in range(len(ids))]) and set(ids) == set(numbers):
            raise in_doubt(features.where, nodes.where)
        return None
    if own == ids:
        return None
    row_of = {node: row for row, node in enumerate(own)}
    missing = next((node for node in ids if node not in row_of), None)
    if missing is not None:
        raise InputError(f"{features.where} has no row for the node {missing!r} of {nodes.short}; add it.")
    if len(row_of) > len(ids):
        known = set(ids)
        extra = next(node for node in own if node not in known)
        raise InputError(
            f"{features.where} has a row for {extra!r}, which {nodes.short} does not list; "
            f"add it there or drop the row."
        )
    return [row_of[node] for node in ids]


def in_doubt(features: str, nodes: str) -> InputError:
    """The error for rows without ids that may follow a table of nodes, or the numbers that are its ids."""
    return InputError(
        f"the ids of {nodes} are the numbers of the rows of {features}, in another order; sort the table of nodes by"
        " id, or give the features ids."
    )


def as_tensor(x: NDArray[np.float32] | csr_array, where: str) -> Tensor:
    """Features as a tensor, see :func:`check_informative`."""
    tensor = from_scipy(x) if issparse(x) else torch.from_numpy(x)
    check_informative(tensor, where)
    return tensor


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


def make_features(edge_index: Tensor, edge_weight: Tensor | None, n: int, where: str) -> Tensor:
    """Features from the edges; the warning comes first, because a large graph takes a while."""
    if not edge_index.numel():
        raise InputError(
            f"{where} gives neither features nor edges, so there is nothing to learn from; give one of them."
        )
    logger.warning("%s comes without node features; %d columns are made from the edges: %s.", where, COLUMNS, WHAT)
    return structural_features(edge_index, edge_weight, n)
