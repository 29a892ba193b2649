"""Graph augmentation on plain tensors: dropping edges, rewiring edges, masking attributes; also by centrality.

Graphs are undirected, and an undirected edge is a pair of entries (u, v), (v, u) of `edge_index`. Both directions of an
edge are dropped or rewired together, so Â stays symmetric (and the backward product of a GCN can reuse it).

Random numbers are drawn on the generator's device and then moved, so a CPU generator gives the same augmentation on
either device.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import degree, to_scipy_sparse_matrix, to_undirected

from costa.errors import InputError
from costa.nn.sparse import is_csr, rows_of

DAMPING = 0.85
"""The share of a node's PageRank that comes from its neighbours."""
MOST_LIKELY = 0.7
"""The highest probability of dropping, so that even the least important edge is sometimes seen."""
LEAST_WEIGHT = 1e-8
"""The least weight in `drop_probability`, as a share of the largest: outside the largest component eigenvector
centrality is nearly 0, and its logarithm would dominate the mean."""


def edge_ids(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The id of the undirected edge of each entry of `edge_index`, the same for (u, v) and (v, u).

    Ids are 0, 1, … without gaps, and copies of one edge share an id. This sorts the edges: compute it once for a
    graph, and pass it to `keep_mask` in every epoch.

    Example:
        >>> edge_ids(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        tensor([0, 0, 1, 1])
    """
    _check_edges(edge_index, num_nodes)
    return torch.unique(_as_numbers(edge_index, num_nodes), return_inverse=True)[1]


def edges_once(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Each undirected edge once, 2 × m, the smaller end first, in ascending order, without duplicates.

    Example:
        >>> edges_once(torch.tensor([[2, 1, 1, 0], [1, 0, 2, 1]]), num_nodes=3)
        tensor([[0, 1],
                [1, 2]])
    """
    pairs = _as_numbers(edge_index, num_nodes).unique()
    return torch.stack([pairs // num_nodes, pairs % num_nodes])


def _as_numbers(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Each undirected edge as one number: `torch.unique` is fifty times slower on columns."""
    low, high = edge_index.long().aminmax(dim=0)
    return low * num_nodes + high


def keep_mask(ids: Tensor, rate: float | Tensor, generator: torch.Generator) -> Tensor:
    """Mask over entries: each undirected edge stays with probability 1 − `rate`, independently of the others.

    Args:
        ids: The result of `edge_ids`.
        rate: The probability that an edge is dropped, 0 ≤ rate < 1; or one for each entry, the same for both
            directions of an edge, on the device of `ids`.
        generator: Draws the mask.
    """
    _check_rate(rate)
    # One number per entry, not per edge: reading the largest id would make the CPU wait for the GPU.
    u = torch.rand(ids.numel(), generator=generator, device=generator.device).to(ids.device)
    return u[ids] >= rate


def permute_edges(
    edge_index: Tensor,
    rate: float,
    *,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor | None]:
    """Rewire a fraction of the undirected edges: edge permutation.

    Each distinct undirected edge is replaced, independently and with probability `rate`, by an edge of the same weight
    between u, uniform over the nodes, and v, uniform over the others. No self-loop is introduced; an existing one is
    an edge like any other. A new edge may coincide with a kept edge or with another new one (or be the one removed):
    they merge into one edge of the larger weight, so weights of one stay one, and the number of edges never grows.

    Args:
        edge_index: 2 × entries.
        rate: 0 ≤ rate < 1.
        num_nodes: The number of nodes n, at least 2.
        edge_weight: One weight per entry, or None. If entries of one undirected edge differ, the larger counts.
        generator: Draws the new edges.

    Returns:
        Both directions of each edge, sorted and without duplicates; and their weights (None if none were given).
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
    # u plus a step of 1 … n − 1, modulo n, is uniform over the other nodes.
    step = torch.randint(1, num_nodes, weight.shape, generator=generator, device=generator.device)
    new = torch.stack([u, (u + step) % num_nodes])
    edges = torch.where(replaced.to(edges.device), new.to(edges.device, edges.dtype), edges)

    edges, weight = to_undirected(edges, weight, num_nodes=num_nodes, reduce="max")
    return edges, None if edge_weight is None else weight


def keep_hops(hops: int, rate: float, generator: torch.Generator) -> Tensor:
    """One entry per hop, 0 with probability `rate` and else 1, on the generator's device; at least one is 1.

    >>> keep_hops(3, 0.999, torch.Generator().manual_seed(0)).sum()
    tensor(1.)
    """
    _check_rate(rate)
    u = torch.rand(hops, generator=generator, device=generator.device)
    return ((u >= rate) | (u == u.max())).float()


def mask_attributes(
    num_features: int,
    rate: float | Tensor,
    *,
    generator: torch.Generator,
    device: torch.device | str | None = None,
    rescale: bool = False,
) -> Tensor:
    """m, one entry per feature, 0 with probability `rate` and else 1: X·diag(m) masks columns for all nodes at once.

    Since X·diag(m)·W = X·(diag(m)·W), multiplying the rows of the first weight matrix by m does the same, and X, a
    constant (sparse) matrix, is never touched. For a dense X, ``x * m`` is enough.

    Args:
        num_features: The number of columns of X.
        rate: 0 ≤ rate < 1; or one for each column, on the generator's device.
        generator: Draws the mask.
        device: The device of m; the generator's by default.
        rescale: Divide m by 1 − `rate`, so that E[X·diag(m)] = X.

    Example:
        >>> mask_attributes(6, 0.5, generator=torch.Generator().manual_seed(0))
        tensor([0., 1., 0., 0., 0., 1.])
    """
    _check_rate(rate)
    u = torch.rand(num_features, generator=generator, device=generator.device)
    mask = (u >= rate).to(u.dtype)
    return (mask / (1 - rate) if rescale else mask).to(u.device if device is None else device)


def degree_centrality(edge_index: Tensor, num_nodes: int) -> Tensor:
    """φ(v), the number of edges into v, in float64."""
    return degree(edge_index[1], num_nodes, dtype=torch.float64)


def pagerank_centrality(edge_index: Tensor, num_nodes: int) -> Tensor:
    """φ = (1 − d)/n + d·Σ_{u→v} φ(u)/deg(u) with d = 0.85, in float64: the limit of a random walk with restarts.

    The share of a node without edges is spread over all nodes, so that Σφ = 1. Each iteration shrinks the error by a
    factor of at most d; after 200 it is below the precision of float64.
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

    Power iteration on A + I, which has the eigenvectors of A; on a bipartite graph A alone would alternate between two
    vectors. It ends after 1000 steps, or when a step moves φ by less than 1e-12; if the two largest eigenvalues are
    close, the result is an approximation.
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
"""φ by name: functions of (edge_index, n) that return n numbers. Edge weights are ignored."""


def weigh(edge_index: Tensor, x: Tensor, centrality: str) -> tuple[Tensor, Tensor]:
    """w_uv = (φ(u) + φ(v))/2 for each entry of `edge_index`, and w_i = Σ_u |x_ui|·φ(u) for each column of X, float64.

    X is dense or CSR.

    Example:
        >>> star = torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]])
        >>> weigh(star, torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), "degree")
        (tensor([1.5000, 1.5000, 1.5000, 1.5000], dtype=torch.float64), tensor([2., 2.], dtype=torch.float64))
    """
    phi = CENTRALITIES[centrality](edge_index, x.size(0))
    edges = phi[edge_index].mean(0)
    if is_csr(x):
        return edges, torch.bincount(x.col_indices(), x.values().abs() * phi[rows_of(x)], x.size(1))
    return edges, (phi.to(x.dtype) @ x.abs()).double()


def drop_probability(weight: Tensor, rate: float) -> Tensor:
    """min((s_max − s)/(s_max − s̄) · rate, 0.7) with s = log weight: small weights are dropped more often.

    Without the cap the mean is `rate`. A weight of 0 counts as the smallest positive one; if all weights are equal, all
    probabilities are `rate`, up to the cap.

    Args:
        weight: The weight of each edge or attribute, 0 or more.
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
    if below.max() < 1e-6:  # differences from rounding in the power iteration, which the ratio would blow up
        below = torch.ones_like(below)
    return (below / below.mean() * rate).clamp(max=MOST_LIKELY)


def _neighbours(edge_index: Tensor, num_nodes: int) -> Any:
    """A as a SciPy CSR matrix in float64; row v gathers from the sources of the edges into v."""
    _check_edges(edge_index, num_nodes)
    ones = torch.ones(edge_index.shape[1], dtype=torch.float64)
    return to_scipy_sparse_matrix(edge_index.flip(0), ones, num_nodes).tocsr()


def _check_rate(rate: float | Tensor) -> None:
    # A tensor of rates is not checked: reading it would make the CPU wait for the GPU.
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
