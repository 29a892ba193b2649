"""From a table of mixed columns to a matrix of numbers, and the same for every later table.

:func:`fit_columns` looks at each column of one table, decides what it is (:mod:`costa.graphs.kinds`) and how it becomes
numbers (:mod:`costa.graphs.preparing`). :meth:`Columns.transform` applies that to a table with the same column names in
any order; nothing of that table is learnt. Numbers stay as they are, so a table of numbers alone becomes exactly
itself. Where some values were missing, a column ``NAME: missing`` says for which rows; where none were, a value that is
missing later is replaced without it.

What was fitted is written as JSON (:meth:`Columns.to_dict`) and arrays (:meth:`Columns.arrays`).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array, hstack, issparse
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.cells import Cells, Problem, option, read_cells
from costa.graphs.column_lines import describe, plain
from costa.graphs.features import as_tensor
from costa.graphs.kinds import ROLES, recognise
from costa.graphs.preparing import Block, Category, Date, Flag, Hashed, Nothing, Number, Preparation, Text
from costa.graphs.tables import Table
from costa.nn.sparse import SPARSE_BELOW
from costa.wording import counted, did_you_mean

logger = logging.getLogger(__name__)

FITS: dict[str, Any] = {"number": Number, "flag": Flag, "category": Category, "date": Date, "text": Text}
SAVED: dict[str, Any] = {how.__name__: how for how in (*FITS.values(), Hashed, Nothing)}


@dataclass(frozen=True)
class Column:
    """A column of the user's table.

    Attributes:
        name: Its name.
        line: What it was taken for, why, and how to say otherwise.
        flagged: Whether a column says where values are missing.
        preparation: How it becomes numbers.
    """

    name: str
    line: str
    flagged: bool
    preparation: Preparation

    @property
    def kind(self) -> str:
        """What it was taken for."""
        return self.preparation.kind

    @property
    def names(self) -> list[str]:
        """The names of what it becomes."""
        return [*self.preparation.names(self.name), *([f"{self.name}: missing"] if self.flagged else [])]


@dataclass(frozen=True)
class Columns:
    """What becomes of a table's columns.

    Attributes:
        columns: The columns in the order of the table that they were fitted to, ignored ones too.
        roles: What the user said of others: that they are ``id`` or ``label``, or that those called so are not.
    """

    columns: tuple[Column, ...] = field(repr=False)
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the matrix's columns."""
        return [name for column in self.columns for name in column.names]

    @property
    def groups(self) -> list[int]:
        """For each of the matrix's columns, the number of the column that it was made from."""
        used = [column for column in self.columns if column.names]
        return [number for number, column in enumerate(used) for _ in column.names]

    @property
    def sparse(self) -> bool:
        """Whether the matrix is sparse: most of what is in it is from categories, and rather empty."""
        filled = sum(column.preparation.filled for column in self.columns)
        return filled < SPARSE_BELOW * len(self.names)

    def lines(self) -> list[str]:
        """For each column of the user's: what it was taken for, why, and how to say otherwise; plain numbers in one."""
        plain_ones = [column.name for column in self.columns if column.line == plain(column.name)]
        together = plain_ones if len(plain_ones) > 1 else []
        lines = [column.line for column in self.columns if column.name not in together]
        if together:
            lines.append(f"{', '.join(together)}: numbers. To leave one out: {option(together[0], 'ignore')}.")
        return lines

    def transform(self, table: Table) -> NDArray[np.float32] | csr_array:
        """The matrix of a table, whose columns are found by name.

        Raises:
            InputError: Columns are missing, or hold what cannot be read; all of it is named.
        """
        self.check_names(table.where, list(table.columns))
        x, unseen = self.matrix(table)
        warn_of_unseen(table.where, unseen)
        return x

    def matrix(self, table: Table) -> tuple[NDArray[np.float32] | csr_array, list[str]]:
        """The matrix of a table that has the columns, and remarks on values that were not there at fit."""
        used = [column for column in self.columns if column.names]
        sparse, names, parts = self.sparse, self.names, list[csr_array]()
        x = np.empty((0 if sparse else table.rows, len(names)), dtype=np.float32)
        start, problems, unseen = 0, list[str](), list[str]()
        for column in used:
            try:
                block, strange = _apply(column, read_cells(table, column.name, column.kind))
            except Problem as problem:
                problems.append(str(problem))
                continue
            unseen += strange
            if sparse:
                parts.append(csr_array(block))
            else:
                x[:, start : start + block.shape[1]] = block.toarray() if issparse(block) else block
                start += block.shape[1]
        if problems:
            raise _refused(table.where, problems)
        return (csr_array(hstack(parts, format="csr")) if sparse else x), unseen

    def check_names(self, where: str, names: Sequence[str]) -> None:
        """Refuse a table that lacks columns; warn of others."""
        used = [column for column in self.columns if column.names]
        known = {column.name for column in self.columns}
        extra = [name for name in names if name not in known]
        missing = [column.name for column in used if column.name not in names]
        if missing:
            named = ", ".join(f"{name!r}{did_you_mean(name, extra)}" for name in missing)
            raise InputError(
                f"{where} lacks {_plural('the column', missing)} {named}, which the model was fitted to; add"
                f" {'it' if len(missing) == 1 else 'them'}."
            )
        if extra:
            logger.warning(
                "%s has %s %s, which the model was not fitted to; %s not used.",
                where,
                _plural("the column", extra),
                ", ".join(map(repr, extra)),
                "it is" if len(extra) == 1 else "they are",
            )

    def to_dict(self) -> dict[str, Any]:
        """All but the arrays, for JSON."""
        return {"columns": [_saved(column) for column in self.columns], "roles": dict(self.roles)}

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The arrays, for safetensors."""
        return {
            _key(column.name, part.name): getattr(column.preparation, part.name)
            for column in self.columns
            for part in fields(column.preparation)
            if "array" in part.metadata
        }

    def save_arrays(self, path: Path) -> None:
        """Write :meth:`arrays` as safetensors, if there are any."""
        if arrays := self.arrays():
            save_file(arrays, path)

    @classmethod
    def load(cls, saved: Mapping[str, Any], path: Path) -> Self:
        """What :meth:`to_dict` gave, with what :meth:`save_arrays` wrote."""
        return cls.from_dict(saved, load_file(path) if path.exists() else {})

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float32]]) -> Self:
        """What :meth:`to_dict` and :meth:`arrays` gave."""
        return cls(tuple(_loaded(column, arrays) for column in saved["columns"]), saved["roles"])


Said = Mapping[str, str] | Columns | None
"""What a person says that columns are, or what a model has made of them."""


def said_by(columns: Said) -> Mapping[str, str]:
    """What a person says, or has said to the model, of ids and labels."""
    return columns.roles if isinstance(columns, Columns) else columns or {}


def warn_of_unseen(where: str, unseen: list[str]) -> None:
    """Warn of values that were not there when columns were fitted."""
    if unseen:
        logger.warning(
            "%s has values that were not there when the model was fitted: %s. They count as rare values if their"
            " column has those, and otherwise as none.",
            where,
            ", ".join(unseen),
        )


def with_columns(graph: Data, columns: Columns) -> Data:
    """A graph whose features are made from its table as a model has decided; unchanged if it has no table."""
    table = graph.get("table")
    if table is None:
        names = graph.get("feature_names")
        if names is not None and list(names) != columns.names:
            raise InputError(
                f"{graph.name} has other features than the model, or the same in another order; give it the columns"
                f" {', '.join(columns.names)}."
            )
        return graph
    graph = copy.copy(graph)
    graph.columns, graph.feature_names = columns, columns.names
    graph.x = as_tensor(columns.transform(table), table.where).to(graph.x.device)
    return graph


def fit_columns(table: Table, given: Mapping[str, str] | None = None) -> Columns:
    """Decide what each column of a table is and how it becomes numbers.

    Args:
        table: The features alone, without ids and labels.
        given: What a person said, by name (:func:`costa.graphs.kinds.parse_columns`); roles are of other columns.

    Raises:
        InputError: Something in the table cannot be used; all of it is named.

    Example:
        >>> people = Table("people.csv", "people.csv", {"age": ["31", "", "40"], "plan": ["gold", "free", "free"]}, 3)
        >>> fitted = fit_columns(people)
        >>> fitted.names
        ['age', 'age: missing', 'plan=free', 'plan=gold']
        >>> fitted.transform(people).tolist()
        [[31.0, 0.0, 0.0, 1.0], [35.5, 1.0, 1.0, 0.0], [40.0, 0.0, 1.0, 0.0]]
    """
    given = given or {}
    roles = {name: said for name, said in given.items() if said in ROLES or name in ROLES}
    unknown = [name for name in given if name not in table.columns and name not in roles]
    if unknown:
        named = ", ".join(f"{name!r}{did_you_mean(name, list(table.columns))}" for name in unknown)
        raise InputError(
            f"{table.where} has no column {named}, which --columns names; it has {', '.join(table.columns)}."
        )
    columns, problems = [], []
    for name in table.columns:
        try:
            columns.append(_fit(table, name, given.get(name)))
        except Problem as problem:
            problems.append(str(problem))
    if problems:
        raise _refused(table.where, problems)
    fitted = Columns(tuple(columns), roles)
    names = fitted.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{table.where} gives two columns named {twice!r}; rename the one it comes from.")
    return fitted


def _fit(table: Table, name: str, asked: str | None) -> Column:
    if asked == "ignore":  # whatever is in it
        return Column(name, f"{name}: ignored, as you said.", False, Nothing(asked))
    cells = read_cells(table, name, asked)
    if not len(cells.distinct):
        kind, why = "constant", "is empty in every row"
    elif asked is None:
        kind, why = recognise(cells)
    else:
        kind, why = asked, ""
    how = Nothing(kind) if kind in ("ignore", "constant") else FITS[kind].fit(cells)
    flagged = kind in FITS and bool(cells.missing.any())
    return Column(name, describe(cells, how, why, flagged), flagged, how)


def _apply(column: Column, cells: Cells) -> tuple[Block, list[str]]:
    """What a column becomes, and a remark if it has values that were not there at fit."""
    block = column.preparation.apply(cells)
    if column.flagged:
        missing = cells.missing[:, None].astype(np.float32)
        block = csr_array(hstack([block, missing])) if issparse(block) else np.hstack([block, missing])
    if isinstance(column.preparation, Category):
        rows, example = column.preparation.unseen(cells)
        if rows:
            return block, [f"{example!r} and the like in {counted(rows, 'row')} of {column.name!r}"]
    return block, []


def _refused(where: str, problems: list[str]) -> InputError:
    if len(problems) == 1:
        return InputError(f"{where} has {problems[0]}.")
    return InputError(f"{where} has {len(problems)} columns that cannot be used:\n- " + ";\n- ".join(problems) + ".")


def _plural(noun: str, names: list[str]) -> str:
    return noun + "s" * (len(names) > 1)


def _key(column: str, part: str) -> str:
    return f"{column}: {part}"


def _saved(column: Column) -> dict[str, Any]:
    how = column.preparation
    state = {part.name: getattr(how, part.name) for part in fields(how) if "array" not in part.metadata}
    return {"name": column.name, "line": column.line, "flagged": column.flagged, "how": type(how).__name__} | {
        "state": {key: list(value) if isinstance(value, tuple) else value for key, value in state.items()}
    }


def _loaded(saved: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float32]]) -> Column:
    how = SAVED[saved["how"]]
    state = {key: tuple(value) if isinstance(value, list) else value for key, value in saved["state"].items()}
    state |= {part.name: arrays[_key(saved["name"], part.name)] for part in fields(how) if "array" in part.metadata}
    return Column(saved["name"], saved["line"], saved["flagged"], how(**state))
