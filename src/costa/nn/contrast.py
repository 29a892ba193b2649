"""The sums of the contrastive losses over similarities that are never stored: exact, in O(k·d) memory, both ways.

For rows of length one, s_ij = u_i·v_j / τ. A row with the positive p_i loses −log e^{p_i} / (e^{p_i} + Σ_j e^{s_ij}) =
softplus(off_i − p_i), off_i = log Σ_j e^{s_ij} over the others: with its positive kept apart from the sum, nothing
cancels when the loss is small. Tiles of s are made, reduced and dropped; the backward pass makes them again, once for
both of the roles that a pair plays: with lse_i = log(e^{off_i} + e^{p_i}),

    τ·∂/∂u_i = Σ_j (e^{s_ij − lse_i} + e^{s_ij − lse_j})·v_j − (what the positive loses)·v_i.

On CUDA the tiles live in registers (:mod:`costa.nn.kernels.contrast`) or, where the rows are wide, are cuBLAS's
(:mod:`costa.nn.kernels.wide`). Elsewhere they are slices of TILE entries, each made once for the sums over its rows and
those over its columns; where rows are contrasted with each other, only in the upper half of s, which is symmetric. The
written-out form, which the tests compare them with, is in :mod:`costa.nn.losses`.

PyTorch's ``linear_cross_entropy`` (from 2.13 on) and the fused cross-entropies of other packages do one direction of
:func:`across`, without the backward pass that both directions share; none leaves out a diagonal, or rows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from costa.nn import kernels

TILE = 2**20
"""Similarities that exist at a time, off the GPU's kernels: 4 MiB of float32."""
SYMMETRIC_TILES = 4
"""At the least, of a symmetric s: one alone would be made in full. More gained nothing on a CPU."""
WIDEST = 512
"""Columns of the widest rows whose tiles are made in registers."""


def spread(u: Tensor, tau: float, mask: Tensor | None = None) -> Tensor:
    """Σ_i −log e^{1/τ} / Σ_j e^{u_i·u_j/τ} over the rows in ``mask``: every row is its own positive.

    >>> round(float(spread(torch.eye(3), 1.0)) / 3, 4)  # log(e + 2) − 1
    0.5514
    """
    total: Tensor = _Within.apply(u, tau, mask, 0, False)
    return total


def among(u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None, *, own: bool = False) -> Tensor:
    """Σ over the rows z_i of [U; V] of −log e^{s⁺} / Σ_{j≠i} e^{z_i·z_j/τ}; s⁺ is that with its row in the other view.

    ``own`` keeps j = i in the sum, as the constant e^{1/τ}.

    >>> u = torch.eye(3)
    >>> round(float(among(u, u, 1.0)) / 6, 4)  # log(e + 4) − 1
    0.9048
    """
    twice = None if mask is None else torch.cat([mask, mask], dim=-1)
    total: Tensor = _Within.apply(torch.cat([u, v], dim=-2), tau, twice, u.shape[-2], own)
    return total


def across(u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None) -> Tensor:
    """Σ_i −log e^{u_i·v_i/τ} / Σ_j e^{u_i·v_j/τ}, plus the same with U and V exchanged.

    >>> u = torch.eye(3)
    >>> round(float(across(u, u, 1.0)) / 6, 4)
    0.5514
    """
    total: Tensor = _Across.apply(u, v, tau, mask)
    return total


class _Within(torch.autograd.Function):
    """Each row against all the others; its positive is ``half`` rows away, or a constant 1/τ where that is 0."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, tau: float, mask: Tensor | None, half: int, own: bool) -> Tensor:
        tiles = _Tiles(z, tau, mask, half)
        rows = tiles.rows(z)
        off, _ = tiles.logsumexps(rows, rows)
        if own:
            off = torch.logaddexp(off, torch.full_like(off, 1 / tau))
        positive = (z * z.roll(half, -2)).sum(-1) / tau if half else torch.full_like(off, 1 / tau)
        ctx.save_for_backward(z, rows, off, positive)
        ctx.tiles = tiles
        return tiles.total(F.softplus(off - positive))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        z, rows, off, positive = ctx.saved_tensors
        tiles, half = ctx.tiles, ctx.tiles.half
        lse = torch.logaddexp(off, positive)
        to_z, _ = tiles.weighted_sums(rows, rows, lse, lse)
        if half:
            lost = tiles.counted(torch.sigmoid(off - positive))
            to_z = to_z - (lost + lost.roll(half, -1))[..., None] * z.roll(half, -2)
        return to_z * tiles.slope(grads[0]), None, None, None, None


class _Across(torch.autograd.Function):
    """Each row of U against the others of V, and each of V against those of U."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, tau: float, mask: Tensor | None) -> Tensor:
        tiles = _Tiles(u, tau, mask)
        positive = (u * v).sum(-1) / tau
        rows_u, rows_v = tiles.rows(u), tiles.rows(v)
        of_u, of_v = tiles.logsumexps(rows_u, rows_v)
        ctx.save_for_backward(u, v, rows_u, rows_v, of_u, of_v, positive)
        ctx.tiles = tiles
        return tiles.total(F.softplus(of_u - positive) + F.softplus(of_v - positive))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        u, v, rows_u, rows_v, of_u, of_v, positive = ctx.saved_tensors
        tiles = ctx.tiles
        lost = tiles.counted(torch.sigmoid(of_u - positive) + torch.sigmoid(of_v - positive))[..., None]
        a, b = torch.logaddexp(of_u, positive), torch.logaddexp(of_v, positive)
        to_u, to_v = tiles.weighted_sums(rows_u, rows_v, a, b)
        slope = tiles.slope(grads[0])
        return (to_u - lost * v) * slope, (to_v - lost * u) * slope, None, None


class _Tiles:
    """Sums over the tiles of s_ij = q_i·k_j / τ, j ≠ i (and |i − j| ≠ half), for rows of length one, … × k × d."""

    def __init__(self, like: Tensor, tau: float, mask: Tensor | None, half: int = 0) -> None:
        self.fused = kernels.usable(like)
        self.tau = tau
        self.mask = mask
        self.half = half

    def counted(self, per_row: Tensor) -> Tensor:
        """0 for the rows that do not count."""
        return per_row if self.mask is None else torch.where(self.mask, per_row, 0)

    def total(self, per_row: Tensor) -> Tensor:
        """Σ over the rows that count."""
        return self.counted(per_row).sum(-1)

    def slope(self, upstream: Tensor) -> Tensor:
        """The upstream gradient of a total, over τ, as it multiplies rows."""
        return (upstream / self.tau)[..., None, None]

    def rows(self, z: Tensor) -> Tensor:
        """The rows as the tiles are made of them: float16 for tensor cores, else as they are."""
        return z.half() if self.fused else z

    def logsumexps(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """log Σ_j e^{s_ij} for each row i of Q and log Σ_i e^{s_ij} for each row j of K; −∞ where nothing counts."""
        if self.fused:
            of_q = self._fused("logsumexp", q, k)
            return of_q, of_q if q is k else self._fused("logsumexp", k, q)
        bound = 1 / self.tau
        # of half precision the sum of many tiles would lose too much
        wide = torch.promote_types(q.dtype, torch.float32)
        of_q = q.new_full(q.shape[:-1], 0 if self._bounded else -math.inf, dtype=wide)
        of_k = of_q if q is k else of_q.clone()
        for rows, columns, again in self._slices(q, k):
            s = self._scores(q, k, rows, columns)
            rest = slice(again.start - columns.start, None)
            if self._bounded:
                e = s.sub_(bound).exp_()
                of_q[..., rows] += e.sum(-1, dtype=wide)
                of_k[..., again] += e[..., rest].sum(-2, dtype=wide)
            else:
                of_q[..., rows] = torch.logaddexp(of_q[..., rows], s.logsumexp(-1))
                of_k[..., again] = torch.logaddexp(of_k[..., again], s[..., rest].logsumexp(-2))
        of_q, of_k = ((x.log() + bound if self._bounded else x).to(q.dtype) for x in (of_q, of_k))
        return of_q, of_k

    def weighted_sums(self, q: Tensor, k: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_j w_ij·k_j for each row i of Q and Σ_i w_ij·q_i for each row j of K.

        The weight w_ij is e^{s_ij − a_i} + e^{s_ij − b_j}. Both are over what counts, and 0 for the rows that do
        not. Where Q is K, ``a`` and ``b`` must be equal.
        """
        if self.fused:
            to_q = self._fused("weighted_sum", q, k, a, b)
            return to_q, to_q if q is k else self._fused("weighted_sum", k, q, b, a)
        bound = 1 / self.tau
        a, b = a[..., None], b[..., None]
        to_q = torch.zeros_like(q)
        to_k = to_q if q is k else torch.zeros_like(k)
        for rows, columns, again in self._slices(q, k):
            s = self._scores(q, k, rows, columns)
            own, other = a[..., rows, :], b[..., columns, :].mT
            if self._bounded:
                weight = (bound - own).exp() + (bound - other).exp()
                weight.mul_(s.sub_(bound).exp_())
            else:
                weight = (s - own).exp_() + (s - other).exp_()
            to_q[..., rows, :] += weight @ k[..., columns, :]
            to_k[..., again, :] += weight[..., again.start - columns.start :].mT @ q[..., rows, :]
        return to_q, to_k

    @property
    def _bounded(self) -> bool:
        """Rows of length one have s ≤ 1/τ; where e^{−2/τ} is far from underflow, that bound replaces the maximum."""
        return 2 / self.tau < 60

    def _scores(self, q: Tensor, k: Tensor, rows: slice, columns: slice) -> Tensor:
        s = (q[..., rows, :] / self.tau) @ k[..., columns, :].mT
        for shift in {0, self.half, -self.half}:
            s.diagonal(rows.start - columns.start + shift, -2, -1).fill_(-math.inf)
        if self.mask is not None:
            for leave_out in (~self.mask[..., None, columns], ~self.mask[..., rows, None]):
                s.masked_fill_(leave_out, -math.inf)
        return s

    def _slices(self, q: Tensor, k: Tensor) -> list[tuple[slice, slice, slice]]:
        """Of each tile its rows, its columns, and those of the columns whose own sums over rows it adds to.

        Where Q is K, s is symmetric: a tile begins at its first row's diagonal, and what is right of its diagonal block
        stands for what is below it, too.
        """
        count, same = q.shape[-2], q is k
        step = max(1, TILE // (count * q.shape[:-2].numel()))
        if same:
            step = min(step, math.ceil(count / SYMMETRIC_TILES))
        rows = [slice(first, min(first + step, count)) for first in range(0, count, step)]
        return [(own, slice(own.start * same, count), slice(own.stop * same, count)) for own in rows]

    def _fused(self, name: str, q: Tensor, k: Tensor, *lse: Tensor) -> Tensor:
        from costa.nn.kernels import contrast, wide

        def stacked(x: Tensor, dims: int) -> Tensor:
            return x.reshape(-1, *x.shape[-dims:]).contiguous()

        out: Tensor = getattr(contrast if q.shape[-1] <= WIDEST else wide, name)(
            stacked(q, 2),
            stacked(k, 2),
            *(stacked(x, 1) for x in lse),
            self.tau,
            None if self.mask is None else stacked(self.mask, 1),
            self.half,
        )
        return out.view(*q.shape[:-2], *out.shape[1:])
