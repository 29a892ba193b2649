"""Clusters of nodes by their vectors: k-means on the rows of Z scaled to length one.

With more than :data:`FITTED` nodes, the centres are those of a random sample, and every node is in the cluster of the
nearest centre. ``auto`` takes the number of clusters with the largest mean silhouette,

    s(i) = (b − a) / max(a, b),    a, b: mean distances to the others of its cluster, and to those of the nearest other

on a random sample of :data:`JUDGED` nodes, of the numbers in :data:`CANDIDATES`; ties go to the fewest. Clusters are
numbered from 1 by size, those of one size by their first node. Their typical nodes are those nearest to the centre.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate.inputs import unit_rows
from costa.insight.similar import ids_of
from costa.writing import write_csv

CANDIDATES = (*range(2, 11), 12, 15, 20)
FITTED, JUDGED = 20_000, 2_000
STARTS, QUICK_STARTS = 10, 3
"""Starts of k-means, and of each number of clusters that is tried."""
TYPICAL = 5
CLUSTERS, HEAD = "clusters.csv", ("id", "cluster")
"""The file of a run's clusters, and its columns."""
ROWS = 2**14
"""Rows that are assigned at a time."""

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Clusters:
    """The clusters of all nodes.

    Attributes:
        of: The cluster of each node, 0 … k − 1 by size.
        sizes: The number of nodes of each.
        typical: The rows of the nodes nearest to each centre, nearest first.
        silhouette: The mean silhouette of this number of clusters, if it was chosen by it.
    """

    of: NDArray[np.int64]
    sizes: list[int]
    typical: list[list[int]]
    silhouette: float | None


def cluster_nodes(z: Tensor, clusters: int | None = None, *, seed: int = 0) -> Clusters:
    """Cluster the rows of Z, which may be mapped; ``clusters`` is their number, None for ``auto``.

    >>> found = cluster_nodes(torch.eye(3).repeat(20, 1) + 0.01 * torch.arange(60)[:, None])
    >>> found.sizes, found.of[:4].tolist()
    ([20, 20, 20], [0, 1, 2, 0])
    """
    some = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed))[:FITTED].sort().values
    sample = unit_rows(z[some], len(some), "cpu").float().numpy()
    different = len(np.unique(sample.round(5), axis=0))
    if different < 2:
        raise InputError("all vectors point the same way, so there is nothing to cluster; train other vectors.")
    if clusters is not None and not 2 <= clusters <= different:
        raise InputError(
            f"the vectors make 2 to {different:,} clusters, not {clusters:,}; choose another number with costa clusters"
            " RUN --clusters."
        )
    silhouette = None
    if clusters is None:
        clusters, silhouette = _choose(sample, different, seed)
    centres = _k_means(sample, clusters, STARTS, seed).cluster_centers_
    of, distance = _assign(z, torch.from_numpy(centres))
    counts = np.bincount(of, minlength=clusters)
    first = [int(np.argmax(of == cluster)) for cluster in range(clusters)]
    by_size = np.lexsort((np.array(first), -counts))
    of = np.argsort(by_size)[of]
    sizes = counts[by_size].tolist()
    ordered = np.split(np.lexsort((distance, of)), np.cumsum(sizes)[:-1])
    return Clusters(of, sizes, [rows[:TYPICAL].tolist() for rows in ordered], silhouette)


def write_clusters(path: Path, graph: Data, clusters: Clusters) -> None:
    """Write each node's cluster, numbered from 1."""
    write_csv(path, HEAD, zip(ids_of(graph), (clusters.of + 1).tolist(), strict=True))


def number_in(path: Path) -> int | None:
    """How many clusters a file of :func:`write_clusters` has; None if there is no file."""
    if not path.is_file():
        return None
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return max(int(row[HEAD[1]]) for row in csv.DictReader(file))
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is damaged; write it again with costa clusters RUN, or delete it.") from None


def _choose(sample: Floats, most: int, seed: int) -> tuple[int, float]:
    """The number of clusters with the largest mean silhouette, and that silhouette."""
    from sklearn.metrics import pairwise_distances, silhouette_score

    judged = sample[np.random.default_rng(seed).permutation(len(sample))[:JUDGED]]
    apart = pairwise_distances(judged)
    np.fill_diagonal(apart, 0)
    scores = {}
    for k in (k for k in CANDIDATES if k <= min(most, len(judged) - 1)):
        of = _k_means(judged, k, QUICK_STARTS, seed).labels_
        scores[k] = round(float(silhouette_score(apart, of, metric="precomputed")), 6)
    if not scores:
        return 2, 0.0
    best = max(scores, key=lambda k: scores[k])
    return best, scores[best]


def _k_means(rows: Floats, clusters: int, starts: int, seed: int) -> KMeans:
    from sklearn.cluster import KMeans

    return KMeans(clusters, n_init=starts, random_state=seed).fit(rows)


def _assign(z: Tensor, centres: Tensor) -> tuple[NDArray[np.int64], Floats]:
    """The nearest centre of each row, scaled to length one, and the distance to it."""
    of, distance = torch.empty(len(z), dtype=torch.long), torch.empty(len(z))
    for start in range(0, len(z), ROWS):
        rows = z[start : start + ROWS]
        part = slice(start, start + len(rows))
        distance[part], of[part] = torch.cdist(unit_rows(rows, len(rows), "cpu").float(), centres.float()).min(1)
    return of.numpy(), distance.numpy()
