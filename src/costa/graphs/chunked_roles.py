"""Which column of a large table holds the ids: what :mod:`costa.graphs.roles` asks of values, answered in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from costa.errors import InputError
from costa.graphs.chunks import ChunkedTable, canonical
from costa.graphs.numbering import Numbering

KNOWN = 2**16
"""The most known ids that are looked up."""


def first_ends(edges: ChunkedTable) -> Any:
    """Ids that the first chunk of edges names, an Arrow array of text."""
    import pyarrow
    import pyarrow.compute as pc

    chunk = next(edges.chunks(["source", "target"]), None)
    if chunk is None:
        return pyarrow.array([], pyarrow.string())
    ends = [canonical(chunk.columns[name], edges, name, chunk.first).cast(pyarrow.string()) for name in chunk.columns]
    return pc.unique(pyarrow.chunked_array(ends)).slice(0, KNOWN)


class ChunkedCandidates:
    """:class:`costa.graphs.roles.Candidates` of a table in chunks.

    Args:
        table: The table.
        known: Ids that nodes are known to have, an Arrow array.
    """

    index: str | None = None

    def __init__(self, table: ChunkedTable, known: Any) -> None:
        import pyarrow

        self.where, self._table = table.where, table.reading(table.names)
        self.names: Sequence[str] = table.names
        self._known = pyarrow.chunked_array([known] if isinstance(known, pyarrow.Array) else known.chunks)
        self._known = self._known.slice(0, KNOWN).cast(pyarrow.string()).combine_chunks()
        self._rows: int | None = None

    def share(self, name: str) -> float:
        """The share of the known ids that are in a column; 0 if it has a value twice, or none in its first chunk."""
        numbering = self._numbering(name)
        return 0.0 if numbering is None else float((numbering.rows(self._known) >= 0).mean())

    def lacking(self, name: str) -> str:
        """A known id that a column does not have."""
        numbering = self._numbering(name)
        assert numbering is not None
        return str(self._known[int(np.flatnonzero(numbering.rows(self._known) < 0)[0])].as_py())

    def by_position(self) -> bool:
        """Whether the known ids may be the numbers of the rows."""
        if self._rows is None:
            chunks = self._table.chunks(self._table.names[:1])
            self._rows = sum(len(column) for chunk in chunks for column in chunk.columns.values())
        return bool((Numbering(None, self._rows, "").rows(self._known) >= 0).all())

    def counts_up(self, name: str) -> bool:
        """Whether a column has the numbers of the rows."""
        numbering = self._numbering(name)
        return numbering is not None and numbering.ids is None

    def _numbering(self, name: str) -> Numbering | None:
        """The rows of a column's values; None if they cannot be ids."""
        import pyarrow
        import pyarrow.compute as pc

        if not len(self._known):
            return None
        try:
            first = next(self._table.chunks([name])).columns[name]
            if not len(
                pc.index_in(self._known, canonical(first, self._table, name, 1).cast(pyarrow.string())).drop_null()
            ):
                return None
            ids = self._table.column(name)
        except (InputError, StopIteration):
            return None
        if pc.count_distinct(ids).as_py() < len(ids):
            return None
        return Numbering(ids, len(ids), "an id")
