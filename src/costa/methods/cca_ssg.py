"""CCA-SSG: two views agree, while the columns of each stay uncorrelated.

Zhang, Wu, Yan, Wipf, Yu: From Canonical Correlation Analysis to Self-supervised Graph Neural Networks, NeurIPS 2021.

    Z₁ = f(X₁, A₁), Z₂ = f(X₂, A₂)       two views, edges dropped and attributes masked at the same rates
    Z̃ = (Z − μ(Z)) / (σ(Z)·√n)           column by column
    L = ‖Z̃₁ − Z̃₂‖²_F + λ (‖Z̃₁ᵀZ̃₁ − I‖²_F + ‖Z̃₂ᵀZ̃₂ − I‖²_F)

It uses no head, target network or negatives: the vectors are the encoder's output. Defaults are those of the
authors' code (512 wide, ReLU between the layers, a linear last one, rates of 0.2, learning rate 1e-3, no weight decay,
100 epochs, λ = 2e-3, which is their 1e-3 in the equation's terms). With ``train.parts`` columns are standardised over
the nodes of a group of parts.

What differs from their code: it minimises −tr(Z̃₁ᵀZ̃₂), half of the first term up to a constant, so its λ weighs twice as
much as the equation's, which is used here; it drops the two directions of an edge independently, while here they are
dropped together. Its MLP in place of the GCN (Coauthor-CS) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.methods.building import Encoder, build_encoder, build_features
from costa.methods.encoding import TwoViews
from costa.nn import Preparation, cca_loss


@dataclass(frozen=True)
class CCASSGSettings:
    """Settings of ``cca-ssg``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.Encoder = field(default_factory=partial(settings.Encoder, width=512))
    augment: settings.Augment = field(default_factory=partial(settings.Augment, edge_rate=(0.2,), mask_rate=(0.2,)))
    loss: settings.Decorrelation = field(default_factory=partial(settings.Decorrelation, weight=2e-3))
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=100))


class CCASSG(TwoViews):
    """CCA-SSG with the shared GCN.

    Args:
        encoder: f, see :class:`costa.nn.GCN` and :class:`costa.nn.Hops`.
        preparation: Feature scaling and reduction.
        augment: Rates of the graph augmentation of each view.
        weight: λ.
    """

    name = "cca-ssg"
    title = "CCA-SSG"
    paper = "Zhang et al., From Canonical Correlation Analysis to Self-supervised Graph Neural Networks, NeurIPS"
    year = 2021
    Settings = CCASSGSettings
    linear = True

    def __init__(self, encoder: Encoder, preparation: Preparation, augment: settings.Augment, weight: float) -> None:
        super().__init__(encoder, preparation, augment)
        self.weight = weight

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> CCASSG:
        """CCA-SSG from its settings."""
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(settings.encoder, preparation.out_features, generator, linear=cls.linear)
        return cls(encoder, preparation, settings.augment, settings.loss.weight)

    def loss(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """‖Z̃₁ − Z̃₂‖² + λ (‖Z̃₁ᵀZ̃₁ − I‖² + ‖Z̃₂ᵀZ̃₂ − I‖²) of two fresh views."""
        return cca_loss(*self.encode_both(graph, rows), self.weight)
