"""The row number of every id of a large graph, looked up many ids at a time.

    0, 1, 2 …               nothing to look up
    whole numbers, dense    an array from the smallest id to the largest has the row of each
    others                  hashes of 64 bits in order, the row of each, and where each of about n ranges of them begins

Whole numbers have different hashes; of text with the hash that is searched, the text itself is compared. The table is
made once, whatever is looked up, and takes at most 20 bytes for each id.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from costa.errors import InputError
from costa.graphs.chunks import WHOLE_NUMBER, ChunkedTable

DENSE = 3
"""Whole numbers from the smallest to the largest, for each id, up to which an array has the row of each."""
HASHED = 2**18
"""Ids that are hashed and looked up at a time."""

LAST = np.uint64(2**64 - 1)
"""The largest hash."""

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class Numbering:
    """The row number of every id.

    Args:
        ids: The ids in order, from :meth:`costa.graphs.chunks.ChunkedTable.column`; None if they are the row numbers.
        n: How many there are.
        known_as: What an id is, in an error message.
    """

    def __init__(self, ids: Any, n: int, known_as: str) -> None:
        import pyarrow

        if ids is not None and pyarrow.types.is_int64(ids.type) and _counts_up(ids):
            ids = None
        self.ids = None if ids is None else pyarrow.chunked_array([ids.combine_chunks()])
        self.n, self.known_as = n, known_as
        self._lookups = dict[bool, _Lookup]()

    def __contains__(self, node: object) -> bool:
        import pyarrow

        return bool(self.rows(pyarrow.array([str(node)]))[0] >= 0)

    def name(self, row: int) -> str:
        """The id of a node."""
        return str(row if self.ids is None else self.ids[row].as_py())

    def rows(self, ids: Any) -> Integers:
        """Of some ids, an Arrow array; −1 for one that there is not."""
        import pyarrow
        import pyarrow.compute as pc

        if isinstance(ids, pyarrow.ChunkedArray):
            return np.concatenate([self.rows(part) for part in ids.chunks])
        if self.ids is None:
            if not pyarrow.types.is_int64(ids.type):
                known = pc.match_substring_regex(ids, WHOLE_NUMBER)
                ids = pc.if_else(known, ids, "-1").cast(pyarrow.int64())
            rows = ids.to_numpy(zero_copy_only=False)
            return np.where((rows >= 0) & (rows < self.n), rows, -1)
        numbers = pyarrow.types.is_int64(self.ids.type) and pyarrow.types.is_int64(ids.type)
        if numbers not in self._lookups:
            self._lookups[numbers] = _number_lookup(self.ids.to_numpy()) if numbers else _Texts(self.ids.chunk(0))
        lookup = self._lookups[numbers]
        parts = [ids.slice(start, HASHED) for start in range(0, max(1, len(ids)), HASHED)]
        return np.concatenate([lookup(part.to_numpy(zero_copy_only=False) if numbers else part) for part in parts])

    def permutes_rows(self) -> bool:
        """Whether the ids are the numbers of the rows in another order."""
        import pyarrow

        if self.ids is None or not pyarrow.types.is_int64(self.ids.type):
            return False
        return bool(np.array_equal(np.sort(self.ids.to_numpy()), np.arange(self.n)))

    def check_unique(self, table: ChunkedTable) -> None:
        """Refuse an id that is listed twice."""
        import pyarrow.compute as pc

        if self.ids is None or pc.count_distinct(self.ids).as_py() == self.n:
            return
        counts = pc.value_counts(self.ids)
        twice = next(entry["values"].as_py() for entry in counts if entry["counts"].as_py() > 1)
        rows = np.flatnonzero(pc.equal(self.ids, twice).to_numpy())[:2] + 1
        raise InputError(
            f"{table.where} lists the id {str(twice)!r} twice, in rows {rows[0]} and {rows[1]}; drop one of them."
        )


def _counts_up(ids: Any) -> bool:
    """Whether these integers are 0, 1, 2 …"""
    start = 0
    for part in ids.chunks:
        if not np.array_equal(part.to_numpy(), np.arange(start, start + len(part))):
            return False
        start += len(part)
    return True


class _Lookup(Protocol):
    def __call__(self, ids: Any, /) -> Integers:
        """The rows of some ids; −1 for one that there is not."""


def _number_lookup(ids: Integers) -> _Lookup:
    # the difference of Python's numbers does not overflow
    dense = int(ids.max()) - int(ids.min()) < DENSE * len(ids)
    return _Array(ids) if dense else _Numbers(ids)


class _Array:
    """The row of each whole number from the smallest id to the largest."""

    def __init__(self, ids: Integers) -> None:
        self._first, self._last = ids.min(), ids.max()
        self._rows = np.full(self._last - self._first + 1, -1, dtype=np.int32)
        self._rows[ids - self._first] = np.arange(len(ids))

    def __call__(self, ids: Integers) -> Integers:
        inside = (ids >= self._first) & (ids <= self._last)
        return np.where(inside, self._rows[np.where(inside, ids - self._first, 0)], -1)


class _Hashes:
    """Hashes in order, and the row of each."""

    def __init__(self, hashes: Hashes) -> None:
        order = np.argsort(hashes)
        self.rows, self.n = order.astype(np.int32), len(hashes)
        self.hashes = np.append(hashes[order], LAST)
        bits = max(1, self.n.bit_length())
        self._shift = np.uint64(64 - bits)
        ranges = np.arange(2**bits, dtype=np.uint64) << self._shift
        self._begins = np.searchsorted(self.hashes[:-1], ranges).astype(np.int32)

    def places(self, hashes: Hashes) -> Integers:
        """The first place in order whose hash is not below; the last is after all of them."""
        places = self._begins[hashes >> self._shift].astype(np.int64)
        left = np.flatnonzero(self.hashes[places] < hashes)
        while len(left):
            places[left] += 1
            left = left[self.hashes[places[left]] < hashes[left]]
        return places


class _Numbers(_Hashes):
    """Whole numbers; no two have the same hash."""

    def __init__(self, ids: Integers) -> None:
        super().__init__(_mix(ids.view(np.uint64)))

    def __call__(self, ids: Integers) -> Integers:
        hashes = _mix(ids.view(np.uint64))
        places = self.places(hashes)
        known = (self.hashes[places] == hashes) & (places < self.n)
        return np.where(known, self.rows[np.where(known, places, 0)], -1)


class _Texts(_Hashes):
    """Text; several may have the same hash."""

    def __init__(self, ids: Any) -> None:
        import pyarrow

        self._ids = ids if pyarrow.types.is_large_string(ids.type) else ids.cast(pyarrow.string())
        super().__init__(_hashes(self._ids))

    def __call__(self, ids: Any) -> Integers:
        import pyarrow
        import pyarrow.compute as pc

        ids = ids.cast(self._ids.type)
        hashes = _hashes(ids)
        rows, places, left = np.full(len(ids), -1), self.places(hashes), np.arange(len(ids))
        while True:
            left = left[(places[left] < self.n) & (self.hashes[places[left]] == hashes[left])]
            if not len(left):
                return rows
            found = self.rows[places[left]]
            same = pc.equal(self._ids.take(pyarrow.array(found)), ids.take(pyarrow.array(left)))
            same = same.to_numpy(zero_copy_only=False)
            rows[left[same]] = found[same]
            left = left[~same]
            places[left] += 1


def _hashes(text: Any) -> Hashes:
    parts = [_hashes_of_some(text.slice(start, HASHED)) for start in range(0, len(text), HASHED)]
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _hashes_of_some(text: Any) -> Hashes:
    """A number of 64 bits for each text, from its length and its bytes, eight at a time."""
    import pyarrow

    text = text.cast(pyarrow.large_string())
    _, ends, letters = text.buffers()
    ends = np.frombuffer(ends, np.int64)[text.offset : text.offset + len(text) + 1]
    begin, length = ends[:-1] - ends[0], np.diff(ends)
    padded = np.zeros(ends[-1] - ends[0] + 8, dtype=np.uint8)
    padded[:-8] = np.frombuffer(letters or b"", np.uint8)[ends[0] : ends[-1]]
    words = np.ndarray(len(padded) - 7, dtype="<u8", buffer=padded, strides=(1,))  # eight bytes from each on
    first_bytes = np.array([2 ** (8 * count) - 1 for count in range(9)], dtype=np.uint64)
    hashes, left, start = _mix(length.astype(np.uint64)), np.arange(len(text)), 0
    while len(left):
        word = words[begin[left] + start] & first_bytes[np.minimum(length[left] - start, 8)]
        hashes[left] = _mix(hashes[left] ^ word)
        start += 8
        left = left[length[left] > start]
    return hashes


def _mix(x: Hashes) -> Hashes:
    """Spread the bits of each number over all of it, with the constants of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
    return x ^ (x >> np.uint64(33))
