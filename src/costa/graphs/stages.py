"""The stages of work on a large graph, and how much of each is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

Done = Callable[[float], None]
"""Called with the share of a stage that is done, above 0 and at most 1."""


class Report(Protocol):
    """Called with a line as a stage begins, and with the same line and a share above 0 as it goes on."""

    def __call__(self, stage: str, share: float = 0.0, /) -> None:
        """The stage begins, or this share of it is done."""


def silent(stage: str, share: float = 0.0, /) -> None:
    """Report nothing."""


def unheard(share: float, /) -> None:
    """Report no share."""


def begin(report: Report, stage: str) -> Done:
    """Report that a stage begins; what is returned reports its share."""
    report(stage)
    return partial(report, stage)
