"""What is done to X before the encoder: scaling, then reduction."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from costa.nn.reduction import FeatureReduction
from costa.nn.scaling import FeatureScaling
from costa.nn.sparse import Features


class Preparation(NamedTuple):
    """Both steps; a method holds them as its modules ``scaling`` and ``reduction``, which are saved with it."""

    scaling: FeatureScaling
    reduction: FeatureReduction

    @property
    def out_features(self) -> int:
        """The columns that the encoder reads."""
        return self.reduction.out_features

    def fit(self, x: Tensor) -> None:
        """Learn both steps from a graph's features, dense or CSR."""
        self.scaling.fit(x)
        if self.reduction.reduces:
            self.reduction.fit(self.scaling(x))

    def apply(self, x: Tensor) -> Features:
        """A graph's features, scaled and reduced, on the device of ``x``."""
        features: Features = self.reduction(self.scaling(x))
        return features
