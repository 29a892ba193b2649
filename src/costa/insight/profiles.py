"""What sets groups of nodes apart from all nodes, in the units of the columns.

The columns are those of the user's table, ``graph.table``, else the features with their names. For group g,

    a number:            (mean in g − mean) / standard deviation                     "age 52.1 (all: 37.4)"
    a value v of a text: (share of v in g − share of v) / √(share·(1 − share))       "plan = gold 71% (all: 12%)"

so both count standard deviations. A date is a number of days. Of a text with at most :data:`VALUES` values, the value
that is most over-represented is named. A feature that is 0 or 1, or one of a sparse matrix, is named where it is
over-represented in being not 0. A difference counts from :data:`LEAST` standard deviations and :data:`SURE` standard
errors on, a value only if :data:`NODES` nodes of the group have it. The label is a column too, among the labelled
nodes. Of features that were made from the edges, which have no units, the degree is a column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.graphs.labels import label_text
from costa.graphs.storage import StoredGraph
from costa.graphs.structure import degree_if_made
from costa.graphs.tables import Table
from costa.insight.similar import ids_of
from costa.nn.sparse import SPARSE_BELOW, is_csr, to_scipy

VALUES = 50
LEAST, SURE, NODES = 0.2, 3.0, 3
RARE = 0.01
"""The share from which on a value's standard deviation is its own: very rare ones would always stand out."""
SHOWN = 3
"""Columns that are named for each group."""
ROWS = 2**14

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Phrases = list[tuple[float, str]]
"""By how many standard deviations a column differs, and how to say it."""


def profiles(graph: Data, of: Integers, groups: int) -> list[list[str]]:
    """For each group, the columns that set it apart most; ``of`` is the group of each node, 0 … groups − 1."""
    found: list[Phrases] = [[] for _ in range(groups)]
    sources = [_label(graph, of, groups)]
    table, degree = graph.get("table"), degree_if_made(graph)
    if table is not None:
        sources += _table(table, of, groups, list(map(str, ids_of(graph))))
    elif degree is not None:
        sources.append(_numbers("degree", degree.double().numpy(), of, groups))
    else:
        sources.append(_features(graph, of, groups))
    for source in sources:
        for own, more in zip(found, source, strict=True):
            own += more
    return [[phrase for _, phrase in sorted(own, key=lambda each: -each[0])[:SHOWN]] for own in found]


def _label(graph: Data, of: Integers, groups: int) -> list[Phrases]:
    y = graph.get("y")
    known = np.zeros(0, dtype=bool) if y is None else (y >= 0).numpy()
    if not known.any():
        return [[] for _ in range(groups)]
    codes, code = np.unique(y.numpy()[known], return_inverse=True)
    return _texts("label", [label_text(graph, each) for each in codes.tolist()], code, of[known], groups)


def _table(table: Table, of: Integers, groups: int, ids: list[str]) -> Iterator[list[Phrases]]:
    for name in table.columns:
        texts = table.text(name)
        if name in ("id", "label") or texts == ids:
            continue
        values = sorted(set(texts))
        if len(values) > 2 and (numbers := _as_numbers(texts)) is not None:
            yield _numbers(name, numbers, of, groups)
        elif len(values) > 2 and (days := _as_days(texts)) is not None:
            yield _numbers(name, days, of, groups, lambda day: str(np.datetime64(round(day), "D")))
        elif 2 <= len(values) <= VALUES:
            place = {value: code for code, value in enumerate(values)}
            yield _texts(name, values, np.array([place[text] for text in texts]), of, groups)


def _as_numbers(texts: list[str]) -> Floats | None:
    """Cells as numbers, NaN where one is missing; None if they are not finite numbers."""
    try:
        numbers: Floats = np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return None
    return None if np.isinf(numbers).any() or np.isnan(numbers).all() else numbers


def _as_days(texts: list[str]) -> Floats | None:
    """Cells that are dates, such as 2024-05-31, as days since 1970, NaN where one is missing; None if they are not."""
    if not re.match(r"\d{4}-\d\d-\d\d", next(filter(None, texts))):
        return None
    try:
        days = np.array([text[:10] or "NaT" for text in texts], dtype="datetime64[D]")
    except ValueError:
        return None
    return np.where(np.isnat(days), np.nan, days.astype(np.float64))


def _numbers(
    name: str, values: Floats, of: Integers, groups: int, shown: Callable[[float], str] | None = None
) -> list[Phrases]:
    shown = shown or _plain
    known = np.isfinite(values)
    values, of = values[known], of[known]
    sizes = np.bincount(of, minlength=groups)
    means = np.bincount(of, values, groups) / np.maximum(sizes, 1)
    scores = _counting((means - values.mean()) / (values.std() or np.inf), sizes)
    mean = shown(float(values.mean()))
    return [
        [(abs(score), f"{name} {shown(own)} (all: {mean})")] if score else []
        for score, own in zip(scores.tolist(), means.tolist(), strict=True)
    ]


def _texts(name: str, names: list[str], code: Integers, of: Integers, groups: int) -> list[Phrases]:
    """For each group, the value that is most over-represented."""
    counts = np.bincount(of * len(names) + code, minlength=groups * len(names)).reshape(groups, -1)
    scores, share, everywhere = _shares(counts, np.bincount(of, minlength=groups), counts.sum(0) / len(of))
    best = scores.argmax(1)

    def say(group: int) -> str:
        value = best[group]
        what = f"{name} = {names[value]}" if names[value] else f"{name} missing"
        return f"{what} {share[group, value]:.0%} (all: {everywhere[value]:.0%})"

    return [
        [(scores[group, best[group]], say(group))] if scores[group, best[group]] > 0 else [] for group in range(groups)
    ]


def _features(graph: Data, of: Integers, groups: int) -> list[Phrases]:
    """The most telling columns of X, from sums over blocks of rows."""
    n, columns = graph.num_nodes, graph.num_features
    sums, present, squares = np.zeros((groups, columns)), np.zeros((groups, columns)), np.zeros(columns)
    for start, rows in _blocks(graph):
        inside = _indicator(of[start : start + rows.shape[0]], groups)
        sums += _dense(inside @ rows)
        present += _dense(inside @ (rows != 0).astype(np.float64))
        squares += np.asarray((rows * rows).sum(axis=0)).ravel()
    sizes, total = np.bincount(of, minlength=groups), sums.sum(0)
    sparse = is_csr(graph.x) or present.sum() < SPARSE_BELOW * n * columns
    counted = np.full(columns, sparse) | ((squares == total) & (total == present.sum(0)))
    means, mean = sums / np.maximum(sizes, 1)[:, None], total / n
    deviation = np.sqrt(np.maximum(squares / n - mean**2, 0))
    differences = (means - mean) / np.where(deviation > 1e-6 * np.abs(mean), deviation, np.inf)
    shares, share, everywhere = _shares(present, sizes, present.sum(0) / n)
    scores = np.where(counted, shares, _counting(differences, sizes[:, None]))
    names = graph.get("feature_names") or [f"column {column}" for column in range(columns)]

    def say(group: int, column: int) -> str:
        if counted[column]:
            return f"{names[column]} {share[group, column]:.0%} (all: {everywhere[column]:.0%})"
        return f"{names[column]} {_plain(means[group, column])} (all: {_plain(mean[column])})"

    best = np.argsort(-np.abs(scores), axis=1, kind="stable")[:, :SHOWN]
    return [
        [(abs(scores[group, column]), say(group, column)) for column in best[group] if scores[group, column]]
        for group in range(groups)
    ]


def _shares(counts: NDArray[Any], sizes: Integers, everywhere: Floats) -> tuple[Floats, Floats, Floats]:
    """The scores of values that are over-represented, 0 for others; their shares in each group, and in all."""
    share = counts / np.maximum(sizes, 1)[:, None]
    usual = np.clip(everywhere, RARE, 1 - RARE)
    scores = _counting((share - everywhere) / np.sqrt(usual * (1 - usual)), sizes[:, None])
    return np.where((scores > 0) & (counts >= np.minimum(NODES, sizes)[:, None]), scores, 0), share, everywhere


def _counting(differences: NDArray[Any], sizes: NDArray[Any]) -> Floats:
    """Differences in standard deviations; 0 for those that are small, or may be by chance."""
    size = np.abs(differences)
    return np.where((size >= LEAST) & (size * np.sqrt(sizes) >= SURE), differences, 0.0)


def _blocks(graph: Data) -> Iterator[tuple[int, Any]]:
    """Where some rows of X begin, and the rows in float64, as a NumPy or SciPy array."""
    stored = isinstance(graph, StoredGraph)
    whole = to_scipy(graph.x) if is_csr(graph.x) and not stored else graph.x
    for start in range(0, graph.num_nodes, ROWS):
        stop = min(start + ROWS, graph.num_nodes)
        rows = graph.rows_of_x(start, stop) if stored else whole[start:stop]
        if isinstance(rows, torch.Tensor):
            rows = to_scipy(rows) if is_csr(rows) else rows.numpy()
        yield start, rows.astype(np.float64)
        if stored:
            graph.drop_pages()


def _indicator(of: Integers, groups: int) -> Any:
    """Groups × rows: 1 where a row is in a group."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(groups, len(of)))


def _dense(product: Any) -> Floats:
    dense: Floats = product if isinstance(product, np.ndarray) else product.toarray()
    return dense


def _plain(value: float) -> str:
    """A number in three digits, without an exponent if it is not tiny.

    >>> _plain(52.13), _plain(1234567.8), _plain(-0.01234), _plain(3.0)
    ('52.1', '1,234,568', '-0.0123', '3')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
