"""PH and PᵀG for a P that is never stored, on the GPU: the fused form of :mod:`costa.nn.philox`.

Each program draws the tiles of P that it needs from (seed, row, column); the backward pass draws the same ones again.
Dense tiles are multiplied by tensor cores, in float16 with float32 sums: a P of signs is exact there and a Gaussian one
within 2⁻¹¹, the same forward and backward; each H of a stack is scaled into float16's range by its own largest entry. A
sparse row is a sum of gathered rows of H; the transposed product adds atomically.

All take any number of seeds: for S seeds, H is S × n × d.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from costa.nn.kernels import INTERPRETED, share
from costa.nn.philox import log_miss

PROGRAMS = 2112
"""Sums are split until there are about so many programs: sixteen for each multiprocessor of an H200, so that the last
ones to end leave little idle (34,493 nodes: 1.2 ms, against 1.6 with four)."""


@triton.jit
def _words(seed, row, group, ROWS: tl.constexpr, GROUPS: tl.constexpr) -> Any:
    """The four words of each counter (group, row, 0, 0), ROWS × GROUPS × 2 × 2, in their order."""
    zero = tl.zeros([ROWS, GROUPS], tl.uint32)
    i = zero + (row + tl.arange(0, ROWS)).to(tl.uint32)[:, None]
    g = zero + (group + tl.arange(0, GROUPS)).to(tl.uint32)[None, :]
    w0, w1, w2, w3 = tl.philox(seed, g, i, zero, zero)
    return tl.join(tl.join(w0, w2), tl.join(w1, w3))


@triton.jit
def _gaussian_tile(seed, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> Any:
    """N(0, 1) by Box and Muller, a pair from each word."""
    word = _words(seed, row, column // 8, ROWS, COLUMNS // 8)
    # −2·ln u = −2·ln 2·log₂ u
    u = ((word >> 16).to(tl.int32).to(tl.float32) + 0.5) * 0.0000152587890625
    radius = tl.sqrt(-1.3862943611198906 * tl.log2(u))
    # within ±π/4 short series are exact to float32's rounding
    angle = ((word & 0x3FFF).to(tl.int32).to(tl.float32) - 8191.5) * 0.00009587379924285257
    square = angle * angle
    sine = angle * (1 + square * (-0.16666667 + square * (0.0083333310 + square * -0.00019840874)))
    cosine = 1 + square * (-0.5 + square * (0.041666668 + square * (-0.0013888397 + square * 0.0000247609)))
    quarter, half = (word & 0x4000) != 0, (word & 0x8000) != 0
    radius = tl.where(half, -radius, radius)
    x = tl.where(quarter, -sine, cosine) * radius
    y = tl.where(quarter, cosine, sine) * radius
    return tl.reshape(tl.join(x, y), [ROWS, COLUMNS])


@triton.jit
def _rademacher_tile(seed, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> Any:
    """±1, one from each bit."""
    word = tl.reshape(_words(seed, row, column // 128, ROWS, COLUMNS // 128), [ROWS, COLUMNS // 32, 1])
    bit = (word >> tl.arange(0, 32).to(tl.uint32)[None, None, :]) & 1
    return tl.reshape(bit.to(tl.int32) * 2 - 1, [ROWS, COLUMNS]).to(tl.float32)


@triton.jit
def _dense_product(
    seeds,
    source,
    factor,
    out,
    k,
    n,
    d,
    part_size,
    scale,
    GAUSSIAN: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    INTERPRETED: tl.constexpr,
) -> None:
    """One block of PH (or PᵀG), summed over one part of n (or of k)."""
    STEP: tl.constexpr = ROWS if TRANSPOSED else COLUMNS
    BLOCK: tl.constexpr = COLUMNS if TRANSPOSED else ROWS
    block, part = tl.program_id(0), tl.program_id(1)
    copy = (tl.program_id(2) // WIDE).to(tl.int64)
    column = tl.program_id(2) % WIDE * WIDTH + tl.arange(0, WIDTH)
    seed = tl.load(seeds + copy)
    summed = k if TRANSPOSED else n
    kept = n if TRANSPOSED else k
    total = tl.zeros([BLOCK, WIDTH], tl.float32)
    for at in range(part * part_size, tl.minimum((part + 1) * part_size, summed), STEP):
        first_row = at if TRANSPOSED else block * ROWS
        first_column = block * COLUMNS if TRANSPOSED else at
        if GAUSSIAN:
            p = _gaussian_tile(seed, first_row, first_column, ROWS, COLUMNS)
        else:
            p = _rademacher_tile(seed, first_row, first_column, ROWS, COLUMNS)
        p = p.to(tl.float16)
        if TRANSPOSED:
            p = tl.trans(p)
        line = at + tl.arange(0, STEP)
        inside = (line < summed)[:, None] & (column < d)[None, :]
        h = tl.load(source + (copy * summed + line)[:, None] * d + column[None, :], inside, 0.0)
        if INTERPRETED:  # where a product of halves would be summed in halves
            total += tl.dot(p.to(tl.float32), h.to(tl.float32))
        else:
            total = tl.dot(p, h, total)
    line = block * BLOCK + tl.arange(0, BLOCK)
    inside = (line < kept)[:, None] & (column < d)[None, :]
    copies = tl.num_programs(2) // WIDE
    place = ((part * copies + copy) * kept + line)[:, None] * d + column[None, :]
    tl.store(out + place, total * (scale / tl.load(factor + copy)), inside)


def dense_product(
    seeds: Tensor, source: Tensor, k: int, n: int, scale: float, *, gaussian: bool, transposed: bool = False
) -> Tensor:
    """PH for H = ``source`` (S × n × d), or PᵀG for G = ``source`` (S × k × d); P is k × n, entries times ``scale``.

    Args:
        seeds: S int64s on the device of ``source``: they are read there, so that a captured epoch can change them.
        source: float32.
        k: Rows of P.
        n: Columns of P.
        scale: Of the entries.
        gaussian: Gaussian entries, or random signs.
        transposed: Whether to multiply by Pᵀ.
    """
    copies, _, d = source.shape
    # measured on an H200; a tile of signs is at least one counter, 128 columns, wide, which leaves less room beside it
    width = min(512 if gaussian else 256, max(16, triton.next_power_of_2(d)))
    block, step = (128, 64) if width == 256 else (64, 64)
    rows, columns = (step, block) if transposed else (block, step)
    if not gaussian:
        columns = 128
        block, step = (columns, rows) if transposed else (rows, columns)
    kept, summed = (n, k) if transposed else (k, n)
    blocks, wide = triton.cdiv(kept, block), triton.cdiv(d, width)
    parts = max(1, min(share(PROGRAMS) // (blocks * wide * copies), triton.cdiv(summed, step)))
    part_size = triton.cdiv(triton.cdiv(summed, parts), step) * step
    parts = triton.cdiv(summed, part_size)
    factor = 1024 / torch.linalg.vector_norm(source, ord=math.inf, dim=(1, 2), keepdim=True).clamp(min=1e-30)
    out = source.new_empty(parts, copies, kept, d)
    with torch.cuda.device_of(source):
        _dense_product[(blocks, parts, wide * copies)](
            seeds,
            (source * factor).half().contiguous(),
            factor,
            out,
            k,
            n,
            d,
            part_size,
            scale,
            GAUSSIAN=gaussian,
            TRANSPOSED=transposed,
            ROWS=rows,
            COLUMNS=columns,
            WIDTH=width,
            WIDE=wide,
            INTERPRETED=INTERPRETED,
            num_warps=8 if width >= 256 else 4,
            num_stages=2,
        )
    return out[0] if parts == 1 else out.sum(0)


@triton.jit
def _misses(word, LOG_MISS: tl.constexpr) -> Any:
    """The gap that a word stands for, before it is rounded down; float64, so that every device rounds to the same."""
    return tl.log(((word >> 1).to(tl.float64) + 0.5) * 4.656612873077393e-10) / LOG_MISS


@triton.jit
def _gaps(seed, row, group, LOG_MISS: tl.constexpr, DRAWS: tl.constexpr) -> Any:
    """Steps of at least 1 from one non-zero of a row to the next, and the sign of that."""
    zero = tl.zeros([DRAWS // 4], tl.uint32)
    group = zero + (group + tl.arange(0, DRAWS // 4)).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(seed, group, zero + row.to(tl.uint32), zero + 1, zero)
    word = tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), [DRAWS])
    # past 2³⁰ the row has ended in any case
    gap = tl.minimum(_misses(word, LOG_MISS), 1073741824.0).to(tl.int64)
    return gap + 1, (word & 1).to(tl.float32) * 2 - 1


@triton.jit
def _sparse_product(
    seeds,
    source,
    out,
    k,
    n,
    d,
    scale,
    LOG_MISS: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    DRAWS: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
) -> None:
    """One row of P: its row of PH, or what it adds to PᵀG."""
    row = tl.program_id(0)
    copy = (tl.program_id(1) // WIDE).to(tl.int64)
    c = tl.program_id(1) % WIDE * WIDTH + tl.arange(0, WIDTH)
    seed = tl.load(seeds + copy)
    own = (copy * k + row) * d + c
    line = tl.zeros([WIDTH], tl.float32)
    if TRANSPOSED:
        line = tl.load(source + own, c < d, 0.0) * scale
    reached = tl.full([], -1, tl.int64)
    group = 0
    while reached < n:
        step, sign = _gaps(seed, row, group, LOG_MISS, DRAWS)
        column = reached + tl.cumsum(step, 0)
        inside = (column < n)[:, None] & (c < d)[None, :]
        place = (copy * n + column)[:, None] * d + c[None, :]
        if TRANSPOSED:
            tl.atomic_add(out + place, sign[:, None] * line[None, :], inside)
        else:
            line += tl.sum(sign[:, None] * tl.load(source + place, inside, 0.0), 0)
        reached = tl.max(column, 0)
        group += DRAWS // 4
    if not TRANSPOSED:
        tl.store(out + own, line * scale, c < d)


def sparse_product(
    seeds: Tensor, source: Tensor, k: int, n: int, scale: float, density: float, *, transposed: bool = False
) -> Tensor:
    """:func:`dense_product` for entries that are ±``scale`` with probability ``density``, else 0, in O(non-zeros)."""
    source = source.contiguous()
    copies, _, d = source.shape
    width = min(128, max(16, triton.next_power_of_2(d)))
    wide = triton.cdiv(d, width)
    out = source.new_zeros(copies, n if transposed else k, d)
    with torch.cuda.device_of(source):
        _sparse_product[(k, wide * copies)](
            seeds,
            source,
            out,
            k,
            n,
            d,
            scale,
            LOG_MISS=log_miss(density),
            TRANSPOSED=transposed,
            DRAWS=min(64, max(8, triton.next_power_of_2(math.ceil(n * density + 4 * math.sqrt(n * density))))),
            WIDTH=width,
            WIDE=wide,
            num_warps=4,
        )
    return out


@triton.jit
def _first_nonzero(seeds, out, k, n, LOG_MISS: tl.constexpr, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    copy = tl.program_id(1).to(tl.int64)
    zero = tl.zeros([BLOCK], tl.uint32)
    word, _, _, _ = tl.philox(tl.load(seeds + copy), zero, row.to(tl.uint32), zero + 1, zero)
    tl.store(out + copy * k + row, _misses(word, LOG_MISS) < n, row < k)


def occupied_rows(seeds: Tensor, k: int, n: int, density: float) -> Tensor:
    """Mask, S × k, of the rows that hold a non-zero: those whose first one comes before column n."""
    out = torch.empty(seeds.numel(), k, dtype=torch.bool, device=seeds.device)
    with torch.cuda.device_of(seeds):
        _first_nonzero[(triton.cdiv(k, 256), seeds.numel())](seeds, out, k, n, LOG_MISS=log_miss(density), BLOCK=256)
    return out
