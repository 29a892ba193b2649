"""P, k × n, in the form that is cheapest to apply: dense, sparse, one entry a column, one entry a row, the identity.

Every form gives PH with its gradient Pᵀ·G, its dense writing as the oracle, and which of its rows hold a non-zero.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Projection(ABC):
    """P, k × n, as it is applied: with its scale."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(k, n)."""

    @property
    def occupied(self) -> Tensor | None:
        """Mask of the rows that hold a non-zero; None where all do by construction."""
        return None

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
            return self  # and with it what was cached
        return dataclasses.replace(self, **moved)


@dataclass(frozen=True, eq=False)
class Dense(Projection):
    """P as a plain matrix."""

    values: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def product(self, h: Tensor) -> Tensor:
        return self.values @ h

    def dense(self) -> Tensor:
        return self.values


@dataclass(frozen=True, eq=False)
class Sparse(Projection):
    """P in compressed rows: row r holds `values[j]` at `columns[j]` for offsets[r] ≤ j < offsets[r + 1]."""

    offsets: Tensor
    columns: Tensor
    values: Tensor
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.offsets.numel() - 1, self.n

    @property
    def occupied(self) -> Tensor:
        return self.offsets[1:] > self.offsets[:-1]

    @property
    def row_of_entry(self) -> Tensor:
        """The row of every stored entry."""
        entries = torch.arange(self.columns.numel(), device=self.offsets.device)
        return torch.searchsorted(self.offsets, entries, right=True) - 1

    @cached_property
    def transposed(self) -> Sparse:
        """Pᵀ in compressed rows, made once: the backward product of every view uses it."""
        columns, order = self.columns.sort(stable=True)
        bounds = torch.arange(self.n + 1, device=columns.device)
        return Sparse(torch.searchsorted(columns, bounds), self.row_of_entry[order], self.values[order], self.shape[0])

    def product(self, h: Tensor) -> Tensor:
        return _SparseProduct.apply(h, self)

    def dense(self) -> Tensor:
        p = self.values.new_zeros(self.shape)
        p[self.row_of_entry, self.columns] = self.values
        return p


class _SparseProduct(torch.autograd.Function):
    """PH with the backward Pᵀ·grad, both as weighted sums of gathered rows that are never stored."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, p: Sparse) -> Tensor:
        ctx.p = p
        # embedding_bag is the CSR product that exists on both devices, without the beta warnings of torch.sparse.
        return F.embedding_bag(
            p.columns,
            h.contiguous(),
            p.offsets,
            mode="sum",
            per_sample_weights=p.values,
            include_last_offset=True,
        )

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _SparseProduct.apply(grads[0], ctx.p.transposed), None


@dataclass(frozen=True, eq=False)
class Buckets(Projection):
    """P with one entry in each column: column i holds `signs[i]` in row `buckets[i]`."""

    buckets: Tensor
    signs: Tensor
    k: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.k, self.buckets.numel()

    @property
    def occupied(self) -> Tensor:
        return self.buckets.new_zeros(self.k, dtype=torch.bool).index_fill(0, self.buckets, True)

    def product(self, h: Tensor) -> Tensor:
        return h.new_zeros(self.k, h.shape[1]).index_add(0, self.buckets, self.signs[:, None] * h)

    def dense(self) -> Tensor:
        p = self.signs.new_zeros(self.shape)
        p[self.buckets, torch.arange(self.shape[1], device=p.device)] = self.signs
        return p


@dataclass(frozen=True, eq=False)
class Selection(Projection):
    """P with one entry in each row: row r holds `scales[r]` at column `chosen[r]`."""

    chosen: Tensor
    scales: Tensor
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.chosen.numel(), self.n

    def product(self, h: Tensor) -> Tensor:
        return self.scales[:, None] * h.index_select(0, self.chosen)

    def dense(self) -> Tensor:
        p = self.scales.new_zeros(self.shape)
        p[torch.arange(self.shape[0], device=p.device), self.chosen] = self.scales
        return p


@dataclass(frozen=True, eq=False)
class Identity(Projection):
    """P = I, n × n; the diagonal is kept as n ones for its device and dtype."""

    diagonal: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.diagonal.numel(), self.diagonal.numel()

    def product(self, h: Tensor) -> Tensor:
        return h

    def dense(self) -> Tensor:
        return self.diagonal.diag()
