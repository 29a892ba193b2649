"""What the columns of a table stand for: ids, labels, the ends and weights of edges.

**By name**, whatever the case of its letters: ``id``, ``label``, ``weight``; and ``source, target``, ``from, to`` or
``src, dst`` for the ends of edges.

**By value**, if no column is called ``id``. A column whose values all differ holds the nodes' ids if every id that is
known from elsewhere (from the edges, or from the table of nodes) is among them. If the known ids are row numbers, rows
may also be meant by their position; a column that has these ids in another order than the rows must then not be
mistaken for a feature. It is taken for ids if it is called like one, and else it is refused until the user decides.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from costa.errors import InputError
from costa.graphs.kinds import ROLES
from costa.graphs.tables import Column, Table
from costa.wording import did_you_mean

logger = logging.getLogger(__name__)

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
"""What the ends of an edge may be called."""
LIKE_AN_ID = re.compile(r"(^|[^a-z])(id|key|node|index|name|nr|no|number|code|uuid|guid)s?([^a-z]|$)|id$|key$|^node")
"""What a column of ids is called, in small letters."""
MANY, NEARLY_ALL = 0.5, 0.9
"""The share of the known ids from which a column may well be meant to hold them, if it is called like that or not."""
SAMPLE = 50
"""Known ids that are looked up first; a column that has none of them is not looked at any further."""


def column_named(name: str, table: str, names: Sequence[str]) -> str | None:
    """The column of this name, whatever the case of its letters; None if there is none."""
    if name in names:
        return name
    similar = [each for each in names if each.casefold() == name]
    if len(similar) > 1:
        raise InputError(f"{table} has the columns {' and '.join(map(repr, similar))}; rename all but one {name!r}.")
    return similar[0] if similar else None


def edge_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """The columns of a table of edges by what they stand for: source, target and perhaps weight.

    >>> edge_columns(["From", "To", "Weight"], "the edge table")
    {'source': 'From', 'target': 'To', 'weight': 'Weight'}
    """
    for pair in ENDS:
        found = [column_named(name, where, names) for name in pair]
        if None not in found:
            break
    else:
        raise InputError(
            f"{where} needs the columns 'source' and 'target' (or from and to, or src and dst) but has only"
            f" {', '.join(map(repr, names))}; rename the columns of the edges' ends."
        )
    weight = column_named("weight", where, names)
    kept = dict(zip(("source", "target"), found, strict=True)) | ({} if weight is None else {"weight": weight})
    unread(where, [name for name in names if name not in kept.values()], "an edge has two ends and perhaps a weight")
    return {role: name for role, name in kept.items() if name is not None}


def unread(where: str, names: Sequence[str], why: str) -> None:
    """Warn of columns that are not read."""
    if names:
        shown = f"column {names[0]!r} is" if len(names) == 1 else f"columns {', '.join(map(repr, names))} are"
        logger.warning("%s: the %s not read, because %s.", where, shown, why)


def check_said(said: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuse what a person says of a column that no table has."""
    unknown = next((name for name in said if name not in names), None)
    if unknown is not None:
        there = f"there are only {', '.join(names)}" if names else "there is no table of features or nodes"
        raise InputError(f"--columns names {unknown!r}{did_you_mean(unknown, names)}, but {there}.")


def others(names: Iterable[str]) -> list[str]:
    """The columns of a table of nodes or of features that are features."""
    return [name for name in names if name not in ROLES]


def edge_table(table: Table) -> Table:
    """A table of edges with its columns called ``source``, ``target`` and perhaps ``weight``."""
    columns = edge_columns([name for name in table.columns if name != table.index], table.where)
    return replace(table, columns={role: table.columns[name] for role, name in columns.items()}, index=None)


def node_table(table: Table, known: Collection[str], known_from: str, given: Mapping[str, str]) -> Table:
    """A table of nodes or of features with the columns of ids and labels, if it has them, called ``id`` and ``label``.

    Args:
        table: The table.
        known: Ids that nodes are known to have.
        known_from: Where they are from, in error messages.
        given: What the user says that columns are: ``id``, ``label``, or something that is of no concern here.
    """
    values = _Values(table, known)
    ids, labels = node_columns(values, known_from, given)
    if ids is not None and ids not in given and known and values.share(ids) < 1:
        free = [name for name in values.names if name not in (ids, labels, *given)]
        better = next((name for name in free if values.share(name) == 1), None)
        if better is not None:
            raise InputError(
                f"the column {ids!r} of {table.where} does not have all the ids of {known_from}, and its column"
                f" {better!r} does; say which is meant (--columns {better}=id,{ids}=ignore), or add the ids."
            )
    renamed = {ids: "id", labels: "label"}
    kept = {name: column for name, column in table.columns.items() if name in renamed or name not in ROLES}
    columns = {renamed.get(name, name): column for name, column in kept.items()}
    if ids is not None:
        columns["id"] = values.text(ids)  # once: ids are asked for as text from here on
    if table.index not in (None, ids, labels):
        unread(table.where, [str(table.index)], "it was the frame's index and does not hold the nodes' ids")
        del columns[str(table.index)]
    return replace(table, columns=columns, index=None)


class Candidates(Protocol):
    """The columns of a table that may hold ids, and the ids that are known from elsewhere."""

    where: str
    names: Sequence[str]
    index: str | None

    def share(self, name: str) -> float:
        """The share of the known ids that are in a column; 0 if it has a value twice, or few of the known ids."""

    def lacking(self, name: str) -> str:
        """A known id that a column does not have."""

    def by_position(self) -> bool:
        """Whether the known ids may be the numbers of the rows."""

    def counts_up(self, name: str) -> bool:
        """Whether a column has the numbers of the rows."""


def node_columns(table: Candidates, known_from: str, given: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The columns of ids and of labels of a table of nodes or of features; the arguments are those of node_table."""
    said = {role: [name for name in table.names if given.get(name) == role] for role in ROLES}
    twice = next((role for role, names in said.items() if len(names) > 1), None)
    if twice is not None:
        raise InputError(f"--columns says that {' and '.join(said[twice])} are the {twice}; name one column.")
    free = [name for name in table.names if name not in given]
    ids, labels = (names[0] if names else column_named(role, table.where, free) for role, names in said.items())
    for role, name in (("id", ids), ("label", labels)):
        if role in table.names and name != role and given.get(role) != "ignore":
            raise InputError(f"{table.where} has a column {role!r} that is not meant as such; rename it.")
    if ids is None:
        ids = _ids_by_value(table, known_from, [name for name in free if name != labels])
    return ids, labels


def _ids_by_value(table: Candidates, known_from: str, names: Sequence[str]) -> str | None:
    """The column that holds the nodes' ids, by its values; None if rows are meant by position, or no column does."""
    shares = {name: share for name in names if (share := table.share(name)) >= MANY}
    whole = [name for name, share in shares.items() if share == 1]

    def called_like_an_id(name: str) -> bool:
        return name == table.index or LIKE_AN_ID.search(name.casefold()) is not None

    called_so = [name for name in whole if called_like_an_id(name)]
    if len(whole) > 1 and len(called_so) != 1:
        raise InputError(
            f"{table.where} has no column 'id', and the columns {' and '.join(map(repr, whole))} have all the ids of"
            f" {known_from}; rename the one that is meant to 'id'."
        )
    if whole:
        name = (called_so or whole)[0]
        if table.by_position() and not called_so and not table.counts_up(name):
            raise _undecided(table, name, f"has all the ids of {known_from}, in another order than the rows")
        logger.warning("%s: the column %r is taken for the nodes' ids.", table.where, name)
        return name
    near = next((name for name, share in shares.items() if share >= NEARLY_ALL or called_like_an_id(name)), None)
    if near is not None:
        raise _undecided(table, near, f"has many of the ids of {known_from}, though not {table.lacking(near)!r}")
    return None


def _undecided(table: Candidates, name: str, what: str) -> InputError:
    return InputError(
        f"{table.where} has no column 'id', but its column {name!r} {what}; rename it to 'id' if it holds the nodes'"
        f" ids, or say what else it is (--columns {name}=number, or ignore)."
    )


class _Values:
    """:class:`Candidates` of a table in memory."""

    def __init__(self, table: Table, known: Collection[str]) -> None:
        self.where, self.index = table.where, table.index
        self.names: Sequence[str] = list(table.columns)
        self._table, self._known, self._texts = table, known, dict[str, list[str]]()

    def text(self, name: str) -> list[str]:
        """A column as text."""
        if name not in self._texts:
            self._texts[name] = self._table.text(name)
        return self._texts[name]

    def share(self, name: str) -> float:
        if not self._has_some(self._table.columns[name]):
            return 0.0
        values = set(self.text(name))
        if len(values) < self._table.rows or "" in values:
            return 0.0
        return sum(node in values for node in self._known) / len(self._known)

    def _has_some(self, column: Column) -> bool:
        """Whether a column may hold ids: it has some of the first known ones."""
        some = list(itertools.islice(self._known, SAMPLE))
        if not isinstance(column, np.ndarray):
            return not {str(cell).strip() for cell in column}.isdisjoint(some)
        numbers = [float(node) for node in some if node.lstrip("-").isdecimal()]
        whole = column.dtype.kind in "iu" or (column.dtype.kind == "f" and bool((column == np.floor(column)).all()))
        return whole and bool(np.isin(numbers, column).any())

    def lacking(self, name: str) -> str:
        values = set(self.text(name))
        return next(node for node in self._known if node not in values)

    def by_position(self) -> bool:
        return all(node.isdecimal() and int(node) < self._table.rows for node in self._known)

    def counts_up(self, name: str) -> bool:
        return self.text(name) == [str(row) for row in range(self._table.rows)]
