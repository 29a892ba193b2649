"""Sums over similarities that are never stored, on the GPU: the fused form of :mod:`costa.nn.contrast`.

For Q and K, n × d, with rows of length one, s_ij = q_i·k_j / τ, and sums over the j ≠ i that count, without |i − j| = h
either where h > 0:

    logsumexp:     lse_i = log Σ_j e^{s_ij}
    weighted_sum:  out_i = Σ_j (e^{s_ij − a_i} + e^{s_ij − b_j})·k_j,    for the rows i that count

Tiles of s are float16 products with float32 sums, reduced as they come; memory is O(n·d). Rows of length one
have logits of at most 1/τ, so that for all but tiny τ one fixed shift serves, and the running maximum is left out.

Here a tile never leaves the registers. They hold 256 columns of out_i, and those who sum the others make the same s
again: for rows that are much wider there is :mod:`costa.nn.kernels.wide`.

All take any number of copies: Q is S × n × d.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from costa.nn.kernels import INTERPRETED

LOG2E = math.log2(math.e)
BOUNDED_BELOW = 40.0
"""Largest logit, in units of log₂, for which e^{s − 1/τ} ≥ 2⁻⁸⁰ leaves float32 no way to underflow."""


@triton.jit
def _scores(q, k, i, j, n, d, scale, WIDTH: tl.constexpr, PARTS: tl.constexpr, INTERPRETED: tl.constexpr) -> Any:
    """The tile s_ij, in units of log₂."""
    s = tl.zeros([i.shape[0], j.shape[0]], tl.float32)
    for part in tl.static_range(PARTS):
        c = part * WIDTH + tl.arange(0, WIDTH)
        left = tl.load(q + i.to(tl.int64)[:, None] * d + c[None, :], (i < n)[:, None] & (c < d)[None, :], 0.0)
        right = tl.load(k + j.to(tl.int64)[None, :] * d + c[:, None], (j < n)[None, :] & (c < d)[:, None], 0.0)
        if INTERPRETED:  # where a product of halves would be summed in halves
            s += tl.dot(left.to(tl.float32), right.to(tl.float32))
        else:
            s = tl.dot(left, right, s)
    return s * scale


@triton.jit
def seen(counts, i, j, n, half, MASKED: tl.constexpr, PAIRED: tl.constexpr) -> Any:
    """Which s_ij of a tile are summed."""
    column = j < n
    if MASKED:
        column = column & tl.load(counts + j, j < n, 0).to(tl.int1)
    pair = column[None, :] & (i[:, None] != j[None, :])
    if PAIRED:
        pair = pair & (tl.abs(i[:, None] - j[None, :]) != half)
    return pair


@triton.jit
def summed(s, total, largest, scale, BOUNDED: tl.constexpr) -> Any:
    """The rows' Σ 2^{s − shift} with a tile more, and the largest s so far; the shift is that, or the bound."""
    if BOUNDED:
        total += tl.sum(tl.exp2(s - scale), 1)
    else:
        larger = tl.maximum(largest, tl.max(s, 1))
        # while nothing was seen, −∞ − (−∞) would be no number
        shift = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp2(largest - shift) + tl.sum(tl.exp2(s - shift[:, None]), 1)
        largest = larger
    return total, largest


@triton.jit
def logged(total, largest, scale, BOUNDED: tl.constexpr) -> Any:
    """The natural logarithm of what was summed."""
    shift = scale if BOUNDED else largest
    return (shift + tl.log2(total)) * 0.6931471805599453


@triton.jit
def share(lse, place, inside, scale, BOUNDED: tl.constexpr) -> Any:
    """a_i or b_j in units of log₂; where s is bounded, what it makes of e^{s − 1/τ}."""
    # Weights are kept times 2¹⁴: at most 2¹⁵, and of k equal ones none falls out of float16 below k = 2³⁰.
    of = tl.load(lse + place, inside, 0.0) * 1.4426950408889634 - 14
    if BOUNDED:
        of = tl.exp2(scale - of)
    return of


@triton.jit
def weights(s, of_i, of_j, pair, scale, BOUNDED: tl.constexpr) -> Any:
    """2¹⁴·(e^{s_ij − a_i} + e^{s_ij − b_j}) of the pairs that are seen, in float16; from the two shares."""
    if BOUNDED:
        weight = tl.exp2(s - scale) * (of_i[:, None] + of_j[None, :])
    else:
        weight = tl.exp2(s - of_i[:, None]) + tl.exp2(s - of_j[None, :])
    return tl.where(pair, weight, 0.0).to(tl.float16)


@triton.jit
def _logsumexp(
    q,
    k,
    counts,
    out,
    n,
    d,
    half,
    scale,
    MASKED: tl.constexpr,
    PAIRED: tl.constexpr,
    BOUNDED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    PARTS: tl.constexpr,
    INTERPRETED: tl.constexpr,
) -> None:
    copy = tl.program_id(1).to(tl.int64)
    q += copy * n * d
    k += copy * n * d
    counts += copy * n
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    for at in range(0, n, COLUMNS):
        j = at + tl.arange(0, COLUMNS)
        s = _scores(q, k, i, j, n, d, scale, WIDTH, PARTS, INTERPRETED)
        s = tl.where(seen(counts, i, j, n, half, MASKED, PAIRED), s, float("-inf"))
        total, largest = summed(s, total, largest, scale, BOUNDED)
    tl.store(out + copy * n + i, logged(total, largest, scale, BOUNDED), i < n)


def logsumexp(q: Tensor, k: Tensor, tau: float, counts: Tensor | None, half: int = 0) -> Tensor:
    """lse, S × n, float32; −∞ where no column is left.

    Args:
        q: S × n × d, float16, rows of length one.
        k: Likewise.
        tau: Temperature.
        counts: S × n booleans, the rows that count; all if left out.
        half: h, or 0.
    """
    copies, n, d = q.shape
    width = _width(d)
    out = torch.empty(copies, n, device=q.device)
    # measured on an H200, as all the tiles here
    columns, stages = (64, 3) if d <= 128 else (128, 1) if d <= 256 else (64, 1)
    rows = 64
    with torch.cuda.device_of(q):
        _logsumexp[(triton.cdiv(n, rows), copies)](
            q,
            k,
            q if counts is None else counts,
            out,
            n,
            d,
            half,
            LOG2E / tau,
            **branches(tau, counts, half),
            ROWS=rows,
            COLUMNS=columns,
            WIDTH=width,
            PARTS=triton.cdiv(d, width),
            INTERPRETED=INTERPRETED,
            num_warps=4,
            num_stages=stages,
        )
    return out


@triton.jit
def _weighted_sum(
    q,
    k,
    counts,
    a,
    b,
    out,
    n,
    d,
    half,
    scale,
    MASKED: tl.constexpr,
    PAIRED: tl.constexpr,
    BOUNDED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    PARTS: tl.constexpr,
    OUT: tl.constexpr,
    INTERPRETED: tl.constexpr,
) -> None:
    copy = tl.program_id(2).to(tl.int64)
    q += copy * n * d
    k += copy * n * d
    counts += copy * n
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * OUT + tl.arange(0, OUT)
    of_i = share(a, copy * n + i, i < n, scale, BOUNDED)
    kept = i < n
    if MASKED:
        kept = kept & tl.load(counts + i, i < n, 0).to(tl.int1)
    total = tl.zeros([ROWS, OUT], tl.float32)
    for at in range(0, n, COLUMNS):
        j = at + tl.arange(0, COLUMNS)
        s = _scores(q, k, i, j, n, d, scale, WIDTH, PARTS, INTERPRETED)
        pair = seen(counts, i, j, n, half, MASKED, PAIRED) & kept[:, None]
        of_j = share(b, copy * n + j, j < n, scale, BOUNDED)
        weight = weights(s, of_i, of_j, pair, scale, BOUNDED)
        value = tl.load(k + j.to(tl.int64)[:, None] * d + c[None, :], (j < n)[:, None] & (c < d)[None, :], 0.0)
        if INTERPRETED:
            total += tl.dot(weight.to(tl.float32), value.to(tl.float32))
        else:
            total = tl.dot(weight, value, total)
    place = (copy * n + i)[:, None] * d + c[None, :]
    tl.store(out + place, total * 0.00006103515625, (i < n)[:, None] & (c < d)[None, :])


def weighted_sum(
    q: Tensor, k: Tensor, a: Tensor, b: Tensor, tau: float, counts: Tensor | None, half: int = 0
) -> Tensor:
    """out, S × n × d, float32; zero in the rows that do not count.

    Args:
        q: S × n × d, float16, rows of length one.
        k: Likewise.
        a: S × n, float32.
        b: Likewise.
        tau: Temperature.
        counts: S × n booleans, the rows that count; all if left out.
        half: h, or 0.
    """
    copies, n, d = q.shape
    width = _width(d)
    wide = min(256, max(16, triton.next_power_of_2(d)))
    out = torch.empty(copies, n, d, device=q.device)
    rows, columns, warps, stages = (64, 128, 4, 3) if d <= 128 else (128, 32, 8, 3 if d <= 256 else 2)
    with torch.cuda.device_of(q):
        _weighted_sum[(triton.cdiv(n, rows), triton.cdiv(d, wide), copies)](
            q,
            k,
            q if counts is None else counts,
            a,
            b,
            out,
            n,
            d,
            half,
            LOG2E / tau,
            **branches(tau, counts, half),
            ROWS=rows,
            COLUMNS=columns,
            WIDTH=width,
            PARTS=triton.cdiv(d, width),
            OUT=wide,
            INTERPRETED=INTERPRETED,
            num_warps=warps,
            num_stages=stages,
        )
    return out


def branches(tau: float, counts: Tensor | None, half: int) -> dict[str, bool]:
    """What a kernel is compiled for."""
    return {"MASKED": counts is not None, "PAIRED": half > 0, "BOUNDED": tau * BOUNDED_BELOW > LOG2E}


def _width(d: int) -> int:
    """Columns of Q and K that are multiplied at a time."""
    return min(64, max(16, triton.next_power_of_2(d)))
