"""All of COSTA in one file of plain PyTorch, to read from top to bottom next to the paper.

    python examples/plain_costa.py

Zhang et al.: COSTA: Covariance-Preserving Feature Augmentation for Graph Contrastive Learning, KDD 2022.

    H = f(X, A)           the encoder, on the graph or on two augmented views of it
    H̃ = P (H − mean)      the sketch, which mixes n nodes into k rows; both views share one P, and E is 0
    Z = θ(H̃)              the projection head
    L = contrast(Z₁, Z₂)  row i of one view against all rows of the other; with one view, against all rows of itself

It departs from the paper's equations in four places: every layer has a bias, σ is ELU, the column mean of H is
subtracted before P, and the two-view loss takes its negatives from the other view only (as the released code does).
Given the same weights and draws, the package computes the same loss and gradients: tests/examples/test_plain_costa.py.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

View = tuple[Tensor, Tensor]  # the features X and the normalised adjacency matrix of one view


def normalized_adjacency(edges: Tensor, n: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return D̂^-½ Â D̂^-½ with Â = A + I as a sparse n × n matrix; `edges` (2 × m) lists each undirected edge once."""
    loops = torch.arange(n).expand(2, n)
    row, col = indices = torch.cat([edges, edges.flip(0), loops], dim=1)
    degree = torch.bincount(row, minlength=n).to(dtype)
    values = (degree[row] * degree[col]).rsqrt()
    return torch.sparse_coo_tensor(indices, values, (n, n), check_invariants=True)


def make_view(x: Tensor, edges: Tensor, keep: Tensor, mask: Tensor) -> View:
    """Keep the edges that `keep` marks (one boolean per edge) and the attributes that `mask` marks (one per column)."""
    return x * mask, normalized_adjacency(edges[:, keep], len(x), x.dtype)


def draw_view(x: Tensor, edges: Tensor, edge_rate: float, mask_rate: float, generator: Generator) -> View:
    """Drop each undirected edge with probability `edge_rate` and mask each attribute with probability `mask_rate`."""
    keep = torch.rand(edges.shape[1], generator=generator) >= edge_rate
    mask = torch.rand(x.shape[1], generator=generator) >= mask_rate
    return make_view(x, edges, keep, mask)


def draw_p(kind: str, k: int, n: int, generator: Generator) -> Tensor:
    """Draw P (k × n): `gaussian` has entries from N(0, 1/k), `countsketch` one ±1 in each column, in a random row."""
    if kind == "gaussian":
        return torch.randn(k, n, generator=generator) / k**0.5
    row = torch.randint(k, (n,), generator=generator)
    sign = 2.0 * torch.randint(2, (n,), generator=generator) - 1
    return torch.zeros(k, n).index_put((row, torch.arange(n)), sign)


def sketch(h: Tensor, p: Tensor) -> Tensor:
    """H̃ = P (H − mean). An empty row of P mixes no nodes, so it is left out of H̃ and thereby of the loss."""
    p = p[p.any(dim=1)]
    return p @ (h - h.mean(dim=0))


class TwoLayers(nn.Module):
    """The weights and biases of two layers, which the encoder and the projection head both have."""

    def __init__(self, d_in: int, width: int, generator: Generator) -> None:
        super().__init__()
        self.w1 = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, width), generator=generator))
        self.w2 = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width), generator=generator))
        self.b1, self.b2 = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))


class Encoder(TwoLayers):
    """f(X, A) = GCN₂(GCN₁(X, A), A) with GCN_l(X, A) = σ(D̂^-½ Â D̂^-½ X W_l + b_l)."""

    def forward(self, x: Tensor, a_norm: Tensor) -> Tensor:
        """Return H (n × width), given the normalised adjacency matrix."""
        h = F.elu(a_norm @ (x @ self.w1) + self.b1)
        return F.elu(a_norm @ (h @ self.w2) + self.b2)


class ProjectionHead(TwoLayers):
    """θ(H̃) = σ(H̃ W⁽¹⁾ + b⁽¹⁾) W⁽²⁾ + b⁽²⁾."""

    def forward(self, h_tilde: Tensor) -> Tensor:
        """Return Z, with one row for each row of H̃."""
        return F.elu(h_tilde @ self.w1 + self.b1) @ self.w2 + self.b2


def self_contrast_loss(z: Tensor, tau: float) -> Tensor:
    """−1/k Σᵢ log(e^{uᵢ·uᵢ/τ} / Σⱼ e^{uᵢ·uⱼ/τ}), where uᵢ is row i of Z scaled to length 1."""
    u = F.normalize(z)
    return F.cross_entropy(u @ u.T / tau, torch.arange(len(u)))


def cross_view_loss(z1: Tensor, z2: Tensor, tau: float) -> Tensor:
    """−1/k Σᵢ log(e^{uᵢ·vᵢ/τ} / Σⱼ e^{uᵢ·vⱼ/τ}), averaged with the same loss after swapping the views."""
    u, v = F.normalize(z1), F.normalize(z2)
    similarity, positive = u @ v.T / tau, torch.arange(len(u))
    return (F.cross_entropy(similarity, positive) + F.cross_entropy(similarity.T, positive)) / 2


class COSTA(nn.Module):
    """The encoder f, the projection head θ, and the loss on one view (costa-sv) or on two (costa-mv)."""

    def __init__(self, d_in: int, width: int, generator: Generator) -> None:
        super().__init__()
        self.encoder = Encoder(d_in, width, generator)
        self.head = ProjectionHead(width, width, generator)

    def loss(self, views: list[View], p: Tensor, tau: float) -> Tensor:
        """Contrast the views, all sketched by the same P."""
        z = [self.head(sketch(self.encoder(x, a_norm), p)) for x, a_norm in views]
        return self_contrast_loss(z[0], tau) if len(z) == 1 else cross_view_loss(z[0], z[1], tau)


ONE_VIEW = {"views": 1, "edge_rate": 0.0, "mask_rate": 0.0, "sketch": "gaussian", "tau": 2.0, "weight_decay": 0.02}
TWO_VIEWS = {"views": 2, "edge_rate": 0.5, "mask_rate": 0.3, "sketch": "gaussian", "tau": 0.5, "weight_decay": 0.001}


def train(x: Tensor, edges: Tensor, settings: dict, epochs: int, width: int = 128, seed: int = 0) -> Tensor:
    """Train COSTA with Adam on the whole graph, with new draws in every epoch; return H of the unchanged graph."""
    generator = Generator().manual_seed(seed)
    model = COSTA(x.shape[1], width, generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=settings["weight_decay"])
    n, rates = len(x), (settings["edge_rate"], settings["mask_rate"])
    for _ in range(epochs):
        views = [draw_view(x, edges, *rates, generator) for _ in range(settings["views"])]
        p = draw_p(settings["sketch"], n // 2, n, generator)
        loss = model.loss(views, p, settings["tau"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.encoder(x, normalized_adjacency(edges, n)).detach()


def main(epochs: int = 200) -> None:
    """Train both variants on a graph of digits without labels, then classify the digits from 2% of their labels."""
    from costa import linear_probe, load_graph

    graph = load_graph("digits")
    edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    vectors = {"raw features": graph.x, "untrained encoder": train(graph.x, edges, ONE_VIEW, epochs=0)}
    vectors["costa-sv"] = train(graph.x, edges, ONE_VIEW, epochs)
    vectors["costa-mv"] = train(graph.x, edges, TWO_VIEWS, epochs)
    for name, h in vectors.items():
        print(f"{name:<18} {linear_probe(h, graph.y, 'random-2-2-96').accuracy}")


if __name__ == "__main__":
    main()
