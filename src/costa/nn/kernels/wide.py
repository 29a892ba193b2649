"""The sums of :mod:`costa.nn.kernels.contrast` for rows too wide for its registers: tiles of s are written down.

    S = Q·Kᵀ for some rows of Q    float16 factors, float32 sums, by cuBLAS
    logsumexp:     lse_i of each row of S
    weighted_sum:  W_ij = e^{s_ij − a_i} + e^{s_ij − b_j} beside S, out = W·K, by cuBLAS again

However wide the rows are, each s is made once for each of the two. Memory is O(n·d) and a tile of S and of W.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from costa.nn.kernels import INTERPRETED
from costa.nn.kernels.contrast import LOG2E, branches, logged, seen, share, summed, weights

TILE = 2**24
"""Entries of S at a time: 64 MiB."""
ALIGNED = 16
"""K gets rows of zeros up to a multiple of this, so that the rows of S and W begin where tensor cores can read them."""


@triton.jit
def _logsumexp(
    s,
    counts,
    out,
    first,
    n,
    wide,
    half,
    scale,
    MASKED: tl.constexpr,
    PAIRED: tl.constexpr,
    BOUNDED: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    row, copy = tl.program_id(0), tl.program_id(1).to(tl.int64)
    s += (copy * tl.num_programs(0) + row) * wide
    counts += copy * n
    i = first + row + tl.arange(0, 1)
    largest = tl.full([1], float("-inf"), tl.float32)
    total = tl.zeros([1], tl.float32)
    for at in range(0, n, COLUMNS):
        j = at + tl.arange(0, COLUMNS)
        tile = tl.load(s + j, j < n, 0.0)[None, :] * scale
        tile = tl.where(seen(counts, i, j, n, half, MASKED, PAIRED), tile, float("-inf"))
        total, largest = summed(tile, total, largest, scale, BOUNDED)
    tl.store(out + copy * n + i, logged(total, largest, scale, BOUNDED))


def logsumexp(q: Tensor, k: Tensor, tau: float, counts: Tensor | None, half: int = 0) -> Tensor:
    """As :func:`costa.nn.kernels.contrast.logsumexp`."""
    copies, n, _ = q.shape
    out = torch.empty(copies, n, device=q.device)
    k = _padded(k)
    with torch.cuda.device_of(q):
        for some, rows in _tiles(copies, n):
            s = _product(q[some, rows], k[some].mT)
            _logsumexp[(s.shape[1], s.shape[0])](
                s,
                s if counts is None else counts[some],
                out[some],
                rows.start,
                n,
                s.shape[2],
                half,
                LOG2E / tau,
                **branches(tau, counts, half),
                COLUMNS=_columns(n),
            )
    return out


@triton.jit
def _weigh(
    s,
    counts,
    a,
    b,
    w,
    first,
    n,
    wide,
    half,
    scale,
    MASKED: tl.constexpr,
    PAIRED: tl.constexpr,
    BOUNDED: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    row, copy = tl.program_id(0), tl.program_id(2).to(tl.int64)
    start = (copy * tl.num_programs(0) + row) * wide
    counts += copy * n
    i = first + row + tl.arange(0, 1)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    pair = seen(counts, i, j, n, half, MASKED, PAIRED)
    if MASKED:
        pair = pair & tl.load(counts + i).to(tl.int1)[:, None]
    of_i = share(a, copy * n + i, i < n, scale, BOUNDED)
    of_j = share(b, copy * n + j, j < n, scale, BOUNDED)
    tile = tl.load(s + start + j, j < n, 0.0)[None, :] * scale
    weight = weights(tile, of_i, of_j, pair, scale, BOUNDED)
    tl.store(w + start + j[None, :], weight, (j < wide)[None, :])


def weighted_sum(
    q: Tensor, k: Tensor, a: Tensor, b: Tensor, tau: float, counts: Tensor | None, half: int = 0
) -> Tensor:
    """As :func:`costa.nn.kernels.contrast.weighted_sum`."""
    copies, n, d = q.shape
    out = torch.empty(copies, n, d, device=q.device)
    k = _padded(k)
    columns = _columns(n)
    with torch.cuda.device_of(q):
        for some, rows in _tiles(copies, n):
            s = _product(q[some, rows], k[some].mT)
            w = torch.empty_like(s, dtype=torch.float16)
            _weigh[(s.shape[1], triton.cdiv(s.shape[2], columns), s.shape[0])](
                s,
                s if counts is None else counts[some],
                a[some],
                b[some],
                w,
                rows.start,
                n,
                s.shape[2],
                half,
                LOG2E / tau,
                **branches(tau, counts, half),
                COLUMNS=columns,
            )
            out[some, rows] = _product(w, k[some])
    return out.mul_(2**-14)


def _padded(k: Tensor) -> Tensor:
    return F.pad(k, (0, 0, 0, -k.shape[-2] % ALIGNED))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """A·B of float16s in float32."""
    # which is for CUDA alone
    return a.float() @ b.float() if INTERPRETED else torch.bmm(a, b, out_dtype=torch.float32)


def _tiles(copies: int, n: int) -> Iterator[tuple[slice, slice]]:
    """Copies and rows that make a tile."""
    together, rows = max(1, TILE // n**2), min(n, max(1, TILE // n))
    for copy in range(0, copies, together):
        for first in range(0, n, rows):
            yield slice(copy, copy + together), slice(first, min(first + rows, n))


def _columns(n: int) -> int:
    """Entries of a row at a time."""
    return min(2048, triton.next_power_of_2(n))
