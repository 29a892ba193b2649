"""Did the loss fall while it was trained?

Of the losses L₁ … L_T of the epochs, the noise σ from one epoch to the next is estimated by successive differences,
σ² = Σ (Lₜ₊₁ − Lₜ)² / 2(T − 1), which a slow trend hardly touches (von Neumann). The loss fell if the mean of a
beginning of a epochs is above the mean of the last b = T/2 by more than two standard errors, 2σ √(1/a + 1/b). Two
beginnings are tried: the first epoch, because a loss may fall at once, and the first tenth, because it may fall slowly.
Otherwise it stayed flat, or rose.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean

FLAT = (
    "the loss stayed flat: it did not fall by more than it varies from epoch to epoch, so the encoder may have learned"
    " little; with one view that is usual, with two a larger train.lr or more epochs may help"
)
"""What is said of a loss that did not fall."""
ENOUGH = 8
"""Fewer epochs say nothing."""
ERRORS = 2.0
"""Standard errors that count as a fall."""


def loss_fell(losses: Sequence[float]) -> bool | None:
    """Whether the loss fell by more than its own noise; None if there are too few epochs to tell.

    >>> loss_fell([5.0 - 0.1 * epoch for epoch in range(20)]), loss_fell([5.0, 5.1] * 10), loss_fell([5.0, 4.0])
    (True, False, None)
    """
    count = len(losses)
    if count < ENOUGH:
        return None
    noise = math.sqrt(math.fsum((after - before) ** 2 for before, after in itertools.pairwise(losses)))
    noise /= math.sqrt(2 * (count - 1))
    last = count // 2
    end = fmean(losses[-last:])

    def fell(first: int) -> bool:
        return fmean(losses[:first]) - end > ERRORS * noise * math.sqrt(1 / first + 1 / last)

    return fell(1) or fell(max(1, count // 10))
