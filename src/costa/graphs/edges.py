"""The edges of a large graph as CSR on disk, in two passes over a list of links that is not in memory.

    pass 1    count the neighbours of every node, both directions: their running sum says where each row begins
    pass 2    put every neighbour into its row
    then      each row in order, each neighbour once, w_ij = max(Σ w(i→j), Σ w(j→i)) as in :mod:`costa.graphs.assembly`

Memory holds a few numbers for each node and the links of one chunk; what is larger is a mapped file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costa.graphs.stages import Done, unheard
from costa.graphs.storage import Growing

CHUNK = 2**22
"""Links that are handled at a time."""
HALF, LOW = 32, 2**32 - 1
"""Row and column are the halves of one number."""

FILLING = 0.7
"""Share of the time that goes into filling the rows; most of the rest goes into sorting them."""

Integers = NDArray[np.int64]


class Links:
    """Links between row numbers, spooled to a folder as they are read; self-loops and weights of 0 are left out.

    Args:
        folder: Where the two files go; :meth:`remove` deletes them.
        weighted: Whether links have weights.
    """

    def __init__(self, folder: Path, *, weighted: bool) -> None:
        self._ends, self._weights = folder / "links.npy", folder / "link-weights.npy"
        self.weighted = weighted
        self._files = contextlib.ExitStack()
        self.dropped = 0
        """Number of self-loops left out."""

    def __enter__(self) -> Links:
        self._ends_file = self._files.enter_context(Growing(self._ends, np.dtype(np.int32), 2))
        if self.weighted:
            self._weights_file = self._files.enter_context(Growing(self._weights, np.dtype(np.float32)))
        return self

    def __exit__(self, *raised: Any) -> None:
        self._files.__exit__(*raised)

    def append(self, source: Integers, target: Integers, weight: NDArray[np.float64] | None) -> None:
        """Add links."""
        kept = source != target
        self.dropped += len(source) - int(kept.sum())
        if weight is not None:
            kept &= weight > 0
            self._weights_file.append(weight[kept])
        self._ends_file.append(np.stack([source[kept], target[kept]], axis=1))

    def chunks(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float32] | None]]:
        """Rows of source and target, and their weights."""
        ends = np.load(self._ends, mmap_mode="r")
        weights = np.load(self._weights, mmap_mode="r") if self.weighted else None
        for start in range(0, len(ends), CHUNK):
            rows = slice(start, start + CHUNK)
            yield np.array(ends[rows]), None if weights is None else np.array(weights[rows])

    def remove(self) -> None:
        """Delete the files."""
        self._ends.unlink()
        self._weights.unlink(missing_ok=True)


def lay_out(links: Links, n: int, folder: Path, done: Done = unheard) -> int:
    """Write ``crow.npy``, ``col.npy`` and perhaps ``weight.npy``; return the number of directed edges."""
    raw = _begins(links, n)
    ends, weights = _fill_rows(links, raw, folder, done)
    count = _merge(raw, ends, weights, folder, done)
    for path in (folder / "raw-col.npy", folder / "raw-weight.npy"):
        path.unlink(missing_ok=True)
    return count


def _begins(links: Links, n: int) -> Integers:
    """Where the row of each node begins, if each link is in the rows of both its ends."""
    begins = np.zeros(n + 1, dtype=np.int64)
    for ends, _ in links.chunks():
        begins[1:] += np.bincount(ends.ravel(), minlength=n)
    return np.cumsum(begins, out=begins)


def _fill_rows(
    links: Links, begins: Integers, folder: Path, done: Done
) -> tuple[NDArray[np.int32], NDArray[np.float32] | None]:
    """The neighbours in their rows; the weight of a link that points at the row's node is negative."""
    size = max(1, int(begins[-1]))
    col = np.lib.format.open_memmap(folder / "raw-col.npy", mode="w+", dtype=np.int32, shape=(size,))
    weight = None
    if links.weighted:
        weight = np.lib.format.open_memmap(folder / "raw-weight.npy", mode="w+", dtype=np.float32, shape=(size,))
    free, filled = begins[:-1].copy(), 0
    for ends, weights in links.chunks():
        filled += 2 * len(ends)
        for own, other, sign in ((ends[:, 0], ends[:, 1], 1), (ends[:, 1], ends[:, 0], -1)):
            keys = _pairs(own, other)
            if weight is not None and weights is not None:
                order = np.argsort(keys)
                keys, values = keys[order], sign * weights[order]
            else:
                keys.sort()
                values = None
            places = next_places(free, keys >> HALF)
            col[places] = keys & LOW
            if weight is not None:
                weight[places] = values
        done(FILLING * filled / size)
    return col, weight


def next_places(free: Integers, rows: NDArray[np.integer]) -> Integers:
    """Take the next free place in each of these rows, which are in order and may be there several times.

    >>> free = np.array([0, 5])
    >>> next_places(free, np.array([0, 1, 1])), free
    (array([0, 5, 6]), array([1, 7]))
    """
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    times = np.diff(first, append=len(rows))
    places: Integers = free[rows] + np.arange(len(rows)) - np.repeat(first, times)
    free[rows[first]] += times
    return places


def _pairs(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Integers:
    """A number for each place of the matrix, in the order of rows and columns: sorting numbers is fastest."""
    return (rows.astype(np.int64) << HALF) | columns


def _merge(
    begins: Integers, col: NDArray[np.int32], weight: NDArray[np.float32] | None, folder: Path, done: Done
) -> int:
    """Sort each row and merge what is in it twice."""
    n = len(begins) - 1
    crow = np.zeros(n + 1, dtype=np.int64)
    with contextlib.ExitStack() as files:
        cols = files.enter_context(Growing(folder / "col.npy", np.dtype(np.int32)))
        merged = weight is not None and files.enter_context(Growing(folder / "weight.npy", np.dtype(np.float32)))
        start = 0
        while start < n:
            stop = max(start + 1, int(np.searchsorted(begins, begins[start] + CHUNK, side="right")) - 1)
            inside = slice(int(begins[start]), int(begins[stop]))
            rows = np.repeat(np.arange(start, stop), np.diff(begins[start : stop + 1]))
            keys = _pairs(rows, col[inside])
            if weight is not None and merged:
                keys, values = _heavier(keys, np.array(weight[inside], dtype=np.float64))
                merged.append(values)
            else:
                keys.sort()
                keys = keys[np.diff(keys, prepend=-1) > 0]
            cols.append(keys & LOW)
            crow[start + 1 : stop + 1] = np.bincount((keys >> HALF) - start, minlength=stop - start)
            start = stop
            done(FILLING + (1 - FILLING) * start / n)
    np.cumsum(crow, out=crow)
    np.save(folder / "crow.npy", crow)
    return int(crow[-1])


def _heavier(keys: Integers, weight: NDArray[np.float64]) -> tuple[Integers, NDArray[np.float64]]:
    """Each key once, with the larger of the sums of its positive and of its negative weights."""
    order = np.argsort(keys)
    keys, weight = keys[order], weight[order]
    new = np.diff(keys, prepend=-1) > 0
    place = np.cumsum(new) - 1
    there, back = (np.bincount(place, np.maximum(sign * weight, 0)) for sign in (1, -1))
    return keys[new], np.maximum(there, back)
