"""What methods share that encode augmented views of a graph: fresh draws, by one rate or by centrality."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.augment.topology import drop_probability, keep_mask, mask_attributes, permute_edges, weigh
from costa.methods.base import EncoderMethod, GradientMethod, Inputs
from costa.nn import GCN, Adjacency, FeatureScaling, SparseMatrix

Rate = float | Tensor | None
"""The probability that something is dropped, one for each, or nothing is."""


class Augmenting(EncoderMethod, GradientMethod):
    """H = f(X̃, Ã), edges dropped or rewired and attributes masked; what the loss makes of it is the method's own.

    Args:
        encoder: f, see :class:`costa.nn.GCN`.
        scaling: What is done to X first.
        augment: Rates of the graph augmentation of each view, and by which centrality.
    """

    def __init__(self, encoder: GCN, scaling: FeatureScaling, augment: settings.Augment) -> None:
        super().__init__(encoder, scaling)
        self.augment = augment
        self._rates = self._plain_rates()

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Where no edge is dropped, none is rewired; where nothing is dropped, nothing is central."""
        idle, augment = super().unused(settings), settings.augment
        if not any(augment.edge_rate):
            idle["augment.edges"] = "augment.edge_rate = 0 leaves the edges as they are"
        if not any(augment.edge_rate + augment.mask_rate):
            idle["augment.centrality"] = "augment.edge_rate and mask_rate = 0 drop nothing"
        return idle

    def prepare(self, graph: Data) -> None:
        """Weigh edges and attributes, from X as the graph has it, besides what every encoder prepares."""
        super().prepare(graph)
        if self.augment.centrality == "none":
            return
        edges, attributes = weigh(graph.edge_index, graph.x, self.augment.centrality)
        device = next(self.encoder.parameters()).device

        def probability(weight: Tensor, rate: float) -> Rate:
            return drop_probability(weight, rate).to(device, torch.float32) if rate else None

        self._rates = [(probability(edges, one), probability(attributes, other)) for one, other in self._of_views()]

    def forget(self) -> None:
        """Let go of the probabilities too."""
        super().forget()
        self._rates = self._plain_rates()

    def _plain_rates(self) -> list[tuple[Rate, Rate]]:
        return [(edge_rate or None, mask_rate or None) for edge_rate, mask_rate in self._of_views()]

    def _of_views(self) -> list[tuple[float, float]]:
        """The rates of edges and of attributes for each view; one serves both."""
        return list(zip((self.augment.edge_rate * 2)[:2], (self.augment.mask_rate * 2)[:2], strict=True))

    def encode_view(self, inputs: Inputs, view: int) -> Tensor:
        """H of one augmented view."""
        return self._encode(inputs, *self.draw_view(inputs, view))

    def draw_view(self, inputs: Inputs, view: int) -> tuple[SparseMatrix, Tensor | None]:
        """What an encoder reads of one augmented view: Â, and the mask of the attributes (None: all are there)."""
        edge_rate, mask_rate = self._rates[view]
        adjacency, mask = inputs.adjacency, None
        if edge_rate is not None and self.augment.edges == "drop":
            adjacency = inputs.layout.normalized(keep_mask(inputs.edge_ids, edge_rate, self.generator))
        elif edge_rate is not None:
            n = inputs.layout.num_nodes
            assert isinstance(self.generator, torch.Generator)
            assert isinstance(edge_rate, float)
            edge_index, edge_weight = permute_edges(
                inputs.edge_index, edge_rate, num_nodes=n, edge_weight=inputs.edge_weight, generator=self.generator
            )
            adjacency = Adjacency(edge_index, n, edge_weight).normalized()
        if mask_rate is not None:
            mask = mask_attributes(inputs.x.shape[1], mask_rate, generator=self.generator)
        return adjacency, mask

    @property
    def capturable(self) -> bool:
        """Rewiring waits for the GPU to say how many edges there are."""
        return not self.augment.rewires

    @property
    def stackable(self) -> bool:
        """As capturable."""
        return self.capturable


class TwoViews(Augmenting):
    """H₁ = f(X₁, A₁) and H₂ = f(X₂, A₂)."""

    views = 2

    def encode_both(self, graph: Data) -> tuple[Tensor, Tensor]:
        """H₁ and H₂, each of fresh draws."""
        inputs = self.inputs(graph)
        return self.encode_view(inputs, 0), self.encode_view(inputs, 1)
