"""What methods share that compare two augmented views of a graph through one encoder."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.methods.base import EncoderMethod, GradientMethod
from costa.nn import GCN, FeatureScaling


class TwoViews(EncoderMethod, GradientMethod):
    """H₁ = f(X₁, A₁) and H₂ = f(X₂, A₂); what the loss makes of them is the method's own.

    Args:
        encoder: f, see :class:`costa.nn.GCN`.
        scaling: What is done to X first.
        augment: Rates of the graph augmentation of each view.
    """

    views = 2

    def __init__(self, encoder: GCN, scaling: FeatureScaling, augment: settings.Augment) -> None:
        super().__init__(encoder, scaling)
        self.augment = augment

    def encode_both(self, graph: Data) -> tuple[Tensor, Tensor]:
        """H₁ and H₂, each of fresh draws."""
        inputs = self.inputs(graph)
        return self.encode_view(inputs, self.augment, 0), self.encode_view(inputs, self.augment, 1)

    @property
    def capturable(self) -> bool:
        """Rewiring waits for the GPU to say how many edges there are."""
        return not self.augment.rewires

    @property
    def stackable(self) -> bool:
        """As capturable."""
        return self.capturable
