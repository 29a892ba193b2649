"""Read a graph again without saying again what was said when it was read first.

What reading warns of (a column that is not read, features made from the edges) holds for every later reading of the
same files. What a table has that the fitted columns do not know is new each time, and is still said.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

READING = logging.getLogger("costa.graphs")
"""The parent of the loggers of this room."""
NEW = logging.getLogger("costa.graphs.columns")
"""The one that compares a table with what a model was fitted to."""


@contextmanager
def read_again(again: bool = True) -> Iterator[None]:
    """Without the warnings of reading; with ``again=False`` it changes nothing."""
    before = [(logger, logger.level, logger.getEffectiveLevel()) for logger in (READING, NEW)]
    if again:
        READING.setLevel(logging.ERROR)
        NEW.setLevel(before[1][2])
    try:
        yield
    finally:
        for logger, level, _ in before:
            logger.setLevel(level)
