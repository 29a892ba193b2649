"""What a cluster is: its size, its most typical nodes, and the columns of a table that set it apart.

    typical    the nodes of the largest cosine with the mean of the cluster's vectors, each of length one
    δ          P(x inside > x outside) − P(x inside < x outside): Cliff's δ, for a column of numbers
               share of a value inside − share outside: the same for a class, of the value where |δ| is largest

A column sets a cluster apart if |δ| ≥ 0.2 and |δ| ≥ 3·√((n + 1)/(3·n₁·n₀)), three standard errors of δ for n₁ nodes
inside and n₀ outside that do not differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

TYPICAL = 3
MOST_TRAITS = 4
LEAST_DELTA, ERRORS = 0.2, 3.0
"""What counts as a difference, and as more than chance."""

Values: TypeAlias = NDArray[np.float64] | Sequence[str]
"""Numbers, NaN where missing; or classes, empty where missing."""


@dataclass(frozen=True)
class Trait:
    """How a column differs between a cluster and all other nodes.

    Attributes:
        column: Its name.
        value: The class whose shares are compared; None for numbers, whose medians are compared.
        inside: Median, or share, in the cluster.
        outside: The same of all other nodes.
        delta: δ, from −1 to 1.
    """

    column: str
    value: str | None
    inside: float
    outside: float
    delta: float


@dataclass(frozen=True)
class Profile:
    """One cluster.

    Attributes:
        cluster: Its number.
        size: Its number of nodes.
        typical: Its most typical nodes, the most typical first.
        traits: What sets it apart, the largest |δ| first.
    """

    cluster: int
    size: int
    typical: list[int]
    traits: list[Trait]


def profiles(unit: NDArray[np.float32], cluster: NDArray[np.int64], columns: Mapping[str, Values]) -> list[Profile]:
    """The profile of each cluster.

    Args:
        unit: n × d, rows of length one.
        cluster: The number of each node's cluster.
        columns: By name, n values each.
    """
    found = []
    traits = {name: _traits(name, values, cluster) for name, values in columns.items()}
    for number in np.unique(cluster).tolist():
        (nodes,) = np.nonzero(cluster == number)
        closeness = unit[nodes] @ unit[nodes].mean(0)
        typical = nodes[np.argsort(-closeness, kind="stable")[:TYPICAL]].tolist()
        apart = [trait for by_cluster in traits.values() if (trait := by_cluster.get(number)) is not None]
        apart.sort(key=lambda trait: -abs(trait.delta))
        found.append(Profile(number, len(nodes), typical, apart[:MOST_TRAITS]))
    return found


def _traits(name: str, values: Values, cluster: NDArray[np.int64]) -> dict[int, Trait]:
    """By cluster, what a column says of it; nothing of a cluster that it does not set apart."""
    if isinstance(values, np.ndarray):
        known = ~np.isnan(values)
        candidates = list(_compare(name, None, values[known], cluster[known]))
    else:
        texts = np.array(values, dtype=np.str_)
        has = {str(text): (texts == text).astype(np.float64) for text in np.unique(texts) if text}
        candidates = [found for text, column in has.items() for found in _compare(name, text, column, cluster)]
    best: dict[int, Trait] = {}
    for number, trait in candidates:
        # of two equal differences, the value that is more common inside
        if number not in best or (abs(trait.delta), trait.delta) > (abs(best[number].delta), best[number].delta):
            best[number] = trait
    return best


def _compare(
    name: str, text: str | None, values: NDArray[np.float64], cluster: NDArray[np.int64]
) -> Iterator[tuple[int, Trait]]:
    """Each cluster that these numbers set apart; with a text they are 0 or 1, whose ranks give the same δ."""
    from scipy.stats import rankdata

    ranks, middle = rankdata(values), np.median if text is None else np.mean
    for number in np.unique(cluster).tolist():
        inside = cluster == number
        within, without = int(inside.sum()), int((~inside).sum())
        if not without:
            continue
        delta = float(2 * (ranks[inside].mean() - (len(ranks) + 1) / 2) / without)
        chance = ERRORS * math.sqrt((len(ranks) + 1) / (3 * within * without))
        if abs(delta) >= max(LEAST_DELTA, chance):
            yield number, Trait(name, text, float(middle(values[inside])), float(middle(values[~inside])), delta)
