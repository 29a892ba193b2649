"""How vectors spread: mean cosine and effective rank."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = 2048
"""The most rows used for the effective rank, evenly spaced: the spectrum of a wide Z is slow."""


def mean_cosine(z: Tensor) -> float:
    """The cosine of two rows of Z, averaged over all pairs: ‖mean of the rows scaled to length one‖².

    >>> mean_cosine(torch.eye(2)), mean_cosine(torch.ones(2, 3))
    (0.5, 1.0)
    """
    return float(F.normalize(z.double()).mean(0).square().sum().clamp(max=1))


def effective_rank(z: Tensor, device: torch.device | None = None) -> float:
    """exp(−Σ pᵢ ln pᵢ) with pᵢ = σᵢ/Σσ, σ the singular values of Z without its mean (Roy and Vetterli, 2007).

    It is r for vectors that spread evenly over r dimensions, and 0 for equal vectors. ``device`` computes the spectrum,
    by default the device of Z; a CPU takes a second for a thousand columns.

    >>> line = torch.arange(10.0)[:, None] * torch.ones(3)
    >>> round(effective_rank(line), 6), effective_rank(torch.ones(4, 3))
    (1.0, 0.0)
    """
    rows = z[:: max(1, -(-len(z) // ROWS))].to(device or z.device).double()
    rows = rows - rows.mean(0)
    gram = rows @ rows.T if rows.shape[0] < rows.shape[1] else rows.T @ rows
    sigma = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
    if not float(sigma.sum()) > 1e-12 * float(z.double().norm()):
        return 0.0
    return float(torch.special.entr(sigma / sigma.sum()).sum().exp())
