"""The map's data on every node: its position, label, cluster and neighbours, and how these agree.

    agreement of node i = |{j a graph neighbour of i : yⱼ = yᵢ}| / |{j a graph neighbour of i : yⱼ is known}|

for labels, and likewise for clusters, which are those of the nodes shown; a neighbour that is not shown is of the
nearest one. Nearest neighbours are those of the largest cosine among the nodes shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.evaluate.profiles import Profile, profiles
from costa.graphs.storage import StoredGraph
from costa.report.columns import Columns, columns_of
from costa.report.layout import Layout, lay_out, unit_rows
from costa.report.packing import each_edge_once, pack_cosines, pack_edges, pack_points, pack_whole

MOST_NODES = 50_000
"""A larger graph is shown by a random sample, so that a browser can open the page."""
MOST_EDGES = 500_000
"""With more edges among the nodes shown, the page keeps the counts and leaves out the lines."""
NEAREST = 6
CLUSTERS = 8
"""Number of clusters for a graph without labels."""
ROWS = 2**14
"""Vectors that are read at a time, of a graph that is not all shown."""
WIDE, REDUCED = 1024, 256
"""Vectors wider than ``WIDE`` are clustered and compared by their first ``REDUCED`` principal components."""
TEXTS = ("node_ids", "node_notes")

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """A label or a cluster for each node shown; −1 means none."""

    of: Integers
    names: list[str]
    same: Integers
    known: Integers
    """Number of a node's graph neighbours in the same group (``same``) and in any group (``known``)."""

    def packed(self) -> dict[str, Any]:
        """As ``decode.js`` reads it."""
        columns = {"of": self.of + 1, "same": self.same, "known": self.known}
        return {"names": self.names} | {key: pack_whole(column) for key, column in columns.items()}


@dataclass(frozen=True)
class NodeMap:
    """The map of the nodes.

    Attributes:
        shown: Indices of the nodes shown: all of the graph's, or a sample.
        of: The number of the graph's nodes.
        layout: Their positions.
        labels: None if there are fewer than two classes.
        clusters: k-means clusters of the vectors, as many as classes.
        degree: The number of neighbours of each in the whole graph.
        nearest: For each node those of the largest cosine, nearest first; indices into ``shown``.
        similar: Their cosines.
        edges: 2 × e between nodes shown, both directions; None if there are too many.
        tied: The cosines of the ends of each of these edges, as :func:`each_edge_once` has them; None without edges.
        ids: The user's node ids; None if a node's index is its id.
        notes: A line of text on each node; None if the graph has none.
        columns: Those of the user's table, or of X.
        profiles: What each cluster of the nodes shown is.
        reduced: Whether clusters and nearest nodes come from principal components.
    """

    shown: Integers
    of: int
    layout: Layout
    labels: Groups | None
    clusters: Groups
    degree: Integers
    nearest: Integers
    similar: NDArray[np.float32]
    edges: Integers | None
    tied: NDArray[np.float32] | None
    ids: list[str] | None
    notes: list[str] | None
    columns: Columns
    profiles: list[Profile]
    reduced: bool

    def packed(self) -> dict[str, Any]:
        """As ``decode.js`` reads it."""
        whole = len(self.shown) == self.of
        return {
            "n": len(self.shown),
            "points": pack_points(self.layout.points),
            "labels": None if self.labels is None else self.labels.packed(),
            "clusters": self.clusters.packed(),
            "degree": pack_whole(self.degree),
            "near": self.nearest.shape[1],
            "nearest": pack_whole(self.nearest),
            "similar": pack_cosines(self.similar),
            "edges": None if self.edges is None else pack_edges(self.edges, len(self.shown)),
            "tied": None if self.tied is None else pack_cosines(self.tied),
            "ids": [str(node) for node in self.shown] if self.ids is None and not whole else self.ids,
            "notes": self.notes,
            "columns": [column.packed() for column in self.columns.kept],
        }


def map_nodes(z: torch.Tensor, graph: Data, *, seed: int = 0, most: int = MOST_NODES) -> NodeMap:
    """The map of a graph's nodes by their vectors.

    Args:
        z: n × d, finite.
        graph: May have ``y``, ``node_ids``, ``label_names``, ``node_notes`` and what :func:`columns_of` reads.
        seed: Random seed of the sample, the layout and the clusters.
        most: Largest number of nodes shown.
    """
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    n = graph.num_nodes
    shown = np.arange(n)
    if n > most:
        shown = np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    links = _links(graph, shown)
    directions, reduced = unit_rows(z[shown].numpy()), z.shape[1] > WIDE
    principal = PCA(min(REDUCED, *directions.shape), random_state=seed).fit(directions) if reduced else None
    unit = directions if principal is None else principal.transform(directions)
    label, names = _labels(graph)
    clusters = KMeans(min(len(names) or CLUSTERS, len(unit)), n_init=10, random_state=seed).fit(unit)
    number = _numbers(clusters.labels_, clusters.n_clusters, label[shown])
    cluster = np.full(n, -1)
    cluster[shown] = number[clusters.labels_]
    beside = np.setdiff1d(links[1], shown)
    for start in range(0, len(beside), ROWS):
        some = beside[start : start + ROWS]
        rows = unit_rows(z[some].numpy())
        cluster[some] = number[clusters.predict(rows if principal is None else principal.transform(rows))]
    among, nearest = _among(links, shown, n), _nearest(unit)
    columns, few = columns_of(graph, shown), among.shape[1] <= 2 * MOST_EDGES
    ids, notes = ([str(text[node]) for node in shown] if (text := graph.get(key)) else None for key in TEXTS)
    return NodeMap(
        shown=shown,
        of=n,
        layout=lay_out(unit, seed=seed),
        labels=_groups(label, names, links, shown) if names else None,
        clusters=_groups(cluster, _cluster_names(cluster[shown], label[shown], names), links, shown),
        degree=np.bincount(links[0], minlength=len(shown)),
        nearest=nearest,
        similar=_cosines(directions, *_pairs(nearest)).reshape(nearest.shape),
        edges=among if few else None,
        tied=_cosines(directions, *each_edge_once(among)) if few else None,
        ids=ids,
        notes=notes,
        columns=columns,
        profiles=profiles(directions, cluster[shown], columns.values()),
        reduced=reduced,
    )


def _links(graph: Data, shown: Integers) -> Integers:
    """The edges of the nodes shown without self-loops, 2 × e: an index into ``shown``, and the neighbour."""
    if isinstance(graph, StoredGraph):
        of_stored: Integers = graph.links_of(torch.from_numpy(shown)).numpy()
        return of_stored
    source, target = graph.edge_index.numpy()
    place = _places(shown, graph.num_nodes)[source]
    of_shown = (place >= 0) & (source != target)
    return np.stack([place[of_shown], target[of_shown]])


def _places(shown: Integers, n: int) -> Integers:
    """The index of each of n nodes in ``shown``; −1 for others."""
    places = np.full(n, -1)
    places[shown] = np.arange(len(shown))
    return places


def _labels(graph: Data) -> tuple[Integers, list[str]]:
    """Labels as 0 … K − 1 (−1: none) and their names; no names if there are fewer than two classes."""
    y = graph.get("y")
    label = np.full(graph.num_nodes, -1) if y is None else y.numpy()
    classes = np.unique(label[label >= 0])
    if len(classes) < 2:
        return np.full(graph.num_nodes, -1), []
    label_names = graph.get("label_names")
    names = [str(label_names[code]) if label_names is not None else str(code) for code in classes]
    return np.where(label >= 0, np.searchsorted(classes, label), -1), names


def _numbers(cluster: Integers, count: int, label: Integers) -> Integers:
    """New numbers for clusters: of the class that each overlaps most, so that colours match, else by size."""
    from scipy.optimize import linear_sum_assignment

    numbers = np.empty(count, dtype=np.int64)
    if (label < 0).all():
        numbers[np.argsort(-np.bincount(cluster, minlength=count), kind="stable")] = np.arange(count)
        return numbers
    overlap = np.zeros((count, max(count, int(label.max()) + 1)), dtype=np.int64)
    np.add.at(overlap, (cluster[label >= 0], label[label >= 0]), 1)
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    numbers[rows] = columns
    return numbers


def _cluster_names(cluster: Integers, label: Integers, names: list[str]) -> list[str]:
    """``cluster 3 (91% cats)``: the most common label among its labelled nodes."""
    titles = []
    for number in range(int(cluster.max()) + 1):
        inside = label[(cluster == number) & (label >= 0)]
        counts = np.bincount(inside, minlength=1)
        share = f" ({counts.max() / len(inside):.0%} {names[int(counts.argmax())]})" if len(inside) else ""
        titles.append(f"cluster {number + 1}{share}")
    return titles


def _groups(of: Integers, names: list[str], links: Integers, shown: Integers) -> Groups:
    source, target = of[shown][links[0]], of[links[1]]
    known = (source >= 0) & (target >= 0)
    same = known & (source == target)
    counts = [np.bincount(links[0][mask], minlength=len(shown)) for mask in (same, known)]
    return Groups(of[shown], names, *counts)


def _nearest(unit: NDArray[np.float32]) -> Integers:
    """For each row the other rows of the largest cosine, which for unit rows is the smallest Euclidean distance."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=min(NEAREST, len(unit) - 1), algorithm="brute").fit(unit)
    indices: Integers = nearest.kneighbors(return_distance=False)
    return indices


def _pairs(nearest: Integers) -> tuple[Integers, Integers]:
    """Each row's number beside each of its entries."""
    return np.arange(len(nearest)).repeat(nearest.shape[1]), nearest.ravel()


def _cosines(unit: NDArray[np.float32], one: Integers, other: Integers) -> NDArray[np.float32]:
    """The cosine of each pair of rows."""
    starts = range(0, len(one), ROWS)
    parts = [(unit[one[i : i + ROWS]] * unit[other[i : i + ROWS]]).sum(1) for i in starts]
    return np.concatenate([np.empty(0, np.float32), *parts])


def _among(links: Integers, shown: Integers, n: int) -> Integers:
    """The edges between nodes shown, as indices into ``shown``."""
    target = _places(shown, n)[links[1]]
    return np.stack([links[0], target])[:, target >= 0]
