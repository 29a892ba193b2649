"""Did the vectors collapse or diverge, and what may help?"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import torch
from torch import Tensor

from costa.methods.base import Method
from costa.nn.sparse import is_csr
from costa.nn.spectrum import LINE, ROWS, effective_rank, mean_cosine, some_rows
from costa.training import Outcome

ALIKE = 1 - 1e-6
"""Vectors whose mean cosine is above this count as all alike."""

COLLAPSED = "all vectors point the same way, lie along one line, or are zero"
"""What a collapse is, in words."""


def status(z: Tensor, x: Tensor, codes: int | None = None) -> str:
    """``ok``, ``diverged`` or ``collapsed``.

    Vectors have diverged if they are not all finite. They have collapsed if all of them point the same way or are zero,
    or if they lie along a line, with an effective rank below 2, although the features do not.

    Args:
        z: The vectors, n × d; of a CSR tensor, only some rows count.
        x: The features that they come from, dense or CSR. An effective rank below 2 says nothing about vectors of one
            or two columns, or of up to three nodes, whose rank cannot be higher.
        codes: How many columns were trained, the first ones; they must not have collapsed by themselves either.

    >>> x = torch.eye(5)
    >>> status(torch.eye(5), x), status(torch.ones(5, 3), x), status(torch.zeros(5, 3), x)
    ('ok', 'collapsed', 'collapsed')
    >>> line = torch.linspace(-1, 1, 5)[:, None] * torch.ones(3)
    >>> status(line, x), status(line, line)
    ('collapsed', 'ok')
    """
    if not _finite(z):
        return "diverged"
    z = some_rows(z) if is_csr(z) else z
    if codes is not None and codes < z.shape[1] and status(z[:, :codes], x) != "ok":
        return "collapsed"
    if mean_cosine(z) > ALIKE or not z.any():
        return "collapsed"
    narrow = min(len(z) - 1, z.shape[1]) <= LINE
    return "ok" if narrow or effective_rank(z) >= LINE or effective_rank(x) < LINE else "collapsed"


def ending(method: Method, outcome: Outcome, z: Tensor, x: Tensor) -> str:
    """How a training ended: as the outcome says or, if that is ``ok``, the :func:`status` of its vectors."""
    return outcome.status if outcome.status != "ok" else status(z, x, method.code_columns)


@dataclass(frozen=True)
class Health:
    """How the vectors spread; see :mod:`costa.nn.spectrum`."""

    effective_rank: float
    mean_cosine: float


def measure(z: Tensor, device: torch.device | None = None) -> Health | None:
    """The health of the vectors; None if they are not finite."""
    if not _finite(z):
        return None
    return Health(effective_rank(z, device), mean_cosine(z))


def _finite(z: Tensor) -> bool:
    # parts, because the answer for each number of a large Z takes a quarter of its memory
    return all(bool(part.isfinite().all()) for part in (z.values() if is_csr(z) else z).split(ROWS))


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
