"""The bias of an augmentation: how far the mean of a node's augmented vectors lies from its own vector.

    Bias(T(xᵢ)) = ‖E[x̃ᵢ] − xᵢ‖ ≈ ‖m̄ᵢ − xᵢ‖,    m̄ᵢ the mean of T draws of x̃ᵢ.

Even an augmentation without bias does not give 0 here: E‖m̄ᵢ − xᵢ‖² = bias²ᵢ + tr Varᵢ/T, so there is a noise floor of
√(tr Varᵢ/T). Without it, bias²ᵢ = ‖m̄ᵢ − xᵢ‖² − tr Varᵢ/T is right on average; if there is no bias, it scatters around 0
and can be negative. Each augmentation is compared with Gaussian noise of equal strength, E‖x̃ᵢ − xᵢ‖².

Draws are summed one by one, so memory does not grow with their number. The encoder is any callable
``(x, adjacency, mask)`` → H, such as :class:`costa.nn.GCN`.

Example:
    >>> import torch
    >>> from costa.nn import GCN
    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> gcn = GCN(4, (8, 2), generator=torch.Generator().manual_seed(0))
    >>> subject = Subject(gcn, torch.rand(3, 4, generator=torch.Generator().manual_seed(1)), edges)
    >>> bias = measure(subject.draw(edge_rate=0.3), subject.h, draws=100, generator=torch.Generator().manual_seed(2))
    >>> bias.squared.shape
    torch.Size([3])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from costa.augment.sketches import Sketch
from costa.augment.topology import edge_ids, keep_mask, mask_attributes
from costa.errors import InputError
from costa.nn import Adjacency, SparseMatrix

Encoder: TypeAlias = Callable[[Tensor | SparseMatrix, SparseMatrix, Tensor | None], Tensor]
"""``(x, adjacency, mask)`` → H, from features, the normalised adjacency and factors for the columns of X (or None)."""
Draw: TypeAlias = Callable[[torch.Generator], Tensor]
"""Draws an augmentation: x̃ of all nodes, n × d."""


@dataclass(frozen=True)
class Bias:
    """What T draws measure about each row x of a matrix; n numbers each, float64, on the CPU.

    Attributes:
        draws: T.
        width: d, the number of columns.
        norm: ‖x‖.
        distance: ‖m̄ − x‖, the paper's estimate, which includes the noise floor.
        variance: tr Var, the sum of the columns' variances (unbiased).
    """

    draws: int
    width: int
    norm: Tensor
    distance: Tensor
    variance: Tensor

    @property
    def floor(self) -> Tensor:
        """The noise floor √(tr Var/T): about the ``distance`` of an augmentation without bias."""
        return (self.variance / self.draws).sqrt()

    @property
    def squared(self) -> Tensor:
        """bias² = ‖m̄ − x‖² − tr Var/T; without bias it is 0 on average, and can be negative."""
        return self.distance.square() - self.variance / self.draws

    @property
    def strength(self) -> Tensor:
        """E‖x̃ − x‖² = bias² + tr Var, over the draws: how far an augmentation moves a vector."""
        return self.distance.square() + self.variance * (self.draws - 1) / self.draws

    @property
    def ratio(self) -> Tensor:
        """bias²/tr Var: systematic against random movement; 0 if nothing moved, infinite if nothing is random."""
        return torch.where(self.strength > 0, self.squared / self.variance, 0.0)

    @property
    def relative(self) -> Tensor:
        """√max(bias², 0)/‖x‖; NaN for a vector of length 0."""
        return self.squared.clamp(min=0).sqrt() / torch.where(self.norm > 0, self.norm, math.nan)

    @property
    def relative_distance(self) -> Tensor:
        """‖m̄ − x‖/‖x‖, including the noise floor; NaN for a vector of length 0."""
        return self.distance / torch.where(self.norm > 0, self.norm, math.nan)

    def exceeds(self, errors: float = 3.0) -> Tensor:
        """Whether bias² exceeds 0 by more than this many standard errors.

        Without bias the estimate's variance is 2·tr(Σ²)/(T(T − 1)), with Σ the covariance of x̃. As tr(Σ²) ≤ (tr Σ)²,
        its standard error is at most √2·tr Var/√(T(T − 1)). That bound is reached if all columns vary together and is
        larger than the error otherwise, so the test is conservative.
        """
        error = math.sqrt(2 / (self.draws * (self.draws - 1))) * self.variance
        return self.squared > errors * error


def measure(draw: Draw, x: Tensor, draws: int, generator: torch.Generator) -> Bias:
    """The bias of each row.

    Args:
        draw: Draws x̃, n × d.
        x: The vectors without augmentation, n × d.
        draws: T, at least 2.
        generator: The source of randomness.
    """
    return bias_of(*add_up(draw, x, draws, generator), x, draws)


@torch.no_grad()
def add_up(draw: Draw, x: Tensor, draws: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """D = Σ(x̃ − x), n × d, and S = Σ‖x̃ − x‖², n, over the draws, in float64; the arguments are :func:`measure`'s.

    Differences are taken before summing, so that a small bias of a long vector is not lost to rounding.
    """
    if draws < 2:
        raise InputError(f"a bias needs at least two draws, not {draws}; raise the number of draws.")
    total = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    squares = torch.zeros(x.shape[0], dtype=torch.float64, device=x.device)
    for _ in range(draws):
        difference = draw(generator) - x
        total += difference
        squares += difference.square().sum(1)
    return total, squares


def bias_of(total: Tensor, squares: Tensor, x: Tensor, draws: int) -> Bias:
    """The bias from the sums: ‖m̄ − x‖ = ‖D‖/T and tr Var = (S − ‖D‖²/T)/(T − 1)."""
    length = torch.linalg.vector_norm(total, dim=1)
    variance = ((squares - length.square() / draws) / (draws - 1)).clamp(min=0)
    norm = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)
    return Bias(draws, x.shape[1], norm.cpu(), (length / draws).cpu(), variance.cpu())


class Subject:
    """An encoder and a graph whose augmentations are drawn many times.

    Args:
        encoder: ``(x, adjacency, mask)`` → H, in evaluation mode.
        x: Features, n × f, as the encoder reads them (scaled; sparse or dense).
        edge_index: 2 × e, both directions of every edge.
        edge_weight: e weights, or None.

    Attributes:
        h: H of the graph without augmentation.
    """

    def __init__(
        self, encoder: Encoder, x: Tensor | SparseMatrix, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> None:
        n = x.shape[0]
        self.encoder = encoder
        self.x = x
        self._layout = Adjacency(edge_index, n, edge_weight)
        self._ids = edge_ids(edge_index, n)
        self._adjacency = self._layout.normalized()
        with torch.no_grad():
            self.h = encoder(x, self._adjacency, None)

    def draw(self, *, edge_rate: float = 0.0, mask_rate: float = 0.0, rescale: bool = False) -> Draw:
        """The augmentation that drops edges and masks attributes, for :func:`measure`.

        Args:
            edge_rate: The probability that an edge, both directions together, is dropped.
            mask_rate: The probability that an attribute is masked, for all nodes at once.
            rescale: Divide unmasked attributes by 1 − ``mask_rate``, so that the mean of the masked X is X.
        """

        def one(generator: torch.Generator) -> Tensor:
            adjacency, mask = self._adjacency, None
            if edge_rate:
                adjacency = self._layout.normalized(keep_mask(self._ids, edge_rate, generator))
            if mask_rate:
                mask = mask_attributes(
                    self.x.shape[1], mask_rate, generator=generator, device=self.h.device, rescale=rescale
                )
            return self.encoder(self.x, adjacency, mask)

        return one


def noise(x: Tensor, std: float) -> Draw:
    """The augmentation x̃ = x + E, E ~ N(0, std²) for each entry."""

    def one(generator: torch.Generator) -> Tensor:
        return x + std * torch.randn(x.shape, generator=generator, device=generator.device, dtype=x.dtype).to(x.device)

    return one


def unit_noise(n: int, width: int, draws: int, generator: torch.Generator) -> Bias:
    """Noise of standard deviation 1 on n vectors of this width, measured like any other augmentation."""
    x = torch.zeros(n, width, device=generator.device)
    return measure(noise(x, 1.0), x, draws, generator)


def noise_of_equal_strength(bias: Bias, unit: Bias) -> Bias:
    """The noise that moves each node as far as an augmentation does: its standard deviation is √(E‖x̃ᵢ − xᵢ‖²/d).

    It is matched node by node, because one strength for all would be too weak for nodes that move far and too strong
    for the others. Noise scales, so one measurement of unit noise serves all strengths.
    """
    if (unit.draws, unit.width) != (bias.draws, bias.width):
        raise InputError(
            f"the noise was measured with {unit.draws} draws of width {unit.width}, but the augmentation with"
            f" {bias.draws} of width {bias.width}; measure both the same way."
        )
    std = (bias.strength / bias.width).sqrt()
    return replace(unit, norm=bias.norm, distance=std * unit.distance, variance=std.square() * unit.variance)


def covariance_bias(sketch: Sketch, h: Tensor, draws: int, generator: torch.Generator) -> Bias:
    """The bias of H̃ᵀH̃ as an estimate of HᵀH, in the Frobenius norm; one number each.

    The rows of a sketch are not nodes, so there is no bias per node; a sketch promises E[H̃ᵀH̃] = HᵀH instead, with the
    centred H if it centres. The noise sketch does not: its bias is n·std²·I.

    Args:
        sketch: A sketch from :mod:`costa.augment.sketches`.
        h: H, n × d.
        draws: T.
        generator: The source of randomness.
    """
    exact = (h - h.mean(0) if sketch.center else h).double()

    def one(source: torch.Generator) -> Tensor:
        h_tilde = sketch.draw(h, source).apply(h)
        return (h_tilde.T @ h_tilde).view(1, -1)

    return measure(one, (exact.T @ exact).view(1, -1), draws, generator)
