"""The contrastive losses, minimised (the paper prints what is maximised, their negative), in O(k·d) memory.

u_i and v_i are rows of U and V scaled to length 1, τ is the temperature. Everything goes through log-sum-exp, so that
τ = 0.01 (exponents of ±100, past float32's e⁸⁸) is as stable as τ = 1. With a single row each loss is 0, and so is its
gradient, except in a two-view loss that counts a row's similarity with itself.

``mask`` marks the rows that count. An empty row of the sketch is zero or noise; it is left out, as an anchor and as a
negative, without changing the shapes.

``plain=True`` writes out the k × k similarities and leaves the gradient to autograd: the same numbers up to rounding,
which the tests compare the rest of this file with. Otherwise the similarities s_ij = u_i·v_j / τ are never stored. The
loss of a row with the positive p_i is −log e^{p_i} / (e^{p_i} + Σ_j e^{s_ij}) = softplus(off_i − p_i), where off_i is
log Σ_j e^{s_ij} over the others: as the positive is not part of the sum, nothing cancels when the loss is small.
Tiles of s are computed, reduced and dropped; the backward pass computes them again, once for both rows of a pair: with
lse_i = log(e^{off_i} + e^{p_i}),

    τ·∂/∂u_i = Σ_j (e^{s_ij − lse_i} + e^{s_ij − lse_j})·v_j − (σ(off_i − p_i), summed over both ways)·v_i.

On CUDA the tiles live in registers (:mod:`costa.nn.kernels.contrast`) or, if the rows are wide, come from cuBLAS
(:mod:`costa.nn.kernels.wide`). Elsewhere they are slices of TILE entries, each computed once for the sums over its rows
and over its columns; if rows are contrasted with each other, only the upper half of s, which is symmetric.
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
"""Similarities that exist at a time without the GPU kernels: 4 MiB of float32."""
SYMMETRIC_TILES = 4
"""The least number of tiles of a symmetric s: a single one would be computed in full. More did not help on a CPU."""
WIDEST = 512
"""Columns of the widest rows whose tiles fit in registers."""


def cross_view_loss(u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None, *, plain: bool = False) -> Tensor:
    """``cross``: ½·CE(UVᵀ/τ, i) + ½·CE(VUᵀ/τ, i). Negatives come from the other view alone; the released code's loss.

    Args:
        u, v: k × d, the two views; row i of one is the positive of row i of the other.
        tau: Temperature.
        mask: k booleans, the rows that count; all by default.
        plain: Write out the similarities.

    >>> u = torch.eye(3)
    >>> round(float(cross_view_loss(u, u, tau=1.0)), 4)  # log(e + 2) − 1
    0.5514
    """
    u, v = unit_rows(u), unit_rows(v)
    if plain:
        uv = u @ v.mT / tau
        negatives = (_hide(uv, mask).logsumexp(-1) + _hide(uv.mT, mask).logsumexp(-1)) / 2
        return _mean(negatives - uv.diagonal(), mask)
    total: Tensor = _Across.apply(u, v, tau, mask)
    return total / (2 * _rows(u, mask))


def both_views_loss(
    u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None, *, include_self: bool = False, plain: bool = False
) -> Tensor:
    """``both``: −log e^{uᵢ·vᵢ/τ} / (Σⱼ e^{uᵢ·vⱼ/τ} + Σ_{j≠i} e^{uᵢ·uⱼ/τ}), mean over i and both ways. GRACE's loss.

    The denominators of both ways are sums over all other rows of [U; V]. ``include_self`` keeps j = i in the second
    sum, as the equation is printed. The other arguments are those of :func:`cross_view_loss`.

    >>> u = torch.eye(3)
    >>> round(float(both_views_loss(u, u, tau=1.0)), 4)  # log(e + 2 + 2) − 1
    0.9048
    """
    u, v = unit_rows(u), unit_rows(v)
    if plain:
        uv = u @ v.mT / tau
        positive = uv.diagonal()

        def one_way(to_other: Tensor, within: Tensor) -> Tensor:
            within = within.masked_fill(_diagonal(within), 1 / tau if include_self else -torch.inf)
            return torch.cat([_hide(to_other, mask), _hide(within, mask)], dim=-1).logsumexp(-1) - positive

        return _mean((one_way(uv, u @ u.mT / tau) + one_way(uv.mT, v @ v.mT / tau)) / 2, mask)
    twice = None if mask is None else torch.cat([mask, mask])
    total: Tensor = _Within.apply(torch.cat([u, v]), tau, twice, len(u), include_self)
    return total / (2 * _rows(u, mask))


def self_contrast_loss(u: Tensor, tau: float, mask: Tensor | None = None, *, plain: bool = False) -> Tensor:
    """``self``: −mean log e^{1/τ} / Σⱼ e^{uᵢ·uⱼ/τ}. One view: the positive is constant, the rows are spread apart.

    The arguments are those of :func:`cross_view_loss`.

    >>> round(float(self_contrast_loss(torch.eye(3), tau=1.0)), 4)
    0.5514
    """
    u = unit_rows(u)
    if plain:
        # A row's product with itself is 1 by definition: no rounding, and no gradient.
        uu = (u @ u.mT / tau).masked_fill(_diagonal(u), 1 / tau)
        return _mean(_hide(uu, mask).logsumexp(-1) - 1 / tau, mask)
    total: Tensor = _Within.apply(u, tau, mask, 0, False)
    return total / _rows(u, mask)


class _Within(torch.autograd.Function):
    """Each row against all the others; its positive is ``half`` rows away, or the constant 1/τ if that is 0."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, tau: float, mask: Tensor | None, half: int, include_self: bool) -> Tensor:
        tiles = _Tiles(z, tau, mask, half)
        rows = tiles.rows(z)
        off, _ = tiles.logsumexps(rows, rows)
        if include_self:
            off = torch.logaddexp(off, torch.full_like(off, 1 / tau))
        positive = (z * z.roll(half, 0)).sum(-1) / tau if half else torch.full_like(off, 1 / tau)
        ctx.save_for_backward(z, rows, off, positive)
        ctx.tiles = tiles
        return tiles.counted(F.softplus(off - positive)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        z, rows, off, positive = ctx.saved_tensors
        tiles, half = ctx.tiles, ctx.tiles.half
        lse = torch.logaddexp(off, positive)
        to_z, _ = tiles.weighted_sums(rows, rows, lse, lse)
        if half:
            lost = tiles.counted(torch.sigmoid(off - positive))
            to_z = to_z - (lost + lost.roll(half))[:, None] * z.roll(half, 0)
        return to_z * (grads[0] / tiles.tau), None, None, None, None


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
        return tiles.counted(F.softplus(of_u - positive) + F.softplus(of_v - positive)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        u, v, rows_u, rows_v, of_u, of_v, positive = ctx.saved_tensors
        tiles = ctx.tiles
        lost = tiles.counted(torch.sigmoid(of_u - positive) + torch.sigmoid(of_v - positive))[:, None]
        a, b = torch.logaddexp(of_u, positive), torch.logaddexp(of_v, positive)
        to_u, to_v = tiles.weighted_sums(rows_u, rows_v, a, b)
        slope = grads[0] / tiles.tau
        return (to_u - lost * v) * slope, (to_v - lost * u) * slope, None, None


class _Tiles:
    """Sums over the tiles of s_ij = q_i·k_j / τ, j ≠ i (and |i − j| ≠ half), for rows of length one, k × d."""

    def __init__(self, like: Tensor, tau: float, mask: Tensor | None, half: int = 0) -> None:
        self.fused = like.is_cuda and kernels.usable(like)
        self.tau, self.mask, self.half = tau, mask, half

    def counted(self, per_row: Tensor) -> Tensor:
        """0 for the rows that do not count."""
        return per_row if self.mask is None else torch.where(self.mask, per_row, 0)

    def rows(self, z: Tensor) -> Tensor:
        """The rows that the tiles are computed from: float16 for tensor cores, else as they are."""
        return z.half() if self.fused else z

    def logsumexps(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """log Σ_j e^{s_ij} for each row i of Q and log Σ_i e^{s_ij} for each row j of K; −∞ if nothing counts."""
        if self.fused:
            of_q = self._fused("logsumexp", q, k)
            return of_q, of_q if q is k else self._fused("logsumexp", k, q)
        bound = 1 / self.tau
        # in half precision the sum of many tiles would lose too much
        wide = torch.promote_types(q.dtype, torch.float32)
        of_q = q.new_full((len(q),), 0 if self._bounded else -math.inf, dtype=wide)
        of_k = of_q if q is k else of_q.clone()
        for rows, columns, k_rows in self._slices(q, k):
            s = self._scores(q, k, rows, columns)
            rest = slice(k_rows.start - columns.start, None)
            if self._bounded:
                e = s.sub_(bound).exp_()
                of_q[rows] += e.sum(-1, dtype=wide)
                of_k[k_rows] += e[:, rest].sum(-2, dtype=wide)
            else:
                of_q[rows] = torch.logaddexp(of_q[rows], s.logsumexp(-1))
                of_k[k_rows] = torch.logaddexp(of_k[k_rows], s[:, rest].logsumexp(-2))
        of_q, of_k = ((x.log() + bound if self._bounded else x).to(q.dtype) for x in (of_q, of_k))
        return of_q, of_k

    def weighted_sums(self, q: Tensor, k: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_j w_ij·k_j for each row i of Q and Σ_i w_ij·q_i for each row j of K; w_ij = e^{s_ij−a_i} + e^{s_ij−b_j}.

        Both are over the rows that count, and 0 for the others. If Q is K, ``a`` and ``b`` must be equal.
        """
        if self.fused:
            to_q = self._fused("weighted_sum", q, k, a, b)
            return to_q, to_q if q is k else self._fused("weighted_sum", k, q, b, a)
        bound = 1 / self.tau
        a, b = a[:, None], b[:, None]
        to_q = torch.zeros_like(q)
        to_k = to_q if q is k else torch.zeros_like(k)
        for rows, columns, k_rows in self._slices(q, k):
            s = self._scores(q, k, rows, columns)
            a_i, b_j = a[rows], b[columns].T
            if self._bounded:
                weight = (bound - a_i).exp() + (bound - b_j).exp()
                weight.mul_(s.sub_(bound).exp_())
            else:
                weight = (s - a_i).exp_() + (s - b_j).exp_()
            to_q[rows] += weight @ k[columns]
            to_k[k_rows] += weight[:, k_rows.start - columns.start :].T @ q[rows]
        return to_q, to_k

    @property
    def _bounded(self) -> bool:
        """Rows of length one have s ≤ 1/τ; if e^{−2/τ} is far from underflow, that bound replaces the maximum."""
        return 2 / self.tau < 60

    def _scores(self, q: Tensor, k: Tensor, rows: slice, columns: slice) -> Tensor:
        s = (q[rows] / self.tau) @ k[columns].T
        for shift in {0, self.half, -self.half}:
            s.diagonal(rows.start - columns.start + shift).fill_(-math.inf)
        if self.mask is not None:
            for leave_out in (~self.mask[None, columns], ~self.mask[rows, None]):
                s.masked_fill_(leave_out, -math.inf)
        return s

    def _slices(self, q: Tensor, k: Tensor) -> list[tuple[slice, slice, slice]]:
        """The rows and columns of each tile, and the rows of K to whose sums it adds.

        If Q is K, s is symmetric: a tile starts at the diagonal, and its part right of the diagonal block also stands
        for the part below that block.
        """
        count, same = len(q), q is k
        step = max(1, TILE // count)
        if same:
            step = min(step, math.ceil(count / SYMMETRIC_TILES))
        rows = [slice(first, min(first + step, count)) for first in range(0, count, step)]
        return [(row, slice(row.start * same, count), slice(row.stop * same, count)) for row in rows]

    def _fused(self, name: str, q: Tensor, k: Tensor, *lse: Tensor) -> Tensor:
        from costa.nn.kernels import contrast, wide

        # the kernels take several matrices at once
        first, second, *rest = (x[None].contiguous() for x in (q, k, *lse))
        mask = None if self.mask is None else self.mask[None].contiguous()
        kernel = getattr(contrast if q.shape[1] <= WIDEST else wide, name)
        out: Tensor = kernel(first, second, *rest, self.tau, mask, self.half)[0]
        return out


def unit_rows(rows: Tensor) -> Tensor:
    """Rows scaled to length 1. A zero row stays zero and has a gradient of normal size; ``F.normalize``'s is 1e12."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return rows / torch.where(length > 0, length, 1)


def _hide(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Leave columns that do not count out of the sum, except on the diagonal, so that every row keeps a term."""
    if mask is None:
        return logits
    return logits.masked_fill(~mask & ~_diagonal(logits), -torch.inf)


def _mean(per_row: Tensor, mask: Tensor | None) -> Tensor:
    total = (per_row if mask is None else torch.where(mask, per_row, 0)).sum()
    return total / _rows(per_row, mask)


def _rows(like: Tensor, mask: Tensor | None) -> Tensor | int:
    """The number of rows that count, at least 1."""
    return len(like) if mask is None else mask.sum().clamp(min=1)


def _diagonal(like: Tensor) -> Tensor:
    return torch.eye(len(like), dtype=torch.bool, device=like.device)
