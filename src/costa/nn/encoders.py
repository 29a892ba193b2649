"""The encoder: the paper's two-layer GCN, or APPNP.

GCN_l(X, A) = σ(D̂^-½ Â D̂^-½ X W_l),    f(X, A) = GCN₂(GCN₁(X, A), A),    Â = A + I.

Beyond the paper, K steps of personalised PageRank may follow (Gasteiger et al., Predict then Propagate, 2019):

H⁽⁰⁾ = f(X, A),    H⁽ᵗ⁺¹⁾ = (1 − α) D̂^-½ Â D̂^-½ H⁽ᵗ⁾ + α H⁽⁰⁾,

so that a node sees far with few weights. K = 0 is the paper's encoder. If the layers look at each node alone,
H⁽⁰⁾ = MLP(X), and only the steps use the edges, this is their APPNP.

Without gradients no layer's H has to be in memory as a whole, since a column of H_l comes from one column of S_l:

    S₁ = X W₁,    H_l[:, c] = σ(norm(D̂^-½ Â D̂^-½ S_l[:, c] + b_l[c])),    S_{l+1} = Σ_c H_l[:, c] W_{l+1}[c, :]

over blocks c of columns (:meth:`GCN.by_columns`). S₁ is made block by block, and the last H and its steps of PageRank
take the place of the last S. Two layers so need one array of n × d and a few of n × |c|, exactly and in any mode of
BatchNorm, whose moments are those of a column.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from costa.nn.norm import BatchNorm
from costa.nn.sparse import SparseMatrix


class RReLU(nn.LeakyReLU):
    """max(0, h) + a·min(0, h) with a = (1/8 + 1/3)/2, the mean slope of the randomised ReLU; nothing is drawn.

    ``torch.nn.functional.rrelu`` computes the same with ``training=False``.
    """

    def __init__(self) -> None:
        super().__init__((1 / 8 + 1 / 3) / 2)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "prelu": nn.PReLU,
    "rrelu": RReLU,
    "none": nn.Identity,
}


class Layer(nn.Module):
    """σ(norm(A X W + b)), or σ(norm(X W + b)) without a graph. Glorot weights, zero bias."""

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
        """The layer's H; without an adjacency it looks at each node alone."""
        # X·diag(m)·W = X·(diag(m)·W): masked attributes are masked rows of W, and X is never touched.
        weight = self.weight if mask is None else mask[:, None] * self.weight
        h = x @ weight
        if order is not None:
            # the rows of X·W, not of X: a sparse X stays as it is
            h = h.index_select(0, order)
        h = (h if adjacency is None else adjacency @ h) + self.bias
        h = h if self.norm is None else self.norm(h)
        out: Tensor = self.activation(h)
        return out

    def of_columns(self, product: Tensor, adjacency: SparseMatrix | None, columns: slice) -> Tensor:
        """These columns of the layer's H from those of X·W; BatchNorm's running moments are read, never changed."""
        h = (product if adjacency is None else adjacency @ product) + self.bias[columns]
        if (norm := self.norm) is not None:
            mean, var = (None, None) if norm.training else (norm.running_mean, norm.running_var)
            mean, var = (None if moment is None else moment[columns] for moment in (mean, var))
            h = F.batch_norm(h, mean, var, norm.weight[columns], norm.bias[columns], norm.training, eps=norm.eps)
        out: Tensor = self.activation(h)
        return out


class GCN(nn.Module):
    r"""The paper's encoder: layers H ← σ(D̂^-½ Â D̂^-½ H W + b).

    Args:
        in_features: Columns of X.
        widths: Width of each layer; two in the paper.
        activation: ``relu``, ``elu``, ``prelu`` or ``rrelu``; after every layer, including the last.
        norm: ``none``, or ``batch`` for BatchNorm before each activation.
        linear: Whether the last layer has neither.
        alone: Whether the layers look at each node alone, H ← σ(H W + b), and only the steps use the graph.
        steps: K, steps of personalised PageRank after the layers.
        teleport: α, the weight of H⁽⁰⁾ in each step.
        generator: Draws the initial weights; torch's global generator by default.

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
        self.widths = tuple(widths)
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
            adjacency: The normalised adjacency.
            mask: Multiplies the columns of X (0 hides an attribute).
            mixed: Whether ``x`` is already adjacency @ X; never if the layers look at each node alone.
            order: n indices, to read X[order]; not with a mixed ``x``.
        """
        in_layers = None if self.alone else adjacency
        first, *others = self.layers
        h: Tensor = first(x, None if mixed else in_layers, mask, order)
        for layer in others:
            h = layer(h, in_layers)
        return diffuse(h, adjacency, self.steps, self.teleport)

    @torch.no_grad()
    def by_columns(
        self, x: Tensor | SparseMatrix, adjacency: SparseMatrix, count: int, *, mixed: bool = False
    ) -> Tensor:
        """The same H without gradients, ``count`` columns of a layer at a time, see above; equal up to rounding."""
        layers = [layer for layer in self.layers if isinstance(layer, Layer)]
        s: Tensor | None = None
        for index, layer in enumerate(layers):
            after = layers[index + 1] if index + 1 < len(layers) else None
            in_layer = None if self.alone or (mixed and s is None) else adjacency
            if after is not None or s is None:
                out = layer.weight.new_zeros(x.shape[0], self.widths[index if after is None else index + 1])
            for first in range(0, self.widths[index], count):
                columns = slice(first, first + count)
                product = x @ layer.weight[:, columns].contiguous() if s is None else s[:, columns].contiguous()
                h = layer.of_columns(product, in_layer, columns)
                if after is None:
                    out[:, columns] = diffuse(h, adjacency, self.steps, self.teleport)
                else:
                    out.addmm_(h, after.weight[columns])
            s = out
        return out


def diffuse(h: Tensor, adjacency: SparseMatrix, steps: int, teleport: float) -> Tensor:
    """H after K steps of personalised PageRank, H ← (1 − α) D̂^-½ Â D̂^-½ H + α H⁽⁰⁾."""
    start = h
    for _ in range(steps):
        h = torch.lerp(adjacency @ h, start, teleport)
    return h
