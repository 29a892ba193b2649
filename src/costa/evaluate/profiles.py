"""What sets groups of nodes apart, in the units of :mod:`costa.evaluate.attributes`.

For a group g, and each column with the ranks r of its values,

    d = (mean of r in g − mean of r in all others) / standard deviation of r

which one outlier does not change. Of a value that a node has or has not, such as plan = gold, this is the difference
of two shares over √(share·(1 − share)), so numbers, categories and words compare with each other. A person reads

    age 52.1 (all: 37.4)            medians; if they agree, means: "mean age 4.3 (all: 3.9)"
    plan = gold 71% (all: 12%)      shares, of the value of a category that differs most
    visits ≠ 0 71% (all: 12%)       shares, where at least half of the numbers are 0

A column sets a group apart if |d| ≥ :data:`LEAST`, and if groups drawn at random would show such a difference, in any
of the columns, with a probability of at most :data:`CHANCE`: by the normal limit and, of shares, the hypergeometric
distribution, with Bonferroni's correction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.evaluate.attributes import Category, Floats, Integers, Numbers, Words, attributes, blocks, features, names_of

LEAST, CHANCE = 0.2, 0.01
RARE = 0.01
"""The share from which on a value's standard deviation is its own: very rare ones would always stand out."""
MOST = 4
"""Columns that are named for each group."""


@dataclass(frozen=True)
class Trait:
    """How a group differs from the other nodes.

    Attributes:
        what: A column, or a value of it, such as ``plan = gold``.
        inside: Its median or share in the group.
        everywhere: The same of all nodes.
        difference: d.
    """

    what: str
    inside: str
    everywhere: str
    difference: float

    def __str__(self) -> str:
        return f"{self.what} {self.inside} (all: {self.everywhere})"


Traits = Iterator[tuple[int, Trait]]
"""Groups, each with something that sets it apart."""


def profiles(graph: Data, of: Integers, groups: int) -> list[list[Trait]]:
    """For each group, what sets it apart most, the largest difference first.

    Args:
        graph: Its label, table, features or edges are compared.
        of: The group of each node, 0 … groups − 1.
        groups: Their number.
    """
    found: list[list[Trait]] = [[] for _ in range(groups)]
    table = graph.get("table")
    tests = groups * (1 + (graph.num_features if table is None else len(table.columns)))
    compare = _Comparison(of, groups, tests)
    for column in attributes(graph):
        for group, trait in compare.words(column) if isinstance(column, Words) else compare.column(column):
            found[group].append(trait)
    return [sorted(traits, key=lambda trait: -abs(trait.difference))[:MOST] for traits in found]


@dataclass(frozen=True)
class _Comparison:
    """The groups of all nodes, and how many comparisons there are."""

    of: Integers
    groups: int
    tests: int

    def column(self, column: Numbers | Category) -> Traits:
        """The groups that a column sets apart."""
        if isinstance(column, Category):
            kept = column.codes >= 0
            code, of, count = column.codes[kept], self.of[kept], len(column.titles)
            counts = np.bincount(of * count + code, minlength=self.groups * count).reshape(self.groups, -1)
            return self._shares(column.titles, counts, self._sizes(of), best=True)
        kept = np.isfinite(column.values)
        values, of = column.values[kept], self.of[:: column.step][kept]
        present = values != 0
        whether = bool(((values == 1) | ~present).all())
        if not column.dates and len(values) and (whether or 2 * present.sum() <= len(values)):
            title = column.name if whether else f"{column.name} ≠ 0"
            return self._shares([title], np.bincount(of, present, self.groups)[:, None], self._sizes(of))
        return self._numbers(column, values, of)

    def words(self, words: Words) -> Traits:
        """The same of sparse features, all at once; those that are mostly not 0 are numbers."""
        from scipy.sparse import csr_array

        width = words.graph.num_features
        counts, more_than_one = np.zeros((self.groups, width)), np.zeros(width, dtype=bool)
        for start, rows in blocks(words.graph):
            some = rows.shape[0]
            inside = csr_array((np.ones(some), (self.of[start : start + some], np.arange(some))), (self.groups, some))
            counts += (inside @ (rows != 0).astype(np.float64)).toarray()
            more_than_one[rows.indices[(rows.data != 0) & (rows.data != 1)]] = True
        filled = 2 * counts.sum(0) > len(self.of)
        titles = [
            f"{name} ≠ 0" if more else name for name, more in zip(names_of(words.graph), more_than_one, strict=True)
        ]
        yield from self._shares(titles, np.where(filled, 0, counts), self._sizes(self.of))
        for column in features(words.graph, np.flatnonzero(filled).tolist()):
            yield from self.column(column)

    def _numbers(self, column: Numbers, values: Floats, of: Integers) -> Traits:
        from scipy.stats import rankdata

        ranks, sizes = rankdata(values), self._sizes(of)
        if not ranks.std():
            return
        means = np.bincount(of, ranks, self.groups) / np.maximum(sizes, 1)
        differences = self._differences(means, ranks.mean(), ranks.std(), sizes, len(values))
        for group in np.flatnonzero(differences).tolist():
            inside, name = values[of == group], column.name
            say = _day if column.dates else _plain
            one, all_ = say(np.median(inside)), say(np.median(values))
            if one == all_:
                name, one, all_ = f"mean {name}", say(inside.mean()), say(values.mean())
            yield group, Trait(name, one, all_, float(differences[group]))

    def _shares(self, titles: list[str], counts: NDArray[Any], sizes: Integers, *, best: bool = False) -> Traits:
        """The groups that differ in having something, whose nodes are counted; the best column alone, if asked."""
        from scipy.stats import hypergeom

        n = int(sizes.sum())
        if not n:
            return
        share, mean = counts / np.maximum(sizes, 1)[:, None], counts.sum(0) / n
        usual = np.clip(mean, RARE, 1 - RARE)
        tries = len(titles) if best else 1
        differences = self._differences(share, mean, np.sqrt(usual * (1 - usual)), sizes[:, None], n, tries)
        where = group, column = np.nonzero(differences)
        have, drawn = counts[where], (n, counts.sum(0)[column], sizes[group])
        # the normal limit is far off for rare values
        chance = np.where(differences[where] > 0, hypergeom.sf(have - 1, *drawn), hypergeom.cdf(have, *drawn))
        differences[where] *= chance <= CHANCE / (2 * tries * self.tests)
        if best:  # of two values that differ alike, the more frequent one
            first = (np.abs(differences) + 1e-9 * (differences > 0)).argmax(1)[:, None]
            differences = np.where(np.arange(len(titles)) == first, differences, 0)
        for row, place in np.argwhere(differences).tolist():
            inside, everywhere = _percent(share[row, place]), _percent(mean[place])
            yield row, Trait(titles[place], inside, everywhere, float(differences[row, place]))

    def _differences(self, inside: Any, mean: Any, deviation: Any, sizes: Any, n: int, tries: int = 1) -> Floats:
        """d; 0 where it is small or may be by chance, of which each comparison has so many tries."""
        from scipy.stats import norm

        others = np.maximum(n - sizes, 1)
        apart = (inside - mean) / deviation
        errors = np.abs(apart) * np.sqrt(sizes * (n - 1) / others)
        difference = apart * n / others
        counts = (np.abs(difference) >= LEAST) & (errors >= norm.isf(CHANCE / (2 * tries * self.tests)))
        return np.where(counts, difference, 0.0)

    def _sizes(self, of: Integers) -> Integers:
        return np.bincount(of, minlength=self.groups)


def _plain(value: float) -> str:
    """A number in three digits, without an exponent if it is not tiny.

    >>> _plain(52.13), _plain(1234567.8), _plain(-0.01234), _plain(3.0)
    ('52.1', '1,234,568', '-0.0123', '3')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _percent(share: float) -> str:
    """
    >>> _percent(0.5), _percent(0.004), _percent(0.0)
    ('50%', '<1%', '0%')
    """
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _day(days: float) -> str:
    """
    >>> _day(1.2)
    '1970-01-02'
    """
    return str(np.datetime64(round(days), "D"))
