"""GMI: a node's vector should predict its features, its neighbours' features and its edges.

Peng, Huang, Luo, Zheng, Rong, Xu, Huang: Graph Representation Learning via Graphical Mutual Information Maximization,
WWW 2020. The variant is GMI-mean, in the form of the authors' code:

    H = f(X, A),  Q = σ(D⁻¹A·XW₁)                 W₁: the weights of f's first layer; D⁻¹A: the mean over neighbours
    D(h, x) = s(hᵀ Θ x)                           the discriminator, s the logistic function; a Θ for X, one for Q
    I(h; x) = −1/n Σᵢ sp(−D(hᵢ, xᵢ)) − 1/(kn) Σ_π Σᵢ sp(D(h_π(i), xᵢ)),   sp(t) = log(1 + eᵗ)
    E = −mean log s(hᵢ·hⱼ) over edges − mean log(1 − s(hᵢ·h_π(i))) over nodes and orders
    L = −α·I(h; x) − β·I(h; q) + γ·E              the features, the neighbours' features, the topology

The k orders π of the nodes are random, new in every epoch. The vectors are H. Every x enters as a row of X·Θ, so that X
may stay sparse, and memory grows with edges and nodes, not with their squares.

Defaults are those of the authors' code (two layers, 512 wide, PReLU, α = 0.8, β = γ = 1, k = 5, learning rate 1e-3)
except for the epochs. There training ends when the loss has not fallen for 20 epochs, after 550 at the latest; here the
number is fixed at 50: with unscaled features, long training makes the vectors worse (Cora, validation accuracy: 85.6%
after 50 epochs, 84.0% after 100, 81.7% after 200). With normalised rows, as theirs are, this happens more slowly.

What differs from their code: it compares all n² pairs of nodes with A + I, edges and loops weighing twice as much as
the rest together; here edges weigh as much as random pairs, and a node is compared with itself only if the graph has
a loop. Its negatives are drawn independently for each term; here one order serves all terms, and a node meets itself
with probability 1/n. D has no bias. An edge counts once, whatever its weight, which only the encoder sees.
GMI-adaptive, which weighs the neighbours, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import degree, to_undirected

from costa import settings
from costa.augment.topology import edges_once
from costa.errors import InputError
from costa.methods.base import GradientMethod
from costa.methods.building import build_features
from costa.methods.encoding import EncoderMethod
from costa.nn import GCN, Preparation, SparseMatrix, discrimination_loss
from costa.nn.encoders import ACTIVATIONS


@dataclass(frozen=True)
class GMISettings:
    """Settings of ``gmi``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.EqualLayers = field(default_factory=settings.EqualLayers)
    loss: settings.Information = field(default_factory=settings.Information)
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=50, lr=1e-3))


@dataclass(frozen=True)
class Topology:
    """The graph's undirected edges, 2 × m; and D⁻¹A, with a row of zeros for a node without edges."""

    edges: Tensor
    mean: SparseMatrix

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int) -> Topology:
        """From edges in one direction or both."""
        source, target = to_undirected(edge_index, num_nodes=num_nodes)
        weight = 1 / degree(target, num_nodes)[target]
        mean = SparseMatrix.from_coo(target, source, weight, (num_nodes, num_nodes))
        return cls(edges=edges_once(edge_index, num_nodes), mean=mean)


class Discriminator(nn.Module):
    """D(h, x) = s(hᵀ Θ x), with the Glorot initialisation of ``nn.Bilinear``.

    Args:
        features: The columns of X.
        width: The columns of H.
        generator: Draws the initial Θ; torch's global generator by default.
    """

    def __init__(self, features: int, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.empty(features, width))
        bound = (6 / ((features + 1) * width)) ** 0.5
        nn.init.uniform_(self.theta, -bound, bound, generator=generator)

    def forward(self, h: Tensor, others: Sequence[Tensor], x: Tensor | SparseMatrix) -> Tensor:
        """−I(h; x); each of ``others`` replaces H in the negative pairs."""
        y = x @ self.theta
        return discrimination_loss(torch.linalg.vecdot(h, y).sigmoid(), _logits(others, y).sigmoid())


class GMI(EncoderMethod, GradientMethod):
    """GMI-mean with the shared GCN.

    Args:
        encoder: f, see :class:`costa.nn.GCN`.
        activation: σ of the neighbours' mean.
        of_features: D for X.
        of_neighbours: D for Q.
        preparation: Feature scaling and reduction.
        information: α, β, γ and k.
    """

    name = "gmi"
    title = "GMI"
    paper = "Peng et al., Graph Representation Learning via Graphical Mutual Information Maximization, WWW"
    year = 2020
    Settings = GMISettings

    def __init__(
        self,
        encoder: GCN,
        activation: nn.Module,
        of_features: Discriminator,
        of_neighbours: Discriminator,
        preparation: Preparation,
        information: settings.Information,
    ) -> None:
        super().__init__(encoder, preparation)
        self.activation = activation
        self.of_features = of_features
        self.of_neighbours = of_neighbours
        self.information = information
        self._topology: Topology | None = None

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> GMI:
        """GMI from its settings."""
        preparation = build_features(settings.features, in_features)
        encoder = settings.encoder
        widths, activation = (encoder.width,) * encoder.layers, encoder.activation
        return cls(
            GCN(preparation.out_features, widths, activation=activation, norm=encoder.norm, generator=generator),
            ACTIVATIONS[activation](),
            Discriminator(preparation.out_features, encoder.width, generator),
            Discriminator(encoder.width, encoder.width, generator),
            preparation,
            settings.loss,
        )

    @property
    def capturable(self) -> bool:
        """Shapes never change: orders have n entries, and the edges stay."""
        return True

    def prepare(self, graph: Data) -> None:
        """Find the edges and each node's neighbours."""
        if graph.edge_index.numel() == 0:
            raise InputError(f"{self.name} learns from edges, and the graph has none; choose another method.")
        super().prepare(graph)
        self._topology = Topology.of(self.inputs(graph).edge_index, graph.num_nodes)

    def forget(self) -> None:
        """Release the prepared inputs and edges."""
        super().forget()
        self._topology = None

    def loss(self, graph: Data) -> Tensor:
        """−α·I(h; x) − β·I(h; q) + γ·E, with fresh orders."""
        assert self._topology is not None
        inputs, info = self.inputs(graph), self.information
        h = self._encode(inputs)
        orders = torch.rand(info.negatives, len(h), generator=self.generator, device=self.generator.device).argsort(1)
        others = [h.index_select(0, order) for order in orders]
        w1 = self.encoder.get_parameter("layers.0.weight")
        q = self.activation(self._topology.mean @ (inputs.x @ w1))
        source, target = (h.index_select(0, end) for end in self._topology.edges)
        features, neighbours = self.of_features(h, others, inputs.x), self.of_neighbours(h, others, q)
        edges = discrimination_loss(torch.linalg.vecdot(source, target), _logits(others, h))
        loss: Tensor = info.alpha * features + info.beta * neighbours + info.gamma * edges
        return loss


def _logits(others: Sequence[Tensor], y: Tensor) -> Tensor:
    """Inner products with the rows of Y, one of ``others`` at a time to save memory."""
    return torch.cat([torch.linalg.vecdot(other, y) for other in others])
