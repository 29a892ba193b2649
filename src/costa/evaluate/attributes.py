"""What is known of the nodes apart from their vectors, in the units that a person knows.

the label            among the labelled nodes
the user's table     each column as what it was taken for: numbers, dates or a category; an ignored column as what it
                     looks like. Texts and names that nearly every node has another of are left out
else the degree      if the features were made from the edges, which have no units
else the features    with their names
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.graphs.cells import Cells, Problem, as_text, read_cells
from costa.graphs.dates import which_first
from costa.graphs.kinds import dates_of, recognise
from costa.graphs.labels import label_text
from costa.graphs.storage import StoredGraph
from costa.graphs.structure import degree_if_made
from costa.nn.sparse import is_csr, to_scipy

ROWS = 2**14
"""Rows of sparse features that are read at a time."""
ENTRIES = 2**25
"""The most entries of the features that are read as numbers; of more, those of evenly spaced nodes."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Numbers:
    """A column of numbers.

    Attributes:
        name: Its name.
        values: NaN where missing.
        step: The values are those of every so many nodes.
        dates: Whether they are days since 1970.
    """

    name: str
    values: Floats
    step: int = 1
    dates: bool = False


@dataclass(frozen=True)
class Category:
    """A column of different values.

    Attributes:
        titles: What to call a node that has each, such as ``plan = gold``.
        codes: The value of each node; −1 for a node that is not compared.
    """

    titles: list[str]
    codes: Integers


@dataclass(frozen=True)
class Words:
    """Sparse features: most columns are 0 for most nodes."""

    graph: Data


def attributes(graph: Data) -> Iterator[Numbers | Category | Words]:
    """What is known of the nodes of a graph."""
    y, table = graph.get("y"), graph.get("table")
    if y is not None and bool((y >= 0).any()):
        yield _label(graph)
    if table is not None:
        kinds = {column.name: column.kind for column in graph.columns.columns} if "columns" in graph else {}
        for name in table.columns:
            kind = None if kinds.get(name) == "ignore" else kinds.get(name)
            try:
                yield from _column(read_cells(table, name, kind), kind)
            except Problem:  # it was ignored, and cannot be read
                continue
    elif (degree := degree_if_made(graph)) is not None:
        yield Numbers("degree", degree.double().numpy())
    elif is_csr(graph.x):
        yield Words(graph)
    else:
        yield from features(graph, range(graph.num_features))


def names_of(graph: Data) -> list[str]:
    """What to call each feature."""
    return graph.get("feature_names") or [f"column {column}" for column in range(graph.num_features)]


def features(graph: Data, columns: Sequence[int]) -> Iterator[Numbers]:
    """Some of the features as numbers."""
    if not columns:
        return
    x, stored = graph.x, isinstance(graph, StoredGraph)
    entries = max(graph.num_nodes * len(columns), x.values().numel() if is_csr(x) else 0)
    step = -(-entries // ENTRIES)
    if stored:
        x = graph.x_at(torch.arange(0, graph.num_nodes, step))
        graph.drop_pages()
    rows: Any = to_scipy(x) if is_csr(x) else x.numpy()
    rows = rows if stored else rows[::step]
    rows = rows.tocsc() if is_csr(x) else rows
    names = names_of(graph)
    for column in columns:
        values = rows[:, [column]].toarray()[:, 0] if is_csr(x) else rows[:, column]
        yield Numbers(names[column], values.astype(np.float64), step)


def blocks(graph: Data) -> Iterator[tuple[int, Any]]:
    """Where some rows of sparse features begin, and the rows as SciPy has them."""
    stored = isinstance(graph, StoredGraph)
    whole: Any = None if stored else to_scipy(graph.x)
    for start in range(0, graph.num_nodes, ROWS):
        stop = min(start + ROWS, graph.num_nodes)
        yield start, to_scipy(graph.rows_of_x(start, stop)) if stored else whole[start:stop]
        if stored:
            graph.drop_pages()


def _label(graph: Data) -> Category:
    codes = np.full(graph.num_nodes, -1)
    known = (graph.y >= 0).numpy()
    classes, codes[known] = np.unique(graph.y.numpy()[known], return_inverse=True)
    return Category([f"label = {label_text(graph, code)}" for code in classes.tolist()], codes)


def _column(cells: Cells, kind: str | None) -> Iterator[Numbers | Category]:
    """A column of the table; of numbers and dates, also whether they are missing."""
    name = cells.name
    if not len(cells.distinct):
        return
    kind = kind or recognise(cells)[0]
    if kind in ("category", "flag"):
        distinct, place = np.unique(cells.distinct if cells.typed else cells.texts(), return_inverse=True)
        titles = [f"{name} = {as_text(value)}" for value in distinct.tolist()]
        yield Category([*titles, f"{name} missing"], cells.spread(place, len(titles)))
    elif kind in ("number", "date"):
        if kind == "date":
            days = dates_of(cells, which_first(cells.texts())) - np.datetime64(0, "D")
            yield Numbers(name, cells.spread(days / np.timedelta64(1, "D"), np.nan), dates=True)
        elif (values := cells.as_numbers) is not None:
            yield Numbers(name, cells.spread(np.where(np.isfinite(values), values, np.nan), np.nan))
        if cells.missing.any():
            yield Category([f"{name} missing", f"{name} given"], 1 - cells.missing.astype(np.int64))
