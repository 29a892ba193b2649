"""Features for a graph that has none, from its edges alone: a node's degree and its position.

    x_i = (log(1 + d_i),  √n·u_1i, …, √n·u_ki),    D_τ^-½ A D_τ^-½ u_j = λ_j u_j,    D_τ = D + τI,    τ the mean of d

with the k largest eigenvalues λ₁ ≥ λ₂ ≥ … (regularised spectral embedding: Qin and Rohe, NIPS 2013). Without τ,
the first c eigenvectors of a graph with c components are an arbitrary basis of vectors that only tell the components
apart, and a node without an edge divides by zero. The sign of each eigenvector makes Σ u_ji³ positive.

A graph of any size has the same columns with the same scale, so a model trained on one graph can embed another. The
positions are relative to each graph: compare vectors of one graph with each other, not with those of another graph.
Return probabilities of random walks would be comparable, but they describe a node's role and not its position: with
them costa-sv reaches a validation accuracy of 34 % on Cora and 21 % on digits, with these features 76 and 98 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data

POSITIONS = 32
"""k. On Cora and digits, 32 gave a better validation accuracy than 64."""
COLUMNS = 1 + POSITIONS
WHAT = f"log(1 + degree) and {POSITIONS} eigenvectors of the normalised adjacency"
"""The columns, in words."""
DENSE = 200
"""Up to this many nodes, all eigenvectors are computed: Lanczos iteration needs k well below n."""


def structural_features(edge_index: Tensor, edge_weight: Tensor | None, n: int) -> Tensor:
    """The features (n × (1 + k), float32) of an undirected graph with at least one edge.

    A graph with fewer than k nodes has zeros in the remaining columns.

    Args:
        edge_index: 2 × e, both directions of every edge.
        edge_weight: e weights, above 0; all 1 if left out. A node's degree is the sum of its weights.
        n: The number of nodes.

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
        # a fixed start, because SciPy's is random
        vectors = eigsh(normalised, k=POSITIONS, which="LA", v0=np.full(n, n**-0.5), tol=1e-6)[1]
    # both solvers sort the eigenvalues in ascending order
    largest = vectors[:, ::-1][:, :POSITIONS]
    x = np.zeros((n, COLUMNS))
    x[:, 0] = np.log1p(degree)
    x[:, 1 : 1 + largest.shape[1]] = largest * np.where((largest**3).sum(axis=0) < 0, -1, 1) * np.sqrt(n)
    return torch.from_numpy(x).float()


def degree_if_made(graph: Data) -> Tensor | None:
    """The nodes' degrees if the features of a graph were made from its edges; else None."""
    if graph.num_features != COLUMNS or graph.x.layout != torch.strided:
        return None
    weight, crow = graph.get("edge_weight"), graph.get("crow")
    if crow is None:
        degree = torch.bincount(graph.edge_index[0], weight, graph.num_nodes).double()
    elif weight is None:
        degree = crow.diff().double()
    else:  # on a disk, where the edges of a node follow each other
        degree = torch.cat([torch.zeros(1), weight]).double().cumsum(0)[crow.long()].diff()
    return degree if torch.allclose(graph.x[:, 0].double(), degree.log1p(), rtol=1e-5, atol=1e-5) else None
