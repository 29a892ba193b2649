"""GCA: GRACE with an augmentation that spares what is central.

Zhu, Xu, Yu, Liu, Wu, Wang: Graph Contrastive Learning with Adaptive Augmentation, WWW 2021.

With φ(v) the centrality of a node (its degree, its PageRank or its entry in A's first eigenvector):

    w_uv = (φ(u) + φ(v))/2,    s = log w       an edge weighs what its ends do on average
    w_i = Σ_u |x_ui|·φ(u),     s = log w       an attribute weighs what the nodes do that have it
    p = min((s_max − s)/(s_max − s̄) · p̄, 0.7)  it is dropped with this probability; p̄ is the view's rate

Encoder, head and loss are GRACE's. The probabilities depend on the graph alone and are computed once, from X as the
graph has it, before any scaling.

The authors' code differs in these points, besides those of :mod:`costa.methods.grace`: it takes log(1 + w) in its last
version, weighs an edge by its target alone, reads X as zeros and ones except for WikiCS, and its PageRank has no
restart. What is here is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.augment.topology import CENTRALITIES, drop_probability, keep_mask, mask_attributes
from costa.methods.base import Inputs
from costa.methods.grace import GRACE, GRACESettings
from costa.nn import GCN, FeatureScaling, SparseMatrix


@dataclass(frozen=True)
class GCASettings(GRACESettings):
    """Defaults of ``gca``: GRACE's, so that the two differ in the augmentation alone.

    The five published settings agree in the weight decay only, which is GRACE's too. Those of WikiCS, for 200 epochs,
    had the lower validation accuracy (digits 96.3 against 97.0, Cora 84.4 against 85.3; one seed).
    """

    augment: settings.AdaptiveAugment = field(
        default_factory=partial(settings.AdaptiveAugment, edge_rate=(0.2, 0.4), mask_rate=(0.3, 0.4))
    )


class GCA(GRACE):
    """GCA with any encoder and head.

    Args:
        encoder, head, scaling, tau, plain: As for :class:`costa.methods.grace.GRACE`.
        augment: The mean probabilities of each view, and which centrality.
    """

    name = "gca"
    title = "GCA"
    paper = "Zhu et al., Graph Contrastive Learning with Adaptive Augmentation, WWW"
    year = 2021
    Settings = GCASettings

    augment: settings.AdaptiveAugment

    def __init__(
        self,
        encoder: GCN,
        head: nn.Module,
        scaling: FeatureScaling,
        augment: settings.AdaptiveAugment,
        tau: float,
        *,
        plain: bool = False,
    ) -> None:
        super().__init__(encoder, head, scaling, augment, tau, plain=plain)
        self._probabilities: list[tuple[Tensor | None, Tensor | None]] = []

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Where nothing is dropped, nothing is central."""
        idle = super().unused(settings)
        if not any(settings.augment.edge_rate + settings.augment.mask_rate):
            idle["augment.centrality"] = "augment.edge_rate and mask_rate = 0 drop nothing"
        return idle

    def prepare(self, graph: Data) -> None:
        """Weigh edges and attributes, besides what every encoder prepares."""
        super().prepare(graph)
        phi = CENTRALITIES[self.augment.centrality](graph.edge_index, graph.num_nodes)
        edges = phi[graph.edge_index].mean(0)
        attributes = (phi.to(graph.x.dtype) @ graph.x.abs()).double()
        device = next(self.encoder.parameters()).device

        def probability(weight: Tensor, rate: float) -> Tensor | None:
            return drop_probability(weight, rate).to(device, torch.float32) if rate else None

        # one rate serves both views
        rates = zip((self.augment.edge_rate * 2)[:2], (self.augment.mask_rate * 2)[:2], strict=True)
        self._probabilities = [(probability(edges, first), probability(attributes, second)) for first, second in rates]

    def forget(self) -> None:
        """Let go of the probabilities too."""
        super().forget()
        self._probabilities = []

    def draw_view(self, inputs: Inputs, augment: settings.Augment, view: int) -> tuple[SparseMatrix, Tensor | None]:
        """Â and the mask of one view: each edge and attribute has its own probability in place of the one rate."""
        edges, attributes = self._probabilities[view]
        adjacency, mask = inputs.adjacency, None
        if edges is not None:
            adjacency = inputs.layout.normalized(keep_mask(inputs.edge_ids, edges, self.generator))
        if attributes is not None:
            mask = mask_attributes(len(attributes), attributes, generator=self.generator)
        return adjacency, mask
