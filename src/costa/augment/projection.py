"""P, k × n, in the form that is cheapest to apply: a seed, a matrix, one entry a column, one entry a row, the identity.

Every form gives PH with its gradient Pᵀ·G, its dense writing as the oracle, and which of its rows hold a non-zero.

H may be stacked, S × n × d: a form then holds S independent draws (seeds of shape S, say), and each multiplies its own.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from costa.augment import philox
from costa.nn import kernels

TILE, GPU_TILE = 2**18, 2**24
"""Entries of P that exist at a time, off the kernels: a tile that stays in a core's cache, and one that fills a GPU."""


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

    def packed(self) -> Projection:
        """P with fewer empty rows, the same number in every draw; P itself where that takes too much to know."""
        return self

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
    """P as a plain matrix; ``filled`` says which of its rows hold a non-zero (None: all)."""

    values: Tensor
    filled: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[-2], self.values.shape[-1]

    @property
    def occupied(self) -> Tensor | None:
        return self.filled

    def product(self, h: Tensor) -> Tensor:
        return self.values @ h

    def dense(self) -> Tensor:
        return self.values


@dataclass(frozen=True, eq=False)
class Implicit(Projection):
    """P as a function of a seed, never stored: its tiles are drawn where they are used, and again in the backward pass.

    Whatever the tiles and the device, the same seed and shape are the same P. ``like`` is empty: P's device and dtype.
    """

    seed: Tensor
    k: int
    n: int
    scale: float
    like: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.k, self.n

    def product(self, h: Tensor) -> Tensor:
        return _ImplicitProduct.apply(h, self, False)

    def dense(self) -> Tensor:
        out = self.like.new_empty(len(self._seeds()), self.k, self.n)
        for seed, matrix in zip(self._seeds(), out, strict=True):
            for first, last in self._blocks(self.n):
                matrix[first:last] = self._rows(seed, first, last)
        return out.mul_(self.scale).view(*self.seed.shape, self.k, self.n)

    def multiply(self, source: Tensor, transposed: bool) -> Tensor:
        """PH, or PᵀG, without a gradient: by the GPU's kernels where they can, else block by block."""
        stacked = source if source.dim() == 3 else source[None]
        if self._fused(source):
            out = self._fused_product(stacked, transposed)
        else:
            copies = [
                self._blocked_product(seed, copy, transposed) for seed, copy in zip(self._seeds(), stacked, strict=True)
            ]
            out = torch.stack(copies)
        return out if source.dim() == 3 else out[0]

    def _seeds(self) -> list[int]:
        seeds: list[int] = self.seed.flatten().tolist()
        return seeds

    def _blocks(self, per_row: float) -> Iterator[tuple[int, int]]:
        """(first, last) of blocks of rows that hold about a tile's entries together."""
        tile = GPU_TILE if self.like.is_cuda else TILE
        rows = max(1, round(tile / max(1.0, per_row)))
        return ((first, min(first + rows, self.k)) for first in range(0, self.k, rows))

    def _fused(self, source: Tensor) -> bool:
        return kernels.usable(source)

    def _rows(self, seed: int, first: int, last: int) -> Tensor:
        """Rows ``first`` … ``last`` − 1 of P, before its scale."""
        raise NotImplementedError

    def _fused_product(self, source: Tensor, transposed: bool) -> Tensor:
        raise NotImplementedError

    def _blocked_product(self, seed: int, source: Tensor, transposed: bool) -> Tensor:
        raise NotImplementedError


class _ImplicitProduct(torch.autograd.Function):
    """PH with the gradient PᵀG, and PᵀG with the gradient PH."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, p: Implicit, transposed: bool) -> Tensor:
        ctx.p, ctx.transposed = p, transposed
        return p.multiply(source, transposed)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _ImplicitProduct.apply(grads[0], ctx.p, not ctx.transposed), None, None


@dataclass(frozen=True, eq=False)
class ImplicitDense(Implicit):
    """Gaussian entries, or random signs."""

    gaussian: bool

    def _rows(self, seed: int, first: int, last: int) -> Tensor:
        entries = philox.gaussian if self.gaussian else philox.rademacher
        return entries(seed, first, last, self.n, self.like)

    def _fused_product(self, source: Tensor, transposed: bool) -> Tensor:
        from costa.nn.kernels import projection

        return projection.dense_product(
            self.seed, source, self.k, self.n, self.scale, gaussian=self.gaussian, transposed=transposed
        )

    def _blocked_product(self, seed: int, source: Tensor, transposed: bool) -> Tensor:
        out = source.new_zeros(self.n if transposed else self.k, source.shape[1])
        for first, last in self._blocks(self.n):
            tile = self._rows(seed, first, last)
            if transposed:
                out.addmm_(tile.T, source[first:last])
            else:
                torch.mm(tile, source, out=out[first:last])
        return out.mul_(self.scale)


@dataclass(frozen=True, eq=False)
class ImplicitSparse(Implicit):
    """Entries ±1 with probability ``density``, else 0; products cost O(non-zeros)."""

    density: float

    @property
    def occupied(self) -> Tensor:
        if kernels.usable(self.like):
            from costa.nn.kernels import projection

            return projection.occupied_rows(self.seed, self.k, self.n, self.density).view(*self.seed.shape, self.k)
        filled = [philox.occupied(s, self.k, self.n, self.density, self.like.device) for s in self._seeds()]
        return torch.stack(filled).view(*self.seed.shape, self.k)

    def _entries(self, seed: int, first: int, last: int) -> tuple[Tensor, Tensor, Tensor]:
        return philox.sparse(seed, first, last, self.n, self.density, self.like)

    def _rows(self, seed: int, first: int, last: int) -> Tensor:
        starts, columns, signs = self._entries(seed, first, last)
        rows = self.like.new_zeros(last - first, self.n)
        rows[torch.arange(last - first, device=rows.device).repeat_interleave(starts.diff()), columns] = signs
        return rows

    def _fused(self, source: Tensor) -> bool:
        # the transposed product adds atomically, in any order
        return kernels.usable(source) and not torch.are_deterministic_algorithms_enabled()

    def _fused_product(self, source: Tensor, transposed: bool) -> Tensor:
        from costa.nn.kernels import projection

        return projection.sparse_product(
            self.seed, source, self.k, self.n, self.scale, self.density, transposed=transposed
        )

    def _blocked_product(self, seed: int, source: Tensor, transposed: bool) -> Tensor:
        out = source.new_zeros(self.n if transposed else self.k, source.shape[1])
        for first, last in self._blocks(self.n * self.density):
            starts, columns, signs = self._entries(seed, first, last)
            if not transposed:
                out[first:last] = _weighted_rows(source, starts, columns, signs)
            else:
                # the same entries by columns: P's block as a matrix of n rows
                row = torch.arange(first, last, device=columns.device).repeat_interleave(starts.diff())
                columns, order = columns.sort(stable=True)
                starts = torch.searchsorted(columns, torch.arange(self.n + 1, device=columns.device))
                out += _weighted_rows(source, starts, row[order], signs[order])
        return out.mul_(self.scale)


def _weighted_rows(rows: Tensor, starts: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """Σ of weight × row over each run of ``chosen``: a CSR product, without the beta warnings of torch.sparse."""
    return F.embedding_bag(
        chosen, rows.contiguous(), starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


@dataclass(frozen=True, eq=False)
class Buckets(Projection):
    """P with one entry in each column: column i holds `signs[i]` in row `buckets[i]`."""

    buckets: Tensor
    signs: Tensor
    k: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.k, self.buckets.shape[-1]

    @property
    def occupied(self) -> Tensor:
        places = torch.zeros(*self.buckets.shape[:-1], self.k, dtype=torch.bool, device=self.buckets.device)
        return places.scatter(-1, self.buckets, True)

    def packed(self) -> Buckets:
        """The occupied rows in their order, then some empty ones: as many as :func:`most_occupied` says, in every draw.

        Of a draw with more than that, which nobody will see, the last rows would be added up in one: P then still has
        one ±1 in each column.
        """
        k = most_occupied(*self.shape)
        if k == self.k:
            return self
        rank = (self.occupied.cumsum(-1) - 1).clamp_(max=k - 1)
        return Buckets(rank.gather(-1, self.buckets), self.signs, k)

    def product(self, h: Tensor) -> Tensor:
        signed = self.signs[..., None] * h
        # one long H for all stacked ones: bucket b of the s-th copy is bucket s·k + b
        copies = self.buckets.numel() // self.shape[1]
        shift = torch.arange(0, copies * self.k, self.k, device=h.device).view(*self.buckets.shape[:-1], 1)
        flat = h.new_zeros(copies * self.k, h.shape[-1]).index_add(
            0, (self.buckets + shift).flatten(), signed.flatten(0, -2)
        )
        return flat.view(*h.shape[:-2], self.k, h.shape[-1])

    def dense(self) -> Tensor:
        p = self.signs.new_zeros(*self.buckets.shape[:-1], *self.shape)
        return p.scatter(-2, self.buckets[..., None, :], self.signs[..., None, :])


def most_occupied(k: int, n: int) -> int:
    """How many of k rows are occupied by n entries, each put into a row drawn uniformly: a bound that no draw exceeds.

    The mean is k·(1 − (1 − 1/k)ⁿ). Which rows are occupied is negatively associated (Dubhashi and Ranjan, 1998), so
    their number obeys Hoeffding's bound e^{−2t²/k}; and it changes by at most one with each of n independent entries,
    so it obeys McDiarmid's, e^{−2t²/n}. At t = 4·√min(k, n) that is e⁻³².

    >>> most_occupied(13_752, 13_752), most_occupied(64, 13_752)
    (9163, 64)
    """
    expected = k * (1 - (1 - 1 / k) ** n)
    return min(k, n, math.ceil(expected + 4 * math.sqrt(min(k, n))))


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
