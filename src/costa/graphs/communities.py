"""A random graph of communities within classes, drawn block by block, in memory that does not grow with the graph.

**Nodes.** Class c = 0, 1, … has a share of the nodes that is proportional to 1/√(c + 1). Its nodes have the ranks
r = 0, 1, …, and its C communities, each of about :data:`SPACE` times the mean degree, take turns: node r is in
community r mod C. Ids are a random permutation of all places (:class:`Permutation`), so neighbouring ids have nothing
in common.

**Edges.** Both ends of an edge are in one community (a share of :data:`WITHIN`), in two that follow each other in their
class (:data:`BESIDE`), or anywhere. Among the L nodes of a community or a class, an end is drawn with

    P(rank < xL) = ((x + δ)^b − δ^b) / ((1 + δ)^b − δ^b),    b = (γ − 2)/(γ − 1),    0 ≤ x ≤ 1

For an edge to anywhere δ = 0, the power law of Chung and Lu: the number of nodes of a large degree k falls as k^−γ. In
communities δ = :data:`FLAT`, because a hub there would soon be joined with everyone. Self-loops and repeated edges
stay; by default they are about 1% and 6% of the edges.

**Features.** A node has one of :data:`TOPICS` topics, which all classes share. A community has two of them in equal
parts, and this pair tells its class; a class has several pairs, all classes together :data:`PAIRS`. So a node alone
hardly tells its class, and the mean over its neighbourhood tells it, but not to a linear classifier alone. A share of
:data:`STRAYS` of the nodes has the class and the topic of another place than its edges, which tell nothing of it.

Dense features are x = :data:`SIGNAL`·μ_t + ε with ‖μ_t‖ = 1 in a random direction and ε ~ N(0, I). Sparse ones have
:data:`ENTRIES` ones in each row, each in the columns of topic t, one in :data:`TOPICS`, with probability
:data:`ON_TOPIC`, else in any column.

The constants were set by what the baselines reach, from 20,000 to 300,000 nodes. With 10% of the labels, a linear probe
comes from the largest class's share to an accuracy of 1 by about a tenth with raw features, six with diffused ones and
eight with hops.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from costa.errors import InputError

BLOCK = 2**13
"""Rows or edges that are drawn together, by a generator of their own."""
SPACE, SMALLEST = 8, 10
"""A community's size in mean degrees, but no fewer nodes than the second number."""
WITHIN, BESIDE, FLAT = 0.6, 0.25, 0.02
TOPICS, PAIRS, STRAYS = 16, 40, 0.15
SIGNAL = 3.0
ENTRIES, ON_TOPIC = 10, 0.3

Ints = NDArray[np.int64]


class Permutation:
    """A random permutation of 0 … n − 1 that is computed where it is needed, and its inverse.

    A Feistel network of four rounds, (a, b) → (b, a + f(b) mod s), permutes the numbers a·s + b < s², where s = ⌈√n⌉
    and each f is a table of random numbers. It is repeated for a number that has become n or more.

    >>> permutation = Permutation(10, np.random.default_rng(0))
    >>> ids = permutation(np.arange(10))
    >>> sorted(ids.tolist()), permutation.inverse(ids).tolist()
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.side = n, math.isqrt(n - 1) + 1
        self.tables = rng.integers(self.side, size=(4, self.side))

    def __call__(self, values: Ints) -> Ints:
        """Where the values go."""
        return self._walk(values, self._forward)

    def inverse(self, values: Ints) -> Ints:
        """Where the values come from."""
        return self._walk(values, self._backward)

    def _walk(self, values: Ints, step: Callable[[Ints], Ints]) -> Ints:
        values = step(values)
        outside = np.flatnonzero(values >= self.n)
        while outside.size:
            values[outside] = step(values[outside])
            outside = outside[values[outside] >= self.n]
        return values

    def _forward(self, values: Ints) -> Ints:
        a, b = np.divmod(values, self.side)
        for table in self.tables:
            a, b = b, (a + table[b]) % self.side
        return a * self.side + b

    def _backward(self, values: Ints) -> Ints:
        a, b = np.divmod(values, self.side)
        for table in self.tables[::-1]:
            a, b = (b - table[a]) % self.side, a
        return a * self.side + b


class Communities:
    """The graph of a seed, as blocks of :data:`BLOCK` rows or edges that can be drawn in any order.

    Args:
        nodes: The number of nodes, at least a hundred for each class.
        edges: The number of undirected edges, each of which is drawn once.
        columns: The number of feature columns; sparse features need more than :data:`ENTRIES`.
        classes: The number of classes, at most one for each pair of topics.
        exponent: γ, above 2.
        seed: Random seed; global generators are not touched.

    >>> graph = Communities(1000, 5000, columns=32, classes=2, exponent=2.5, seed=0)
    >>> graph.nodes(0).shape, graph.dense(0).shape, graph.sparse(0).shape, graph.edges(0).shape
    ((2, 1000), (1000, 32), (1000, 10), (2, 5000))
    """

    def __init__(self, nodes: int, edges: int, *, columns: int, classes: int, exponent: float, seed: int) -> None:
        pairs = list(itertools.combinations(range(TOPICS), 2))
        if not (1 <= classes <= len(pairs) and nodes >= 100 * classes and edges >= 1 and columns >= 1):
            raise InputError(
                f"communities need 1 to {len(pairs)} classes, a hundred nodes for each, an edge and a column, not "
                f"classes = {classes}, nodes = {nodes}, edges = {edges}, columns = {columns}."
            )
        if not (2 < exponent < math.inf and seed >= 0):
            raise InputError(
                f"the exponent must be above 2 and the seed 0 or more, not exponent = {exponent}, seed = {seed}."
            )
        self.num_nodes, self.num_edges, self.columns, self.seed = nodes, edges, columns, seed
        self.power = (exponent - 2) / (exponent - 1)
        share = np.cumsum(1 / np.sqrt(np.arange(1, classes + 1)))
        self.starts = np.append(0, np.rint(share / share[-1] * nodes)).astype(np.int64)
        self.lengths = np.diff(self.starts)
        size = max(SPACE * 2 * edges / nodes, SMALLEST)
        self.communities = np.maximum(1, np.rint(self.lengths / size)).astype(np.int64)
        rng = self._generator("graph", 0)
        self.ids = Permutation(nodes, rng)
        each = max(1, PAIRS // classes)
        self.pairs = rng.permutation(pairs)[: classes * each].reshape(classes, each, 2)
        directions = rng.standard_normal((TOPICS, columns), dtype=np.float32)
        self.means = SIGNAL * directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def nodes(self, block: int) -> Ints:
        """The ids and the classes of the nodes of a block, 2 × nodes."""
        return np.stack([self._ids(block), self._labels_and_topics(block)[0]])

    def dense(self, block: int) -> NDArray[np.float32]:
        """The rows of dense features of a block."""
        topic = self._labels_and_topics(block)[1]
        x = self._generator("features", block).standard_normal((len(topic), self.columns), dtype=np.float32)
        x += self.means[topic]
        return x

    def sparse(self, block: int) -> Ints:
        """The columns of the ones in each row of a block, ascending."""
        topic = self._labels_and_topics(block)[1]
        rng = self._generator("features", block)
        anywhere, drawn = rng.random((2, len(topic), ENTRIES))
        place = np.where(drawn < ON_TOPIC, (topic[:, None] + anywhere) / TOPICS, anywhere)
        columns = np.sort((place * (self.columns - ENTRIES + 1)).astype(np.int64), axis=1)
        # a column that is drawn twice becomes the next one that is free
        steps = np.arange(ENTRIES)
        return np.maximum.accumulate(columns - steps, axis=1) + steps

    def edges(self, block: int) -> Ints:
        """The edges of a block, 2 × edges."""
        count = min(BLOCK, self.num_edges - block * BLOCK)
        rng = self._generator("edges", block)
        kind = rng.random(count)
        near, beside = kind < WITHIN + BESIDE, (kind >= WITHIN) & (kind < WITHIN + BESIDE)
        label = self._label(rng.integers(self.num_nodes, size=(2, count)))
        label[1, near] = label[0, near]
        # an end is among the ranks turn, turn + turns, turn + 2·turns, …: a community, or with turns = 1 the class
        turns = np.where(near, self.communities[label], 1)
        turn = (rng.random(count) * turns[0]).astype(np.int64)
        turn = np.stack([turn, (turn + beside) % turns[1]])
        length = (self.lengths[label] - turn - 1) // turns + 1
        x = self._falling(rng.random((2, count)), np.where(near, FLAT, 0.0))
        rank = turn + turns * np.minimum((x * length).astype(np.int64), length - 1)
        return self.ids((self.starts[label] + rank).ravel()).reshape(2, count)

    def _ids(self, block: int) -> Ints:
        return np.arange(block * BLOCK, min(block * BLOCK + BLOCK, self.num_nodes))

    def _labels_and_topics(self, block: int) -> tuple[Ints, Ints]:
        rng = self._generator("nodes", block)
        place = self.ids.inverse(self._ids(block))
        count = len(place)
        stray = rng.random(count) < STRAYS
        place[stray] = rng.integers(self.num_nodes, size=stray.sum())
        label = self._label(place)
        community = (place - self.starts[label]) % self.communities[label]
        return label, self.pairs[label, community % self.pairs.shape[1], rng.integers(2, size=count)]

    def _label(self, place: Ints) -> Ints:
        return np.searchsorted(self.starts, place, side="right") - 1

    def _falling(self, u: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
        """x with the distribution above, from u that is uniform in [0, 1)."""
        low, high = delta**self.power, (1 + delta) ** self.power
        return (low + u * (high - low)) ** (1 / self.power) - delta

    def _generator(self, stage: str, block: int) -> np.random.Generator:
        key = ("graph", "nodes", "features", "edges").index(stage), block
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


def blocks(total: int) -> range:
    """The blocks of so many rows or edges."""
    return range(-(-total // BLOCK))
