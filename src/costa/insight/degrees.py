"""Degrees: bins, rank correlation with a quantity, and whether their tail is a power law.

p(k) = k^−α/ζ(α, k₀) for k ≥ k₀. α maximises the likelihood of the degrees from k₀ on, and k₀ is the start whose fit has
the smallest Kolmogorov-Smirnov distance D to them (Clauset, Shalizi, Newman: Power-law distributions in empirical data,
SIAM Review 2009). A power law is plausible if samples of the fit itself are often at least as far from their own fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.utils import degree, remove_self_loops

BIN_STARTS = (0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 50, 100, 200, 500, 1000)
"""The smallest degree of each bin: single degrees at first, then each bin is about twice as wide."""
LEAST_TAIL = 50
"""The fewest nodes from k₀ on: an exponent from fewer nodes is mostly chance."""
EXPONENTS = (1.01, 8.0)
"""The range in which α is searched."""
LARGEST = 10**6
"""The largest degree in a sample of the fit."""


def degrees(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The number of neighbours of each node, without itself."""
    counted: Tensor = degree(remove_self_loops(edge_index)[0][1], num_nodes, dtype=torch.int64)
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


@dataclass(frozen=True)
class PowerLaw:
    """A fitted power law. ``exponent`` is α, ``start`` k₀, ``tail`` the number of nodes from k₀ on, ``distance`` D."""

    exponent: float
    start: int
    tail: int
    distance: float


def fit_power_law(degree: Tensor | NDArray[np.int64]) -> PowerLaw | None:
    """The fit of the degrees' tail; None if no tail of :data:`LEAST_TAIL` nodes has two different degrees.

    >>> rng = np.random.default_rng(0)
    >>> round(fit_power_law(rng.zipf(2.5, size=5000)).exponent, 1)
    2.5
    """
    values, counts = np.unique(np.asarray(degree), return_counts=True)
    values, counts = values[values > 0], counts[values > 0]
    fits = []
    for place in range(len(values) - 1):
        tail = int(counts[place:].sum())
        if tail < LEAST_TAIL:
            break
        fits.append(_fit_from(values[place:], counts[place:], tail))
    return min(fits, key=lambda fit: fit.distance, default=None)


def _fit_from(values: NDArray[np.int64], counts: NDArray[np.int64], tail: int) -> PowerLaw:
    """α and D of the degrees from the first value on."""
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    start, logs = int(values[0]), float(counts @ np.log(values))
    fitted = minimize_scalar(
        lambda alpha: alpha * logs + tail * np.log(zeta(alpha, start)), bounds=EXPONENTS, method="bounded"
    )
    alpha = float(fitted.x)
    # P(K ≥ k) of the law and of the nodes, at each degree that occurs and just above it
    law = zeta(alpha, np.concatenate([values, values + 1])) / zeta(alpha, start)
    above = tail - np.cumsum(counts)
    nodes = np.concatenate([above + counts, above]) / tail
    return PowerLaw(alpha, start, tail, float(np.abs(law - nodes).max()))


def plausibility(degree: Tensor | NDArray[np.int64], fit: PowerLaw, *, samples: int, seed: int) -> float:
    """The share of samples of the fit that lie further from their own fit than the degrees do; below 0.1, no power law.

    A sample has as many nodes as the graph. A node is below k₀ as often as in the graph, and then gets the degree of
    such a node; otherwise it follows the law.
    """
    from scipy.special import zeta

    degree = np.asarray(degree)
    rng = np.random.default_rng(seed)
    body = degree[degree < fit.start]
    grid = np.arange(fit.start, LARGEST)
    reaching = zeta(fit.exponent, grid.astype(float)) / zeta(fit.exponent, fit.start)
    further = 0
    for _ in range(samples):
        tail = rng.binomial(len(degree), fit.tail / len(degree))
        # the last k with P(K ≥ k) > u
        place = np.searchsorted(-reaching, -rng.random(tail), side="left") - 1
        drawn = np.concatenate([rng.choice(body, len(degree) - tail) if len(body) else body, grid[place]])
        refit = fit_power_law(drawn)
        further += refit is not None and refit.distance > fit.distance
    return further / samples


def share_below(degree: Tensor, limits: Sequence[int]) -> list[float]:
    """The share of nodes with a degree below each limit."""
    return [float((degree < limit).double().mean()) for limit in limits]
