"""GAE and VGAE: encode the nodes so that inner products of their vectors tell edges from other pairs.

Kipf, Welling: Variational Graph Auto-Encoders, NeurIPS Workshop on Bayesian Deep Learning, 2016.

    GAE:   Z = GCN(X, A)                                              two layers, the last one linear
    VGAE:  μ = GCN_μ(X, A),  log σ = GCN_σ(X, A),  zᵢ ~ N(μᵢ, diag σᵢ²)      one first layer for both
    p(A_ij = 1) = s(zᵢ·zⱼ),  s the logistic function
    L = −mean log s(zᵢ·zⱼ) over edges − mean log(1 − s(zᵢ·zⱼ)) over as many sampled pairs
    VGAE:  L + 1/n · (1/n) Σᵢ KL(N(μᵢ, diag σᵢ²) ‖ N(0, I))

The embedding is Z, or μ. Defaults are the paper's (ReLU, 200 epochs) but for two: widths are 256 → 128 instead of
32 → 16, as the vectors are compared with others of such widths; and the learning rate is 1e-3 instead of 0.01, at which
inner products of so many columns begin so large on some graphs (Amazon-Photo) that the first steps leave all vectors
alike. There PyG's ``recon_loss``, whose logarithm ends at 1e-15, has no gradient at all any more.

What differs from the authors' code: negatives are pairs of nodes drawn uniformly, anew every epoch, instead of all of
A's zeros, down-weighted to balance the ones; a drawn pair is an edge, or a node with itself, with the probability of
A's density, so rarely that none is drawn again. Edges and negatives are summed where theirs are averaged (a factor of
2 before the KL term). No edge is held out. Each undirected edge counts once, whatever its weight, which only the
encoder sees. VGAE's last layers are one, twice as wide, with Glorot weights for that width. log σ is held below 10, so
that no σ overflows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.augment.streams import integers, normal
from costa.augment.topology import edges_once
from costa.errors import InputError
from costa.methods.base import EncoderMethod, GradientMethod, build_encoder
from costa.nn import GCN, FeatureScaling, discrimination_loss, kl_to_standard_normal
from costa.nn.rows import take_rows

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
        scaling: What is done to X first.
    """

    name = "gae"
    title = "GAE"
    paper = "Kipf and Welling, Variational Graph Auto-Encoders, NeurIPS Workshop on Bayesian Deep Learning"
    year = 2016
    Settings = GAESettings

    outputs: ClassVar[int] = 1
    """How many n × d matrices the encoder gives, side by side."""

    edges: Tensor
    """2 × m, each undirected edge once: what is to be reconstructed."""

    def __init__(self, encoder: GCN, scaling: FeatureScaling) -> None:
        super().__init__(encoder, scaling)
        self.edges = torch.empty(2, 0, dtype=torch.int64)

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> GAE:
        """The auto-encoder from its settings."""
        own = settings.encoder
        # of each output its own columns in the last layer
        several = replace(own, hidden=own.hidden or own.width, width=cls.outputs * own.width)
        encoder = build_encoder(several, in_features, generator, linear=True)
        return cls(encoder, FeatureScaling(settings.features.scaling, in_features))

    @property
    def capturable(self) -> bool:
        """Every epoch draws as many pairs."""
        return True

    @property
    def stackable(self) -> bool:
        """Each draws pairs of its own."""
        return True

    def prepare(self, graph: Data) -> None:
        """Find the edges to reconstruct."""
        if graph.edge_index.numel() == 0:
            raise InputError(f"{self.name} reconstructs edges, and the graph has none; choose another method.")
        super().prepare(graph)
        self.edges = edges_once(self.inputs(graph).edge_index, graph.num_nodes)

    def forget(self) -> None:
        """Let go of the prepared inputs and edges."""
        super().forget()
        self.edges = torch.empty(2, 0, dtype=torch.int64)

    def loss(self, graph: Data) -> Tensor:
        """What the reconstruction loses, with fresh negatives."""
        return self._reconstruction(self._encoded(graph))

    def _encoded(self, graph: Data) -> Tensor:
        inputs = self.inputs(graph)
        return self._encode(inputs, inputs.adjacency, None)

    def _reconstruction(self, z: Tensor) -> Tensor:
        others = integers(self.generator, z.size(-2), *self.edges.shape)
        return discrimination_loss(_inner_products(z, self.edges.expand_as(others)), _inner_products(z, others))


class VGAE(GAE):
    """The variational graph auto-encoder: the encoder's columns are μ and log σ, side by side.

    Args:
        encoder: Both GCNs as one, see :class:`costa.nn.GCN`; its last layer is linear and twice as wide as the vectors.
        scaling: What is done to X first.
    """

    name = "vgae"
    title = "VGAE"

    outputs = 2

    def loss(self, graph: Data) -> Tensor:
        """What the reconstruction from a fresh Z loses, and the KL divergence over n."""
        mu, log_sigma = self._encoded(graph).chunk(2, dim=-1)
        log_sigma = log_sigma.clamp(max=MOST_LOG_SIGMA)
        z = mu + normal(self.generator, *mu.shape[-2:], dtype=mu.dtype) * log_sigma.exp()
        return self._reconstruction(z) + kl_to_standard_normal(mu, log_sigma) / mu.size(-2)

    def embed(self, graph: Data) -> Tensor:
        """μ of the graph as it is."""
        return super().embed(graph).chunk(2, dim=-1)[0].contiguous()


def _inner_products(z: Tensor, pairs: Tensor) -> Tensor:
    """zᵢ·zⱼ for each column (i, j) of ``pairs``; of each of a stack for its own."""
    source, target = (take_rows(z, index) for index in pairs.unbind(-2))
    return torch.linalg.vecdot(source, target)
