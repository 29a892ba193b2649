"""The plain twins: GRACE, GCA and COSTA as a reader of the papers would write them, with plain PyTorch and PyG.

X is dense, the similarities are dense, everything is float32; edges are dropped by shortening ``edge_index`` and
attributes masked by zeroing columns of a copy of X, as the released codes do. Nothing is fused, cached or captured, and
random numbers come from the global generators. Edge weights are ignored.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import degree, dropout_edge

WIDTH = 128
TAU = 0.5
RATIO = 0.5
LEARNING_RATE = 1e-3
EDGE_RATE = MASK_RATE = 0.2
"""Settings of every contestant, ours too: the comparison is of implementations, not of settings."""
MOST_LIKELY = 0.7
"""GCA's largest drop probability, so that what matters least is still seen."""


class PlainTwin(nn.Module):
    """What the twins share: H = f(X, A) by two ``GCNConv`` with ReLU, Z = θ(H) by Linear, ELU, Linear, and Adam.

    Args:
        graph: On the CPU; the features and edges are moved as they are.
        device: Where to train.
        width: Width of both encoder layers and of the head.
    """

    def __init__(self, graph: Data, device: torch.device, *, width: int = WIDTH) -> None:
        super().__init__()
        self.x = graph.x.to_dense().to(device)
        self.edge_index = graph.edge_index.to(device)
        self.first = GCNConv(graph.num_features, width)
        self.second = GCNConv(width, width)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, width))
        self.to(device)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """H, n × width."""
        h = F.relu(self.first(x, edge_index))
        return F.relu(self.second(h, edge_index))

    def view(self) -> tuple[Tensor, Tensor]:
        """X and edges of an augmented view: each direction of an edge dropped, each column zeroed, independently."""
        edge_index, _ = dropout_edge(self.edge_index, EDGE_RATE)
        hidden = torch.rand(self.x.size(1), device=self.x.device) < MASK_RATE
        return zero_columns(self.x, hidden), edge_index

    def loss(self) -> Tensor:
        """The loss of one epoch."""
        raise NotImplementedError

    def epoch(self) -> Tensor:
        """One step of Adam on the whole graph; the loss stays on its device, unread."""
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, epochs: int) -> None:
        """One epoch after the other."""
        for _ in range(epochs):
            self.epoch()

    @torch.no_grad()
    def embed(self) -> Tensor:
        """H of the graph as it is."""
        return self.encode(self.x, self.edge_index)


class PlainGRACE(PlainTwin):
    """Zhu et al., Deep Graph Contrastive Representation Learning, 2020: two augmented views, n × n similarities.

    It stands for contrast between all nodes: the negatives of a node are all others, in both views.
    """

    def loss(self) -> Tensor:
        """The loss ``both`` of the two projected views."""
        z1, z2 = (self.head(self.encode(*self.view())) for _ in range(2))
        return contrast_both(z1, z2, TAU)


class PlainGCA(PlainGRACE):
    """Zhu et al., Graph Contrastive Learning with Adaptive Augmentation, WWW 2021, by degree centrality.

    It stands for GRACE with an augmentation that knows the graph: with φ(v) the degree of v, an edge weighs
    s_uv = log (φ(u) + φ(v))/2 and an attribute s_i = log Σ_v |x_vi|·φ(v), and both are dropped with the probability
    min((max s − s)/(max s − mean s) · p, 0.7). These probabilities are computed once.
    """

    def __init__(self, graph: Data, device: torch.device, *, width: int = WIDTH) -> None:
        super().__init__(graph, device, width=width)
        centrality = degree(self.edge_index[1], graph.num_nodes)
        self.edge_drop = drop_probability(centrality[self.edge_index].mean(0), EDGE_RATE)
        self.column_drop = drop_probability(self.x.abs().T @ centrality, MASK_RATE)

    def view(self) -> tuple[Tensor, Tensor]:
        """X and edges of an augmented view; central edges and attributes are kept more often."""
        kept = torch.bernoulli(1 - self.edge_drop).bool()
        hidden = torch.bernoulli(self.column_drop).bool()
        return zero_columns(self.x, hidden), self.edge_index[:, kept]


class PlainCOSTA(PlainTwin):
    """Zhang et al., COSTA, KDD 2022: H̃ = PH with P = randn(k, n)/√k written out, k × k similarities, no centring.

    One view is contrasted with itself, and nothing is dropped; two augmented views are sketched by the same P and
    contrasted across.

    Args:
        graph: On the CPU.
        device: Where to train.
        views: 1 or 2.
        draw_on: Device that P is drawn on, then moved to H's: ``"cpu"`` in the released code; by default H's device.
        width: Width of both encoder layers and of the head.
    """

    def __init__(
        self, graph: Data, device: torch.device, *, views: int, draw_on: str | None = None, width: int = WIDTH
    ) -> None:
        super().__init__(graph, device, width=width)
        self.views = views
        self.draw_on = torch.device(draw_on) if draw_on else device

    def loss(self) -> Tensor:
        """The loss ``self`` of one projected sketch, or ``cross`` of two."""
        views = [self.view() for _ in range(2)] if self.views == 2 else [(self.x, self.edge_index)]
        hidden = [self.encode(*view) for view in views]
        n = self.x.size(0)
        k = round(RATIO * n)
        p = torch.randn(k, n, device=self.draw_on).to(self.x.device) / math.sqrt(k)
        z = [self.head(p @ h) for h in hidden]
        return contrast_self(z[0], TAU) if self.views == 1 else contrast_cross(z[0], z[1], TAU)


def drop_probability(weight: Tensor, rate: float) -> Tensor:
    """min((max s − s)/(max s − mean s) · rate, 0.7) with s = log weight: the mean, uncapped, is ``rate``.

    A weight of zero (an attribute that no node has) counts as the smallest positive one; if all are equal, all have
    ``rate``.

    >>> drop_probability(torch.tensor([1.0, 10.0, 100.0]), 0.2)
    tensor([0.4000, 0.2000, 0.0000])
    """
    s = weight.clamp(min=weight[weight > 0].min()).log()
    below = s.max() - s
    share = below / below.mean() if below.any() else torch.ones_like(below)
    return (share * rate).clamp(max=MOST_LIKELY)


def zero_columns(x: Tensor, hidden: Tensor) -> Tensor:
    """A copy of X with the ``hidden`` columns zero."""
    x = x.clone()
    x[:, hidden] = 0
    return x


def contrast_both(z1: Tensor, z2: Tensor, tau: float) -> Tensor:
    """−log e^{uᵢ·vᵢ/τ} / (Σⱼ e^{uᵢ·vⱼ/τ} + Σ_{j≠i} e^{uᵢ·uⱼ/τ}), mean over i and over both directions."""
    u, v = F.normalize(z1), F.normalize(z2)

    def one_way(a: Tensor, b: Tensor) -> Tensor:
        within, across = (a @ a.T / tau).exp(), (a @ b.T / tau).exp()
        return -(across.diag() / (across.sum(1) + within.sum(1) - within.diag())).log()

    return (one_way(u, v) + one_way(v, u)).mean() / 2


def contrast_cross(z1: Tensor, z2: Tensor, tau: float) -> Tensor:
    """½·CE(UVᵀ/τ, i) + ½·CE(VUᵀ/τ, i)."""
    logits = F.normalize(z1) @ F.normalize(z2).T / tau
    positives = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, positives) + F.cross_entropy(logits.T, positives)) / 2


def contrast_self(z: Tensor, tau: float) -> Tensor:
    """CE(UUᵀ/τ, i): each row against all rows, itself the positive."""
    u = F.normalize(z)
    return F.cross_entropy(u @ u.T / tau, torch.arange(len(u), device=u.device))
