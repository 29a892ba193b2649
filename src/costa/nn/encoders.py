"""Encoders: the paper's two-layer GCN, and the MLP that shares its weights.

GCN_l(X, A) = σ(D̂^-½ Â D̂^-½ X W_l),    f(X, A) = GCN₂(GCN₁(X, A), A),    Â = A + I.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from costa.nn.sparse import SparseMatrix

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "elu": nn.ELU, "prelu": nn.PReLU}


class Layer(nn.Module):
    """X W + b, what the graph does to it, normalisation, σ. Glorot weights, zero bias."""

    def __init__(
        self, in_features: int, out_features: int, activation: str, norm: str, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.norm = nn.BatchNorm1d(out_features) if norm == "batch" else None
        self.activation = ACTIVATIONS[activation]()
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix | None, mask: Tensor | None = None) -> Tensor:
        """One layer; without an adjacency, the MLP's."""
        # X·diag(m)·W = X·(diag(m)·W): masked attributes are masked rows of W, and X is never touched.
        weight = self.weight if mask is None else mask[:, None] * self.weight
        h = x @ weight
        h = (h if adjacency is None else adjacency @ h) + self.bias
        h = h if self.norm is None else self.norm(h)
        out: Tensor = self.activation(h)
        return out


class GCN(nn.Module):
    r"""The paper's encoder: layers H ← σ(D̂^-½ Â D̂^-½ H W + b).

    Args:
        in_features: Columns of X.
        widths: Width of each layer; two in the paper.
        activation: ``relu``, ``elu`` or ``prelu``; after every layer, the last too.
        norm: ``none``, or ``batch`` for BatchNorm before each activation.
        generator: Draws the initial weights; the global one if left out.

    >>> from costa.nn import Adjacency
    >>> triangle = Adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3).normalized()
    >>> GCN(4, (8, 2), generator=torch.Generator().manual_seed(0))(torch.ones(3, 4), triangle).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_features: int,
        widths: Sequence[int],
        *,
        activation: str = "relu",
        norm: str = "none",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = [in_features, *widths]
        self.out_features = sizes[-1]
        self.layers = nn.ModuleList(Layer(a, b, activation, norm, generator) for a, b in itertools.pairwise(sizes))

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix, mask: Tensor | None = None) -> Tensor:
        """H, n × d. ``adjacency`` is normalised; ``mask`` multiplies the columns of X (0 hides an attribute)."""
        return _through(self.layers, x, adjacency, mask)


class MLP(nn.Module):
    """The same layers without the graph: H ← σ(H W + b).

    Args:
        gcn: The encoder whose weights it shares: the very same parameters, not a copy.
    """

    def __init__(self, gcn: GCN) -> None:
        super().__init__()
        self.layers = gcn.layers
        self.out_features = gcn.out_features

    def forward(self, x: Tensor | SparseMatrix, mask: Tensor | None = None) -> Tensor:
        """H, n × d."""
        return _through(self.layers, x, None, mask)


def _through(
    layers: nn.ModuleList, x: Tensor | SparseMatrix, adjacency: SparseMatrix | None, mask: Tensor | None
) -> Tensor:
    """One layer after the other; only the first sees X, and so the mask."""
    h: Tensor = layers[0](x, adjacency, mask)
    for layer in layers[1:]:
        h = layer(h, adjacency)
    return h
