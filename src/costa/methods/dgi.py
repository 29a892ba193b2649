"""DGI: tell the nodes of the graph from those of a corrupted one, by a summary of the whole.

Veličković, Fedus, Hamilton, Liò, Bengio, Hjelm: Deep Graph Infomax, ICLR 2019.

    H = f(X, A),  H̃ = f(X̃, A)                 X̃: the rows of X in random order, anew every epoch
    s = σ(1/n Σᵢ hᵢ)                          the summary
    D(h, s) = σ(hᵀ W s)                       the discriminator
    L = −1/n Σᵢ log D(hᵢ, s) − 1/n Σᵢ log(1 − D(h̃ᵢ, s))

Defaults are the paper's: a GCN of one layer, 512 wide, with PReLU; Adam at 1e-3. There the training ends when the loss
has not fallen for 20 epochs; here the number of epochs is fixed, 500.

What differs from the authors' code: both halves of the loss are summed where theirs are averaged, which Adam does not
notice. W's first weights are uniform on ±1/√d, as in PyG's ``DeepGraphInfomax``, and D has no bias.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.augment.streams import uniform
from costa.methods.base import EncoderMethod, GradientMethod
from costa.nn import GCN, FeatureScaling, discrimination_loss


@dataclass(frozen=True)
class DGISettings:
    """Settings of ``dgi``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.OneLayer = field(default_factory=settings.OneLayer)
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=500, lr=1e-3))


class Discriminator(nn.Module):
    """hᵢᵀ W s for every row, the logit of D; W may be stacked.

    Args:
        features: d, the columns of H.
        generator: Draws the initial W; the global one if left out.
    """

    def __init__(self, features: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, features))
        nn.init.uniform_(self.weight, -(features**-0.5), features**-0.5, generator=generator)

    def forward(self, h: Tensor, s: Tensor) -> Tensor:
        """n logits of H, n × d, and s, d."""
        return (h @ (self.weight @ s[..., None])).squeeze(-1)


class DGI(EncoderMethod, GradientMethod):
    """Deep Graph Infomax with the shared GCN.

    Args:
        encoder: f, see :class:`costa.nn.GCN`.
        discriminator: D.
        scaling: What is done to X first.
    """

    name = "dgi"
    title = "DGI"
    paper = "Veličković et al., Deep Graph Infomax, ICLR"
    year = 2019
    Settings = DGISettings
    STACKED = ("encoder", "discriminator")

    def __init__(self, encoder: GCN, discriminator: Discriminator, scaling: FeatureScaling) -> None:
        super().__init__(encoder, scaling)
        self.discriminator = discriminator

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> DGI:
        """DGI from its settings."""
        own = settings.encoder
        encoder = GCN(in_features, (own.width,), activation=own.activation, norm=own.norm, generator=generator)
        discriminator = Discriminator(encoder.out_features, generator)
        return cls(encoder, discriminator, FeatureScaling(settings.features.scaling, in_features))

    @property
    def capturable(self) -> bool:
        """An order of the rows is as long every time."""
        return True

    @property
    def stackable(self) -> bool:
        """Each draws an order of its own."""
        return True

    def loss(self, graph: Data) -> Tensor:
        """What the discriminator loses on the graph and a fresh corruption of it."""
        inputs = self.inputs(graph)
        h = self._encode(inputs, inputs.adjacency, None)
        order = uniform(self.generator, inputs.layout.num_nodes).argsort(-1)
        corrupted = self.encoder(inputs.x, inputs.adjacency, order=order)
        s = h.mean(-2).sigmoid()
        return discrimination_loss(self.discriminator(h, s), self.discriminator(corrupted, s))
