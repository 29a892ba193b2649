"""A sparse matrix that SciPy saved as COO or CSC, as CSR on disk: two passes over entries that are not in memory.

    pass 1    count the entries of every row: their running sum says where each row begins
    pass 2    put every entry into its row

Memory holds a number for each row and the entries of one chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costa.graphs.edges import next_places

CHUNK = 2**22
"""Entries that are handled at a time."""

Array = NDArray[Any]


def entries(kind: str, parts: dict[str, Array]) -> Iterator[tuple[Array, Array, Array]]:
    """The row, the column and the value of every entry, in chunks.

    Args:
        kind: ``coo`` or ``csc``.
        parts: Mapped arrays, named as :func:`scipy.sparse.save_npz` names them.
    """
    count = len(parts["data"])
    ends = None if kind == "coo" else np.array(parts["indptr"], dtype=np.int64)
    for start in range(0, count, CHUNK):
        inside = slice(start, min(count, start + CHUNK))
        if ends is None:
            rows, columns = parts["row"][inside], parts["col"][inside]
        else:
            rows = parts["indices"][inside]
            columns = np.repeat(np.arange(len(ends) - 1), np.diff(ends.clip(inside.start, inside.stop)))
        yield np.array(rows), np.array(columns), np.array(parts["data"][inside])


def write_rows(kind: str, parts: dict[str, Array], shape: tuple[int, int], folder: Path) -> dict[str, Path]:
    """Write the parts of the CSR matrix, whose rows may hold a column twice and are in no order.

    Raises:
        ValueError: The parts do not fit together.
    """
    if kind == "csc" and len(parts["indptr"]) != shape[1] + 1:
        raise ValueError("a pointer for each column")
    begins = np.zeros(shape[0] + 1, dtype=np.int64)
    for rows, columns, values in entries(kind, parts):
        if not len(rows) == len(columns) == len(values):
            raise ValueError("as many rows as columns and values")
        for places, size in zip((rows, columns), shape, strict=True):
            if places.min() < 0 or places.max() >= size:
                raise ValueError("an index out of range")
        begins[1:] += np.bincount(rows, minlength=shape[0])
    np.cumsum(begins, out=begins)
    paths = {name: folder / f"raw-rows-{name}.npy" for name in ("data", "indices", "indptr")}
    np.save(paths["indptr"], begins)
    count = int(begins[-1])
    wide = np.int32 if shape[1] < 2**31 else np.int64
    indices = np.lib.format.open_memmap(paths["indices"], mode="w+", dtype=wide, shape=(count,))
    data = np.lib.format.open_memmap(paths["data"], mode="w+", dtype=parts["data"].dtype, shape=(count,))
    free = begins[:-1]
    for rows, columns, values in entries(kind, parts):
        order = np.argsort(rows, kind="stable")
        places = next_places(free, rows[order])
        indices[places], data[places] = columns[order], values[order]
    return paths
