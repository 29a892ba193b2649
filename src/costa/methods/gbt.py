"""Graph Barlow Twins: each column of one view's embedding correlates with the same column of the other, and no other.

Bielak, Kajdanowicz, Chawla: Graph Barlow Twins: A self-supervised representation learning framework for graphs,
Knowledge-Based Systems 2022 (first 2021).

    Z₁ = f(X₁, A₁), Z₂ = f(X₂, A₂)       two views, edges dropped and attributes masked at the same rates
    C = Z̃₁ᵀ Z̃₂                           the cross-correlation of their columns, d × d
    L = Σᵢ (1 − Cᵢᵢ)² + λ Σ_{i≠j} Cᵢⱼ²     λ = 1/d

It uses no head, target network or negatives: the vectors are the encoder's output. Defaults are those the
authors share between datasets (BatchNorm and PReLU after the first layer, which is twice as wide, a linear second one,
weight decay 1e-5, 1000 epochs) and their rates and learning rate for WikiCS. With ``train.parts`` C is that of the
nodes in a group of parts, an estimate of the graph's.

What differs from their code: the learning rate is constant, without warm-up and cosine decay; Adam's weight decay is
in the gradient (theirs is AdamW); BatchNorm's running averages move by 0.1 instead of 0.01 a step; both directions of
an edge are dropped together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.methods.building import build_encoder, build_features
from costa.methods.encoding import TwoViews
from costa.nn import barlow_twins_loss


@dataclass(frozen=True)
class GraphBarlowTwinsSettings:
    """Settings of ``gbt``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.Encoder = field(
        default_factory=partial(settings.Encoder, width=256, hidden=512, activation="prelu", norm="batch")
    )
    augment: settings.Augment = field(default_factory=partial(settings.Augment, edge_rate=(0.5,), mask_rate=(0.1,)))
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=1000, lr=5e-4, weight_decay=1e-5))


class GraphBarlowTwins(TwoViews):
    """Graph Barlow Twins with the shared GCN."""

    name = "gbt"
    title = "Graph Barlow Twins"
    paper = (
        "Bielak et al., Graph Barlow Twins: A self-supervised representation learning framework for graphs, "
        "Knowledge-Based Systems"
    )
    year = 2022
    Settings = GraphBarlowTwinsSettings
    linear = True

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> GraphBarlowTwins:
        """Graph Barlow Twins from its settings."""
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(settings.encoder, preparation.out_features, generator, linear=cls.linear)
        return cls(encoder, preparation, settings.augment)

    def loss(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """Σᵢ (1 − Cᵢᵢ)² + (1/d) Σ_{i≠j} Cᵢⱼ² of two fresh views."""
        return barlow_twins_loss(*self.encode_both(graph, rows))
