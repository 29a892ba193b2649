"""Random matrices that are functions of (seed, row, column): any tile can be drawn anywhere, any number of times.

Philox 4×32-10 (Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, 2011) turns a counter and a key into four
32-bit words. The key is the seed; the counter is (group of columns, row, stream, 0):

=========== ======== ====================== =================================================================
entries     stream   columns per counter    from a word w
=========== ======== ====================== =================================================================
gaussian    0        8                      the pair r·cos θ, r·sin θ: r = √(−2 ln((w ≫ 16 + ½)/2¹⁶)), θ from the lower
                                            half: two bits of quarter turns, fourteen of (bits − 8191.5)·(π/2)/2¹⁴
rademacher  0        128                    32 signs, lowest bit first; a set bit is +1
sparse      1        (4 non-zeros)          the lowest bit is the sign, the others are u: the gap before the next
                                            non-zero of the row is ⌊ln((u + ½)/2³¹)/ln(1 − density)⌋
=========== ======== ====================== =================================================================

The integers are the same on every device; the Gaussians agree up to float32 rounding. Their entries are at most 4.86 in
modulus (a Gaussian exceeds that with probability 1e-6), and their variance is 1 − 5e-6.
"""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

ROUNDS = 10
_MULTIPLIER = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF


def words(seed: int, group: Tensor, row: Tensor, stream: int = 0) -> Tensor:
    """The four words of every counter (group, row, stream, 0), … × 4, as int64; ``group`` and ``row`` broadcast.

    >>> zero = torch.zeros((), dtype=torch.int64)
    >>> [hex(word) for word in words(0, zero, zero).tolist()]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    group, row = torch.broadcast_tensors(group, row)
    key = [seed & _LOW, seed >> 32 & _LOW]
    c0, c2 = group.clone(), torch.full_like(group, stream)
    c1, c3 = row, torch.zeros_like(group)
    for _ in range(ROUNDS):
        # full products of 32-bit words: the upper halves are mixed in now, the lower halves in the next round
        low, high = c0.mul_(_MULTIPLIER[0]), c2.mul_(_MULTIPLIER[1])
        c0 = (high >> 32).bitwise_xor_(c1).bitwise_xor_(key[0]).bitwise_and_(_LOW)
        c2 = (low >> 32).bitwise_xor_(c3).bitwise_xor_(key[1]).bitwise_and_(_LOW)
        c1, c3 = high, low
        key = [(key[0] + _WEYL[0]) & _LOW, (key[1] + _WEYL[1]) & _LOW]
    return torch.stack([c0, c1 & _LOW, c2, c3 & _LOW], -1)


def gaussian(seed: int, first: int, last: int, n: int, like: Tensor) -> Tensor:
    """Rows ``first`` … ``last`` − 1 of a matrix of n columns of N(0, 1), on the device and in the dtype of ``like``.

    >>> tile = gaussian(3, 10, 12, 5, torch.empty(0))
    >>> torch.equal(tile[1:], gaussian(3, 11, 12, 5, torch.empty(0)))
    True
    """
    radius, cosine, sine = _polar(like.dtype, like.device)
    word = _block_words(seed, first, last, -(-n // 8), like.device)
    entries = like.new_empty(*word.shape, 2)
    # on a CPU index_select is several times as fast as indexing, which would take most of the time
    pairs, word = entries.view(-1, 2), word.flatten()
    length, angle = radius.index_select(0, word >> 16), word & 0xFFFF
    torch.mul(length, cosine.index_select(0, angle), out=pairs[:, 0])
    torch.mul(length, sine.index_select(0, angle), out=pairs[:, 1])
    return entries.flatten(1)[:, :n]


def rademacher(seed: int, first: int, last: int, n: int, like: Tensor) -> Tensor:
    """Rows ``first`` … ``last`` − 1 of a matrix of n columns of ±1.

    >>> rademacher(3, 0, 1, 6, torch.empty(0)).abs()
    tensor([[1., 1., 1., 1., 1., 1.]])
    """
    word = _block_words(seed, first, last, -(-n // 128), like.device)
    byte = (word[..., None] >> torch.arange(0, 32, 8, device=like.device)) & 0xFF
    return F.embedding(byte, _signs(like.dtype, like.device)).flatten(1)[:, :n]


def sparse(seed: int, first: int, last: int, n: int, density: float, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows ``first`` … ``last`` − 1 of a matrix of n columns whose entries are ±1 with probability ``density``, else 0.

    Drawn in O(non-zeros), by the gaps between them, which are geometric.

    Returns:
        Compressed rows: the start of each row, the columns of its non-zeros in ascending order, and their signs.
    """
    mean = n * density
    draws = math.ceil((mean + 4 * math.sqrt(mean) + 4) / 4)
    rows = torch.arange(first, last, device=like.device)[:, None]
    blocks: list[tuple[Tensor, Tensor]] = []
    reached = torch.full((last - first, 1), -1, device=like.device)
    while not bool((reached >= n).all()):
        group = torch.arange(len(blocks) * draws, (len(blocks) + 1) * draws, device=like.device)[None, :]
        word = words(seed, group, rows, stream=1).flatten(1)
        # a gap past the last column may overflow int64; any value past the end will do
        gap = _misses(word, density).clamp_(max=n).long()
        column = (gap + 1).cumsum(1) + reached
        blocks.append((column, word & 1))
        reached = column[:, -1:]
    column, bit = (torch.cat(parts, 1) for parts in zip(*blocks, strict=True))
    inside = column < n
    starts = torch.cat([inside.new_zeros(1, dtype=torch.int64), inside.sum(1).cumsum(0)])
    return starts, column[inside], bit[inside].to(like.dtype).mul_(2).sub_(1)


def occupied(seed: int, k: int, n: int, density: float, device: torch.device) -> Tensor:
    """Mask of the k rows of :func:`sparse` that hold a non-zero: the first gap ends before column n."""
    rows = torch.arange(k, device=device)
    return _misses(words(seed, torch.zeros_like(rows), rows, stream=1)[:, 0], density) < n


def _misses(word: Tensor, density: float) -> Tensor:
    """ln((u + ½)/2³¹)/ln(1 − density): the gap of a word, before rounding down."""
    return (((word >> 1).double() + 0.5) * 2**-31).log() / log_miss(density)


def log_miss(density: float) -> float:
    """ln(1 − density); finite even at density 1, so that every gap is 0."""
    return math.log1p(-density) if density < 1 else -1e300


def _block_words(seed: int, first: int, last: int, groups: int, device: torch.device) -> Tensor:
    group = torch.arange(groups, device=device)[None, :]
    return words(seed, group, torch.arange(first, last, device=device)[:, None])


@functools.cache
def _polar(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The radius, and the cosine and sine of the angle, of every half-word: tables are faster than functions."""
    half = torch.arange(2**16, dtype=torch.float64)
    quarter, within = (half / 2**14).floor(), half % 2**14
    angle = (quarter + (within - 8191.5) / 2**14) * (math.pi / 2)
    tables = ((-2 * ((half + 0.5) / 2**16).log()).sqrt(), angle.cos(), angle.sin())
    radius, cosine, sine = (table.to(device, dtype) for table in tables)
    return radius, cosine, sine


@functools.cache
def _signs(dtype: torch.dtype, device: torch.device) -> Tensor:
    """The eight signs of every byte, lowest bit first."""
    bits = (torch.arange(256)[:, None] >> torch.arange(8)) & 1
    return (2 * bits - 1).to(device, dtype)
