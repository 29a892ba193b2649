"""Parts of a graph: every node is in one of p parts of about n/p nodes, and few edges go from one part to another.

METIS finds them if ``pymetis`` is installed. Otherwise nodes are streamed past the parts, a chunk at a time, in an
order of neighbours after neighbours, and each takes the part i with the most of

    |N(v) ∩ Pᵢ| · (1 − |Pᵢ|/C),    C = 1.05 n/p,

its neighbours there, fewer as the part fills (linear deterministic greedy: Stanton and Kliot, KDD 2012). A node without
neighbours, or for whom there is no room, takes the emptiest part. The first pass starts with empty parts; in later ones
every node leaves its part and chooses again (restreaming: Nishimura and Ugander, KDD 2013). Edges have neither weights
nor directions here.

On WordNet (117,791 nodes, 64 parts) METIS leaves 15 % of the edges between parts, the streams 30 %, and a random
partition 98 %.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from costa.errors import InputError
from costa.writing import replacing

logger = logging.getLogger(__name__)

Parts = NDArray[np.int64]

VERSION = 1
"""Raised whenever the same graph gets other parts."""
SLACK = 1.05
"""C as a multiple of n/p."""
PASSES = 10
"""Passes of the streams. On WordNet the share of the edges between 64 parts is 43 % after the first, 30 % after ten."""
CHUNKS = 8
"""Chunks for each part's worth of nodes: within a chunk, nodes do not see what the others choose."""
LEAST = 2
"""Nodes of the smallest part that is allowed: one alone has no moments to normalise by."""


def partition(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    """The part of each node, n whole numbers from 0 to p − 1; computed once for a graph, then read from the cache.

    Args:
        edge_index: 2 × e.
        num_nodes: n.
        parts: p, at most n/2; every part has at least two nodes.

    >>> line = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> left, also_left, right, also_right = partition(line, num_nodes=4, parts=2).tolist()
    >>> left == also_left, right == also_right, left == right
    (True, True, False)
    """
    if parts * LEAST > num_nodes:
        raise InputError(
            f"train.parts = {parts:,} leaves less than {LEAST} of {num_nodes:,} nodes for each part; lower it."
        )
    metis = _metis()
    kind = "METIS" if metis else "streams"
    key = hashlib.blake2b(f"{VERSION} {kind} {parts} {num_nodes}".encode(), digest_size=16)
    key.update(np.ascontiguousarray(edge_index.numpy()).data)
    path = Path(platformdirs.user_cache_dir("costa")) / "parts" / f"{key.hexdigest()}.npy"
    # a cache that cannot be read or written must not stop a training
    with contextlib.suppress(OSError, ValueError, EOFError):
        cached = torch.from_numpy(np.load(path))
        if cached.shape == (num_nodes,):
            return cached.long()
    if metis:
        logger.info("METIS divides %d nodes into %d parts.", num_nodes, parts)
    else:
        logger.warning(
            "pymetis is not installed, so that a plainer partition with more edges between its parts is used; "
            "pip install 'costa-gcl[partitions]'."
        )
    neighbours = undirected(edge_index, num_nodes)
    found = _filled(by_metis(neighbours, parts, metis) if metis else by_streams(neighbours, parts), parts)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, found.astype(np.int32))
    return torch.from_numpy(found)


def undirected(edge_index: Tensor, num_nodes: int) -> Any:
    """The neighbours of each node as a SciPy CSR matrix: both directions of every edge, without loops or copies."""
    source, target = edge_index.numpy()
    apart = source != target
    source, target = source[apart], target[apart]
    ones = np.ones(2 * len(source), dtype=np.int8)
    ends = (np.concatenate([source, target]), np.concatenate([target, source]))
    return csr_array((ones, ends), shape=(num_nodes, num_nodes), dtype=bool)


def by_metis(neighbours: Any, parts: int, metis: Any) -> Parts:
    """METIS's parts; with the same version they are always the same."""
    adjacency = metis.CSRAdjacency(neighbours.indptr, neighbours.indices)
    return np.asarray(metis.part_graph(parts, adjacency).vertex_part, dtype=np.int64)


def by_streams(neighbours: Any, parts: int) -> Parts:
    """Parts by linear deterministic greedy, see above; nothing is drawn."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = neighbours.shape[0]
    order = reverse_cuthill_mckee(neighbours, symmetric_mode=True)
    part, room = np.full(n, -1), np.full(parts, int(np.ceil(SLACK * n / parts)))
    capacity = room[0]
    chunks = np.array_split(order, min(n, -(-n * CHUNKS // capacity)))
    for _ in range(PASSES):
        for chunk in chunks:
            left = part[chunk]
            np.add.at(room, left[left >= 0], 1)
            part[chunk] = _choose(neighbours, chunk, part, room, capacity)
            np.subtract.at(room, part[chunk], 1)
    return part


def _choose(neighbours: Any, chunk: Parts, part: Parts, room: Parts, capacity: int) -> Parts:
    """The part that each node of a chunk takes, given those of the others and the room that is left."""
    start, stop = neighbours.indptr[chunk], neighbours.indptr[chunk + 1]
    row = np.repeat(np.arange(len(chunk)), stop - start)
    place = np.arange(len(row)) + np.repeat(start - np.cumsum(stop - start) + stop - start, stop - start)
    beside = part[neighbours.indices[place]]
    seen = beside >= 0
    pairs, count = np.unique(row[seen] * len(room) + beside[seen], return_counts=True)
    row, wanted = np.divmod(pairs, len(room))
    score = count * (room[wanted] / capacity)
    best = np.lexsort((-score, row))
    best = best[np.unique(row[best], return_index=True)[1]]
    best = best[np.argsort(-score[best], kind="stable")]
    chosen = np.full(len(chunk), -1)
    for i in np.unique(wanted[best]):
        welcome = best[wanted[best] == i][: room[i]]
        chosen[row[welcome]] = i
    left = room - np.bincount(chosen[chosen >= 0], minlength=len(room))
    others = np.flatnonzero(chosen < 0)
    emptiest = np.argsort(-left, kind="stable")
    chosen[others] = np.repeat(emptiest, left[emptiest])[: len(others)]
    return chosen


def _filled(part: Parts, parts: int) -> Parts:
    """With nodes of the largest part in those that would have fewer than :data:`LEAST`."""
    size = np.bincount(part, minlength=parts)
    while size.min() < LEAST:
        smallest, largest = size.argmin(), size.argmax()
        part[np.flatnonzero(part == largest)[0]] = smallest
        size[largest] -= 1
        size[smallest] += 1
    return part


def _metis() -> Any:
    try:
        import pymetis
    except ImportError:
        return None
    return pymetis
