"""The columns of the user's table on the map: what it can be coloured by, and what a node's card shows.

    numbers    every value is a finite number or missing                  a scale of colours
    classes    at most 20 different texts, and fewer texts than nodes     a colour for each
    text       everything else                                            on the card only

A graph without a table has the columns of X, if they have names and there are few of them. Columns are taken in order,
each that the page still has room for; :class:`Columns` names the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.graphs.storage import StoredGraph
from costa.graphs.tables import EXACT, is_missing, is_number
from costa.graphs.tables import Column as Cells
from costa.report.packing import pack_whole

MOST_CLASSES = 20
MOST_FEATURES = 20
"""Wider X has no columns on the page: they are words of a text or pixels, and no table."""
MOST_LETTERS = 200
"""Longer text is cut off."""
MOST_BYTES = 8_000_000
"""What all columns may take on the page: about a million values, 20 columns of 50,000 nodes."""
DIGITS = 6
"""Significant digits of a number that is not whole."""

Number = float | None


@dataclass(frozen=True)
class Column:
    """One column, for the nodes shown.

    Attributes:
        name: Its name.
        kind: ``numbers``, ``classes`` or ``text``.
        values: Numbers, None where missing; or text, empty where missing.
    """

    name: str
    kind: str
    values: Sequence[Number] | Sequence[str]

    @property
    def colours(self) -> bool:
        """Whether the map can be coloured by it: it is no text, and it differs between nodes."""
        different = {*self.values} - ({None} if self.kind == "numbers" else set())
        return self.kind != "text" and len(different) > 1

    def packed(self) -> dict[str, Any]:
        """As ``decode.js`` reads it."""
        if self.kind != "classes":
            return {"name": self.name, self.kind: self.values}
        names = sorted({*self.values} - {""})
        code = {name: place for place, name in enumerate(["", *names])}
        return {"name": self.name, "classes": names, "of": pack_whole([code[value] for value in self.values])}


@dataclass(frozen=True)
class Columns:
    """The columns on the page.

    Attributes:
        kept: In the order of the table.
        left_out: Names of those that would make the page too large.
    """

    kept: list[Column]
    left_out: list[str]


def columns_of(graph: Data, shown: NDArray[np.int64], most: int = MOST_BYTES) -> Columns:
    """The columns of a graph's table, or of its X.

    Args:
        graph: May have ``table``, a :class:`costa.graphs.tables.Table` of the nodes in order, or ``feature_names``.
        shown: Indices of the nodes shown.
        most: What the columns may take on the page, in bytes.
    """
    kept, left_out, room = [], [], most
    for name, cells in _cells(graph, shown):
        column = read_column(name, cells)
        size = len(json.dumps(column.packed(), ensure_ascii=False).encode())
        if size <= room:
            kept.append(column)
            room -= size
        else:
            left_out.append(name)
    return Columns(kept, left_out)


def _cells(graph: Data, shown: NDArray[np.int64]) -> Iterator[tuple[str, list[Any]]]:
    """Name and values of each column, for the nodes shown."""
    table, names = graph.get("table"), graph.get("feature_names")
    if table is not None:
        for name, cells in table.columns.items():
            yield name, _some(cells, shown)
    elif names is not None and len(names) <= MOST_FEATURES:
        rows = torch.from_numpy(shown)
        x = graph.x_at(rows) if isinstance(graph, StoredGraph) else graph.x.to_dense()[rows]
        yield from zip(map(str, names), x.to_dense().T.tolist(), strict=True)


def _some(cells: Cells, shown: NDArray[np.int64]) -> list[Any]:
    if isinstance(cells, np.ndarray):
        return list(cells[shown].tolist())
    return [cells[row] for row in shown.tolist()]


def read_column(name: str, cells: Sequence[Any]) -> Column:
    """What the values of a column are.

    >>> read_column("age", ["31", "", "40.5"])
    Column(name='age', kind='numbers', values=[31, None, 40.5])
    >>> read_column("plan", ["basic", None, "basic"])
    Column(name='plan', kind='classes', values=['basic', '', 'basic'])
    """
    texts = ["" if is_missing(cell) else str(cell).strip() for cell in cells]
    present = {text for text in texts if text}
    truth = any(isinstance(cell, bool) for cell in cells)
    if present and not truth and all(is_number(text) and not math.isinf(float(text)) for text in present):
        return Column(name, "numbers", [_rounded(float(text or "nan")) for text in texts])
    few = len(present) <= MOST_CLASSES and len(present) < len(texts)
    return Column(name, "classes" if few else "text", [_cut(text) for text in texts])


def _rounded(value: float) -> Number:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() and abs(value) <= EXACT else float(f"{value:.{DIGITS}g}")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
