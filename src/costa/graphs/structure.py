"""Features for a graph that has none, from its edges alone: how many neighbours a node has, and where it is.

    x_i = (log(1 + d_i),  √n·u_1i, …, √n·u_ki),    D_τ^-½ A D_τ^-½ u_j = λ_j u_j,    D_τ = D + τI,    τ the mean of d

with the k largest eigenvalues λ₁ ≥ λ₂ ≥ … (regularised spectral embedding: Qin and Rohe, NIPS 2013). Without τ the
first eigenvectors of a graph in c pieces say only which piece a node is in, any basis of them will do, and a node
without an edge divides by zero. The sign of each is that which makes Σ u_ji³ positive.

A graph of any size has the same columns with the same scale, so a model trained on one embeds another. What it finds
there is where *that* graph's nodes are: vectors of one graph compare with each other, not with those of another graph.
The chances that a random walk is back after t steps would compare, but they tell what a node is like and not where it
is: with them costa-sv's vectors have a validation accuracy of 34 % on Cora and 21 % on digits, with these 76 and 98 %.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

POSITIONS = 32
"""k. By validation accuracy 32 gave better vectors than 64, on Cora and on digits."""
COLUMNS = 1 + POSITIONS
WHAT = f"log(1 + degree) and {POSITIONS} eigenvectors of the normalised adjacency"
"""The columns, in words."""
DENSE = 200
"""Graphs up to this many nodes have all their eigenvectors computed: Lanczos' iteration wants k well below n."""


def structural_features(edge_index: Tensor, edge_weight: Tensor | None, n: int) -> Tensor:
    """The features (n × (1 + k), float32) of an undirected graph with at least one edge.

    A graph with fewer than k nodes has zeros in the columns that are left.

    Args:
        edge_index: 2 × e, both directions of every edge.
        edge_weight: e weights, above 0; 1 each if left out. A degree is the sum of a node's.
        n: How many nodes there are.

    Example:
        >>> structural_features(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), None, 3).shape
        torch.Size([3, 33])
    """
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import eigsh

    source, target = edge_index.numpy()
    weight = np.ones(len(source)) if edge_weight is None else edge_weight.double().numpy()
    adjacency = csr_array((weight, (source, target)), shape=(n, n))
    degree = adjacency.sum(axis=1)
    scale = diags_array(1 / np.sqrt(degree + degree.mean()))
    normalised = scale @ adjacency @ scale
    if n <= DENSE:
        vectors = np.linalg.eigh(normalised.toarray())[1]
    else:
        # a start of its own, because SciPy's is random
        vectors = eigsh(normalised, k=POSITIONS, which="LA", v0=np.full(n, n**-0.5), tol=1e-6)[1]
    # in rising order of the eigenvalues, both of them
    largest = vectors[:, ::-1][:, :POSITIONS]
    x = np.zeros((n, COLUMNS))
    x[:, 0] = np.log1p(degree)
    x[:, 1 : 1 + largest.shape[1]] = largest * np.where((largest**3).sum(axis=0) < 0, -1, 1) * np.sqrt(n)
    return torch.from_numpy(x).float()
