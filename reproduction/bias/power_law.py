"""Whether the tail of a graph's degrees is a power law, p(k) = k^−α/ζ(α, k₀) for k ≥ k₀.

α maximises the likelihood of the degrees from k₀ on, and k₀ is the start whose fit has the smallest Kolmogorov-Smirnov
distance D to them (Clauset, Shalizi, Newman: Power-law distributions in empirical data, SIAM Review 2009). A power law
is plausible if samples of the fit itself are often at least as far from their own fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import zeta
from torch import Tensor

LEAST_TAIL = 50
"""The fewest nodes from k₀ on: an exponent from fewer nodes is mostly chance."""
EXPONENTS = (1.01, 8.0)
"""The range in which α is searched."""
LARGEST = 10**6
"""The largest degree in a sample of the fit."""


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
