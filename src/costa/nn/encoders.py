"""Encoders: the paper's two-layer GCN, and the MLP that shares its weights.

GCN_l(X, A) = σ(D̂^-½ Â D̂^-½ X W_l),    f(X, A) = GCN₂(GCN₁(X, A), A),    Â = A + I.

Beyond the paper, K steps of personalised PageRank may follow (Gasteiger et al., Predict then Propagate, 2019):

H⁽⁰⁾ = f(X, A),    H⁽ᵗ⁺¹⁾ = (1 − α) D̂^-½ Â D̂^-½ H⁽ᵗ⁾ + α H⁽⁰⁾,

for a node to see far with few weights. K = 0 is the paper's. Where the layers look at each node alone,
H⁽⁰⁾ = MLP(X), and only the steps look along the edges, it is their APPNP.

Weights may be stacked along a first dimension, S initialisations at once (:func:`costa.methods.base.stack`); H is then
S × n × d.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from costa.nn.rows import take_rows
from costa.nn.sparse import SparseMatrix


class PReLU(nn.PReLU):
    """max(0, h) + a·min(0, h), one a for each of a stack."""

    def forward(self, input: Tensor) -> Tensor:
        """σ of … × n × d."""
        if self.weight.dim() == 1:
            return super().forward(input)
        return torch.where(input > 0, input, self.weight[..., None] * input)


class RReLU(nn.LeakyReLU):
    """max(0, h) + a·min(0, h) with a = (1/8 + 1/3)/2, the mean of the slopes that the randomised ReLU draws.

    ``torch.nn.functional.rrelu`` does the same unless it is told that it is training; and nothing random is drawn.
    """

    def __init__(self) -> None:
        super().__init__((1 / 8 + 1 / 3) / 2)


class BatchNorm(nn.BatchNorm1d):
    """Every column to mean 0 and variance 1 over the rows, then scaled and shifted; each of a stack by itself."""

    def forward(self, input: Tensor) -> Tensor:
        """The normalised rows; in training the running mean and variance follow."""
        # a stack is so many more columns; views of the buffers, so that they are updated in place
        beside = input.movedim(-2, 0)
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        mean, variance, weight, bias = (None if part is None else part.flatten() for part in state)
        flat = F.batch_norm(beside.flatten(1), mean, variance, weight, bias, self.training, 0.1, self.eps)
        return flat.view(beside.shape).movedim(0, -2)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "prelu": PReLU,
    "rrelu": RReLU,
    "none": nn.Identity,
}


class Layer(nn.Module):
    """X W + b, what the graph does to it, normalisation, σ. Glorot weights, zero bias."""

    def __init__(
        self, in_features: int, out_features: int, activation: str, norm: str, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.norm = BatchNorm(out_features) if norm == "batch" else None
        self.activation = ACTIVATIONS[activation]()
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def forward(
        self,
        x: Tensor | SparseMatrix,
        adjacency: SparseMatrix | None,
        mask: Tensor | None = None,
        order: Tensor | None = None,
    ) -> Tensor:
        """One layer; without an adjacency, the MLP's."""
        # X·diag(m)·W = X·(diag(m)·W): masked attributes are masked rows of W, and X is never touched.
        weight = self.weight if mask is None else mask[..., None] * self.weight
        h = x @ weight
        if order is not None:
            # rows of X·W instead of X's: a sparse X, too, stays as it is
            h = take_rows(h, order)
        h = (h if adjacency is None else adjacency @ h) + self.bias[..., None, :]
        h = h if self.norm is None else self.norm(h)
        out: Tensor = self.activation(h)
        return out


class GCN(nn.Module):
    r"""The paper's encoder: layers H ← σ(D̂^-½ Â D̂^-½ H W + b).

    Args:
        in_features: Columns of X.
        widths: Width of each layer; two in the paper.
        activation: ``relu``, ``elu``, ``prelu`` or ``rrelu``; after every layer, the last too.
        norm: ``none``, or ``batch`` for BatchNorm before each activation.
        linear: Whether the last layer is without both.
        alone: Whether the layers look at each node alone, H ← σ(H W + b): all of the graph is then in the steps.
        steps: K, steps of personalised PageRank after the layers.
        teleport: α, how much of H⁽⁰⁾ each of them takes up again.
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
        linear: bool = False,
        alone: bool = False,
        steps: int = 0,
        teleport: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.alone, self.steps, self.teleport = alone, steps, teleport
        sizes = [in_features, *widths]
        self.out_features = sizes[-1]
        after = [(activation, norm)] * len(widths)
        if linear:
            after[-1] = ("none", "none")
        self.layers = nn.ModuleList(
            Layer(*size, *each, generator) for size, each in zip(itertools.pairwise(sizes), after, strict=True)
        )

    def forward(
        self,
        x: Tensor | SparseMatrix,
        adjacency: SparseMatrix,
        mask: Tensor | None = None,
        *,
        mixed: bool = False,
        order: Tensor | None = None,
    ) -> Tensor:
        """H, n × d.

        Args:
            x: The features.
            adjacency: Normalised.
            mask: Multiplies the columns of X (0 hides an attribute).
            mixed: Whether ``x`` is adjacency @ X already; never where the layers look at each node alone.
            order: n indices, for the encoder to read X[order]; of S stacked ones, S × n. ``x`` is not mixed then.
        """
        along = None if self.alone else adjacency
        h = _through(self.layers, x, None if mixed else along, along, mask, order)
        return diffuse(h, adjacency, self.steps, self.teleport)


def diffuse(h: Tensor, adjacency: SparseMatrix, steps: int, teleport: float) -> Tensor:
    """H after K steps of personalised PageRank, H ← (1 − α) D̂^-½ Â D̂^-½ H + α H⁽⁰⁾."""
    start = h
    for _ in range(steps):
        h = torch.lerp(adjacency @ h, start, teleport)
    return h


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
        return _through(self.layers, x, None, None, mask)


def _through(
    layers: nn.ModuleList,
    x: Tensor | SparseMatrix,
    first: SparseMatrix | None,
    others: SparseMatrix | None,
    mask: Tensor | None,
    order: Tensor | None = None,
) -> Tensor:
    """One layer after the other, each with its adjacency; only the first sees X, and so the mask and the order."""
    h: Tensor = layers[0](x, first, mask, order)
    for layer in layers[1:]:
        h = layer(h, others)
    return h
