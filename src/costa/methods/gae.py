"""GAE and VGAE: inner products of the nodes' vectors tell edges from other pairs.

Kipf, Welling: Variational Graph Auto-Encoders, NeurIPS Workshop on Bayesian Deep Learning, 2016.

    GAE:   Z = GCN(X, A)                                              two layers, the last one linear
    VGAE:  μ = GCN_μ(X, A),  log σ = GCN_σ(X, A),  zᵢ ~ N(μᵢ, diag σᵢ²)      one first layer for both
    p(A_ij = 1) = s(zᵢ·zⱼ),  s the logistic function
    L = −mean log s(zᵢ·zⱼ) over edges − mean log(1 − s(zᵢ·zⱼ)) over as many sampled pairs
    VGAE:  L + 1/n · (1/n) Σᵢ KL(N(μᵢ, diag σᵢ²) ‖ N(0, I))

The embedding is Z, or μ. Defaults are the paper's (ReLU, 200 epochs) with two exceptions: widths are 256 → 128 instead
of 32 → 16, like those of the vectors they are compared with; and the learning rate is 1e-3 instead of 0.01. At 0.01 the
inner products of that many columns start so large on some graphs (Amazon-Photo) that the first steps make all vectors
equal; there PyG's ``recon_loss``, whose logarithm is cut off at 1e-15, has no gradient left.

What differs from the authors' code: negatives are pairs of nodes drawn uniformly in every epoch, instead of all zeros
of A, down-weighted to balance the ones; a drawn pair is an edge, or a node with itself, with the probability of A's
density, which is too rare to draw again. Edges and negatives are summed, not averaged (a factor of 2 before the KL
term). No edge is held out. Each undirected edge counts once, whatever its weight, which only the encoder sees. VGAE's
two last layers are one of twice the width, with Glorot weights for that width. log σ is clamped to 10, so that no σ
overflows.

With ``train.parts`` the graph is a group of parts: its own edges are the positives, so that edges between groups are
not learned in that step, and both nodes of a negative are in it. A group without an edge reconstructs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.augment.topology import edges_once
from costa.errors import InputError
from costa.methods.base import GradientMethod
from costa.methods.building import Encoder, build_encoder, build_features
from costa.methods.encoding import EncoderMethod
from costa.nn import Preparation, discrimination_loss, kl_to_standard_normal

MOST_LOG_SIGMA = 10.0


@dataclass(frozen=True)
class GAESettings:
    """Settings of ``gae`` and ``vgae``. ``encoder.width`` is that of the vectors."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.Encoder = field(default_factory=partial(settings.Encoder, width=128, hidden=256))
    train: settings.Train = field(default_factory=partial(settings.Train, lr=1e-3))


class GAE(EncoderMethod, GradientMethod):
    """The graph auto-encoder with the shared GCN.

    Args:
        encoder: GCN, see :class:`costa.nn.GCN`; its last layer is linear.
        preparation: Feature scaling and reduction.
    """

    name = "gae"
    title = "GAE"
    paper = "Kipf and Welling, Variational Graph Auto-Encoders, NeurIPS Workshop on Bayesian Deep Learning"
    year = 2016
    Settings = GAESettings
    linear = True
    takes_parts = True

    outputs: ClassVar[int] = 1
    """The number of n × d matrices that the encoder returns side by side."""

    edges: Tensor
    """The edges to reconstruct: 2 × m, each undirected edge once."""

    def __init__(self, encoder: Encoder, preparation: Preparation) -> None:
        super().__init__(encoder, preparation)
        self.edges = torch.empty(2, 0, dtype=torch.int64)

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> GAE:
        """The auto-encoder from its settings."""
        one = settings.encoder
        # the last layer has separate columns for each output
        all_outputs = replace(one, hidden=one.hidden or one.width, width=cls.outputs * one.width)
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(all_outputs, preparation.out_features, generator, linear=cls.linear)
        return cls(encoder, preparation)

    @property
    def capturable(self) -> bool:
        """Shapes never change: every epoch draws the same number of pairs."""
        return True

    def prepare(self, graph: Data) -> None:
        """Find the edges to reconstruct."""
        if graph.edge_index.numel() == 0:
            raise InputError(f"{self.name} reconstructs edges, and the graph has none; choose another method.")
        super().prepare(graph)
        self.edges = edges_once(self.inputs(graph).edge_index, graph.num_nodes)

    def forget(self) -> None:
        """Release the prepared inputs and edges."""
        super().forget()
        self.edges = torch.empty(2, 0, dtype=torch.int64)

    def loss(self, graph: Data, nodes: Tensor | None = None) -> Tensor:
        """The reconstruction loss of the graph, or of the subgraph of these nodes, with fresh negatives."""
        return self._reconstruction(*self._encoded(graph, nodes))

    def _encoded(self, graph: Data, nodes: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the encoder returns, and the edges to reconstruct."""
        inputs = self.inputs(graph, nodes)
        edges = self.edges if nodes is None else edges_once(inputs.edge_index, len(nodes))
        return self._encode(inputs), edges

    def _reconstruction(self, z: Tensor, edges: Tensor) -> Tensor:
        if edges.size(1) == 0:
            return 0 * z.sum()  # the mean over no edges is not a number
        generator = self.generator
        others = torch.randint(len(z), edges.shape, generator=generator, device=generator.device)
        return discrimination_loss(_inner_products(z, edges), _inner_products(z, others))


class VGAE(GAE):
    """The variational graph auto-encoder: the encoder's columns are μ and log σ, side by side.

    Args:
        encoder: Both GCNs as one, see :class:`costa.nn.GCN`; its last layer is linear and twice as wide as the vectors.
        preparation: Feature scaling and reduction.
    """

    name = "vgae"
    title = "VGAE"

    outputs = 2

    def loss(self, graph: Data, nodes: Tensor | None = None) -> Tensor:
        """The reconstruction loss of a fresh Z, plus the KL divergence over the number of nodes."""
        encoded, edges = self._encoded(graph, nodes)
        mu, log_sigma = encoded.chunk(2, dim=-1)
        log_sigma = log_sigma.clamp(max=MOST_LOG_SIGMA)
        generator = self.generator
        noise = torch.randn(mu.shape, generator=generator, device=generator.device, dtype=mu.dtype)
        z = mu + noise * log_sigma.exp()
        return self._reconstruction(z, edges) + kl_to_standard_normal(mu, log_sigma) / len(mu)

    def hidden(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """μ of the graph."""
        return super().hidden(graph, rows).chunk(2, dim=-1)[0].contiguous()


def _inner_products(z: Tensor, pairs: Tensor) -> Tensor:
    """zᵢ·zⱼ for each column (i, j) of ``pairs``."""
    source, target = (z.index_select(0, index) for index in pairs)
    return torch.linalg.vecdot(source, target)
