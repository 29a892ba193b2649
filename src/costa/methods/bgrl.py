"""BGRL: predict, from one view, the output of a slowly moving copy of the encoder on the other.

Thakoor, Tallec, Azar, Azabou, Dyer, Munos, Veličković, Valko: Large-Scale Representation Learning on Graphs via
Bootstrapping, ICLR 2022.

    H̃₁ = f_θ(X₁, A₁), H̃₂ = f_θ(X₂, A₂)     the online encoder on two views; its output is the embedding
    Z̃₁ = p_θ(H̃₁), Z̃₂ = p_θ(H̃₂)             the predictor, one hidden layer of 512
    H̄₁ = f_φ(X₁, A₁), H̄₂ = f_φ(X₂, A₂)     the target encoder on the same views, without gradient
    L = 2 − 1/n Σᵢ cos(Z̃₁ᵢ, H̄₂ᵢ) − 1/n Σᵢ cos(Z̃₂ᵢ, H̄₁ᵢ)
    φ ← τφ + (1 − τ)θ,  τ = 1 − (1 − τ₀)·(1 + cos(π·t/T))/2     after step t of T: from τ₀ to 1

Defaults are what the authors share between datasets (GCN with BatchNorm and PReLU, a first layer twice as wide, τ₀ =
0.99, weight decay 1e-5) and their rates and learning rate for WikiCS; 1000 epochs are a tenth of theirs. As in their
code, the target starts with its own random weights. With ``train.parts`` both encoders read the same group of parts,
and L is the mean over its nodes: no node is compared with another, so only edges to other groups are missing.

What differs from their code: the learning rate is constant, without warm-up and cosine decay; Adam's weight decay is in
the gradient (theirs is AdamW); BatchNorm's running averages move by 0.1 instead of 0.99 a step; the predictor's first
weights are Glorot's; both directions of an edge are dropped together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.methods.building import Encoder, build_encoder, build_features
from costa.methods.encoding import TwoViews
from costa.nn import Preparation, ProjectionHead, bootstrap_loss


@dataclass(frozen=True)
class BGRLSettings:
    """Settings of ``bgrl``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.Encoder = field(
        default_factory=partial(settings.Encoder, width=256, hidden=512, activation="prelu", norm="batch")
    )
    predictor: settings.Predictor = field(default_factory=settings.Predictor)
    target: settings.Target = field(default_factory=settings.Target)
    augment: settings.Augment = field(
        default_factory=partial(settings.Augment, edge_rate=(0.2, 0.3), mask_rate=(0.2, 0.1))
    )
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=1000, lr=5e-4, weight_decay=1e-5))


class BGRL(TwoViews):
    """BGRL with the shared GCN.

    Args:
        encoder: f_θ, see :class:`costa.nn.GCN` and :class:`costa.nn.Hops`.
        target: f_φ, of the same shape. Its weights become buffers: part of the state, but not of the optimiser.
        predictor: p_θ, see :class:`costa.nn.ProjectionHead`.
        preparation: Feature scaling and reduction.
        augment: Rates of the graph augmentation of each view.
        decay: τ₀.
        train: The number of epochs and of the steps of each: T steps, after which the target stays as it is.
    """

    name = "bgrl"
    title = "BGRL"
    paper = "Thakoor et al., Large-Scale Representation Learning on Graphs via Bootstrapping, ICLR"
    year = 2022
    Settings = BGRLSettings
    scheduled = True

    epoch: Tensor
    """Steps done: epochs, or batches of rows with hops, or groups of parts."""

    def __init__(
        self,
        encoder: Encoder,
        target: Encoder,
        predictor: nn.Module,
        preparation: Preparation,
        augment: settings.Augment,
        *,
        decay: float,
        train: settings.Train,
    ) -> None:
        super().__init__(encoder, preparation, augment)
        self.predictor = predictor
        self.target = _as_buffers(target)
        self.decay = decay
        self.schedule = train
        self.steps = train.epochs
        # on the device: in a captured epoch, which is replayed, a Python number would never change
        self.register_buffer("epoch", torch.zeros((), dtype=torch.int64))

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> BGRL:
        """BGRL from its settings."""
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(settings.encoder, preparation.out_features, generator)
        width, activation = settings.predictor.width, settings.predictor.activation
        predictor = ProjectionHead(encoder.out_features, width, activation, generator)
        return cls(
            encoder,
            build_encoder(settings.encoder, preparation.out_features, generator),
            predictor,
            preparation,
            settings.augment,
            decay=settings.target.decay,
            train=settings.train,
        )

    def prepare(self, graph: Data) -> None:
        """Also count the steps of the whole training."""
        super().prepare(graph)
        self.steps = self.schedule.epochs * (
            self.schedule.batches(graph.num_nodes) if self.by_rows else self.schedule.groups
        )

    def loss(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """2 − mean cos(p(f_θ(view 1)), f_φ(view 2)) − mean cos(p(f_θ(view 2)), f_φ(view 1)) of two fresh views."""
        inputs = self.inputs(graph, rows)
        views = [self.draw_view(inputs, view) for view in (0, 1)]
        q1, q2 = (self.predictor(self._encode(inputs, view)) for view in views)
        with torch.no_grad():
            h1, h2 = (self._encode(inputs, view, self.target) for view in views)
        return bootstrap_loss(q1, q2, h1, h2)

    @torch.no_grad()
    def after_step(self) -> None:
        """φ ← τφ + (1 − τ)θ, and t ← t + 1. The target keeps its own running averages of BatchNorm."""
        progress = (self.epoch / self.steps).clamp(max=1)
        share = (1 - self.decay) * (1 + torch.cos(math.pi * progress)) / 2
        for name, weight in self.encoder.named_parameters():
            self.target.get_buffer(name).lerp_(weight, share.to(weight.dtype))
        self.epoch += 1


def _as_buffers(module: Encoder) -> Encoder:
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            delattr(part, name)
            part.register_buffer(name, parameter.detach())
    return module
