"""Whether vectors are alive: do they point in different directions, and do they use their dimensions?"""

from __future__ import annotations

from collections.abc import Container

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = 2048
"""The effective rank is that of so many rows at the most, evenly spread: a wide Z has no quick spectrum."""
ALIKE = 1 - 1e-6
"""Vectors whose mean cosine is above this are one vector."""


def mean_cosine(z: Tensor) -> float:
    """The cosine of two rows of Z, averaged over all pairs: ‖mean of the rows scaled to length one‖².

    >>> mean_cosine(torch.eye(2)), mean_cosine(torch.ones(2, 3))
    (0.5, 1.0)
    """
    return float(F.normalize(z.double()).mean(0).square().sum().clamp(max=1))


def effective_rank(z: Tensor, device: torch.device | None = None) -> float:
    """exp(−Σ pᵢ ln pᵢ) with pᵢ = σᵢ/Σσ, σ the singular values of Z without its mean (Roy and Vetterli, 2007).

    Of vectors that spread evenly over r dimensions it is r; of equal vectors it is 0. ``device`` is where the spectrum
    is computed, by default where Z is: of a thousand columns a CPU takes a second for it.

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


def status(z: Tensor) -> str:
    """``ok``; ``diverged`` where the vectors are not finite, ``collapsed`` where all point the same way, or nowhere.

    >>> status(torch.eye(2)), status(torch.ones(2, 3)), status(torch.zeros(2, 3))
    ('ok', 'collapsed', 'collapsed')
    """
    if not z.isfinite().all():
        return "diverged"
    return "collapsed" if mean_cosine(z) > ALIKE or not z.any() else "ok"


def measure(z: Tensor, device: torch.device | None = None) -> dict[str, float] | None:
    """``{"effective_rank", "mean_cosine"}``; None for vectors that are not finite."""
    if not z.isfinite().all():
        return None
    return {"effective_rank": effective_rank(z, device), "mean_cosine": mean_cosine(z)}


def remedy(status: str, known: Container[str]) -> str:
    """What may help where a training went wrong; only settings are named that the method has, ``known``.

    Too large a step diverges. What lets vectors collapse is a weight decay that is strong beside the contrast, and a
    high τ makes the contrast weak.

    >>> remedy("diverged", {"train.lr", "loss.tau"}), remedy("diverged", {"train.lr"})
    ('lower train.lr or raise loss.tau', 'lower train.lr')
    >>> remedy("diverged", {})
    'try another method'
    >>> remedy("collapsed", {"train.lr", "train.weight_decay"}), remedy("collapsed", {})
    ('look at the features, lower train.weight_decay or train.lr', 'look at the features or try another method')
    """
    if status == "diverged" and "train.lr" not in known:
        return "try another method"
    if status == "diverged":
        return "lower train.lr" + (" or raise loss.tau" if "loss.tau" in known else "")
    if "train.weight_decay" in known:
        return "look at the features, lower train.weight_decay or train.lr"
    return "look at the features or try another method"
