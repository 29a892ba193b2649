"""How the columns of each kind become numbers: fitted to the cells of one table, applied to those of any other.

number      the number itself; a missing one is the median
flag        1 or 0; a missing one is the median
category    a column for each of at most 32 values. Values in fewer than one of a thousand rows share a column for
            others, which values that were not seen get too; without that column they are 0 everywhere. Of more values,
            each is ±1 in one of 32 columns, chosen by its hash (scikit-learn's ``FeatureHasher``)
date        days since the first date; sine and cosine of the month, if it differs between rows; those of the weekday,
            if the day of the month does. A missing date is the median date
text        TF-IDF of at most 4,096 words, multiplied by their first 32 right singular vectors; a missing text is 0

The words and the singular vectors come from at most 20,000 different texts, evenly spaced in sorted order, so that the
order of rows changes nothing, not even the last bit. scikit-learn fits them; what is kept are words and arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from costa.graphs.cells import Cells, Problem
from costa.graphs.dates import which_first
from costa.graphs.kinds import FLAGS, LIMIT, dates_of

RARE = 1000
"""A value in fewer than one of so many rows is rare."""
TERMS = 4096
"""The most words of a column of text."""
LEARNT_FROM = 20_000
"""The most texts that the words and singular vectors come from."""
BLOCK = 20_000
"""The texts whose words are counted at a time."""
DAY = np.timedelta64(1, "D")

Block = NDArray[np.float32] | csr_array


@dataclass(frozen=True)
class Number:
    """A number as it is."""

    kind: ClassVar[str] = "number"
    filled: ClassVar[int] = 1
    fill: float

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Find the median."""
        values = cls.read(cells)
        return cls(float(np.median(values[cells.codes[cells.codes >= 0]])))

    @staticmethod
    def read(cells: Cells) -> NDArray[np.float32]:
        """The distinct values as numbers."""
        return cells.numbers()

    def names(self, name: str) -> list[str]:
        """The column's own name."""
        return [name]

    def apply(self, cells: Cells) -> NDArray[np.float32]:
        """The numbers."""
        return cells.spread(self.read(cells), self.fill)[:, None]


@dataclass(frozen=True)
class Flag(Number):
    """A flag as 1 or 0."""

    kind: ClassVar[str] = "flag"

    @staticmethod
    def read(cells: Cells) -> NDArray[np.float32]:
        """The distinct values as 1 or 0."""
        values = [FLAGS.get(text.lower()) for text in cells.texts()]
        if None in values:
            raise cells.problem(values.index(None), "is neither yes nor no; correct it, empty the cell")
        return np.array(values, dtype=np.float32)


@dataclass(frozen=True)
class Category:
    """A column for each of `values`; `rare` values share one with all others, if there are any."""

    kind: ClassVar[str] = "category"
    filled: ClassVar[int] = 1
    values: tuple[str, ...]
    rare: tuple[str, ...]

    @classmethod
    def fit(cls, cells: Cells) -> Category | Hashed:
        """Choose the values that have a column, or hashing if there are too many."""
        rows: dict[str, int] = {}
        for text, count in zip(cells.texts(), cells.counts().tolist(), strict=True):
            rows[text] = rows.get(text, 0) + count
        if len(rows) > LIMIT:
            return Hashed(LIMIT)
        rare = {text for text, count in rows.items() if RARE * count < sum(rows.values())}
        return cls(tuple(sorted(rows.keys() - rare)), tuple(sorted(rare)))

    def names(self, name: str) -> list[str]:
        """``plan=gold`` for each value, ``plan: other`` for the others."""
        return [*(f"{name}={value}" for value in self.values), *([f"{name}: other"] if self.rare else [])]

    def apply(self, cells: Cells) -> csr_array:
        """A 1 in the column of the value."""
        places = {value: i for i, value in enumerate(self.values)}
        other = len(self.values) if self.rare else -1
        place = cells.spread(np.array([places.get(text, other) for text in cells.texts()], dtype=np.int64), -1)
        rows = np.flatnonzero(place >= 0)
        ones = np.ones(len(rows), dtype=np.float32)
        return csr_array((ones, (rows, place[rows])), shape=(len(place), len(self.names(""))))

    def unseen(self, cells: Cells) -> tuple[int, str]:
        """The number of rows whose value was not there at fit, and the first such value."""
        known, texts = {*self.values, *self.rare}, cells.texts()
        strange = np.array([text not in known for text in texts], dtype=bool)
        return int(cells.counts()[strange].sum()), next((text for text in texts if text not in known), "")


@dataclass(frozen=True)
class Hashed:
    """A category of many values: one ±1 in `width` columns."""

    kind: ClassVar[str] = "category"
    filled: ClassVar[int] = 1
    width: int

    def names(self, name: str) -> list[str]:
        """``code: hash 1`` and so on."""
        return [f"{name}: hash {i}" for i in range(1, self.width + 1)]

    def apply(self, cells: Cells) -> csr_array:
        """±1 in the column that the value's hash chooses."""
        from sklearn.feature_extraction import FeatureHasher

        hasher = FeatureHasher(self.width, input_type="string", dtype=np.float32)
        # The row after the last is that of missing values, whose code is −1.
        hashed = csr_array(hasher.transform([[text] for text in cells.texts()] + [[]]))
        return hashed[cells.codes]


@dataclass(frozen=True)
class Date:
    """Days since `start`, season and weekday; points in time are microseconds since 1970."""

    kind: ClassVar[str] = "date"
    first: str | None
    start: int
    fill: int
    season: bool
    weekday: bool

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Find the earliest and the median date, and what differs between rows."""
        first = which_first(cells.texts())
        moments = dates_of(cells, first)
        times = moments.astype(np.int64)
        months, days = _months(moments), moments.astype("datetime64[D]") - moments.astype("datetime64[M]")
        return cls(
            first,
            start=int(times.min()),
            fill=int(np.median(times[cells.codes[cells.codes >= 0]])),
            season=bool((months != months[0]).any()),
            weekday=bool((days != days[0]).any()),
        )

    @property
    def filled(self) -> int:
        """All of its columns."""
        return len(self.names(""))

    def names(self, name: str) -> list[str]:
        """``joined: days``, ``joined: month sin`` and so on."""
        cycles = ["month"] * self.season + ["weekday"] * self.weekday
        return [f"{name}: days", *(f"{name}: {cycle} {wave}" for cycle in cycles for wave in ("sin", "cos"))]

    def apply(self, cells: Cells) -> NDArray[np.float32]:
        """The columns."""
        moments = np.append(dates_of(cells, self.first), np.datetime64(self.fill, "us"))
        columns = [(moments - np.datetime64(self.start, "us")) / DAY]
        # 1 January 1970 was a Thursday
        weekdays = (moments.astype("datetime64[D]").astype(np.int64) + 3) % 7
        for there, values, period in ((self.season, _months(moments), 12), (self.weekday, weekdays, 7)):
            if there:
                angle = 2 * np.pi / period * values
                columns += [np.sin(angle), np.cos(angle)]
        return np.stack(columns, axis=1).astype(np.float32)[cells.codes]


def _months(moments: NDArray[np.datetime64]) -> NDArray[np.int64]:
    return moments.astype("datetime64[M]").astype(np.int64) % 12


@dataclass(frozen=True, eq=False)
class Text:
    """TF-IDF of `terms`, whose weights are `idf`, times the right singular vectors `components` (k × terms)."""

    kind: ClassVar[str] = "text"
    terms: tuple[str, ...]
    idf: NDArray[np.float32] = field(metadata={"array": True})
    components: NDArray[np.float32] = field(metadata={"array": True})

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Learn words, weights and singular vectors."""
        from sklearn.utils.extmath import randomized_svd

        texts = sorted(set(cells.texts()))
        learnt = texts[:: -(-len(texts) // LEARNT_FROM)]
        words = _vectorizer(max_features=TERMS)
        try:
            weighted = words.fit_transform(learnt)
        except ValueError:  # scikit-learn's only one here: an empty vocabulary
            raise Problem(
                f"no word in any text of the column {cells.name!r}, though it was to be taken for text; take it for a"
                " category, or ignore it"
            ) from None
        _, singular, components = randomized_svd(weighted.astype(np.float64), LIMIT, random_state=0)
        # Beyond the rank of the matrix, singular vectors are arbitrary.
        components = components[singular > 1e-5 * singular[0]].astype(np.float32)
        return cls(tuple(words.get_feature_names_out().tolist()), words.idf_.astype(np.float32), components)

    @property
    def filled(self) -> int:
        """All of its columns."""
        return len(self.components)

    def names(self, name: str) -> list[str]:
        """``note: text 1`` and so on."""
        return [f"{name}: text {i}" for i in range(1, len(self.components) + 1)]

    def apply(self, cells: Cells) -> NDArray[np.float32]:
        """The reduced TF-IDF of each text."""
        texts, loadings = cells.texts(), np.ascontiguousarray(self.components.T)
        # The row after the last is that of missing texts, whose code is −1.
        reduced = np.zeros((len(texts) + 1, len(self.components)), dtype=np.float32)
        for start in range(0, len(texts), BLOCK):
            some = texts[start : start + BLOCK]
            reduced[start : start + len(some)] = self._words.transform(some) @ loadings
        return reduced[cells.codes]

    @cached_property
    def _words(self) -> Any:
        words = _vectorizer(vocabulary=list(self.terms))
        words.idf_ = self.idf
        return words


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True, dtype=np.float32, **options)


@dataclass(frozen=True)
class Nothing:
    """A column that is left out."""

    kind: str
    filled: ClassVar[int] = 0

    def names(self, name: str) -> list[str]:
        """None."""
        return []

    def apply(self, cells: Cells) -> NDArray[np.float32]:
        """No columns."""
        return np.empty((len(cells.codes), 0), dtype=np.float32)


Preparation = Number | Flag | Category | Hashed | Date | Text | Nothing
"""``kind``, ``names``, ``apply``, and ``filled``: how many of its numbers in a row are not 0, at most."""
