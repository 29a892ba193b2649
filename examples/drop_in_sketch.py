"""A sketch in your own loop: a plain GRACE in PyTorch Geometric, and the same with COSTA's sketch.

    python examples/drop_in_sketch.py

The three lines that add the sketch are marked. With them the loss contrasts k mixtures of nodes instead of n nodes, so
its matrix of similarities has k² entries instead of n².
"""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.utils import dropout_edge, mask_feature

from costa import linear_probe, load_graph
from costa.augment import RandomProjection


class Encoder(nn.Module):
    """Two graph convolutions."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, width), GCNConv(width, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return H, with one row per node."""
        return F.elu(self.second(F.elu(self.first(x, edge_index)), edge_index))


def info_nce(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    """Row i of one view belongs to row i of the other; all other rows are its negatives."""
    similarity = F.normalize(u) @ F.normalize(v).T / tau
    positive = torch.arange(len(u))
    return (F.cross_entropy(similarity, positive) + F.cross_entropy(similarity.T, positive)) / 2


def train(sketched: bool, epochs: int = 20, width: int = 128) -> tuple[Tensor, int, float]:
    """Return the vectors, the number of rows in the loss, and milliseconds per epoch."""
    torch.manual_seed(0)
    graph = load_graph("digits")
    encoder, head = Encoder(graph.num_features, width), nn.Sequential(nn.Linear(width, width), nn.ELU())
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    sketch = RandomProjection(ratio=0.25, generator=torch.Generator().manual_seed(0))  # 2: k = n/4
    rows, began = 0, time.perf_counter()
    for _ in range(epochs):
        views = []
        for _ in range(2):
            edge_index, _ = dropout_edge(graph.edge_index, p=0.3, force_undirected=True)
            x, _ = mask_feature(graph.x, p=0.2)
            views.append(encoder(x, edge_index))
        if sketched:
            views = sketch(*views)  # 3: the same P for both views
        rows = len(views[0])
        loss = info_nce(head(views[0]), head(views[1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    milliseconds = 1000 * (time.perf_counter() - began) / epochs
    with torch.no_grad():
        return encoder(graph.x, graph.edge_index), rows, milliseconds


def main() -> None:
    """Train with and without the sketch, and compare."""
    y = load_graph("digits").y
    for name, sketched in (("GRACE, plain", False), ("GRACE, sketched", True)):
        z, rows, milliseconds = train(sketched)
        probe = linear_probe(z, y, "random-2-2-96").accuracy
        print(f"{name:<16} {rows:5} rows in the loss   {milliseconds:5.0f} ms an epoch   {probe}")


if __name__ == "__main__":
    main()
