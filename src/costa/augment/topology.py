"""Graph augmentation on plain tensors: dropped edges, rewired edges, masked attributes; and by centrality.

Graphs are undirected, and an undirected edge is a pair of entries (u, v), (v, u) of `edge_index`. Whatever happens to
an edge happens to both of its directions, so Â stays symmetric (and the backward product of a GCN can reuse it).

Random numbers are drawn on the generator's device and moved to where they are needed, so a CPU generator gives the
same augmentation on either device.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import degree, to_scipy_sparse_matrix, to_undirected

from costa.augment import streams
from costa.augment.streams import Streams
from costa.errors import InputError

DAMPING = 0.85
"""How much of a node's PageRank comes from its neighbours."""
MOST_LIKELY = 0.7
"""Nothing is dropped with a higher probability, so that what matters least is still seen."""
LEAST_WEIGHT = 1e-8
"""Of the largest weight, in `drop_probability`: far from the largest component eigenvector centrality is a number near
0, whose logarithm would outweigh all others in the mean."""


def edge_ids(edge_index: Tensor, num_nodes: int) -> Tensor:
    """For each entry of `edge_index` the id of its undirected edge, the same for (u, v) and (v, u).

    Ids are 0, 1, … without gaps, and copies of one edge share an id. This sorts the edges: compute it once for a
    graph, and give it to `keep_mask` in every epoch.

    Example:
        >>> edge_ids(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        tensor([0, 0, 1, 1])
    """
    _check_edges(edge_index, num_nodes)
    return torch.unique(_as_numbers(edge_index, num_nodes), return_inverse=True)[1]


def edges_once(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Each undirected edge once, 2 × m, its smaller end first, in rising order; copies of one edge are one.

    Example:
        >>> edges_once(torch.tensor([[2, 1, 1, 0], [1, 0, 2, 1]]), num_nodes=3)
        tensor([[0, 1],
                [1, 2]])
    """
    pairs = _as_numbers(edge_index, num_nodes).unique()
    return torch.stack([pairs // num_nodes, pairs % num_nodes])


def _as_numbers(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Each undirected edge as one number: unique columns are found fifty times as slowly."""
    low, high = edge_index.long().aminmax(dim=0)
    return low * num_nodes + high


def keep_mask(ids: Tensor, rate: float | Tensor, generator: Streams) -> Tensor:
    """Mask over entries: each undirected edge stays with probability 1 − `rate`, independently of the others.

    Args:
        ids: What `edge_ids` returned.
        rate: The probability that an edge is dropped, 0 ≤ rate < 1; or one for each entry, the same for both
            directions of an edge, on the device of `ids`.
        generator: The source of randomness; of several, a mask each, stacked.
    """
    _check_rate(rate)
    # One number an entry is more than one an edge, but needs no look at the largest id, which a GPU would wait for.
    u = streams.uniform(generator, ids.numel()).to(ids.device)
    return u[..., ids] >= rate


def drop_edges(
    edge_index: Tensor,
    rate: float,
    *,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor | None]:
    """Drop each undirected edge, both directions together, with probability `rate`, independently.

    What stays keeps its order and its weight; self-loops are edges like any other. Rate 0 changes nothing.

    Args:
        edge_index: 2 × entries.
        rate: 0 ≤ rate < 1.
        num_nodes: The number of nodes n.
        edge_weight: One weight an entry, or None.
        generator: The source of randomness.

    Returns:
        The edges and the weights that stay (None where none were given).
    """
    kept = keep_mask(edge_ids(edge_index, num_nodes), rate, generator)
    return edge_index[:, kept], None if edge_weight is None else edge_weight[kept]


def permute_edges(
    edge_index: Tensor,
    rate: float,
    *,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor | None]:
    """Rewire a fraction of the undirected edges: edge permutation.

    The law: each distinct undirected edge, independently and with probability `rate`, is removed, and in its place
    comes an edge between u, uniform over the nodes, and v, uniform over the others, with the removed edge's weight.
    No self-loop is introduced; one that was there is an edge like any other. A new edge may fall on an edge that
    stayed, or on another new one (or be the one removed): they merge into one edge of the larger weight, so a graph
    of weights one stays a graph of weights one, and the number of edges never grows.

    Args:
        edge_index: 2 × entries.
        rate: 0 ≤ rate < 1.
        num_nodes: The number of nodes n, at least 2.
        edge_weight: One weight an entry, or None. Where entries of one undirected edge differ, the larger counts.
        generator: The source of randomness.

    Returns:
        The edges, both directions of each, sorted and without duplicates; and their weights (None where none were
        given).
    """
    _check_rate(rate)
    _check_edges(edge_index, num_nodes)
    if num_nodes < 2:
        raise InputError(f"edge permutation needs at least two nodes to connect, and the graph has {num_nodes}.")
    weight = torch.ones_like(edge_index[0]) if edge_weight is None else edge_weight
    edge_index, weight = to_undirected(edge_index, weight, num_nodes=num_nodes, reduce="max")
    once = edge_index[0] <= edge_index[1]
    edges, weight = edge_index[:, once], weight[once]

    replaced = torch.rand(weight.shape, generator=generator, device=generator.device) < rate
    u = torch.randint(0, num_nodes, weight.shape, generator=generator, device=generator.device)
    # A step of 1 … n − 1 around the circle of nodes is uniform over the others.
    step = torch.randint(1, num_nodes, weight.shape, generator=generator, device=generator.device)
    new = torch.stack([u, (u + step) % num_nodes])
    edges = torch.where(replaced.to(edges.device), new.to(edges.device, edges.dtype), edges)

    edges, weight = to_undirected(edges, weight, num_nodes=num_nodes, reduce="max")
    return edges, None if edge_weight is None else weight


def mask_attributes(
    num_features: int,
    rate: float | Tensor,
    *,
    generator: Streams,
    device: torch.device | str | None = None,
    rescale: bool = False,
) -> Tensor:
    """m, 0 with probability `rate` and else 1, one entry a feature: X·diag(m) masks columns for all nodes at once.

    Since X·diag(m)·W = X·(diag(m)·W), multiplying the rows of the first weight matrix by m does the same, and X, a
    constant (sparse) matrix, is never touched. For a dense X, ``x * m`` is enough.

    Args:
        num_features: The number of columns of X.
        rate: 0 ≤ rate < 1; or one for each column, on the generator's device.
        generator: The source of randomness; of several, an m each, stacked.
        device: Where m shall be; the generator's device by default.
        rescale: Divide m by 1 − `rate`, so that E[X·diag(m)] = X.

    Example:
        >>> mask_attributes(6, 0.5, generator=torch.Generator().manual_seed(0))
        tensor([0., 1., 0., 0., 0., 1.])
    """
    _check_rate(rate)
    u = streams.uniform(generator, num_features)
    mask = (u >= rate).to(u.dtype)
    return (mask / (1 - rate) if rescale else mask).to(u.device if device is None else device)


def degree_centrality(edge_index: Tensor, num_nodes: int) -> Tensor:
    """φ(v), the number of edges into v, in float64."""
    return degree(edge_index[1], num_nodes, dtype=torch.float64)


def pagerank_centrality(edge_index: Tensor, num_nodes: int) -> Tensor:
    """φ = (1 − d)/n + d·Σ_{u→v} φ(u)/deg(u) with d = 0.85, in float64: where a random walk is that restarts anywhere.

    What a node without edges has is spread over all nodes, so that Σφ = 1. Each iteration divides the error by at least
    1/d; 200 of them leave nothing that float64 could hold.
    """
    into = _neighbours(edge_index, num_nodes)
    out = degree(edge_index[0], num_nodes, dtype=torch.float64).numpy()
    phi = np.full(num_nodes, 1 / num_nodes)
    for _ in range(200):
        walks = into @ np.divide(phi, out, out=np.zeros(num_nodes), where=out > 0)
        before, phi = phi, (1 - DAMPING) / num_nodes + DAMPING * (walks + phi[out == 0].sum() / num_nodes)
        if np.abs(phi - before).sum() < 1e-14:
            break
    return torch.from_numpy(phi)


def eigenvector_centrality(edge_index: Tensor, num_nodes: int) -> Tensor:
    """φ with A φ = λφ for the largest λ, φ ≥ 0 and ‖φ‖ = 1, in float64.

    Power iteration on A + I, which has the eigenvectors of A; on a bipartite graph A alone would swing between two
    vectors. It ends after 1000 steps, or when one moves φ by less than 1e-12: of a graph whose two largest eigenvalues
    are close it is then an approximation.
    """
    into = _neighbours(edge_index, num_nodes)
    phi = np.full(num_nodes, num_nodes**-0.5)
    for _ in range(1000):
        step = phi + into @ phi
        before, phi = phi, step / np.linalg.norm(step)
        if np.linalg.norm(phi - before) < 1e-12:
            break
    return torch.from_numpy(phi)


CENTRALITIES: Mapping[str, Callable[[Tensor, int], Tensor]] = {
    "degree": degree_centrality,
    "pagerank": pagerank_centrality,
    "eigenvector": eigenvector_centrality,
}
"""φ by name: (edge_index, n) to n numbers. Edge weights are not looked at."""


def weigh(edge_index: Tensor, x: Tensor, centrality: str) -> tuple[Tensor, Tensor]:
    """w_uv = (φ(u) + φ(v))/2 of each entry of `edge_index`, and w_i = Σ_u |x_ui|·φ(u) of each column of X, in float64.

    Example:
        >>> star = torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]])
        >>> weigh(star, torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), "degree")
        (tensor([1.5000, 1.5000, 1.5000, 1.5000], dtype=torch.float64), tensor([2., 2.], dtype=torch.float64))
    """
    phi = CENTRALITIES[centrality](edge_index, len(x))
    return phi[edge_index].mean(0), (phi.to(x.dtype) @ x.abs()).double()


def drop_probability(weight: Tensor, rate: float) -> Tensor:
    """min((s_max − s)/(s_max − s̄) · rate, 0.7) with s = log weight: what weighs less is dropped more often.

    Without the cap the mean is `rate`. A weight of 0 counts as the smallest that is above 0; where all weights are
    alike, all have `rate`, up to the cap.

    Args:
        weight: Of each edge or attribute, 0 or more.
        rate: The mean probability, 0 ≤ rate < 1.

    Example:
        >>> drop_probability(torch.tensor([1.0, 10.0, 100.0, 0.0]), 0.2)
        tensor([0.3200, 0.1600, 0.0000, 0.3200])
    """
    _check_rate(rate)
    if not weight.any():
        return torch.full_like(weight, min(rate, MOST_LIKELY))
    smallest = torch.maximum(weight[weight > 0].min(), LEAST_WEIGHT * weight.max())
    s = weight.clamp(min=smallest).log()
    below = s.max() - s
    if below.max() < 1e-6:  # power iterations leave differences of rounding, which the ratio would blow up
        below = torch.ones_like(below)
    return (below / below.mean() * rate).clamp(max=MOST_LIKELY)


def _neighbours(edge_index: Tensor, num_nodes: int) -> Any:
    """A as SciPy's CSR matrix of float64, whose row v gathers from the sources of the edges into v."""
    _check_edges(edge_index, num_nodes)
    ones = torch.ones(edge_index.shape[1], dtype=torch.float64)
    return to_scipy_sparse_matrix(edge_index.flip(0), ones, num_nodes).tocsr()


def _check_rate(rate: float | Tensor) -> None:
    # A tensor of rates is not looked at, which a GPU would have to be waited for.
    if not isinstance(rate, Tensor) and not 0 <= rate < 1:
        raise InputError(f"the rate of an augmentation must be at least 0 and below 1, not {rate!r}.")


def _check_edges(edge_index: Tensor, num_nodes: int) -> None:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
        raise InputError(
            f"edge_index must hold whole numbers in two rows, not {edge_index.dtype} of shape "
            f"{tuple(edge_index.shape)}."
        )
    if edge_index.numel():
        first, last = int(edge_index.min()), int(edge_index.max())
        if first < 0 or last >= num_nodes:
            raise InputError(
                f"edge_index names the nodes {first} to {last}, but num_nodes={num_nodes} allows 0 to {num_nodes - 1}."
            )
