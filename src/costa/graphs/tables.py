"""Tables: CSV, TSV, Parquet and JSON-lines files, pandas and polars frames, all read the same way.

A table has column names; in a text file they are the first line, in JSON lines the keys. Rows are counted from 1. Ids
and labels are compared as text without surrounding blanks; a whole number in a typed column is written without a
decimal point, because pandas turns 1 into 1.0 in a column with missing values.
"""

from __future__ import annotations

import csv
import io
import json
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costa.errors import InputError
from costa.wording import counted

KINDS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
INDEX = "index"
"""What an index of a pandas frame without a name is called as a column."""
EXACT = 2**53
"""Up to here float64 represents every whole number exactly."""
SHARED = 10_000
"""The most different texts of a column that are kept once each; they take a fraction of the memory."""

Column = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Columns of equal length, in order: all text from CSV, typed values from Parquet and frames.

    Attributes:
        where: Its name in error messages: a path in quotes, or "the edge table".
        short: Its name in messages about another table: the file name.
        columns: The columns by name.
        rows: The number of rows.
        index: The column that was a pandas frame's index; it may hold ids but is no feature.
    """

    where: str
    short: str
    columns: dict[str, Column] = field(repr=False)
    rows: int
    index: str | None = None

    def cells(self, name: str) -> list[Any]:
        """A column as Python objects."""
        require_column(name, list(self.columns), self.where)
        column = self.columns[name]
        return column.tolist() if isinstance(column, np.ndarray) else list(column)

    def take(self, rows: Sequence[int] | None) -> Table:
        """These rows, in this order; None for all."""
        if rows is None:
            return self
        columns: dict[str, Column] = {
            name: column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, rows=len(rows))

    def without(self, *names: str) -> Table:
        """The table without these columns, if it has them."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name not in names})

    def text(self, name: str) -> list[str]:
        """A column as text; a missing value becomes the empty string."""
        return [
            cell.strip() if type(cell) is str else self._text(cell, name, row)
            for row, cell in enumerate(self.cells(name), start=1)
        ]

    def _text(self, cell: object, name: str, row: int) -> str:
        if is_missing(cell):
            return ""
        if isinstance(cell, bytes):
            raise InputError(
                f"{self.where} has the bytes {reprlib.repr(cell)} in row {row} of the column {name!r}; store text."
            )
        if isinstance(cell, float) and cell.is_integer():
            if abs(cell) > EXACT:
                raise InputError(
                    f"{self.where} has the float {cell:g} in row {row} of the column {name!r}, which is too large to be"
                    " an exact whole number; store it as an integer or as text."
                )
            return str(int(cell))
        return str(cell).strip()

    def ids(self, name: str) -> list[str]:
        """A column of ids as text; an empty id is refused."""
        cells = self.text(name)
        if "" in cells:
            row = cells.index("") + 1
            raise InputError(f"{self.where} has an empty {name} in row {row}; give an id or drop the row.")
        return cells

    def unique_ids(self) -> list[str]:
        """The column ``id``; a repeated id is refused."""
        ids = self.ids("id")
        if len(set(ids)) < len(ids):
            seen: dict[str, int] = {}
            for row, node in enumerate(ids, start=1):
                if node in seen:
                    raise InputError(
                        f"{self.where} lists the id {node!r} twice, in rows {seen[node]} and {row}; drop one of them."
                    )
                seen[node] = row
        return ids

    def numbers(self, name: str) -> NDArray[np.float32]:
        """A column as finite float32."""
        cells = self.columns[name]
        try:
            values = np.asarray(cells, dtype=np.float64)
            if values.ndim != 1:
                raise TypeError("a column of lists")
        except (TypeError, ValueError):
            row = next(i for i, cell in enumerate(cells) if not is_number(cell))
            raise InputError(
                f"{self.where} has {_shown(cells[row])} in row {row + 1} of the column {name!r}; "
                f"give a number, or drop the row or the column."
            ) from None
        # A value beyond float32 becomes infinite here and is reported below.
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        if not np.isfinite(narrow).all():
            row = int(np.flatnonzero(~np.isfinite(narrow))[0])
            raise InputError(
                f"{self.where} has {not_finite(values[row])} in row {row + 1} of the column {name!r}; "
                f"replace it, or drop the row or the column."
            )
        return narrow


def require_column(name: str, names: Sequence[str], where: str) -> None:
    """Refuse a table without this column."""
    if name not in names:
        raise InputError(f"{where} needs a column {name!r} but has only {', '.join(names)}; rename or add the column.")


def not_finite(value: float) -> str:
    """How to word a number that is not finite in float32."""
    if np.isnan(value):
        return "NaN or no value"
    return "an infinite value" if np.isinf(value) else f"{value:g}, too large for float32,"


def is_number(cell: Any) -> bool:
    """Whether Python can convert it to a float.

    >>> is_number("1e3"), is_number("forty"), is_number(None)
    (True, False, False)
    """
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def is_missing(cell: Any) -> bool:
    """Whether a cell is missing: None, NaN, or pandas' NA, whose comparison with itself has no truth value."""
    try:
        return cell is None or bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


def _shown(cell: object) -> str:
    nothing = is_missing(cell) or (isinstance(cell, str) and not cell.strip())
    return "nothing" if nothing else f"{reprlib.repr(cell)}, which is not a number,"


def read_table(path: Path) -> Table:
    """The table in a file whose name ends in one of :data:`KINDS`."""
    kind = path.suffix.lower()
    if kind == ".parquet":
        return _read_parquet(path)
    return _read_csv(path) if kind in (".csv", ".tsv") else _read_json_lines(path)


def from_frame(frame: Any, where: str) -> Table:
    """A pandas or polars frame as a table; a pandas index that says more than the rows' positions becomes a column."""
    index = getattr(frame, "index", None)
    if index is not None and index.name is None and index.equals(type(index)(range(len(frame)))):
        index = None
    if index is not None:
        if index.nlevels > 1:
            raise InputError(
                f"{where} has an index of {index.nlevels} levels; make columns of them with reset_index()."
            )
        called = str(INDEX if index.name is None else index.name).strip()
        frame = frame.reset_index(names=called) if called not in frame.columns else frame.reset_index(drop=True)
    names = list(frame.columns)
    check_names([str(name).strip() for name in names], where)
    columns: dict[str, Column] = {}
    for name in names:
        values = frame[name].to_numpy()
        columns[str(name).strip()] = values if values.dtype.kind in "biuf" else frame[name].to_list()
    return Table(where, where, columns, len(frame), None if index is None else called)


def check_file(path: Path) -> None:
    """Raise ``InputError`` if the file cannot be opened."""
    try:
        path.open("rb").close()
    except IsADirectoryError:
        raise InputError(f"{str(path)!r} is a folder, not a file; give the path of a file.") from None
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}; check the path.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be opened ({error.strerror}); check its permissions.") from None


def _read_csv(path: Path) -> Table:
    where = repr(str(path))
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    check_file(path)
    text = _decode(path.read_bytes(), where)
    header, columns, rows = (_split_quoted if '"' in text else _split_plain)(text, delimiter, where)
    _check_header(header, delimiter, where)
    return Table(where, path.name, dict(zip(header, columns, strict=True)), rows)


def read_header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line of a text file, as they stand there."""
    where = repr(str(path))
    with path.open("rb") as file:
        line = _decode(file.readline(2**20), where).rstrip("\r\n")
    if not line:
        raise _empty(where)
    header = next(csv.reader([line], delimiter=delimiter))
    _check_header([name.strip() for name in header], delimiter, where)
    return header


def _check_header(header: list[str], delimiter: str, where: str) -> None:
    for other, called in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if len(header) == 1 and other in header[0]:
            wanted = "tabs" if delimiter == "\t" else "commas"
            raise InputError(
                f"{where} separates its cells with {called}; use {wanted} instead"
                + (", or rename the file to end in .tsv." if other == "\t" else ".")
            )
    check_names(header, where)
    # 0, 1, 2 are valid names, which pandas writes; other numbers are a first row without a header above it.
    if all(map(is_number, header)) and header != [str(i) for i in range(len(header))]:
        raise InputError(f"the first line of {where} is all numbers; put a line of column names above it.")


def _decode(raw: bytes, where: str) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in raw[:1000]:
        raise InputError(f"{where} is UTF-16 or not text at all; save it as UTF-8 text.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{where} has the byte 0x{raw[error.start]:02x} in line {line}, which is not UTF-8 (it may be Latin-1); "
            f"save it as UTF-8 text."
        ) from None


def _split_plain(text: str, delimiter: str, where: str) -> tuple[list[str], list[list[str]], int]:
    """Header, columns and number of rows of text without quotation marks; six times as fast as :mod:`csv`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1]:
        lines.pop()
    if not lines or not lines[0]:
        raise _empty(where)
    width = lines[0].count(delimiter) + 1
    for row, line in enumerate(lines):
        if line.count(delimiter) != width - 1 or not line:
            raise _ragged(where, row, line.count(delimiter) + 1 if line else 0, width)
    cells = delimiter.join(lines).split(delimiter)
    return [name.strip() for name in cells[:width]], [cells[width + i :: width] for i in range(width)], len(lines) - 1


def _split_quoted(text: str, delimiter: str, where: str) -> tuple[list[str], list[list[str]], int]:
    """Header, columns and number of rows of any text."""
    # StringIO would keep the text with four bytes for each character.
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline=""), delimiter=delimiter)
    rows, last_lines = [], []
    seen: list[dict[str, str]] = []
    try:
        for cells in reader:
            last_lines.append(reader.line_num)
            seen = seen or [{} for _ in cells]
            if len(cells) == len(seen):
                # The same text in a column is one object, unless most cells of the column differ.
                cells = [
                    known.setdefault(cell, cell) if len(known) < SHARED else cell
                    for known, cell in zip(seen, cells, strict=True)
                ]
            rows.append(cells)
    except csv.Error as error:
        raise InputError(f"{where} cannot be read after line {reader.line_num} ({error}); correct it there.") from None
    if text.count('"') % 2 and rows and "\n" in "".join(rows[-1]):
        line = last_lines[-2] + 1 if len(last_lines) > 1 else 1
        raise InputError(f"{where} has a quotation mark in line {line} that is never closed; close it.")
    while rows and not rows[-1]:
        rows.pop()
    if not rows or not rows[0]:
        raise _empty(where)
    for row, cells in enumerate(rows):
        if len(cells) != len(rows[0]):
            raise _ragged(where, row, len(cells), len(rows[0]))
    columns = [list(column) for column in zip(*rows, strict=True)]
    return [name.strip() for name in rows[0]], [column[1:] for column in columns], len(rows) - 1


def _empty(where: str) -> InputError:
    return InputError(f"{where} is empty or starts with a blank line; put the column names in its first line.")


def _ragged(where: str, row: int, cells: int, width: int) -> InputError:
    return InputError(
        f"{where} has {counted(cells, 'cell')} in row {row}, but its first line has {width}; "
        f"give every row the same number."
    )


def check_names(names: list[str], where: str) -> None:
    """Refuse two columns of one name, or one without a name."""
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{where} has two columns named {name!r}; rename one of them.")
    # pandas writes its index like this by default; it would be read as a feature.
    if any(name == "" or name.startswith("__index_level_") for name in names):
        raise InputError(f"{where} has a column without a name; name it, or leave it out (pandas: index=False).")


def _read_parquet(path: Path) -> Table:
    where = repr(str(path))
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"{where} needs pyarrow, which is not installed; run pip install 'costa-gcl[tables]'."
        ) from error
    check_file(path)
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{where} cannot be read as Parquet ({type(error).__name__}); write it again.") from error
    names = [name.strip() for name in table.column_names]
    check_names(names, where)
    columns = {name: from_arrow(column) for name, column in zip(names, table.columns, strict=True)}
    return Table(where, path.name, columns, table.num_rows)


def from_arrow(column: Any) -> Column:
    """An Arrow column as a column of a table."""
    import pyarrow

    whole = pyarrow.types.is_integer(column.type) and not column.null_count
    # Python objects keep integers distinct from floats; a NumPy column with missing values does not
    typed = whole or pyarrow.types.is_floating(column.type)
    return column.to_numpy(zero_copy_only=False) if typed else column.to_pylist()


def _read_json_lines(path: Path) -> Table:
    where = repr(str(path))
    check_file(path)
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(_decode(path.read_bytes(), where).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InputError(
                f'{where} is not a JSON object in line {number}; write one a line, such as {{"id": "ann"}}.'
            )
        rows.append({key.strip(): cell for key, cell in row.items()})
    names = list(dict.fromkeys(key for row in rows for key in row))
    if not names:
        raise InputError(f'{where} is empty; write one JSON object a line, such as {{"id": "ann"}}.')
    check_names(names, where)
    return Table(where, path.name, {name: [row.get(name) for row in rows] for name in names}, len(rows))
