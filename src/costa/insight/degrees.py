"""Degrees: bins, quantities by bin, and rank correlation with a quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree, remove_self_loops

from costa.graphs.storage import StoredGraph

BIN_STARTS = (0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 50, 100, 200, 500, 1000)
"""The smallest degree of each bin: single degrees at first, then each bin is about twice as wide."""


def degrees(graph: Data) -> Tensor:
    """The number of neighbours of each node, without itself."""
    if isinstance(graph, StoredGraph):
        return graph.crow.diff()
    counted: Tensor = degree(remove_self_loops(graph.edge_index)[0][1], graph.num_nodes, dtype=torch.int64)
    return counted.cpu()


def bins(degree: Tensor) -> list[tuple[str, Tensor]]:
    """The bins that have nodes: the name of each bin and the mask of its nodes.

    >>> [(name, int(inside.sum())) for name, inside in bins(torch.tensor([1, 1, 5, 6, 2000]))]
    [('1', 2), ('5–6', 2), ('≥ 1,000', 1)]
    """
    bins_with_nodes = []
    for start, after in zip(BIN_STARTS, (*BIN_STARTS[1:], None), strict=True):
        inside = degree >= start if after is None else (degree >= start) & (degree < after)
        if inside.any():
            single = after is not None and after == start + 1
            name = f"{start}" if single else f"≥ {start:,}" if after is None else f"{start}–{after - 1}"
            bins_with_nodes.append((name, inside))
    return bins_with_nodes


def quartiles(values: Tensor) -> list[float]:
    """The lower quartile, the median and the upper quartile, without NaN; three NaN if nothing else is left."""
    real = values[~values.isnan()]
    if not real.numel():
        return [float("nan")] * 3
    return [float(value) for value in np.quantile(real.numpy(), [0.25, 0.5, 0.75])]


def by_degree(degree: Tensor, values: Tensor) -> list[dict[str, Any]]:
    """For each bin: its name, the mean degree and the number of its nodes, and the quartiles of their values."""
    return [
        {
            "degree": name,
            "mean": float(degree[inside].double().mean()),
            "nodes": int(inside.sum()),
            "quartiles": quartiles(values[inside]),
        }
        for name, inside in bins(degree)
    ]


def rank_correlation(degree: Tensor, values: Tensor) -> float:
    """Spearman's ρ of the degree and a quantity, over nodes where it is not NaN; NaN if either is constant."""
    from scipy.stats import rankdata

    real = ~values.isnan()
    ranks = [rankdata(column[real].numpy()) for column in (degree, values)]
    if not real.any() or any(np.ptp(rank) == 0 for rank in ranks):
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def share_below(degree: Tensor, limits: Sequence[int]) -> list[float]:
    """The share of nodes with a degree below each limit."""
    return [float((degree < limit).double().mean()) for limit in limits]
