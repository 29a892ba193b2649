"""The map's data on every node: its position, label, cluster and neighbours, and how these agree.

    agreement of node i = |{j a graph neighbour of i : yⱼ = yᵢ}| / |{j a graph neighbour of i : yⱼ is known}|

for labels, and likewise for clusters, which are those of ``costa clusters``. Nearest neighbours are those of the
largest cosine among the nodes shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.evaluate.profiles import Trait, profiles
from costa.graphs.storage import StoredGraph
from costa.insight.clusters import Clusters, cluster_nodes
from costa.report.columns import Columns, columns_of
from costa.report.layout import Layout, lay_out, unit_rows
from costa.report.packing import each_edge_once, pack_cosines, pack_edges, pack_points, pack_whole

MOST_NODES = 50_000
"""A larger graph is shown by a random sample and its clusters' typical nodes, so that a browser can open the page."""
MOST_EDGES = 500_000
"""With more edges among the nodes shown, the page keeps the counts and leaves out the lines."""
NEAREST = 6
ROWS = 2**14
"""Cosines that are computed at a time."""
WIDE, REDUCED = 1024, 256
"""Vectors wider than ``WIDE`` are compared by their first ``REDUCED`` principal components."""
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
    numbers: list[int] | None = None
    """What ``costa clusters`` calls each cluster, whose place here decides its colour; 0 where there is none."""

    def packed(self) -> dict[str, Any]:
        """As ``decode.js`` reads it."""
        columns = {"of": self.of + 1, "same": self.same, "known": self.known}
        return {"names": self.names, "numbers": self.numbers} | {key: pack_whole(it) for key, it in columns.items()}


@dataclass(frozen=True)
class NodeMap:
    """The map of the nodes.

    Attributes:
        shown: Indices of the nodes shown: all of the graph's, or a sample.
        of: The number of the graph's nodes.
        layout: Their positions.
        labels: None if there are fewer than two classes.
        clusters: Those of ``found``, in the places of the classes that they overlap most.
        found: The clusters of all nodes.
        traits: What sets each of these apart.
        degree: The number of neighbours of each in the whole graph.
        nearest: For each node those of the largest cosine, nearest first; indices into ``shown``.
        similar: Their cosines.
        edges: 2 × e between nodes shown, both directions; None if there are too many.
        tied: The cosines of the ends of each of these edges, as :func:`each_edge_once` has them; None without edges.
        ids: The user's node ids; None if a node's index is its id.
        notes: A line of text on each node; None if the graph has none.
        columns: Those of the user's table, or of X.
        reduced: Whether the nearest nodes come from principal components.
    """

    shown: Integers
    of: int
    layout: Layout
    labels: Groups | None
    clusters: Groups
    found: Clusters
    traits: list[list[Trait]]
    degree: Integers
    nearest: Integers
    similar: NDArray[np.float32]
    edges: Integers | None
    tied: NDArray[np.float32] | None
    ids: list[str] | None
    notes: list[str] | None
    columns: Columns
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


def map_nodes(
    z: torch.Tensor, graph: Data, clusters: int | None = None, *, seed: int = 0, most: int = MOST_NODES
) -> NodeMap:
    """The map of a graph's nodes by their vectors.

    Args:
        z: n × d, finite.
        graph: May have ``y``, ``node_ids``, ``label_names``, ``node_notes``, and what :func:`columns_of` and
            :func:`profiles` read.
        clusters: Their number; None for the one with the largest silhouette.
        seed: Random seed of the sample, the layout and the clusters.
        most: How many nodes are shown of a larger graph, apart from the typical ones.
    """
    from sklearn.decomposition import PCA

    n, found = graph.num_nodes, cluster_nodes(z, clusters, seed=seed)
    shown = np.arange(n)
    if n > most:
        drawn = np.random.default_rng(seed).choice(n, most, replace=False)
        shown = np.union1d(drawn, np.concatenate(found.typical))
    links = _links(graph, shown)
    directions, reduced = unit_rows(z[shown].numpy()), z.shape[1] > WIDE
    fewer = PCA(min(REDUCED, *directions.shape), random_state=seed)
    unit = fewer.fit_transform(directions) if reduced else directions
    label, names = _labels(graph)
    among, nearest = _among(links, shown, n), _nearest(unit)
    columns, few = columns_of(graph, shown), among.shape[1] <= 2 * MOST_EDGES
    ids, notes = ([str(text[node]) for node in shown] if (text := graph.get(key)) else None for key in TEXTS)
    return NodeMap(
        shown=shown,
        of=n,
        layout=lay_out(unit, seed=seed),
        labels=_groups(label, names, links, shown) if names else None,
        clusters=_clusters(found, label, names, links, shown),
        found=found,
        traits=profiles(graph, found.of, len(found.sizes)),
        degree=np.bincount(links[0], minlength=len(shown)),
        nearest=nearest,
        similar=_cosines(directions, *_pairs(nearest)).reshape(nearest.shape),
        edges=among if few else None,
        tied=_cosines(directions, *each_edge_once(among)) if few else None,
        ids=ids,
        notes=notes,
        columns=columns,
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


def _clusters(found: Clusters, label: Integers, names: list[str], links: Integers, shown: Integers) -> Groups:
    """The clusters, each in the place of the class that it overlaps most, so that their colours match."""
    from scipy.optimize import linear_sum_assignment

    count, labelled = len(found.sizes), label >= 0
    overlap = np.zeros((count, max(count, len(names))), dtype=np.int64)
    np.add.at(overlap, (found.of[labelled], label[labelled]), 1)
    _, place = linear_sum_assignment(overlap, maximize=True)
    titles, numbers = [""] * overlap.shape[1], [0] * overlap.shape[1]
    for number, (at, counts) in enumerate(zip(place.tolist(), overlap, strict=True), start=1):
        most = f" ({counts.max() / counts.sum():.0%} {names[int(counts.argmax())]})" if counts.any() else ""
        titles[at], numbers[at] = f"cluster {number}{most}", number
    return replace(_groups(place[found.of], titles, links, shown), numbers=numbers)


def _groups(of: Integers, names: list[str], links: Integers, shown: Integers) -> Groups:
    source, target = of[shown][links[0]], of[links[1]]
    known = (source >= 0) & (target >= 0)
    same = known & (source == target)
    in_same, in_any = (np.bincount(links[0][mask], minlength=len(shown)) for mask in (same, known))
    return Groups(of[shown], names, in_same, in_any)


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
