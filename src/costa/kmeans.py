"""k-means for a GPU: Lloyd's iterations of all starts at once, as products of matrices.

    min over centres c and assignments a of  Σᵢ ‖xᵢ − c_{aᵢ}‖².

Each start chooses its first centres by k-means++: the next one is a row drawn with a probability proportional to its
squared distance from the nearest so far. On a CPU scikit-learn's ``KMeans`` is quicker; the two reach the same inertia,
by other random numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

ITERATIONS = 300
TOLERANCE = 1e-4
"""Centres that together move less than this share of the mean variance of a column have settled, as in scikit-learn."""
CHECK_EVERY = 5


def kmeans(x: Tensor, clusters: int, *, starts: int = 10, seed: int = 0) -> tuple[Tensor, float]:
    """The cluster of every row and the inertia, of the best start.

    Args:
        x: n × d.
        clusters: How many, at most n.
        starts: How many times to begin.
        seed: Of the first centres; they are drawn on the CPU, so that a seed means the same on every device.

    >>> labels, inertia = kmeans(torch.tensor([[0.0], [0.1], [5.0], [5.1]]), 2)
    >>> labels[0] == labels[1], labels[0] == labels[2], round(inertia, 4)
    (tensor(True), tensor(False), 0.01)
    """
    centres = _first_centres(x, clusters, starts, torch.Generator().manual_seed(seed))
    settled = TOLERANCE * x.var(0, unbiased=False).mean()
    for iteration in range(1, ITERATIONS + 1):
        own = torch.nn.functional.one_hot(_nearest(x, centres)[1], clusters).to(x.dtype)
        sizes = own.sum(-2)[..., None]
        # a cluster that lost all its rows stays where it was
        moved = torch.where(sizes > 0, own.mT @ x / sizes.clamp(min=1), centres)
        shift = (moved - centres).square().sum((-1, -2))
        centres = moved
        if iteration % CHECK_EVERY == 0 and bool((shift <= settled).all()):
            break
    distance, label = _nearest(x, centres)
    inertia = distance.sum(-1)
    best = int(inertia.argmin())
    return label[best], float(inertia[best])


def _nearest(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The squared distance of every row to the nearest of each start's centres, and which that is; starts × n."""
    starts, clusters, _ = centres.shape
    products = (x @ centres.flatten(0, 1).T).unflatten(1, (starts, clusters)).movedim(1, 0)
    squared = x.square().sum(-1)[:, None] - 2 * products + centres.square().sum(-1)[:, None, :]
    nearest = squared.min(-1)
    return nearest.values.clamp(min=0), nearest.indices


def _first_centres(x: Tensor, clusters: int, starts: int, generator: torch.Generator) -> Tensor:
    """k-means++, starts × clusters × d."""
    first = torch.randint(len(x), (starts,), generator=generator).to(x.device)
    centres = x[first][:, None]
    distance = _nearest(x, centres)[0]
    for _ in range(clusters - 1):
        # on the CPU: a GPU's running sum is not the same every time
        chances = distance.double().cpu().cumsum(-1)
        u = torch.rand(starts, 1, generator=generator, dtype=torch.float64) * chances[:, -1:]
        chosen = torch.searchsorted(chances, u, right=True).clamp(max=len(x) - 1)
        centres = torch.cat([centres, x[chosen.to(x.device)]], dim=1)
        distance = torch.minimum(distance, _nearest(x, centres[:, -1:])[0])
    return centres
