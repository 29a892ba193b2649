"""Which hops say what a node is like? Features that were held out answer, without a label.

The columns of X are split in two halves at random; columns that were made from one, as a category's are, stay together,
because they predict each other whatever the graph is. From one half S a candidate makes its vectors, the hops of X_S
side by side (:func:`costa.nn.hops.side_by_side`); the targets Y are the leading directions of the other half's rows. A
ridge regression from few nodes R predicts Y for other nodes T,

    Ŷ_T = Z_T (Z_RᵀZ_R + λI)⁻¹ Z_Rᵀ Y_R,     R² = 1 − min_λ ‖Y_T − Ŷ_T‖² / ‖Y_T‖²    (Y less its mean over R)

averaged over splits; Z has a column of ones. Labels are told by few nodes, too: hops that predict features well tell
classes apart well. Where edges join unlike nodes, or nodes at random, a node's own columns predict its other columns
best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from costa.nn.hops import block_weights, propagate, side_by_side
from costa.nn.reduction import right_singular_vectors
from costa.nn.sparse import Features, SparseMatrix, from_scipy, to_scipy

Candidate = tuple[tuple[int, ...], int]
"""Powers of Â, and steps of PageRank, which all candidates that have any share."""

PAGERANK = -1
"""Stands for PageRank among the powers."""
OWN = 0.5
"""The weight of X beside other hops: more than in a vector, which makes the candidates differ more."""
SPLITS = 2
"""Each is used both ways round."""
RANK = 128
"""A half with more columns is reduced to so many."""
MANY, FEWER = 2**19, 32
"""With more nodes than this, a half is reduced to so many columns, and one split is enough: there is less noise."""
TARGETS = 4
"""Directions of the other half that are predicted: few, since labels are coarser than features."""
KNOWN, TESTED = 600, 2000
"""The most nodes to predict from, and to predict for."""
ITERATIONS = 2
"""Of the randomised SVD; a score needs no more."""
PENALTIES = tuple(10.0**power for power in range(-3, 4))
"""λ."""


class Columns(Protocol):
    """What is asked of the scaled features X, n × d, and of the hops of some of its columns."""

    shape: tuple[int, int]

    def at(self, nodes: Tensor, columns: Tensor) -> Tensor:
        """These rows and columns of X, dense."""

    def hops(
        self, columns: Tensor, rank: int, powers: Sequence[int], steps: int, teleport: float, nodes: Tensor
    ) -> list[Tensor]:
        """The hops of these columns at these nodes, see :func:`costa.nn.hops.propagate`.

        More than ``rank`` columns are reduced to so many by an SVD of :data:`ITERATIONS` iterations.
        """


class InMemory:
    """X and Â in memory.

    Args:
        x: The scaled features.
        adjacency: The normalised Â.
    """

    def __init__(self, x: Features, adjacency: SparseMatrix) -> None:
        self._x, self._adjacency = x, adjacency
        self.shape = (x.shape[0], x.shape[1])

    def at(self, nodes: Tensor, columns: Tensor) -> Tensor:
        """These rows and columns of X, dense."""
        if isinstance(self._x, Tensor):
            return self._x[nodes[:, None], columns]
        part = torch.from_numpy(to_scipy(self._x.a)[nodes.numpy()][:, columns.numpy()].toarray())
        return part if self._x.shift is None else part - self._x.shift[columns]

    def hops(
        self, columns: Tensor, rank: int, powers: Sequence[int], steps: int, teleport: float, nodes: Tensor
    ) -> list[Tensor]:
        """The hops at these nodes."""
        x = columns_of(self._x, columns)
        if x.shape[1] > rank:
            x = x @ right_singular_vectors(x, rank, ITERATIONS)
        part = x if isinstance(x, Tensor) else x.to_dense()
        return [block[nodes] for block in propagate(part, self._adjacency, powers, steps, teleport)]


def compared(n: int) -> tuple[int, int]:
    """The most columns that a half of a graph of n nodes is reduced to, and how many halves there are."""
    return (RANK, 2 * SPLITS) if n <= MANY else (FEWER, 2)


@torch.no_grad()
def held_out_scores(
    x: Columns, candidates: Sequence[Candidate], teleport: float = 0.1, groups: Sequence[int] | None = None
) -> list[float]:
    """R² of each candidate; zeros if X has a single column, or group of columns, or fewer than four nodes.

    Args:
        x: The scaled features and their hops.
        candidates: Powers and PageRank's steps.
        teleport: α of PageRank.
        groups: The number of the group of each column, from 0; by default each is one of its own.

    >>> from costa.graphs.synthetic import planted_partition
    >>> from costa.nn import Adjacency
    >>> graph = planted_partition(400, 3, 16, degree=8, homophily=0.9, seed=0)
    >>> x = InMemory(graph.x, Adjacency(graph.edge_index, 400).normalized())
    >>> own, far = held_out_scores(x, [((0,), 0), ((4,), 10)])
    >>> own < far
    True
    """
    n, d = x.shape
    scores = torch.zeros(len(candidates), dtype=torch.float64)
    group = torch.arange(d) if groups is None else torch.tensor(groups)
    many = int(group.max()) + 1
    if many < 2 or n < 4:
        return scores.tolist()
    generator = torch.Generator().manual_seed(0)
    powers = sorted({power for each, _ in candidates for power in each})
    steps = max(steps for _, steps in candidates)
    rank, halves = compared(n)
    for _ in range(halves // 2):
        place = torch.randperm(many, generator=generator).argsort()[group]
        first = int((place < -(-many // 2)).sum())
        pair = place.argsort(stable=True).tensor_split([first])
        nodes = torch.randperm(n, generator=generator)
        count = min(KNOWN, n // 2)
        nodes = nodes[: count + TESTED]  # the first are known, the others tested
        for one, other in (pair, pair[::-1]):
            y = _targets(x.at(nodes, other))
            blocks = x.hops(one, rank, powers, steps, teleport, nodes)
            hops = dict(zip([*powers, PAGERANK], blocks, strict=False))
            for number, (own_powers, own_steps) in enumerate(candidates):
                kept = [hops[power] for power in [*own_powers, *([PAGERANK] if own_steps else [])]]
                z = side_by_side(kept, block_weights(own_powers, own_steps, OWN))
                scores[number] += _r_squared(z, y, count)
    return (scores / halves).tolist()


def columns_of(x: Features, chosen: Tensor) -> Features:
    """These columns of X."""
    if isinstance(x, Tensor):
        return x[:, chosen]
    shift = None if x.shift is None else x.shift[chosen]
    return SparseMatrix.from_csr(from_scipy(to_scipy(x.a)[:, chosen.numpy()]), shift)


def _targets(x: Tensor) -> Tensor:
    """The leading directions of rows of length one, less their mean."""
    rows = F.normalize(x)
    centred = rows - rows.mean(0)
    return centred @ right_singular_vectors(centred, TARGETS, ITERATIONS)


def _r_squared(z: Tensor, y: Tensor, known: int) -> float:
    """R² of the ridge regression from the first ``known`` rows to the others, with the best of the penalties."""
    z, y = F.pad(z.double(), (0, 1), value=1.0), y.double()
    given, asked = z[:known], z[known:]
    mean = y[:known].mean(0)
    truth = y[known:] - mean
    total = float(truth.square().sum())
    if total == 0:
        return 0.0
    values, vectors = torch.linalg.eigh(given.T @ given)
    penalised = values.clamp(min=0) + torch.tensor(PENALTIES, dtype=torch.float64)[:, None]  # penalties × columns
    weights = vectors @ ((vectors.T @ (given.T @ (y[:known] - mean))) / penalised[:, :, None])
    return 1 - float((truth - asked @ weights).square().sum((1, 2)).min()) / total
