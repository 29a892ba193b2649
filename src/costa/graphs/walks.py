"""Random walks on a graph, uniform or biased by the previous node; all walkers of a round step at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from sklearn.preprocessing import normalize

if TYPE_CHECKING:
    from torch_geometric.data import Data

Nodes = NDArray[np.int64]


class RandomWalks:
    """``number`` rounds of walks, each with one walk from every node; every iteration gives the same walks.

    From v, reached from t, a walk continues to x with probability proportional to α(t, x)·w_vx (Grover and Leskovec,
    KDD 2016, Equation 2), w the edge's weight and

        α(t, x) = 1/p if x = t,   1 if there is an edge from t to x,   1/q otherwise;

    the first step has no t and uses w alone. With p = q = 1 all steps do: these are DeepWalk's uniform walks.

    A biased step draws x by w and accepts it with probability α(t, x)/max α, or else draws again; this is exact and
    needs no table per edge. A walk that reaches a node without outgoing edges ends there; the walks of an isolated node
    contain only the node. A round is drawn when it is read, from the seed and its number: only one is ever in memory.

    Args:
        graph: A graph with ``edge_index`` and perhaps ``edge_weight``; walks go from source to target.
        number: γ, the number of walks from each node.
        length: The number of nodes in a walk.
        seed: Random seed.
        p: The return parameter: a high value keeps a walk from going back.
        q: The in-out parameter: a low value lets a walk go far.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> line = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)
        >>> walks = RandomWalks(line, number=2, length=3, seed=0, p=100.0)
        >>> sorted(walks)[-3:], len(list(walks))
        ([[2, 1, 0], [3], [3]], 8)
    """

    def __init__(self, graph: Data, *, number: int, length: int, seed: int, p: float = 1.0, q: float = 1.0) -> None:
        n = self.num_nodes = graph.num_nodes
        self.number, self.length, self.seed, self.p, self.q = number, length, seed, p, q
        source, target = graph.edge_index.cpu().numpy()
        weight = graph.get("edge_weight")
        weight = np.ones(len(source)) if weight is None else weight.double().cpu().numpy()
        positive = weight > 0
        matrix = coo_array((weight[positive], (source[positive], target[positive])), shape=(n, n)).tocsr()
        # D⁻¹A: in a cumulative sum of the raw weights, very large ones would swallow small ones
        chances = normalize(matrix, norm="l1")
        self._targets: Nodes = chances.indices.astype(np.int64)
        self._first: Nodes = chances.indptr.astype(np.int64)
        # Both ascend along the edges, so that a binary search finds the edge for a draw or a pair of nodes.
        self._chance_up_to = np.concatenate([[0.0], np.cumsum(chances.data)])
        self._keys: Nodes = np.repeat(np.arange(n), np.diff(self._first)) * n + self._targets

    @property
    def linked(self) -> NDArray[np.bool_]:
        """Which nodes have an edge, in or out; walks carry no information on the others."""
        linked = np.diff(self._first) > 0
        linked[self._targets] = True
        return linked

    def __iter__(self) -> Iterator[list[int]]:
        for index in range(self.number):
            for walk in self.round(index):
                yield walk[walk >= 0].tolist()

    def round(self, index: int) -> Nodes:
        """A walk from every node, n × length, in a random order of the starts; −1 once a walk has ended."""
        rng = np.random.default_rng((self.seed, index))
        steps = np.full((self.length, self.num_nodes), -1)
        steps[0] = rng.permutation(self.num_nodes)
        going = np.arange(self.num_nodes)
        for i in range(1, self.length):
            here = steps[i - 1, going]
            goes_on = self._first[here] < self._first[here + 1]
            going, here = going[goes_on], here[goes_on]
            if i == 1 or self.p == self.q == 1:
                steps[i, going] = self._neighbour(here, rng)
            else:
                steps[i, going] = self._biased(steps[i - 2, going], here, rng)
        return steps.T

    def _neighbour(self, v: Nodes, rng: np.random.Generator) -> Nodes:
        """One of each node's neighbours, by weight."""
        first, after = self._first[v], self._first[v + 1]
        low, high = self._chance_up_to[first], self._chance_up_to[after]
        edge = np.searchsorted(self._chance_up_to, low + rng.random(len(v)) * (high - low), side="right") - 1
        # a draw that is rounded up would fall on the next node's first edge
        return self._targets[np.minimum(edge, after - 1)]

    def _biased(self, t: Nodes, v: Nodes, rng: np.random.Generator) -> Nodes:
        x = np.empty_like(v)
        waiting = np.arange(len(v))
        while waiting.size:
            proposed = self._neighbour(v[waiting], rng)
            accepted = rng.random(len(waiting)) * max(1.0, 1 / self.p, 1 / self.q) < self._alpha(t[waiting], proposed)
            x[waiting[accepted]] = proposed[accepted]
            waiting = waiting[~accepted]
        return x

    def _alpha(self, t: Nodes, x: Nodes) -> NDArray[np.float64]:
        keys = t * self.num_nodes + x
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(x == t, 1 / self.p, np.where(self._keys[place] == keys, 1.0, 1 / self.q))
