"""The encoder that needs the edges once: hops of X, computed before training, then one layer a hop.

    Bₚ = Âᵖ X for the chosen powers p, and B_R = K steps of personalised PageRank from X    (Â is the normalised A + I)
    C_b = σ(norm(B_b W_b))                              the code of a hop; H = [C_1 … C_m] is what training contrasts

A vector holds the codes and, beside them, columns of the hops themselves, so that a classifier finds a node's own
features, its neighbours' and its region's:

    z = [a·c(C_1)/√m  …  a·c(C_m)/√m | w·(v_0·u(X), v_1·u(B_1), … v_m·u(B_m)) V]

u scales a row to length one, c subtracts the mean of the training graph's codes first, and V keeps the leading
``columns`` directions. No block drowns another: v_b = 1/√(m + 1), and a = 1. Where edges join nodes at random, or
unlike nodes (:mod:`costa.nn.smoothness`), the hops say little about a node, and its own features count instead:
v_0 = 1, the other v are 0, and a is :data:`DOUBT`. Means, scales and V are fitted to the training graph and saved with
the model. A zero row of a hop has a zero code.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from costa.nn.encoders import Layer, diffuse
from costa.nn.reduction import right_singular_vectors
from costa.nn.sparse import SparseMatrix

DOUBT = 0.25
"""The weight of the codes where the edges do not join nodes that are alike."""
ALIKE = 2.0
"""The edges join nodes that are alike if their z is at least this: chance exceeds it once in forty graphs."""
SAMPLE = 4096
"""The most rows, evenly spaced, that V is fitted to."""
ROWS = 8192
"""Rows that are embedded at a time."""


def propagate(x: Tensor, adjacency: SparseMatrix, powers: Sequence[int], steps: int, teleport: float) -> list[Tensor]:
    """X, then Âᵖ X for each power p, then X after K steps of personalised PageRank if K > 0.

    >>> from costa.nn import Adjacency
    >>> pair = Adjacency(torch.tensor([[0, 1], [1, 0]]), num_nodes=2).normalized()
    >>> x, once = propagate(torch.tensor([[1.], [0.]]), pair, (1,), 0, 0.1)
    >>> [round(value, 4) for value in once.flatten().tolist()]
    [0.5, 0.5]
    """
    hop, hops = x, {0: x}
    for power in range(1, max(powers, default=0) + 1):
        hop = adjacency @ hop
        if power in powers:
            hops[power] = hop
    blocks = [x, *(hops[power] for power in powers)]
    return [*blocks, diffuse(x, adjacency, steps, teleport)] if steps else blocks


class Hops(nn.Module):
    """One layer for each hop, and the columns of the hops that join the vectors.

    Args:
        in_features: Columns of X, and so of every hop.
        width: Columns of one hop's code.
        powers: The powers p of Â whose hops are encoded.
        steps: K, steps of personalised PageRank; 0 leaves that hop out.
        teleport: α of PageRank.
        activation: ``relu``, ``elu``, ``prelu`` or ``rrelu``.
        norm: ``none``, or ``batch`` for BatchNorm before the activation.
        linear: Whether the layers have neither.
        columns: Columns of X and its hops that join the vector; 0 leaves them out.
        weight: w, their weight.
        generator: Draws the initial weights; torch's global generator by default.

    >>> encoder = Hops(8, 4, powers=(1, 2), columns=6, generator=torch.Generator().manual_seed(0))
    >>> blocks = [torch.randn(10, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    >>> encoder(blocks).shape
    torch.Size([10, 8])
    >>> encoder.fit(blocks, smoothness=5.0)
    >>> encoder.settle(blocks)
    >>> encoder.vectors(blocks).shape
    torch.Size([10, 14])
    """

    scale: Tensor
    """1/standard deviation of each encoded hop."""
    mean: Tensor
    """Mean code of each hop, m × width."""
    basis: Tensor
    """V."""
    shares: Tensor
    """a, then v_0 … v_m."""

    def __init__(
        self,
        in_features: int,
        width: int,
        *,
        powers: Sequence[int] = (1, 4),
        steps: int = 0,
        teleport: float = 0.1,
        activation: str = "prelu",
        norm: str = "batch",
        linear: bool = False,
        columns: int = 0,
        weight: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.powers, self.steps, self.teleport, self.weight = tuple(powers), steps, teleport, weight
        hops = len(self.powers) + (steps > 0)
        self.out_features = hops * width
        after = ("none", "none") if linear else (activation, norm)
        self.layers = nn.ModuleList(Layer(in_features, width, *after, generator) for _ in range(hops))
        columns = min(columns, (hops + 1) * in_features)
        self.vector_width = self.out_features + columns
        self.register_buffer("scale", torch.ones(hops))
        self.register_buffer("mean", torch.zeros(hops, width))
        self.register_buffer("shares", torch.ones(hops + 2))
        self.register_buffer("basis", torch.zeros((hops + 1) * in_features, columns))

    def forward(self, blocks: Sequence[Tensor], mask: Tensor | None = None, kept: Tensor | None = None) -> Tensor:
        """H, the codes side by side.

        Args:
            blocks: X and its hops from :func:`propagate`, or some of their rows.
            mask: Multiplies the columns of every hop (0 hides one).
            kept: Multiplies each hop's code (0 leaves the hop out).
        """
        codes = self._codes(blocks, mask)
        if kept is not None:
            codes = [code * share for code, share in zip(codes, kept, strict=True)]
        return torch.cat(codes, 1)

    def _codes(self, blocks: Sequence[Tensor], mask: Tensor | None = None) -> list[Tensor]:
        # scaling W in the place of the hop's rows is cheaper
        return [
            layer(block, None, scale if mask is None else scale * mask)
            for block, layer, scale in zip(blocks[1:], self.layers, self._scales(blocks[0]), strict=True)
        ]

    def _scales(self, like: Tensor) -> list[Tensor]:
        return list(self.scale[:, None].expand(-1, like.shape[1]))

    @torch.no_grad()
    def fit(self, blocks: Sequence[Tensor], smoothness: float) -> None:
        """Fit scales, shares and V to X and its hops, before training."""
        hops = len(self.layers)
        spread = torch.stack([block.std(correction=0) for block in blocks[1:]])
        self.scale.copy_(torch.where(spread > 0, 1 / spread, 1))
        alike = smoothness >= ALIKE
        self.shares.fill_((hops + 1) ** -0.5 if alike else 0.0)
        self.shares[0] = 1.0 if alike else DOUBT
        self.shares[1] = self.shares[1] if alike else 1.0
        if self.basis.shape[1]:
            some = slice(None, None, max(1, -(-len(blocks[0]) // SAMPLE)))
            sample = self._side_by_side([block[some] for block in blocks])
            self.basis.copy_(right_singular_vectors(sample, self.basis.shape[1]))

    def take_over(self, other: Hops) -> None:
        """What another seed has fitted."""
        for name in ("scale", "shares", "basis"):
            getattr(self, name).copy_(getattr(other, name))

    @torch.no_grad()
    def settle(self, blocks: Sequence[Tensor]) -> None:
        """After training: BatchNorm's moments and the codes' means from all rows, unmasked."""
        scales = self._scales(blocks[0])
        for layer, block, scale in zip(self.layers, blocks[1:], scales, strict=True):
            assert isinstance(layer, Layer)
            if layer.norm is not None:
                hidden = block @ (scale[:, None] * layer.weight) + layer.bias
                variance, mean = torch.var_mean(hidden, dim=0, correction=0)
                layer.norm.get_buffer("running_mean").copy_(mean)
                layer.norm.get_buffer("running_var").copy_(variance)
        training = self.training
        self.eval()
        for code, mean in zip(self._codes(blocks), self.mean, strict=True):
            mean.copy_(code.mean(0))
        self.train(training)

    @torch.no_grad()
    def vectors(self, blocks: Sequence[Tensor]) -> Tensor:
        """z of every row, in eval mode."""
        training = self.training
        self.eval()
        parts = [self._vectors(rows) for rows in zip(*(block.split(ROWS) for block in blocks), strict=True)]
        self.train(training)
        return torch.cat(parts)

    def _vectors(self, blocks: Sequence[Tensor]) -> Tensor:
        share = self.shares[0] * len(self.layers) ** -0.5
        codes = [
            share * F.normalize(code - mean) * (block != 0).any(1, keepdim=True)
            for code, mean, block in zip(self._codes(blocks), self.mean, blocks[1:], strict=True)
        ]
        if not self.basis.shape[1]:
            return torch.cat(codes, 1)
        return torch.cat([*codes, self.weight * (self._side_by_side(blocks) @ self.basis)], 1)

    def _side_by_side(self, blocks: Sequence[Tensor]) -> Tensor:
        """v_0·u(X), v_1·u(B_1), …"""
        return torch.cat([v * F.normalize(block) for v, block in zip(self.shares[1:], blocks, strict=True)], 1)
