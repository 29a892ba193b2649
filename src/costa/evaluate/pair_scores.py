"""How likely a link is: scores of pairs of nodes, from their vectors or from their neighbours.

All but one are of one form, whose rows are vectors, features or the rows of the adjacency matrix A of the graph,

    s_ij = Σ_k w_k r_ik r_jk

    score                     r_i                          w_k
    dot product               z_i                          1
    cosine                    z_i / ‖z_i‖                  1
    logistic regression       z_i / ‖z_i‖                  β_k / σ_k, see :func:`logistic`
    common neighbours         row i of A                   1
    Adamic–Adar               row i of A                   1 / log d_k
    preferential attachment   d_i                          1

A is 0 or 1: weights do not count, and self-loops are left out. Only the order of scores matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.evaluate.inputs import unit_rows
from costa.graphs.pairs import count_pairs, edge_numbers, pairs_of, sample_non_edges
from costa.graphs.storage import StoredGraph
from costa.nn.sparse import is_csr, to_scipy

AT_ONCE = 2**22
"""Numbers of rows that are multiplied at a time."""
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Strengths of the logistic regression, among which validation chooses."""
FITTED = 20_000
"""The most edges that the logistic regression learns from, and as many non-edges."""


@dataclass(frozen=True)
class PairScore:
    """s_ij = Σ_k w_k r_ik r_jk.

    Attributes:
        rows: r, n × d: a tensor, or a SciPy matrix if most of it is 0.
        weight: w, of the same kind as ``rows``; None if all are 1.

    >>> PairScore(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))(torch.tensor([[0], [1]]))
    tensor([11.])
    """

    rows: Any
    weight: Any = None

    def __call__(self, pairs: Tensor) -> Tensor:
        """The scores of pairs, 2 × m."""
        n, d = self.rows.shape
        # a row of a sparse matrix has the columns of its entries
        wide = d if isinstance(self.rows, Tensor) else max(1, -(-self.rows.nnz // n))
        parts = [self._score(*part) for part in pairs.split(max(1, AT_ONCE // wide), dim=1)]
        return torch.cat(parts)

    def _score(self, i: Tensor, j: Tensor) -> Tensor:
        if isinstance(self.rows, Tensor):
            left = self.rows[i] if self.weight is None else self.rows[i] * self.weight
            return (left * self.rows[j]).sum(1)
        products = self.rows[i.numpy()].multiply(self.rows[j.numpy()])
        ones = np.ones(self.rows.shape[1], self.rows.dtype)
        return torch.from_numpy(np.asarray(products @ (ones if self.weight is None else self.weight)))

    def between(self, some: Tensor | slice, others: Tensor | slice) -> Tensor:
        """The scores of some nodes with others, one row for each; ``rows`` must be a tensor."""
        left = self.rows[some] if self.weight is None else self.rows[some] * self.weight
        scores: Tensor = left @ self.rows[others].T
        return scores


def dot_product(z: Tensor) -> PairScore:
    """Dot products of the vectors."""
    return PairScore(z.float())


def cosine(x: Tensor) -> PairScore:
    """Cosines of vectors, or of features, which may be CSR; 0 for a row of zeros."""
    unit = unit_rows(x, len(x), "cpu")
    return PairScore(to_scipy(unit) if is_csr(unit) else unit)


def logistic(z: Tensor, training: Data, strengths: Sequence[float]) -> list[PairScore]:
    """Logistic regressions on u_i ∘ u_j, u_i = z_i/‖z_i‖, between edges of the training graph and pairs without one.

    The columns are divided by their standard deviations σ first. With the strength c, the mean loss counts c times
    and the penalty is ½‖β‖². Both classes have the same number of pairs, at most :data:`FITTED`, drawn from the
    training graph alone: held-out edges are not looked at, not even to keep them out of the pairs without an edge.
    """
    from sklearn.linear_model import LogisticRegression

    unit, numbers = unit_rows(z, training.num_nodes, "cpu"), edge_numbers(training)
    random, n = np.random.default_rng(0), int(training.num_nodes)
    count = min(FITTED, len(numbers), count_pairs(n) - len(numbers))
    edges = random.choice(numbers, count, replace=False)
    i, j = pairs_of(np.concatenate([edges, sample_non_edges(numbers, n, count, random)]))
    products = (unit[i] * unit[j]).numpy().astype(np.float64)
    deviation = products.std(axis=0)
    deviation[deviation == 0] = 1
    products /= deviation
    is_edge = np.arange(2 * count) < count
    fitted = (LogisticRegression(C=c / (2 * count), max_iter=1000).fit(products, is_edge) for c in strengths)
    return [PairScore(unit, torch.from_numpy(model.coef_[0] / deviation).float()) for model in fitted]


def adjacency(graph: Data) -> Any:
    """A of a graph as SciPy's CSR, 0 or 1, without self-loops."""
    from scipy.sparse import csr_array

    n = int(graph.num_nodes)
    if isinstance(graph, StoredGraph):
        parts = np.ones(graph.num_edges, np.float32), graph.col.numpy(), graph.crow.numpy()
        return csr_array(parts, shape=(n, n))
    low, high = pairs_of(edge_numbers(graph)).numpy()
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    return csr_array((np.ones(2 * len(low), np.float32), ends), shape=(n, n))


def common_neighbours(graph: Data) -> PairScore:
    """|N(i) ∩ N(j)|."""
    return PairScore(adjacency(graph))


def adamic_adar(graph: Data) -> PairScore:
    """Σ 1/log d_k over the common neighbours k."""
    a = adjacency(graph)
    degree = a.sum(axis=1)
    # a node with one neighbour is common to no pair
    return PairScore(a, np.where(degree > 1, 1 / np.log(np.maximum(degree, 2)), 0).astype(np.float32))


def preferential_attachment(graph: Data) -> PairScore:
    """d_i·d_j."""
    return PairScore(torch.from_numpy(adjacency(graph).sum(axis=1)).double()[:, None])


def vector_score(name: str, z: Tensor, training: Data, strength: float) -> PairScore:
    """One of :data:`VECTOR_SCORES`; the strength is that of the logistic regression."""
    if name == "logistic":
        return logistic(z, training, [strength])[0]
    return cosine(z) if name == "cosine" else dot_product(z)


VECTOR_SCORES = {
    "cosine": "cosine of vectors",
    "dot": "dot product of vectors",
    "logistic": "logistic regression",
}
"""How pairs of vectors are scored, and what that is called."""
