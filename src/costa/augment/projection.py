"""P, k × n, in the form that is cheapest to apply.

Every form gives PH with its gradient Pᵀ·G, P written out, and the mask of its non-empty rows. A P that is a function of
a seed is in :mod:`costa.augment.implicit`; those of single sketches are in :mod:`costa.augment.other_sketches`.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Projection(ABC):
    """P, k × n, with its scale."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(k, n)."""

    @property
    def occupied(self) -> Tensor | None:
        """Mask of the rows that hold a non-zero; None if all do by construction."""
        return None

    def packed(self) -> Projection:
        """P with fewer empty rows, the same number in every draw; P itself if finding them is too costly."""
        return self

    def columns(self, chosen: Tensor) -> Projection:
        """These columns of P, in this order; what is `occupied` then depends on the form."""
        return Columns(self, chosen)

    @abstractmethod
    def product(self, h: Tensor) -> Tensor:
        """PH, with gradients to H."""

    @abstractmethod
    def dense(self) -> Tensor:
        """P written out, k × n."""

    def to(self, like: Tensor) -> Self:
        """The same P on the device of `like`, its values in the dtype of `like`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
        moved = {
            name: tensor.to(like.device, like.dtype if tensor.is_floating_point() else tensor.dtype)
            for name, tensor in tensors.items()
        }
        if all(moved[name] is tensor for name, tensor in tensors.items()):
            return self
        return dataclasses.replace(self, **moved)


@dataclass(frozen=True, eq=False)
class Dense(Projection):
    """P as a plain matrix; ``filled`` is the mask of its rows that hold a non-zero (None: all)."""

    values: Tensor
    filled: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def occupied(self) -> Tensor | None:
        return self.filled

    def columns(self, chosen: Tensor) -> Dense:
        return Dense(self.values[:, chosen], self.filled)

    def product(self, h: Tensor) -> Tensor:
        return self.values @ h

    def dense(self) -> Tensor:
        return self.values


@dataclass(frozen=True, eq=False)
class Buckets(Projection):
    """P with one entry in each column: column i holds `signs[i]` in row `buckets[i]`."""

    buckets: Tensor
    signs: Tensor
    k: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.k, len(self.buckets)

    @property
    def occupied(self) -> Tensor:
        return torch.zeros(self.k, dtype=torch.bool, device=self.buckets.device).scatter(0, self.buckets, True)

    def packed(self) -> Buckets:
        """The occupied rows in their order, then empty ones, :func:`most_occupied` rows in all.

        A draw with more occupied rows (probability e⁻³²) would add up the last ones: P still has one ±1 per column.
        """
        k = most_occupied(*self.shape)
        if k == self.k:
            return self
        rank = (self.occupied.cumsum(0) - 1).clamp_(max=k - 1)
        return Buckets(rank.gather(0, self.buckets), self.signs, k)

    def columns(self, chosen: Tensor) -> Buckets:
        return Buckets(self.buckets[chosen], self.signs[chosen], self.k)

    def product(self, h: Tensor) -> Tensor:
        return h.new_zeros(self.k, h.shape[1]).index_add(0, self.buckets, self.signs[:, None] * h)

    def dense(self) -> Tensor:
        return self.signs.new_zeros(self.shape).scatter(0, self.buckets[None], self.signs[None])


@dataclass(frozen=True, eq=False)
class Columns(Projection):
    """Some columns of any P: the other rows of H are zero. It costs as much as the whole P."""

    whole: Projection
    chosen: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.whole.shape[0], len(self.chosen)

    def product(self, h: Tensor) -> Tensor:
        return self.whole.product(h.new_zeros(self.whole.shape[1], h.shape[1]).index_copy(0, self.chosen, h))

    def dense(self) -> Tensor:
        return self.whole.dense()[:, self.chosen]


def most_occupied(k: int, n: int) -> int:
    """A bound on the number of rows, of k, that n entries occupy, each put into a row drawn uniformly.

    The mean is k·(1 − (1 − 1/k)ⁿ). The rows' occupancies are negatively associated (Dubhashi and Ranjan, 1998), so
    their number obeys Hoeffding's bound e^{−2t²/k}; and it changes by at most one with each of n independent entries,
    so it obeys McDiarmid's, e^{−2t²/n}. At t = 4·√min(k, n) that is e⁻³²: no draw will exceed the bound.

    >>> most_occupied(13_752, 13_752), most_occupied(64, 13_752)
    (9163, 64)
    """
    expected = k * (1 - (1 - 1 / k) ** n)
    return min(k, n, math.ceil(expected + 4 * math.sqrt(min(k, n))))
