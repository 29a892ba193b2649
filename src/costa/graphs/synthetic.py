"""Synthetic graphs of any size with known communities, for benchmarks and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from costa.errors import InputError
from costa.graphs.pairs import pairs_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


def planted_partition(
    n: int,
    classes: int,
    features: int,
    *,
    degree: float = 10.0,
    homophily: float = 0.8,
    signal: float = 1.0,
    seed: int,
) -> Data:
    """A stochastic block model with equal classes and class-dependent Gaussian features.

    Two nodes of one class are joined with probability p_in, two of different classes with p_out, all
    independently. With m = n·degree/2 and K_in, K_out the numbers of such pairs, p_in = homophily·m/K_in and
    p_out = (1 − homophily)·m/K_out, so the expected mean degree is `degree` and the expected share of edges
    within a class is `homophily`. Each pair of classes draws its number of edges and then the edges, so time and
    memory are O(edges + n·features): pairs that are not joined are never visited. The features are
    x_i = signal·μ_{y_i} + ε_i with ‖μ_c‖ = 1 in a random direction and ε ~ N(0, I).

    Args:
        n: The number of nodes, at least 2.
        classes: The number of classes; their sizes differ by at most one node.
        features: The number of feature columns.
        degree: The expected mean degree.
        homophily: The expected share of edges within a class, from 0 to 1.
        signal: The distance of a class centre from the origin, in standard deviations of the noise.
        seed: Random seed; global generators are not touched.

    Example:
        >>> graph = planted_partition(1000, 4, 16, degree=10, homophily=0.9, seed=0)
        >>> graph.x.shape, graph.y.bincount().tolist()
        (torch.Size([1000, 16]), [250, 250, 250, 250])
    """
    from torch_geometric.data import Data
    from torch_geometric.utils import to_undirected

    if n < 2 or not 1 <= classes <= n or features < 1:
        raise InputError(
            f"a planted partition needs n ≥ 2, 1 ≤ classes ≤ n and features ≥ 1, "
            f"not n = {n}, classes = {classes}, features = {features}."
        )
    if not (0 <= homophily <= 1 and 0 <= degree < np.inf):
        raise InputError(
            f"homophily must lie in [0, 1] and degree be zero or more, not homophily = {homophily}, degree = {degree}."
        )
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    members = [np.flatnonzero(y == c) for c in range(classes)]
    pairs_in = sum(len(m) * (len(m) - 1) // 2 for m in members)
    pairs_out = n * (n - 1) // 2 - pairs_in
    p_in = _probability(homophily * degree * n / 2, pairs_in, "within")
    p_out = _probability((1 - homophily) * degree * n / 2, pairs_out, "between")

    blocks = []
    for a in range(classes):
        size = len(members[a])
        low, high = pairs_of(_subset(size * (size - 1) // 2, p_in, rng)).numpy()
        blocks.append(np.stack([members[a][low], members[a][high]]))
        for b in range(a + 1, classes):
            i, j = np.divmod(_subset(size * len(members[b]), p_out, rng), len(members[b]))
            blocks.append(np.stack([members[a][i], members[b][j]]))

    centres = rng.standard_normal((classes, features), dtype=np.float32)
    centres *= signal / np.linalg.norm(centres, axis=1, keepdims=True)
    x = rng.standard_normal((n, features), dtype=np.float32)
    x += centres[y]
    return Data(
        x=torch.from_numpy(x),
        edge_index=to_undirected(torch.from_numpy(np.concatenate(blocks, axis=1)), num_nodes=n),
        y=torch.from_numpy(y),
        name="planted-partition",
    )


def _probability(edges: float, pairs: int, where: str) -> float:
    """The probability that gives `edges` expected edges among `pairs` pairs."""
    if edges > pairs:
        raise InputError(
            f"{edges:.0f} edges {where} classes do not fit into {pairs} pairs of nodes; "
            f"lower the degree, or change homophily or the number of classes."
        )
    return edges / pairs if pairs else 0.0


def _subset(pairs: int, p: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which of `pairs` pairs are joined when each is, independently, with probability p."""
    return rng.choice(pairs, size=rng.binomial(pairs, p), replace=False, shuffle=False)
