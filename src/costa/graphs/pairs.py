"""Pairs of different nodes, each once and with a number, so that sets of edges are sorted arrays of integers.

    the pair i < j has the number j(j − 1)/2 + i:    (0,1), (0,2), (1,2), (0,3), …

A graph of n nodes has the numbers 0 … n(n − 1)/2 − 1; those that are no edge are its non-edges. Both directions of an
edge have one number, and a self-loop has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data

Numbers = NDArray[np.int64]


def number_pairs(pairs: Tensor) -> Numbers:
    """The numbers of pairs of different nodes, 2 × e, in whichever direction they are.

    >>> number_pairs(torch.tensor([[0, 2, 0], [1, 1, 3]])).tolist()
    [0, 2, 3]
    """
    ends = pairs.cpu().numpy()
    low, high = ends.min(axis=0), ends.max(axis=0)
    numbers: Numbers = high * (high - 1) // 2 + low
    return numbers


def pairs_of(numbers: Numbers) -> Tensor:
    """The inverse of :func:`number_pairs`: 2 × e, the smaller node first.

    >>> pairs_of(np.array([0, 2, 3])).tolist()
    [[0, 1, 0], [1, 2, 3]]
    """
    high = ((1 + np.sqrt(1 + 8 * numbers.astype(np.float64))) / 2).astype(np.int64)
    # From high ≈ 10⁸ on, the square root of a column's last pairs is rounded up to the next integer.
    high -= high * (high - 1) // 2 > numbers
    return torch.from_numpy(np.stack([numbers - high * (high - 1) // 2, high]))


def edge_numbers(graph: Data) -> Numbers:
    """The numbers of a graph's edges, in ascending order."""
    source, target = graph.edge_index
    return np.unique(number_pairs(graph.edge_index[:, source != target]))


def count_pairs(n: int) -> int:
    """How many pairs n nodes have."""
    return n * (n - 1) // 2


def sample_non_edges(edges: Numbers, n: int, count: int, random: np.random.Generator) -> Numbers:
    """Different pairs that are no edges, in random order, each with the same probability.

    The r-th non-edge has the number r + |{edges below it}|. With edges e₀ < e₁ < …, the non-edges below e_i are
    e_i − i, so it is found among those by bisection: no pair is drawn and then thrown away.

    Args:
        edges: The numbers of the edges, in ascending order.
        n: The number of nodes.
        count: How many are drawn, at most as many as there are.
        random: Where the randomness comes from.

    >>> sorted(sample_non_edges(np.array([0, 2, 3]), 4, 3, np.random.default_rng(0)).tolist())
    [1, 4, 5]
    """
    ranks = random.choice(count_pairs(n) - len(edges), size=count, replace=False)
    numbers: Numbers = ranks + np.searchsorted(edges - np.arange(len(edges)), ranks, side="right")
    return numbers
