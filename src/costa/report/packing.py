"""Numbers as text for the page: bytes in base64, which ``decode.js`` decodes."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEPS = 2**16 - 1
"""Number of steps along the longer side that coordinates are rounded to: finer than any screen."""


def pack_whole(values: ArrayLike) -> str:
    """Non-negative integers, each in as few bytes of seven bits as it needs (LEB128).

    >>> base64.b64decode(pack_whole([1, 127, 128, 300])).hex(" ")
    '01 7f 80 01 ac 02'
    """
    rest = np.asarray(values, dtype=np.uint64).ravel()
    size = np.ones(len(rest), dtype=np.int64)
    for bits in range(7, 64, 7):
        size += rest >= np.uint64(1) << np.uint64(bits)
    end = np.cumsum(size)
    packed = np.zeros(int(end[-1]) if len(end) else 0, dtype=np.uint8)
    for place in range(int(size.max(initial=0))):
        there = size > place
        more = np.where(size[there] > place + 1, 128, 0)
        packed[(end - size)[there] + place] = (rest[there] >> np.uint64(7 * place)).astype(np.int64) & 127 | more
    return base64.b64encode(packed.tobytes()).decode()


def pack_points(points: NDArray[np.float32]) -> str:
    """Points in the plane as pairs of 16-bit numbers, little-endian, the longer side filling 0 … 65,535.

    >>> list(np.frombuffer(base64.b64decode(pack_points(np.array([[0, 1], [4, 3]], np.float32))), "<u2"))
    [np.uint16(0), np.uint16(16384), np.uint16(65535), np.uint16(49151)]
    """
    low, high = points.min(0), points.max(0)
    side = max(float((high - low).max()), 1e-12)
    inside = (points - (low + high) / 2) / side + 0.5
    return base64.b64encode(np.rint(inside * STEPS).astype("<u2").tobytes()).decode()


def pack_cosines(cosines: NDArray[np.float32]) -> str:
    """Cosines in thousandths below 1, so that those of similar vectors take one byte.

    >>> base64.b64decode(pack_cosines(np.array([1, 0.95, -1], np.float32))).hex(" ")
    '00 32 d0 0f'
    """
    return pack_whole(np.rint((1 - cosines.clip(-1, 1)) * 1000))


def each_edge_once(edge_index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The edges from a smaller to a larger node, in order, 2 × e."""
    edges = edge_index[:, edge_index[0] < edge_index[1]]
    return edges[:, np.lexsort((edges[1], edges[0]))]


def pack_edges(edge_index: NDArray[np.int64], nodes: int) -> str:
    """An undirected graph, each edge once: for every node, the number of its later neighbours and the gaps to them.

    >>> base64.b64decode(pack_edges(np.array([[0, 1, 0, 2], [1, 0, 2, 0]]), 3)).hex(" ")
    '02 01 01 00 00'
    """
    source, target = each_edge_once(edge_index)
    count = np.bincount(source, minlength=nodes)
    before = np.concatenate([source[:1] - 1, target[:-1]])
    first = np.concatenate([[True], source[1:] != source[:-1]])[: len(source)]
    step = target - np.where(first, source, before[: len(source)])
    begins = np.cumsum(count + 1) - (count + 1)
    stream = np.empty(len(source) + nodes, dtype=np.int64)
    is_count = np.zeros(len(stream), dtype=bool)
    is_count[begins] = True
    stream[is_count], stream[~is_count] = count, step
    return pack_whole(stream)
