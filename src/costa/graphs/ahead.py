"""Rows of mapped arrays, asked for a batch before they are read.

A row that is not in memory is a page fault, and the disk serves one fault after the other. All rows of a batch that are
asked for at once (``madvise``) it reads together, while the step before computes; there is no thread to wait for and no
copy. The pages belong to the system, which drops them when others need the space.

To ask for a row that is in memory is cheap but not free, so nobody asks until reading has had to wait.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

RARE = 100
"""To wait for one row takes as long as to ask for about so many: 70 µs and 0.5 µs on a fast disk."""


class ReadAhead:
    """Mapped arrays whose rows are read in no order, some at a time.

    Args:
        arrays: The arrays, in row-major order.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._arrays = [array for array in arrays if isinstance(array, np.memmap)]
        self.waits = False
        """Whether more rows than one in :data:`RARE` had to be waited for; from then on they are asked for."""

    @contextlib.contextmanager
    def reading(self, rows: Tensor) -> Iterator[None]:
        """Inside this block these rows of every array are read."""
        before = page_faults()
        yield
        self.waits |= RARE * (page_faults() - before) > len(rows) * len(self._arrays)

    def prefetch(self, rows: Tensor) -> None:
        """Let the system begin to read these rows, and do not wait for them."""
        if not hasattr(mmap, "MADV_WILLNEED"):  # not on Windows
            return
        for array in self._arrays:
            # a mapping begins at a page; the array, after the file's header
            start = array.offset % mmap.ALLOCATIONGRANULARITY + rows.numpy() * array.strides[0]
            page = start // mmap.PAGESIZE * mmap.PAGESIZE
            advise = array.base.madvise  # type: ignore[union-attr]  # it is an mmap
            for first, length in zip(page.tolist(), (start + array.strides[0] - page).tolist(), strict=True):
                advise(mmap.MADV_WILLNEED, first, length)


def page_faults() -> int:
    """How often this process has had to wait for a page from a disk."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
