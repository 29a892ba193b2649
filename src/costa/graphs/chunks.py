"""Tables in chunks, and ids as Arrow arrays: what :mod:`costa.graphs.tables` does, for files larger than memory.

Ids are compared as text without surrounding blanks, as everywhere. A column whose ids are all whole numbers, written
the one way that Python writes them, is kept as integers, which are the same comparison in an eighth of the memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from costa.errors import InputError
from costa.graphs.tables import EXACT, Table, check_file, check_names, from_arrow, read_header

BLOCK = 2**25
"""Bytes of text that are read at a time, unless others are asked for."""
ROWS = 2**20
"""Rows of Parquet that are read at a time."""
WHOLE_NUMBER = "^(0|-?[1-9][0-9]{0,17})$"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table.

    Attributes:
        first: The number of the first, counted from 1.
        columns: The columns.
        share: How much of the table there has been with these rows, about.
    """

    first: int
    columns: dict[str, Any]
    share: float


class ChunkedTable:
    """A CSV, TSV or Parquet file that is read in chunks.

    Args:
        path: The file.
        text: Columns that a text file's values are kept as text in; all others are numbers there.
        block: Bytes of text that are read at a time.
    """

    def __init__(self, path: Path, text: Sequence[str], block: int = BLOCK) -> None:
        self._block = block
        self.path, self.where, self.short, self._text = path, repr(str(path)), path.name, text
        check_file(path)
        self._is_text = path.suffix.lower() != ".parquet"
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        raw = read_header(path, self._delimiter) if self._is_text else self._parquet().schema_arrow.names
        self._raw = {name.strip(): name for name in raw}
        self.names = [name.strip() for name in raw]
        check_names(self.names, self.where)

    def called(self, roles: Mapping[str, str | None]) -> Self:
        """The same with columns called by what they stand for: a role for each name."""
        table = copy.copy(self)
        role_of = {name: role for role, name in roles.items() if name is not None}
        kept = [name for name in self.names if name in role_of or name not in roles]
        table.names = [role_of.get(name, name) for name in kept]
        table._raw = {role_of.get(name, name): self._raw[name] for name in kept}
        return table

    def reading(self, text: Sequence[str]) -> Self:
        """The same with other columns as text."""
        table = copy.copy(self)
        table._text = text
        return table

    def first(self) -> Table:
        """The first chunk of all columns, as a table in memory."""
        chunk = next(self.chunks(self.names), None)
        columns = {} if chunk is None else {name: from_arrow(column) for name, column in chunk.columns.items()}
        rows = 0 if chunk is None else len(next(iter(chunk.columns.values())))
        return Table(self.where, self.short, columns or {name: [] for name in self.names}, rows)

    def chunks(self, columns: Sequence[str]) -> Iterator[Chunk]:
        """These columns, in chunks."""
        import pyarrow

        first = 1
        try:
            for batch, share in self._batches([self._raw[name] for name in columns]):
                if batch.num_rows:
                    yield Chunk(first, dict(zip(columns, batch.columns, strict=True)), share)
                first += batch.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{self.where} cannot be read ({str(error).strip()}); correct it there.") from error

    def column(self, name: str) -> Any:
        """A whole column of ids, see :func:`canonical`."""
        import pyarrow

        parts = [canonical(chunk.columns[name], self, name, chunk.first) for chunk in self.chunks([name])]
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pyarrow.string()) for part in parts]
        return pyarrow.chunked_array(parts)

    def _parquet(self) -> Any:
        import pyarrow
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self.path, memory_map=True)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(
                f"{self.where} cannot be read as Parquet ({type(error).__name__}); write it again."
            ) from error

    def _batches(self, raw: list[str]) -> Iterator[tuple[Any, float]]:
        if not self._is_text:
            file, rows = self._parquet(), 0
            for batch in file.iter_batches(ROWS, columns=raw):
                rows += batch.num_rows
                yield batch.select(raw), rows / max(1, file.metadata.num_rows)
            return
        import pyarrow
        from pyarrow import csv

        text = {self._raw[name] for name in self._text if name in self._raw}
        kinds = {name: pyarrow.string() if name in text else pyarrow.float64() for name in raw}
        batches = csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=self._block),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(include_columns=raw, column_types=kinds, strings_can_be_null=False),
        )
        size = self.path.stat().st_size
        for number, batch in enumerate(batches, 1):
            yield batch, min(1.0, number * self._block / size)


def canonical(ids: Any, table: ChunkedTable, name: str, first: int, *, missing: str | None = None) -> Any:
    """Ids as int64 or as text, whatever the file has; an empty one becomes ``missing`` or, if that is None, is refused.

    Args:
        ids: An Arrow array.
        table: Where it is from.
        name: Its column.
        first: The number of its first row.
        missing: What an empty cell becomes.
    """
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if pyarrow.types.is_floating(ids.type):
        ids = _whole(ids, table, name, first)
    if pyarrow.types.is_integer(ids.type):
        ids = ids.cast(pyarrow.int64())
    elif pyarrow.types.is_string(ids.type) or pyarrow.types.is_large_string(ids.type):
        ids = pc.utf8_trim_whitespace(ids)
        ids = pc.if_else(pc.equal(ids, ""), pyarrow.scalar(None, ids.type), ids)
        if pc.all(pc.match_substring_regex(ids, WHOLE_NUMBER), min_count=0).as_py():
            ids = ids.cast(pyarrow.int64())
    else:
        raise InputError(f"{table.where} has {ids.type} values in the column {name!r}; store integers or text.")
    if ids.null_count == 0:
        return ids
    if missing is None:
        row = first + pc.index(pc.is_null(ids), True).as_py()
        raise InputError(f"{table.where} has an empty {name} in row {row}; give an id or drop the row.")
    return pc.fill_null(ids.cast(pyarrow.string()), missing)


def _whole(values: Any, table: ChunkedTable, name: str, first: int) -> Any:
    """Floats that are whole numbers, as pandas writes integers with gaps, as integers."""
    import pyarrow
    import pyarrow.compute as pc

    values = pc.if_else(pc.is_nan(values), pyarrow.scalar(None, values.type), values)
    good = pc.and_(pc.equal(pc.floor(values), values), pc.less_equal(pc.abs(values), EXACT))
    if not pc.all(good, min_count=0).as_py():
        row = pc.index(good, False).as_py()
        raise InputError(
            f"{table.where} has the float {values[row].as_py():g} in row {first + row} of the column {name!r}, which is"
            " not an exact whole number; store ids as integers or as text."
        )
    return values.cast(pyarrow.int64())
