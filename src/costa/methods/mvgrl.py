"""MVGRL: two views of a graph, its edges and its diffusion; a summary of each identifies the nodes of the other.

Hassani, Khasahmadi: Contrastive Multi-View Representation Learning on Graphs, ICML 2020.

    S = α (I − (1 − α) Â)^-1                       the diffusion of Â, normalised: personalised PageRank
    H_a = f_a(X, Â),  H_b = f_b(X, S)              an encoder for each view
    s_a = σ(mean of H_a's rows),  s_b likewise     their summaries
    D(h, s) = σ(hᵀ W s)                            one discriminator for both
    L = ½ (L(H_a, s_b) + L(H_b, s_a)),  L(H, s) = −1/n Σᵢ log D(hᵢ, s) − 1/n Σᵢ log(1 − D(h̃ᵢ, s))

H̃ is H with the rows of X in random order, new in every epoch and the same for both views. The embedding is H_a + H_b.
Defaults are those of the authors' code: α = 0.2, GCNs of one layer, 512 wide, with PReLU, Adam at 1e-3. There training
ends when the loss has not fallen for 20 epochs; here the number of epochs is fixed at 300. The paper's projection heads
are part of W, as it recommends for nodes.

What differs from the authors' code: S is sparse, the ``diffusion.k`` largest entries of each row, scaled to the row's
sum (:mod:`costa.graphs.diffusion`); theirs is dense. An epoch sees the whole graph instead of four runs of 2,000
consecutive nodes. Â has one self-loop per node; theirs has two. W's initial weights are those of
:mod:`costa.methods.dgi`, D has no bias, and real and permuted rows are summed, not averaged, which makes no difference
to Adam.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from costa import settings
from costa.errors import InputError
from costa.graphs.diffusion import top_ppr
from costa.methods.base import GradientMethod
from costa.methods.building import build_features
from costa.methods.dgi import Discriminator
from costa.methods.encoding import EncoderMethod, Inputs, select_rows
from costa.nn import GCN, Preparation, SparseMatrix, discrimination_loss


@dataclass(frozen=True)
class MVGRLSettings:
    """Settings of ``mvgrl``.

    The 32 largest entries hold from a half (Amazon-Photo) to five sixths (Cora) of a row's sum. Cora's validation
    accuracy is 84.4 with 8, 85.1 with 32 and 85.0 with 128 (200 epochs, one seed).
    """

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.OneLayer = field(default_factory=settings.OneLayer)
    diffusion: settings.Diffusion = field(default_factory=settings.Diffusion)
    train: settings.Train = field(default_factory=partial(settings.Train, epochs=300, lr=1e-3))


@dataclass(frozen=True)
class TwoInputs(Inputs):
    """The graph as f_a reads it and, in ``diffused``, as f_b does: with S in place of Â."""

    diffused: Inputs


class MVGRL(EncoderMethod, GradientMethod):
    """MVGRL with two GCNs.

    Args:
        encoder: f_a, see :class:`costa.nn.GCN`.
        diffusion_encoder: f_b.
        discriminator: D.
        preparation: Feature scaling and reduction.
        diffusion: α, and the number of entries kept in each row of S.
    """

    name = "mvgrl"
    title = "MVGRL"
    paper = "Hassani and Khasahmadi, Contrastive Multi-View Representation Learning on Graphs, ICML"
    year = 2020
    Settings = MVGRLSettings

    def __init__(
        self,
        encoder: GCN,
        diffusion_encoder: GCN,
        discriminator: Discriminator,
        preparation: Preparation,
        diffusion: settings.Diffusion,
    ) -> None:
        super().__init__(encoder, preparation)
        self.diffusion_encoder = diffusion_encoder
        self.discriminator = discriminator
        self.diffusion = diffusion

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> MVGRL:
        """MVGRL from its settings."""
        preparation = build_features(settings.features, in_features)
        width = preparation.out_features
        layer = settings.encoder
        encoder, diffusion_encoder = (
            GCN(width, (layer.width,), activation=layer.activation, norm=layer.norm, generator=generator)
            for _ in range(2)
        )
        discriminator = Discriminator(layer.width, generator)
        return cls(encoder, diffusion_encoder, discriminator, preparation, settings.diffusion)

    @property
    def capturable(self) -> bool:
        """Shapes never change: S is computed once, and an order of the rows always has n entries."""
        return True

    def loss(self, graph: Data) -> Tensor:
        """The discriminator's loss on both views and a fresh corruption of them."""
        views = self._views(graph)
        h_a, h_b = self._encoded(views)
        s_a, s_b = (h.mean(0).sigmoid() for h in (h_a, h_b))
        order = torch.rand(graph.num_nodes, generator=self.generator, device=self.generator.device).argsort()
        fake_a, fake_b = (encoder(inputs.x, inputs.adjacency, order=order) for encoder, inputs in views)
        return (
            discrimination_loss(self.discriminator(h_a, s_b), self.discriminator(fake_a, s_b))
            + discrimination_loss(self.discriminator(h_b, s_a), self.discriminator(fake_b, s_a))
        ) / 2

    def hidden(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """H_a + H_b of the graph."""
        h_a, h_b = self._encoded(self._views(graph))
        return select_rows(h_a + h_b, rows)

    def _encoded(self, views: list[tuple[GCN, Inputs]]) -> list[Tensor]:
        return [self._encode(inputs, encoder=encoder) for encoder, inputs in views]

    def _views(self, graph: Data) -> list[tuple[GCN, Inputs]]:
        """Each encoder with its inputs."""
        inputs = self.inputs(graph)
        assert isinstance(inputs, TwoInputs)
        assert isinstance(self.encoder, GCN)
        return [(self.encoder, inputs), (self.diffusion_encoder, inputs.diffused)]

    def _read(self, graph: Data) -> TwoInputs:
        """The inputs of every encoder, and the diffused ones."""
        if not is_undirected(graph.edge_index, graph.get("edge_weight"), graph.num_nodes):
            raise InputError(
                "mvgrl needs an undirected graph, but some edges go in one direction only or have two weights;"
                " make it undirected with torch_geometric.utils.to_undirected."
            )
        inputs = super()._read(graph)
        assert isinstance(inputs, Inputs)  # of a GCN
        (row, col), values = top_ppr(inputs.adjacency.a, self.diffusion.alpha, self.diffusion.k)
        s = SparseMatrix.from_coo(row, col, values, (graph.num_nodes, graph.num_nodes))
        mixed = s @ inputs.x if isinstance(inputs.x, Tensor) else None
        return TwoInputs(**vars(inputs), diffused=dataclasses.replace(inputs, adjacency=s, mixed=mixed))
