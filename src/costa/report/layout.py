"""Two dimensions for the map of the nodes.

    n ≤ 5,000    t-SNE of the vectors, started from their first two principal components
    more         t-SNE of 5,000 nodes drawn at random; every other node is placed among the drawn ones nearest to it

t-SNE keeps neighbourhoods; distances between far groups, and the sizes of groups, mean little. Its time grows with n;
the second form takes less than a minute on one core for the 34,493 nodes of Coauthor-Physics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_AT_ONCE = 5000
"""Largest number of nodes that t-SNE itself places."""
LEAST = 20
"""Fewer nodes are shown by their principal components: there is no neighbourhood to keep."""
COMPONENTS = 50
"""Number of principal components that t-SNE reads; further ones hardly change the neighbourhoods."""
PERPLEXITY = 30.0
ITERATIONS = 500
"""Of t-SNE, half of scikit-learn's default and of the time; the groups have formed by then."""
NEAREST, CLOSEST = 10, 5


@dataclass(frozen=True)
class Layout:
    """The positions of the nodes.

    Attributes:
        points: n × 2, float32.
        kind: ``t-SNE``, ``t-SNE of a sample`` or ``PCA``.
        anchors: Number of nodes that t-SNE placed itself.
    """

    points: NDArray[np.float32]
    kind: str
    anchors: int


def unit_rows(z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length one, as the probe reads them; zero rows stay zero."""
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return (z / np.where(length > 0, length, 1)).astype(np.float32, copy=False)


def lay_out(unit: NDArray[np.float32], *, seed: int = 0, most: int = MOST_AT_ONCE) -> Layout:
    """Two dimensions for rows of length one; the same seed gives the same map.

    Args:
        unit: n × d, finite.
        seed: Random seed of the sample and of t-SNE.
        most: Largest number of nodes that t-SNE itself places.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    n = len(unit)
    points = np.zeros((n, 2), dtype=np.float32)
    if not np.ptp(unit, axis=0).max() > 1e-6:
        return Layout(points, "PCA", 0)
    reduced = PCA(min(COMPONENTS, *unit.shape), random_state=seed).fit_transform(unit)
    if n < LEAST or reduced.shape[1] < 2:
        points[:, : reduced.shape[1]] = reduced[:, :2]
        return Layout(points, "PCA", 0)
    perplexity = min(PERPLEXITY, (min(n, most) - 1) / 3)
    tsne = TSNE(init="pca", perplexity=perplexity, max_iter=ITERATIONS, random_state=seed)
    if n <= most:
        return Layout(tsne.fit_transform(reduced), "t-SNE", n)
    drawn = np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    anchors = tsne.fit_transform(reduced[drawn])
    points[drawn] = anchors
    rest = np.setdiff1d(np.arange(n), drawn)
    points[rest] = place(reduced[rest], reduced[drawn], anchors)
    return Layout(points, "t-SNE of a sample", most)


def place(rows: NDArray[np.float32], known: NDArray[np.float32], anchors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Place each row among the anchors of the known rows nearest to it.

    The median of its 10 nearest shows which group it belongs to; its place is the mean of the 5 that lie closest to
    that median. A plain mean would put a row with neighbours in two groups into the gap between them.

    Args:
        rows: m × d, to be placed.
        known: s × d, already placed.
        anchors: s × 2, the places of ``known``.
    """
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=min(NEAREST, len(known)), algorithm="brute").fit(known)
    around = anchors[nearest.kneighbors(rows, return_distance=False)]
    away = np.linalg.norm(around - np.median(around, axis=1, keepdims=True), axis=2)
    closest = np.argsort(away, axis=1, kind="stable")[:, :CLOSEST, None]
    return np.take_along_axis(around, closest, axis=1).mean(1).astype(np.float32, copy=False)
