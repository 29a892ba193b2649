"""Graph diffusion by personalised PageRank: the largest entries of each row, in memory linear in the graph.

    S = α Σ_t (1 − α)^t T^t = α (I − (1 − α) T)^-1,    T = D̂^-½ Â D̂^-½

S is dense within each connected component, so it is never stored whole: a block of columns is computed and only the
largest entries of each are kept. T is symmetric, so S is too, and its columns are its rows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

BLOCK = 16
"""Columns per block on a CPU, few enough to stay in the cache: with 32, one core takes 1.5 times as long for
Coauthor-Physics."""
WIDE_BLOCK = 1024
"""Columns per block on a GPU, which fewer would not keep busy; for Coauthor-Physics they take 0.3 GB."""
TOLERANCE = 1e-6
"""Error bound of every entry of S, in exact arithmetic."""


def top_ppr(t: Tensor, alpha: float, k: int) -> tuple[Tensor, Tensor]:
    """The k largest entries of each row of S, scaled so that they have the sum of the whole row.

    So S·1 does not depend on k, and k = n gives S itself.

    A column s of S solves s = α·e + ρ·T·s with ρ = 1 − α. As the eigenvalues of T lie in [−1, 1], Chebyshev's iteration

        s_{i+1} = s_{i−1} + ω_{i+1} (α·e + ρ·T·s_i − s_{i−1}),    ω_{i+1} = 1/(1 − ρ²ω_i/4),    s₀ = 0,  s₁ = α·e

    has an error of at most 1/cosh(i·arcosh(1/ρ)) in s_i: 2·2⁻ⁱ for α = 0.2, against 0.8ⁱ for i terms of the sum.

    Args:
        t: T, n × n and symmetric; dense or CSR, on any device.
        alpha: α, the restart probability, above 0 and below 1.
        k: The number of entries kept per row; fewer if fewer are above :data:`TOLERANCE`.

    Returns:
        Rows and columns, 2 × entries, and the values.

    >>> index, values = top_ppr(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), alpha=0.2, k=2)
    >>> index.tolist(), [round(value, 4) for value in values.tolist()]
    ([[0, 0, 1, 1], [0, 1, 1, 0]], [0.6, 0.4, 0.6, 0.4])
    """
    rho = 1 - alpha
    steps = math.ceil(math.acosh(1 / TOLERANCE) / math.acosh(1 / rho))
    blocks = torch.arange(t.size(0), device=t.device).split(WIDE_BLOCK if t.is_cuda else BLOCK)
    kept = [_largest(_solve(t, seeds, rho, steps), k) for seeds in blocks]
    columns, values = (torch.cat(parts) for parts in zip(*kept, strict=True))
    row, place = (values > TOLERANCE).nonzero(as_tuple=True)
    return torch.stack([row, columns[row, place]]), values[row, place]


def _solve(t: Tensor, seeds: Tensor, rho: float, steps: int) -> Tensor:
    """The columns of S for the nodes ``seeds``."""
    before = torch.zeros(t.size(0), len(seeds), dtype=t.dtype, device=t.device)
    restart = (seeds, torch.arange(len(seeds), device=t.device))
    s, omega = before.scatter(0, seeds[None], 1 - rho), 2.0
    for _ in range(1, steps):
        omega = 1 / (1 - rho**2 * omega / 4)
        # in place, so that the columns stay in the cache
        before.addmm_(t, s, beta=1 - omega, alpha=omega * rho)
        before[restart] += omega * (1 - rho)
        before, s = s, before
    return s


def _largest(s: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Indices and scaled values of the k largest entries of each column, one row per column."""
    values, place = s.topk(min(k, len(s)), dim=0)
    return place.T, (values * (s.sum(0) / values.sum(0))).T
