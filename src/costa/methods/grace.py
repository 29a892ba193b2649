"""GRACE: contrast every node of two augmented views with all the others.

Zhu, Xu, Yu, Liu, Wu, Wang: Deep Graph Contrastive Representation Learning, 2020 (ICML workshop on graph representation
learning).

    (X̃₁, Ã₁), (X̃₂, Ã₂)     edges removed and attributes masked, each view at its own rates
    U = f(X̃₁, Ã₁), V likewise  the encoder, a two-layer GCN; the first layer is twice as wide as the second
    θ(u, v) = s(g(u), g(v))     the cosine s of two nodes after the projection head g
    ℓ(uᵢ, vᵢ) = −log e^{θ(uᵢ,vᵢ)/τ} / (Σⱼ e^{θ(uᵢ,vⱼ)/τ} + Σ_{j≠i} e^{θ(uᵢ,uⱼ)/τ})
    L = 1/2n · Σᵢ [ℓ(uᵢ, vᵢ) + ℓ(vᵢ, uᵢ)]

It is COSTA with two views and no sketch: all n nodes are contrasted, with n² similarities that are never stored. With
``train.parts`` n is the number of nodes in a group of parts: a node's negatives are the others of its group.

The authors' code differs in three points: it drops the two directions of an edge independently, while here they go or
stay together; its layers share one PReLU, while here each has its own; and its head has PyTorch's default
initialisation, while here all weights are Glorot's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.methods.building import Encoder, build_encoder, build_features, build_head
from costa.methods.encoding import TwoViews
from costa.nn import Preparation, both_views_loss


@dataclass(frozen=True)
class GRACESettings:
    """Defaults of ``grace``: what most of the four published settings share, with Cora's rates."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.Encoder = field(default_factory=partial(settings.Encoder, width=256, hidden=512))
    head: settings.Head = field(default_factory=settings.Head)
    augment: settings.Augment = field(
        default_factory=partial(settings.Augment, edge_rate=(0.2, 0.4), mask_rate=(0.3, 0.4))
    )
    loss: settings.Contrast = field(default_factory=partial(settings.Contrast, tau=0.7))
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=200, lr=1e-3, weight_decay=1e-5))


class GRACE(TwoViews):
    """GRACE with any encoder and head.

    Args:
        encoder: f, see :class:`costa.nn.GCN` and :class:`costa.nn.Hops`.
        head: g, see :class:`costa.nn.ProjectionHead`; ``nn.Identity()`` for none.
        preparation: Feature scaling and reduction.
        augment: Rates of the graph augmentation of each view.
        tau: τ.
        plain: Write out the similarities: the reference for the fast form.
    """

    name = "grace"
    title = "GRACE"
    paper = "Zhu et al., Deep Graph Contrastive Representation Learning"
    year = 2020
    Settings: ClassVar[type] = GRACESettings

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        preparation: Preparation,
        augment: settings.Augment,
        tau: float,
        *,
        plain: bool = False,
    ) -> None:
        super().__init__(encoder, preparation, augment)
        self.head = head
        self.tau = tau
        self.plain = plain

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> GRACE:
        """The method from its settings."""
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(settings.encoder, preparation.out_features, generator)
        head = build_head(settings.head, encoder.out_features, generator)
        plain = settings.train.kernels == "plain"
        return cls(encoder, head, preparation, settings.augment, settings.loss.tau, plain=plain)

    def loss(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """L of two fresh views."""
        u, v = self.encode_both(graph, rows)
        return both_views_loss(self.head(u), self.head(v), self.tau, plain=self.plain)

    @property
    def capturable(self) -> bool:
        """As every method of two views, unless the similarities are written out."""
        return super().capturable and not self.plain
