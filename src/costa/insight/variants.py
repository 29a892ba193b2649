"""The paper's variants: which encoder, and which augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa.insight.bias import Encoder, Subject
from costa.methods.encoding import EncoderMethod
from costa.nn import GCN, SparseMatrix


class MLP(nn.Module):
    """The layers of a GCN without the graph, H ← σ(H W + b), with the same parameters, not a copy."""

    def __init__(self, gcn: GCN) -> None:
        super().__init__()
        self.layers = gcn.layers

    def forward(self, x: Tensor | SparseMatrix, mask: Tensor | None = None) -> Tensor:
        """H, n × d."""
        first, *others = self.layers
        h: Tensor = first(x, None, mask)
        for layer in others:
            h = layer(h, None)
        return h


@dataclass(frozen=True)
class Variant:
    """An encoder and an augmentation. ``title`` is for a person."""

    title: str
    edges: bool = False
    attributes: bool = False
    mlp: bool = False
    rescale: bool = False

    def rates(self, edge_rate: float, mask_rate: float) -> dict[str, Any]:
        """The arguments of :meth:`costa.insight.bias.Subject.draw`."""
        return {
            "edge_rate": edge_rate * self.edges,
            "mask_rate": mask_rate * self.attributes,
            "rescale": self.rescale,
        }


VARIANTS = {
    "nn_a": Variant("MLP, attributes masked", attributes=True, mlp=True),
    "nn_a ÷": Variant("MLP, attributes masked, ÷ (1 − p)", attributes=True, mlp=True, rescale=True),
    "gnn_a": Variant("GCN, attributes masked", attributes=True),
    "gnn_a ÷": Variant("GCN, attributes masked, ÷ (1 − p)", attributes=True, rescale=True),
    "gnn_e": Variant("GCN, edges dropped", edges=True),
    "gnn_ea": Variant("GCN, edges dropped, attributes masked", edges=True, attributes=True),
}


def subject(method: EncoderMethod, graph: Data, *, mlp: bool = False) -> Subject:
    """The method's GCN on the graph, or the MLP that shares its weights."""
    inputs = method.inputs(graph)
    method.eval()
    assert isinstance(method.encoder, GCN)
    encoder: Encoder = method.encoder
    if mlp:
        layers = MLP(method.encoder)
        encoder = lambda x, adjacency, mask: layers(x, mask)  # noqa: E731
    return Subject(encoder, inputs.x, inputs.edge_index, inputs.edge_weight)


def stream(seed: int, device: torch.device) -> torch.Generator:
    """The generator of the draws; on CUDA it differs from the weights' (a CPU generator reads 32 bits of its seed)."""
    return torch.Generator(device).manual_seed(2**32 + seed)
