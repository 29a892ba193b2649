"""Progress in lines, for who has no bar: the first after two seconds, each next one after half as long again.

So a training of a second is silent until it ends, one of a minute has nine lines, and one of a day not thirty.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from costa.training.loop import Report
from costa.wording import duration

FIRST = 2.0
"""Seconds until the first line."""
LONGER = 1.5
"""How much longer the training has taken at each line than at the one before."""


def progress_lines(epochs: int, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Report:
    """A :data:`costa.training.Report` that writes lines.

    Args:
        epochs: How many there are.
        write: Called with each line.
        clock: What tells the time, in seconds.
    """
    began = clock()
    due = FIRST

    def report(done: float, loss: float) -> None:
        nonlocal due
        passed = clock() - began
        if passed >= due and done < epochs:
            left = passed * (epochs - done) / done
            write(f"epoch {done:.0f} of {epochs}, loss {loss:.4f}, {duration(left)} left")
            due = passed * LONGER

    return report
