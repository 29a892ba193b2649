"""The encoder that needs the edges once: hops of X, computed before training, then one layer a hop.

    B_p = Âᵖ X for the chosen powers p (B_0 = X), and B_R = K steps of personalised PageRank from X, with Â of A + I
    C_b = σ(norm(B_b W_b))                          the code of a hop; H = [C_1 … C_m] is what training contrasts

A vector holds the codes and, beside them, columns of the hops themselves, so that a classifier finds a node's own
features, its neighbours' and its region's:

    z = [v_1·u(C_1) … v_m·u(C_m) | w·(v_1·u(B_1), … v_m·u(B_m)) V]

u scales a row to length one, and V keeps the leading ``columns`` directions. No block drowns another: Σ v² = 1, and all
v are equal but that of X, which is :data:`OWN` of the others': a node's own features are the noisiest hop. Scales and V
are fitted to the training graph and saved with the model. A zero row of a hop has a zero code. Which hops a graph calls
for is decided by :mod:`costa.nn.held_out`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from costa.nn.encoders import Layer, diffuse
from costa.nn.ranks import ALONE, Ranks
from costa.nn.reduction import right_singular_vectors
from costa.nn.sparse import SparseMatrix

OWN = 0.3
"""The weight of X beside other hops."""
SAMPLE = 4096
"""The most rows, evenly spaced, that V is fitted to."""
ROWS = 8192
"""Rows that are embedded at a time."""


class Block(Protocol):
    """The rows of a hop: a tensor, or what reads them from a disk and gives tensors."""

    @property
    def shape(self) -> torch.Size:
        """Rows and columns."""

    @property
    def device(self) -> torch.device:
        """Where rows are."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Tensor: ...

    def split(self, size: int, /) -> Iterable[Tensor]:
        """So many rows at a time."""


def propagate(x: Tensor, adjacency: SparseMatrix, powers: Sequence[int], steps: int, teleport: float) -> list[Tensor]:
    """Âᵖ X for each power p (X itself for 0), then X after K steps of personalised PageRank if K > 0.

    >>> from costa.nn import Adjacency
    >>> pair = Adjacency(torch.tensor([[0, 1], [1, 0]]), num_nodes=2).normalized()
    >>> x, once = propagate(torch.tensor([[1.], [0.]]), pair, (0, 1), 0, 0.1)
    >>> [round(value, 4) for value in once.flatten().tolist()]
    [0.5, 0.5]
    """
    hop, hops = x, {0: x}
    for power in range(1, max(powers, default=0) + 1):
        hop = adjacency @ hop
        if power in powers:
            hops[power] = hop
    blocks = [hops[power] for power in powers]
    return [*blocks, diffuse(x, adjacency, steps, teleport)] if steps else blocks


def block_weights(powers: Sequence[int], steps: int, own: float = OWN) -> Tensor:
    """v: equal weights but ``own`` for X, so that their squares sum to 1.

    >>> block_weights((0,), 0), block_weights((1, 4), 10)
    (tensor([1.]), tensor([0.5774, 0.5774, 0.5774]))
    """
    weights = torch.tensor([*(own if power == 0 else 1.0 for power in powers), *([1.0] if steps else [])])
    return F.normalize(weights, dim=0)


def side_by_side(blocks: Sequence[Tensor], weights: Tensor) -> Tensor:
    """v_1·u(B_1), v_2·u(B_2), …"""
    return torch.cat([v * F.normalize(block) for v, block in zip(weights, blocks, strict=True)], 1)


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
        columns: Columns of the hops that join the vector; 0 leaves them out.
        weight: w, their weight.
        stored: The type that hops on disk are stored as, ``float32`` or ``float16``.
        generator: Draws the initial weights; torch's global generator by default.

    >>> encoder = Hops(8, 4, powers=(1, 2), columns=6, generator=torch.Generator().manual_seed(0))
    >>> blocks = [torch.randn(10, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    >>> encoder(blocks).shape
    torch.Size([10, 8])
    >>> encoder.fit(blocks)
    >>> encoder.settle(blocks)
    >>> encoder.vectors(blocks).shape
    torch.Size([10, 14])
    """

    scale: Tensor
    """1/standard deviation of each encoded hop."""
    basis: Tensor
    """V."""

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
        stored: str = "float32",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.powers, self.steps, self.teleport, self.weight = tuple(powers), steps, teleport, weight
        self.stored = stored
        self.weights = block_weights(powers, steps)
        hops = len(self.weights)
        self.out_features = hops * width
        after = ("none", "none") if linear else (activation, norm)
        self.layers = nn.ModuleList(Layer(in_features, width, *after, generator) for _ in range(hops))
        columns = min(columns, hops * in_features)
        self.vector_width = self.out_features + columns
        self.register_buffer("scale", torch.ones(hops))
        self.register_buffer("basis", torch.zeros(hops * in_features, columns))

    def forward(self, blocks: Sequence[Tensor], mask: Tensor | None = None, kept: Tensor | None = None) -> Tensor:
        """H, the codes side by side.

        Args:
            blocks: The hops from :func:`propagate`, or some of their rows.
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
            for block, layer, scale in zip(blocks, self.layers, self._scales(blocks[0]), strict=True)
        ]

    def _scales(self, like: Block) -> list[Tensor]:
        return list(self.scale[:, None].expand(-1, like.shape[1]))

    @torch.no_grad()
    def fit(self, blocks: Sequence[Block], ranks: Ranks = ALONE) -> None:
        """Fit scales and V to the hops, before training; of several ranks each has the rows that it holds."""
        spread = torch.stack([_spread(block, ranks) for block in blocks])
        self.scale.copy_(torch.where(spread > 0, 1 / spread, 1))
        if self.basis.shape[1]:
            self.basis.copy_(right_singular_vectors(self._sample(blocks, ranks), self.basis.shape[1]))

    def _sample(self, blocks: Sequence[Block], ranks: Ranks) -> Tensor:
        """At most SAMPLE rows of the hops side by side, evenly spaced over all rows, whoever holds them."""
        n = len(blocks[0])
        if ranks.size > 1:
            n = int(ranks.total(torch.tensor(n, dtype=torch.float64, device=ranks.device)))
        first, step = ranks.range(n).start, max(1, -(-n // SAMPLE))
        before = -(-first // step)  # rows of the sample that other ranks hold
        rows = side_by_side([block[before * step - first :: step] for block in blocks], self.weights)
        if ranks.size == 1:
            return rows
        sample = torch.zeros(-(-n // step), rows.shape[1], device=ranks.device)
        sample[before : before + len(rows)] = rows
        return ranks.total(sample).to(rows.device)

    def take_over(self, other: Hops) -> None:
        """What another seed has fitted."""
        for name in ("scale", "basis"):
            getattr(self, name).copy_(getattr(other, name))

    @torch.no_grad()
    def settle(self, blocks: Sequence[Block]) -> None:
        """After training: BatchNorm's moments from all rows, unmasked."""
        for layer, block, scale in zip(self.layers, blocks, self._scales(blocks[0]), strict=True):
            assert isinstance(layer, Layer)
            if layer.norm is not None:
                hidden = _times(block, scale[:, None] * layer.weight) + layer.bias
                mean, variance, _ = layer.norm.moments(hidden)
                layer.norm.get_buffer("running_mean").copy_(mean)
                layer.norm.get_buffer("running_var").copy_(variance)

    def vectors(self, blocks: Sequence[Block]) -> Tensor:
        """z of every row, in eval mode."""
        return torch.cat(list(self.vector_rows(blocks)))

    @torch.no_grad()
    def vector_rows(self, blocks: Sequence[Block]) -> Iterator[Tensor]:
        """The same, some rows at a time; the blocks may be mapped from a disk."""
        training, device = self.training, self.scale.device
        for rows in zip(*(block.split(ROWS) for block in blocks), strict=True):
            self.eval()
            z = self._vectors([block.to(device) for block in rows])
            self.train(training)
            yield z

    def _vectors(self, blocks: Sequence[Tensor]) -> Tensor:
        codes = [
            v * F.normalize(code) * (block != 0).any(1, keepdim=True)
            for v, code, block in zip(self.weights, self._codes(blocks), blocks, strict=True)
        ]
        if not self.basis.shape[1]:
            return torch.cat(codes, 1)
        return torch.cat([*codes, self.weight * (side_by_side(blocks, self.weights) @ self.basis)], 1)


def _spread(block: Block, ranks: Ranks) -> Tensor:
    """The standard deviation of all entries, whoever holds them."""
    if isinstance(block, Tensor) and ranks.size == 1:
        return block.std(correction=0)
    # large entries would leave rounding of their spread; and equal ones, a spread that is not 0
    (first,) = ranks.agree(float(block[:1].flatten()[:1].sum()))
    sums = torch.zeros(3, dtype=torch.float64)
    for rows in block.split(ROWS):
        apart = rows.double() - first
        sums += torch.tensor([rows.numel(), apart.sum(), apart.square().sum()], dtype=torch.float64)
    count, total, squares = ranks.total(sums.to(ranks.device)).cpu()
    return (squares / count - (total / count).square()).clamp(min=0).sqrt().float()


def _times(block: Block, weight: Tensor) -> Tensor:
    return block @ weight if isinstance(block, Tensor) else torch.cat([rows @ weight for rows in block.split(ROWS)])
