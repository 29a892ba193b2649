"""DGI: tell the nodes of the graph from those of a corrupted one, by a summary of the whole.

Veličković, Fedus, Hamilton, Liò, Bengio, Hjelm: Deep Graph Infomax, ICLR 2019.

    H = f(X, A),  H̃ = f(X̃, A)                 X̃: the rows of X in random order, new in every epoch
    s = σ(1/n Σᵢ hᵢ)                          the summary
    D(h, s) = σ(hᵀ W s)                       the discriminator
    L = −1/n Σᵢ log D(hᵢ, s) − 1/n Σᵢ log(1 − D(h̃ᵢ, s))

Defaults are the paper's: a GCN of one layer, 512 wide, with PReLU; Adam at 1e-3. There training ends when the loss has
not fallen for 20 epochs; here the number of epochs is fixed at 500.

With ``train.parts`` the graph is a group of parts: rows change places within the group, and s is the group's mean.

What differs from the authors' code: both halves of the loss are summed, not averaged, which makes no difference to
Adam. W's initial weights are uniform on ±1/√d, as in PyG's ``DeepGraphInfomax``, and D has no bias.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.methods.base import GradientMethod
from costa.methods.building import build_features
from costa.methods.encoding import EncoderMethod
from costa.nn import GCN, Preparation, discrimination_loss


@dataclass(frozen=True)
class DGISettings:
    """Settings of ``dgi``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.OneLayer = field(default_factory=settings.OneLayer)
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=500, lr=1e-3))


class Discriminator(nn.Module):
    """hᵢᵀ W s for every row, the logit of D.

    Args:
        features: d, the columns of H.
        generator: Draws the initial W; torch's global generator by default.
    """

    def __init__(self, features: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, features))
        nn.init.uniform_(self.weight, -(features**-0.5), features**-0.5, generator=generator)

    def forward(self, h: Tensor, s: Tensor) -> Tensor:
        """n logits, from H (n × d) and s (d)."""
        return (h @ (self.weight @ s[:, None])).squeeze(1)


class DGI(EncoderMethod, GradientMethod):
    """Deep Graph Infomax with the shared GCN.

    Args:
        encoder: f, see :class:`costa.nn.GCN`.
        discriminator: D.
        preparation: Feature scaling and reduction.
    """

    name = "dgi"
    title = "DGI"
    paper = "Veličković et al., Deep Graph Infomax, ICLR"
    year = 2019
    Settings = DGISettings
    takes_parts = True

    def __init__(self, encoder: GCN, discriminator: Discriminator, preparation: Preparation) -> None:
        super().__init__(encoder, preparation)
        self.discriminator = discriminator

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> DGI:
        """DGI from its settings."""
        layer = settings.encoder
        preparation = build_features(settings.features, in_features)
        width = preparation.out_features
        encoder = GCN(width, (layer.width,), activation=layer.activation, norm=layer.norm, generator=generator)
        discriminator = Discriminator(encoder.out_features, generator)
        return cls(encoder, discriminator, preparation)

    @property
    def capturable(self) -> bool:
        """Shapes never change: an order of the rows always has n entries."""
        return True

    def loss(self, graph: Data, nodes: Tensor | None = None) -> Tensor:
        """The discriminator's loss on the graph, or the subgraph of these nodes, and a fresh corruption of it."""
        inputs = self.inputs(graph, nodes)
        h = self._encode(inputs)
        order = torch.rand(inputs.layout.num_nodes, generator=self.generator, device=self.generator.device).argsort()
        corrupted = self.encoder(inputs.x, inputs.adjacency, order=order)
        s = h.mean(0).sigmoid()
        return discrimination_loss(self.discriminator(h, s), self.discriminator(corrupted, s))
