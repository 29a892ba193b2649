"""Which edges a run's graph most likely lacks: the pairs without an edge whose vectors have the highest score.

The score is what validation on held-out edges chose (:mod:`costa.evaluate.links`), or the cosine of the vectors.

Up to :data:`ALL_PAIRS` nodes, every pair is scored, a block of rows at a time. In a larger graph these are:

- pairs two steps apart, which have a common neighbour;
- pairs of one group. The groups are made of nodes with similar vectors: some nodes are drawn at random, each node goes
  to the one of them with the highest cosine, and groups of more than :data:`GROUP` nodes are cut.

An edge of the graph is never among them, also one that training did not see, and no node is paired with itself.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import runs
from costa.errors import InputError
from costa.evaluate.pair_scores import VECTOR_SCORES, PairScore, adjacency, cosine, vector_score
from costa.graphs.pairs import Numbers, count_pairs, number_pairs, pairs_of
from costa.wording import counted
from costa.writing import replacing

ALL_PAIRS = 2**16
"""The most nodes of which every pair is scored: about a minute on one core."""
GROUP = 2**12
"""The most nodes of a group."""
BLOCK = 2**22
"""Scores at a time."""
PRODUCTS = 2**21
"""About as many pairs two steps apart at a time, repeated ones included."""


@dataclass(frozen=True)
class LikelyLinks:
    """The most likely missing edges.

    Attributes:
        pairs: 2 × k, the smaller node first; the best pair comes first.
        scores: Their scores.
        looked_at: Which pairs were scored, in words.
    """

    pairs: Tensor
    scores: Tensor
    looked_at: str


@dataclass(frozen=True)
class RunLinks:
    """The most likely missing edges of a run's graph.

    Attributes:
        rows: (source, target, score), by the nodes' ids or, without ids, their row numbers; the best comes first.
        scored_by: What the score is, in words.
        looked_at: Which pairs were scored, in words.
    """

    rows: list[tuple[str, str, float]]
    scored_by: str
    looked_at: str


def links_of_run(
    folder: Path, k: int, data_dir: Path | None = None, memory: str | None = None, moved_to: str | None = None
) -> RunLinks:
    """The k most likely missing edges of a run's graph.

    Args:
        folder: A RUN folder.
        k: How many.
        data_dir: Folder that is searched first for benchmark graphs.
        memory: As for :func:`costa.runs.load_run_graph`.
        moved_to: Where the graph is now, as for :func:`costa.runs.load_run_graph`.
    """
    edges, z = runs.load_run_edges(folder, data_dir, memory, moved_to), runs.load_embeddings(folder)
    probe = runs.read_metrics(folder).links
    if probe is None:
        name, score, why = "cosine", cosine(z), "no held-out edges chose another score"
    else:
        name, why = probe.chosen, "chosen by held-out edges"
        score = vector_score(name, z, edges.training, probe.strength)
    found = likely_links(score, z, edges.whole, k)
    ids = edges.whole.get("node_ids")
    ends = [[str(node) if ids is None else ids[node] for node in end] for end in found.pairs.tolist()]
    rows = list(zip(*ends, found.scores.tolist(), strict=True))
    return RunLinks(rows, f"{VECTOR_SCORES[name]} ({why})", found.looked_at)


def write_links(path: Path, rows: list[tuple[str, str, float]]) -> None:
    """Write links as CSV with the columns source, target and score."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("source", "target", "score"))
        writer.writerows((source, target, f"{score:.6g}") for source, target, score in rows)


def likely_links(score: PairScore, z: Tensor, graph: Data, k: int) -> LikelyLinks:
    """The k pairs without an edge that have the highest scores; fewer if there are fewer.

    Args:
        score: The score; its rows must be a tensor.
        z: The vectors, which make the groups of a large graph.
        graph: The graph with all its edges.
        k: How many.
    """
    n, best = int(graph.num_nodes), _Best(k)
    a = adjacency(graph)
    if count_pairs(n) <= a.nnz // 2:
        raise InputError(f"{graph.name} has an edge between any two nodes, so none is missing.")
    if n <= ALL_PAIRS:
        for start in range(0, n, step := max(1, BLOCK // n)):
            best.add_block(score, a, np.arange(start, min(start + step, n)), np.arange(start, n))
        looked_at = f"all {counted(count_pairs(n) - a.nnz // 2, 'pair')} without an edge"
    else:
        for pairs in _two_steps(a):
            best.add(pairs, score(pairs))
        groups = _groups(cosine(z), n)
        for group in groups:
            for start in range(0, len(group), step := max(1, BLOCK // len(group))):
                best.add_block(score, a, group[start : start + step], group)
        looked_at = (
            f"pairs two steps apart, and pairs of the same of {counted(len(groups), 'group')} of nodes with similar"
            f" vectors; not all {counted(count_pairs(n), 'pair')}"
        )
    return LikelyLinks(*best.sorted(), looked_at)


class _Best:
    """The k best of pairs that come in parts, each perhaps several times."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._numbers: Numbers = np.empty(0, np.int64)
        self._scores = torch.empty(0)

    def least(self, scores: Tensor) -> Tensor:
        """What a pair of a part must reach; all of equals do, so which are kept does not depend on the part."""
        least = scores.topk(min(self._k, len(scores))).values[-1]
        return torch.maximum(least, self._scores[-1]) if len(self._scores) == self._k else least

    def add(self, pairs: Tensor, scores: Tensor) -> None:
        """More pairs, each once."""
        if not len(scores):
            return
        good = scores >= self.least(scores)
        numbers = np.concatenate([self._numbers, number_pairs(pairs[:, good])])
        scores = torch.cat([self._scores, scores[good].float()])
        numbers, first = np.unique(numbers, return_index=True)
        scores = scores[torch.from_numpy(first)]
        # the smaller number first among equals
        order = torch.sort(scores, descending=True, stable=True).indices[: self._k]
        self._numbers, self._scores = numbers[order.numpy()], scores[order]

    def add_block(self, score: PairScore, a: Any, rows: np.ndarray, columns: np.ndarray) -> None:
        """The pairs without an edge of some nodes with others, both in ascending order."""
        at, of = torch.from_numpy(rows), torch.from_numpy(columns)
        scores = score.between(_places(at), _places(of))
        known = a[rows][:, columns].tocoo()
        scores[torch.from_numpy(known.row), torch.from_numpy(known.col)] = -torch.inf
        scores[at[:, None] >= of] = -torch.inf
        i, j = ((scores >= self.least(scores.flatten())) & scores.isfinite()).nonzero(as_tuple=True)
        self.add(torch.stack([at[i], of[j]]), scores[i, j])

    def sorted(self) -> tuple[Tensor, Tensor]:
        """The pairs and their scores, the best first."""
        return pairs_of(self._numbers), self._scores


def _places(nodes: Tensor) -> Tensor | slice:
    """Consecutive nodes as a slice, whose rows need no copy; else the nodes."""
    first, last = int(nodes[0]), int(nodes[-1])
    return slice(first, last + 1) if last - first + 1 == len(nodes) else nodes


def _two_steps(a: Any) -> Iterator[Tensor]:
    """Pairs with a common neighbour and without an edge, some nodes' at a time."""
    n = a.shape[0]
    degree = np.diff(a.indptr)
    # what a block of rows of A·A has at most
    before = np.cumsum(a @ degree.astype(np.float64))
    blocks = np.searchsorted(before, np.arange(PRODUCTS, before[-1], PRODUCTS))
    edges = np.unique([0, *blocks, n])
    for start, stop in itertools.pairwise(edges):
        near = a[start:stop] @ a
        near -= near.multiply(a[start:stop])
        near.eliminate_zeros()
        i, j = near.tocoo().coords
        pairs = np.stack([i.astype(np.int64) + start, j.astype(np.int64)])
        yield torch.from_numpy(pairs[:, pairs[0] < pairs[1]])


def _groups(similarity: PairScore, n: int) -> list[np.ndarray]:
    """Groups of nodes with similar vectors, at most GROUP each."""
    count = max(1, 4 * n // GROUP)
    centres = torch.from_numpy(np.random.default_rng(0).choice(n, count, replace=False))
    nearest = torch.cat([similarity.between(rows, centres).argmax(1) for rows in torch.arange(n).split(BLOCK // count)])
    order = torch.argsort(nearest, stable=True)
    cells = order.split(nearest.bincount(minlength=count).tolist())
    return [part.sort().values.numpy() for cell in cells if len(cell) > 1 for part in cell.split(GROUP)]
