"""The cells of one column, read the same from text and from typed values.

A column of NumPy numbers stays as it is. Every other column becomes text without surrounding blanks, and each distinct
text is looked at once: a column of a million rows and three values costs three looks. :data:`MISSING` has the texts
that mean that a value is missing, those of pandas; so do None, NaN and NaT in typed columns.
"""

from __future__ import annotations

import reprlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costa.graphs.tables import Column, Table, is_missing, is_number, not_finite

MISSING = frozenset({"", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "na", "nan", "null"})
"""Texts that mean that a value is missing."""


class Problem(ValueError):
    """What is wrong with one column: ``'forty' in row 2 of the column 'age' is not a number; correct it``."""


@dataclass(frozen=True)
class Cells:
    """One column.

    Attributes:
        name: The column's name.
        distinct: Its texts that are not missing, in order of appearance; or NumPy numbers, those of
            all rows that have one.
        codes: For each row the position in ``distinct``, −1 if missing.
        missing_words: The texts that were taken for missing, other than empty cells.
        padded: Whether some are digits that begin with 0, as those of codes do.
    """

    name: str
    distinct: Sequence[str] | NDArray[Any]
    codes: NDArray[np.int64]
    missing_words: tuple[str, ...] = ()
    padded: bool = False

    @property
    def missing(self) -> NDArray[np.bool_]:
        """The rows without a value."""
        return self.codes < 0

    @property
    def typed(self) -> bool:
        """Whether the column is one of NumPy numbers."""
        return isinstance(self.distinct, np.ndarray)

    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each distinct value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))

    def spread(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """One value for each row from one for each distinct value, and `fill` where it is missing."""
        return np.append(values, np.asarray(fill, dtype=values.dtype))[self.codes]

    def texts(self) -> list[str]:
        """The distinct values as text; a whole number has no decimal point, whether it was typed or not."""
        texts = map(as_text, self.distinct.tolist()) if isinstance(self.distinct, np.ndarray) else self.distinct
        return [_whole(text) for text in texts]

    @cached_property
    def as_numbers(self) -> NDArray[np.float64] | None:
        """The distinct values as numbers; None if one is not a number."""
        try:
            values = np.asarray(self.distinct, dtype=np.float64)
        except ValueError:
            return None
        # Python reads 1_000 as a number
        return None if not self.typed and any("_" in text for text in self.distinct) else values

    def numbers(self) -> NDArray[np.float32]:
        """The distinct values as finite float32."""
        values = self.as_numbers
        if values is None:
            wrong = next(i for i, text in enumerate(self.distinct) if not is_plain_number(text))
            raise self.problem(wrong, "is not a number; correct it, empty the cell")
        # A value beyond float32 becomes infinite here and is reported below.
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        if not np.isfinite(narrow).all():
            wrong = int(np.flatnonzero(~np.isfinite(narrow))[0])
            raise Problem(
                f"{not_finite(values[wrong])} in row {self.row(wrong)} of the column {self.name!r}; replace it, or"
                " empty the cell if it is unknown"
            )
        return narrow

    def row(self, position: int) -> int:
        """The first row, from 1, with this distinct value."""
        return int(np.argmax(self.codes == position)) + 1

    def problem(self, position: int, what: str) -> Problem:
        """What is wrong with one of the distinct values: a predicate, and the remedies but the last."""
        value = self.distinct[position]
        shown = reprlib.repr(value.item() if isinstance(value, np.generic) else value)
        said = " or ".join(option(self.name, kind) for kind in ("category", "ignore"))
        where = f"in row {self.row(position)} of the column {self.name!r}"
        return Problem(f"{shown} {where}, which {what}, or say {said}")


def option(name: str, kind: str) -> str:
    """What a person types to have a column taken for a kind.

    >>> option("plan", "category"), option("first name", "ignore")
    ('--columns plan=category', "--columns 'first name=ignore'")
    """
    said = f"{name}={kind}"
    if "," in said or '"' in said:
        said = '"' + said.replace('"', '""') + '"'
    return f"--columns {shlex.quote(said)}"


def is_plain_number(text: str) -> bool:
    """Whether a text is a number without separators between its digits.

    >>> is_plain_number("1e3"), is_plain_number("1_000"), is_plain_number("1,5")
    (True, False, False)
    """
    return is_number(text) and "_" not in text


def read_cells(table: Table, name: str, kind: str | None = None) -> Cells:
    """A column of a table; numbers that are not in an array are read at once if `kind` is None or ``number``."""
    column = table.columns[name]
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and column.ndim == 1:
        return _typed(name, column)
    if kind in (None, "number") and (numbers := _numbers(name, column)) is not None:
        return numbers
    # Only what differs is looked at in Python; the rest is done inside of dictionaries.
    try:
        distinct = dict.fromkeys(column)
    except TypeError:  # a list, say, which is refused below
        distinct = None
    if distinct is None or not set(map(type, distinct)) <= {str, type(None)}:
        column = [cell if type(cell) is str else _text(cell, name, row) for row, cell in enumerate(column, start=1)]
        distinct = dict.fromkeys(column)
    places = {cell: i for i, cell in enumerate(distinct)}
    texts = [cell.strip() if cell else "" for cell in places]
    kept = {text: i for i, text in enumerate(dict.fromkeys(text for text in texts if text not in MISSING))}
    code_of = np.array([kept.get(text, -1) for text in texts], dtype=np.int64)
    codes = code_of[np.fromiter(map(places.__getitem__, column), np.int64, len(column))]
    words = dict.fromkeys(text for text in texts if text and text in MISSING)
    return Cells(name, list(kept), codes, tuple(words), _padded(kept))


def _numbers(name: str, column: Column) -> Cells | None:
    """Numbers, as text without gaps or as Python's own; None if something else is among them.

    Without this, numbers would be right too, but a dictionary of them is large and slow.
    """
    if not len(column) or (type(column[0]) is str and not is_plain_number(column[0])):
        return None
    types = set(map(type, column))
    written = types == {str}
    if not written and not types <= {int, float, type(None)}:
        return None
    try:
        values = np.asarray(column, dtype=np.float64)
    except (ValueError, OverflowError):
        return None
    if not written:
        return _typed(name, values)
    if np.isnan(values).any() or "_" in "".join(column):
        return None
    whole = bool((values == np.rint(values)).all())
    return replace(_typed(name, values), padded=whole and _padded(column))


def _padded(texts: Iterable[str]) -> bool:
    return any(text[0] == "0" and text.isdigit() and len(text) > 1 for text in map(str.strip, texts))


def _typed(name: str, column: NDArray[Any]) -> Cells:
    """Numbers: every row counts as a value of its own, because they are not looked at one by one."""
    codes = np.arange(len(column))
    if column.dtype.kind != "f" or not np.isnan(column).any():
        return Cells(name, column, codes)
    there = ~np.isnan(column)
    return Cells(name, column[there], np.where(there, np.cumsum(there) - 1, -1))


def _text(cell: Any, name: str, row: int) -> str:
    if isinstance(cell, bytes | list | tuple | dict | set | np.ndarray):
        raise Problem(
            f"{reprlib.repr(cell)} in row {row} of the column {name!r}, which is neither a number nor text; write it as"
            f" one of them, or say {option(name, 'ignore')}"
        )
    return as_text(cell)


def as_text(cell: Any) -> str:
    """A typed value as text; a missing one is empty.

    >>> as_text(2.0), as_text(None), as_text(True), as_text(1e300)
    ('2', '', 'True', '1e+300')
    """
    if is_missing(cell):
        return ""
    if isinstance(cell, float | np.floating):
        return repr(float(cell)).removesuffix(".0")
    return str(cell).strip()


def _whole(text: str) -> str:
    """
    >>> _whole("-3.0"), _whole("1.05"), _whole("v2.0")
    ('-3', '1.05', 'v2.0')
    """
    if not text.endswith(".0"):
        return text
    whole = text.removesuffix(".0")
    return whole if whole.removeprefix("-").isdigit() else text
