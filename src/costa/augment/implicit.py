"""P as a function of a seed: Gaussian entries, random signs, or sparse signs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from costa.augment.projection import Dense, Projection
from costa.nn import kernels, philox

TILE, GPU_TILE = 2**18, 2**24
"""Entries of P drawn at a time without the kernels: a tile that stays in a core's cache, and one that fills a GPU."""

KEPT_BYTES = 2**29
"""The largest dense P that a CPU keeps, 512 MiB: in float32, k = n/2 rows up to 16,384 nodes, 4,096 rows up to 32,768.

Drawing a tile there costs about as much as multiplying it, so P is drawn once, not once in every product. The limit
leaves room for several processes, one per seed, in the memory of an ordinary computer.
"""


@dataclass(frozen=True, eq=False)
class Implicit(Projection):
    """P as a function of a seed: its tiles are drawn when they are used, and again in the backward pass.

    P is not stored, except that a CPU keeps a dense one if it is small (:class:`ImplicitDense`).

    The same seed and shape give the same P on every device. ``like`` is an empty tensor of P's device and dtype.
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
        out = self.like.new_empty(self.k, self.n)
        for first, last in self._blocks(self.n):
            out[first:last] = self._rows(int(self.seed), first, last)
        return out.mul_(self.scale)

    def multiply(self, source: Tensor, transposed: bool) -> Tensor:
        """PH, or PᵀG, without a gradient: by the GPU's kernels if they can, else block by block."""
        if self._fused(source):
            # the kernels take several matrices at once, each with its own seed
            return self._fused_product(source[None], transposed)[0]
        return self._blocked_product(int(self.seed), source, transposed)

    def _blocks(self, per_row: float) -> Iterator[tuple[int, int]]:
        """(first, last) of blocks of rows, each with about a tile's number of entries."""
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
    """Gaussian entries, or random signs.

    On a CPU a P of at most :data:`KEPT_BYTES` is written out at its first product and kept for the later ones. Its
    products are those of the stored P bit for bit, and those of its tiles up to rounding.
    """

    gaussian: bool

    def columns(self, chosen: Tensor) -> Projection:
        return Dense(self._written_out[:, chosen]) if self._is_kept(self.like) else super().columns(chosen)

    def product(self, h: Tensor) -> Tensor:
        return self._written_out @ h if self._is_kept(h) else super().product(h)

    def _is_kept(self, h: Tensor) -> bool:
        small = self.k * self.n * self.like.itemsize <= KEPT_BYTES
        return small and h.device.type == "cpu" and not self._fused(h)

    @functools.cached_property
    def _written_out(self) -> Tensor:
        """P, freed with this object or after the last backward pass that needs it, whichever comes later."""
        with torch.inference_mode(False):  # else a later product could not be differentiated
            return self.dense()

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

            return projection.occupied_rows(self.seed, self.k, self.n, self.density).view(self.k)
        return philox.occupied(int(self.seed), self.k, self.n, self.density, self.like.device)

    def _entries(self, seed: int, first: int, last: int) -> tuple[Tensor, Tensor, Tensor]:
        return philox.sparse(seed, first, last, self.n, self.density, self.like)

    def _rows(self, seed: int, first: int, last: int) -> Tensor:
        starts, columns, signs = self._entries(seed, first, last)
        rows = self.like.new_zeros(last - first, self.n)
        rows[torch.arange(last - first, device=rows.device).repeat_interleave(starts.diff()), columns] = signs
        return rows

    def _fused(self, source: Tensor) -> bool:
        # the transposed product adds atomically, in no fixed order
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
                # the same entries sorted by column: the rows of the block's transpose
                row = torch.arange(first, last, device=columns.device).repeat_interleave(starts.diff())
                columns, order = columns.sort(stable=True)
                starts = torch.searchsorted(columns, torch.arange(self.n + 1, device=columns.device))
                out += _weighted_rows(source, starts, row[order], signs[order])
        return out.mul_(self.scale)


def _weighted_rows(rows: Tensor, starts: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """Σ weight · row over each run of ``chosen``: a CSR product without the beta warnings of torch.sparse."""
    return F.embedding_bag(
        chosen, rows.contiguous(), starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )
