"""Did the vectors collapse or diverge, and what may help?"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import torch
from torch import Tensor

from costa.nn.spectrum import effective_rank, mean_cosine

ALIKE = 1 - 1e-6
"""Vectors whose mean cosine is above this count as all alike."""


def status(z: Tensor) -> str:
    """``ok``, ``diverged`` (not all finite) or ``collapsed`` (all vectors point the same way, or are zero).

    >>> status(torch.eye(2)), status(torch.ones(2, 3)), status(torch.zeros(2, 3))
    ('ok', 'collapsed', 'collapsed')
    """
    if not z.isfinite().all():
        return "diverged"
    return "collapsed" if mean_cosine(z) > ALIKE or not z.any() else "ok"


@dataclass(frozen=True)
class Health:
    """How the vectors spread; see :mod:`costa.nn.spectrum`."""

    effective_rank: float
    mean_cosine: float


def measure(z: Tensor, device: torch.device | None = None) -> Health | None:
    """The health of the vectors; None if they are not finite."""
    if not z.isfinite().all():
        return None
    return Health(effective_rank(z, device), mean_cosine(z))


def remedy(status: str, known: Container[str]) -> str:
    """What may help after training went wrong; it names only settings that the method has, ``known``.

    Training diverges if the step is too large. Vectors collapse if the weight decay is strong compared with the
    contrast, and a high τ makes the contrast weak.

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
