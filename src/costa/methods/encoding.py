"""The base of methods with an encoder: its inputs, its vectors, and augmented views of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.augment.topology import drop_probability, edge_ids, keep_mask, mask_attributes, permute_edges, weigh
from costa.methods.base import GradientMethod, Method
from costa.nn import GCN, Adjacency, Features, Preparation, SparseMatrix, sparse_if_faster

Rate = float | Tensor | None
"""The probability of dropping, one for all or one for each; None: nothing is dropped."""


@dataclass(frozen=True)
class Inputs:
    """A graph as the encoder reads it, on the encoder's device.

    ``mixed`` is the normalised Â times a dense X, which a GCN's first layer reads without augmentation. For a sparse X
    the product has more non-zeros than X and Â together (Cora: 181,116 against 62,480), and two products are faster.
    """

    x: Features
    mixed: Tensor | None
    layout: Adjacency
    adjacency: SparseMatrix
    edge_index: Tensor
    edge_weight: Tensor | None
    edge_ids: Tensor

    @classmethod
    def of(cls, graph: Data, x: Features, *, alone: bool = False) -> Inputs:
        """Lay out Â beside the prepared features, on their device.

        Layers that look at each node ``alone`` do not need Â times X.
        """
        device = x.device
        edge_index = graph.edge_index.to(device)
        edge_weight = graph.edge_weight.to(device) if graph.get("edge_weight") is not None else None
        layout = Adjacency(edge_index, graph.num_nodes, edge_weight)
        adjacency = layout.normalized()
        return cls(
            x=x,
            mixed=adjacency @ x if isinstance(x, Tensor) and not alone else None,
            layout=layout,
            adjacency=adjacency,
            edge_index=edge_index,
            edge_weight=edge_weight,
            edge_ids=edge_ids(edge_index, graph.num_nodes),
        )


class EncoderMethod(Method):
    """A method whose vectors are the output of one encoder: feature scaling and reduction, then the GCN."""

    def __init__(self, encoder: GCN, preparation: Preparation) -> None:
        super().__init__()
        self.encoder = encoder
        self.scaling, self.reduction = preparation
        self._prepared: tuple[Data, Inputs] | None = None
        self._shared: tuple[Data, Inputs, Preparation] | None = None

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """A one-layer encoder has no hidden width; teleport needs at least one step, and an activation needs a head."""
        encoder, unused = settings.encoder, {}
        if hasattr(encoder, "hidden") and encoder.layers == 1:
            unused["encoder.hidden"] = "encoder.layers = 1 has no hidden layer"
        if hasattr(encoder, "steps") and encoder.steps == 0:
            unused["encoder.teleport"] = "encoder.steps = 0 takes no step"
        if hasattr(settings, "head") and settings.head.width == 0:
            unused["head.activation"] = "head.width = 0 leaves out the head"
        return unused

    @property
    def preparation(self) -> Preparation:
        """Feature scaling and reduction."""
        return Preparation(self.scaling, self.reduction)

    def share(self, other: Method) -> None:
        """Let the next :meth:`prepare` take over the inputs that another seed of the method has prepared."""
        assert isinstance(other, EncoderMethod)
        self._shared = None if other._prepared is None else (*other._prepared, other.preparation)

    def prepare(self, graph: Data) -> None:
        """Learn feature scaling and reduction, and lay out the graph, unless another seed has."""
        shared, self._shared = self._shared, None
        if shared is not None and shared[0] is graph:
            _, inputs, preparation = shared
            self.scaling.load_state_dict(preparation.scaling.state_dict())
            self.reduction.load_state_dict(preparation.reduction.state_dict())
        else:
            self.preparation.fit(graph.x.float())
            inputs = self._read(graph)
        self._prepared = graph, inputs

    def forget(self) -> None:
        """Release the prepared inputs."""
        self._prepared = None

    def inputs(self, graph: Data) -> Inputs:
        """The prepared inputs, or those of a new graph."""
        if self._prepared is not None and self._prepared[0] is graph:
            return self._prepared[1]
        return self._read(graph)

    def _read(self, graph: Data) -> Inputs:
        return Inputs.of(graph, self.features(graph), alone=self.encoder.alone)

    def features(self, graph: Data) -> Features:
        """X of a graph, scaled and reduced; sparse if that is faster, and only then on the encoder's device."""
        x = self.preparation.apply(graph.x.float())
        return sparse_if_faster(x).to(next(self.encoder.parameters()).device)

    @torch.no_grad()
    def embed(self, graph: Data) -> Tensor:
        """H = f(X, A) of the graph without augmentation."""
        inputs = self.inputs(graph)
        self.eval()
        h = self._encode(inputs, inputs.adjacency, None)
        self.train()
        return h

    def _encode(
        self, inputs: Inputs, adjacency: SparseMatrix, mask: Tensor | None, encoder: GCN | None = None
    ) -> Tensor:
        """H, from ``encoder`` or by default from the method's."""
        mixed = inputs.mixed if adjacency is inputs.adjacency else None
        x = inputs.x if mixed is None else mixed
        h: Tensor = (encoder or self.encoder)(x, adjacency, mask, mixed=mixed is not None)
        return h


class Augmenting(EncoderMethod, GradientMethod):
    """A method that trains on augmented views, H = f(X̃, Ã): edges dropped or rewired, attributes masked.

    Args:
        encoder: f, see :class:`costa.nn.GCN`.
        preparation: Feature scaling and reduction.
        augment: Rates of the graph augmentation of each view, and the centrality that weights them.
    """

    def __init__(self, encoder: GCN, preparation: Preparation, augment: settings.Augment) -> None:
        super().__init__(encoder, preparation)
        self.augment = augment
        self._rates = self._plain_rates()

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Settings of an augmentation are unused if its rate is 0."""
        augment, unused = settings.augment, super().unused(settings)
        if not any(augment.edge_rate):
            unused["augment.edges"] = "augment.edge_rate = 0 leaves the edges as they are"
        if not any(augment.edge_rate + augment.mask_rate):
            unused["augment.centrality"] = "augment.edge_rate and mask_rate = 0 drop nothing"
        return unused

    def prepare(self, graph: Data) -> None:
        """Also compute drop probabilities from centrality, with the graph's X before scaling, or reduced."""
        super().prepare(graph)
        if self.augment.centrality == "none":
            return
        x = self.preparation.apply(graph.x.float()) if self.reduction.reduces else graph.x
        assert isinstance(x, Tensor)  # what is reduced is dense
        edges, attributes = weigh(graph.edge_index, x, self.augment.centrality)
        device = next(self.encoder.parameters()).device

        def probability(weight: Tensor, rate: float) -> Rate:
            return drop_probability(weight, rate).to(device, torch.float32) if rate else None

        self._rates = [(probability(edges, e), probability(attributes, m)) for e, m in self._rates_of_views()]

    def forget(self) -> None:
        """Also release the drop probabilities."""
        super().forget()
        self._rates = self._plain_rates()

    def _plain_rates(self) -> list[tuple[Rate, Rate]]:
        return [(edge_rate or None, mask_rate or None) for edge_rate, mask_rate in self._rates_of_views()]

    def _rates_of_views(self) -> list[tuple[float, float]]:
        """(edge rate, mask rate) of each view; a single rate serves both views."""
        return list(zip((self.augment.edge_rate * 2)[:2], (self.augment.mask_rate * 2)[:2], strict=True))

    def encode_view(self, inputs: Inputs, view: int) -> Tensor:
        """H of one augmented view."""
        return self._encode(inputs, *self.draw_view(inputs, view))

    def draw_view(self, inputs: Inputs, view: int) -> tuple[SparseMatrix, Tensor | None]:
        """Â and the mask of the attributes (None: all stay) of one augmented view."""
        edge_rate, mask_rate = self._rates[view]
        adjacency, mask = inputs.adjacency, None
        if edge_rate is not None and self.augment.edges == "drop":
            adjacency = inputs.layout.normalized(keep_mask(inputs.edge_ids, edge_rate, self.generator))
        elif edge_rate is not None:
            n = inputs.layout.num_nodes
            assert isinstance(edge_rate, float)
            edge_index, edge_weight = permute_edges(
                inputs.edge_index, edge_rate, num_nodes=n, edge_weight=inputs.edge_weight, generator=self.generator
            )
            adjacency = Adjacency(edge_index, n, edge_weight).normalized()
        if mask_rate is not None:
            mask = mask_attributes(inputs.x.shape[1], mask_rate, generator=self.generator)
        return adjacency, mask

    @property
    def capturable(self) -> bool:
        """Rewiring reads the number of edges from the GPU."""
        return not self.augment.rewires


class TwoViews(Augmenting):
    """A method of two views, H₁ = f(X₁, A₁) and H₂ = f(X₂, A₂)."""

    views = 2

    def encode_both(self, graph: Data) -> tuple[Tensor, Tensor]:
        """H₁ and H₂, with fresh draws."""
        inputs = self.inputs(graph)
        return self.encode_view(inputs, 0), self.encode_view(inputs, 1)
