"""What the map knows of every node: where it is drawn, its label, cluster and neighbours, and how these agree.

    agreement of node i = |{j a graph neighbour of i : yⱼ = yᵢ}| / |{j a graph neighbour of i : yⱼ is known}|

for labels, and likewise for clusters. Nearest neighbours are those of the largest cosine among the nodes shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.analysis.degrees import degrees
from costa.report.layout import Layout, lay_out, unit_rows
from costa.report.packing import pack_edges, pack_points, pack_whole

MOST_NODES = 50_000
"""Of a larger graph a random sample is shown: a picture of more says no more, and the page has to be opened."""
MOST_EDGES = 500_000
"""Of a graph with more among the nodes shown, the page keeps the counts and leaves the lines out."""
NEAREST = 6
CLUSTERS = 8
"""Where no label says how many."""
WIDE, REDUCED = 1024, 256
"""Wider vectors are clustered, and their neighbours found, by so many principal components."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """A label or a cluster for each node shown; −1 is none."""

    of: Integers
    names: list[str]
    same: Integers
    known: Integers
    """Of a node's graph neighbours: those in the same group, and those in any."""

    def packed(self) -> dict[str, Any]:
        """As ``map.js`` reads it."""
        columns = {"of": self.of + 1, "same": self.same, "known": self.known}
        return {"names": self.names} | {key: pack_whole(column) for key, column in columns.items()}


@dataclass(frozen=True)
class NodeMap:
    """The map of the nodes.

    Attributes:
        shown: Their places in the graph, all or a sample.
        layout: Where they are drawn.
        labels: None where there are not two.
        clusters: k-means of the vectors, as many as there are classes.
        degree: The number of neighbours of each in the whole graph.
        nearest: The nodes of the largest cosine, the nearest first; places in ``shown``.
        edges: 2 × e between nodes shown, both directions; None where there are too many.
        ids: The user's own names; None where a node's place is its name.
        reduced: Whether clusters and nearest nodes come from principal components.
    """

    shown: Integers
    layout: Layout
    labels: Groups | None
    clusters: Groups
    degree: Integers
    nearest: Integers
    edges: Integers | None
    ids: list[str] | None
    reduced: bool

    def packed(self) -> dict[str, Any]:
        """As ``map.js`` reads it."""
        whole = len(self.shown) == int(self.shown[-1]) + 1
        return {
            "n": len(self.shown),
            "points": pack_points(self.layout.points),
            "labels": None if self.labels is None else self.labels.packed(),
            "clusters": self.clusters.packed(),
            "degree": pack_whole(self.degree),
            "near": self.nearest.shape[1],
            "nearest": pack_whole(self.nearest),
            "edges": None if self.edges is None else pack_edges(self.edges, len(self.shown)),
            "ids": [str(node) for node in self.shown] if self.ids is None and not whole else self.ids,
        }


def map_nodes(z: torch.Tensor, graph: Data, *, seed: int = 0, most: int = MOST_NODES) -> NodeMap:
    """The map of a graph's nodes by their vectors.

    Args:
        z: n × d, finite.
        graph: With ``y``, ``node_ids`` and ``label_names`` where it has them.
        seed: Of the sample, the layout and the clusters.
        most: How many nodes are shown.
    """
    n = graph.num_nodes
    shown = np.arange(n)
    if n > most:
        shown = np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    unit = unit_rows(z.numpy())
    reduced = unit.shape[1] > WIDE
    if reduced:
        from sklearn.decomposition import PCA

        unit = PCA(min(REDUCED, *unit.shape), random_state=seed).fit_transform(unit)
    edge_index = graph.edge_index.numpy()
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    label, names = _labels(graph)
    found = _clusters(unit, label, len(names) or CLUSTERS, seed)
    among = _among(edge_index, shown, n)
    ids = graph.get("node_ids")
    return NodeMap(
        shown=shown,
        layout=lay_out(unit[shown], seed=seed),
        labels=_groups(label, names, edge_index, shown) if names else None,
        clusters=_groups(found, _cluster_names(found, label, names), edge_index, shown),
        degree=degrees(graph.edge_index, n).numpy()[shown],
        nearest=_nearest(unit[shown]),
        edges=among if among.shape[1] <= 2 * MOST_EDGES else None,
        ids=None if ids is None else [str(ids[node]) for node in shown],
        reduced=reduced,
    )


def _labels(graph: Data) -> tuple[Integers, list[str]]:
    """Labels as 0 … K − 1, −1 where there is none, and their names; no name where there are not two classes."""
    y = graph.get("y")
    label = np.full(graph.num_nodes, -1) if y is None else y.numpy()
    classes = np.unique(label[label >= 0])
    if len(classes) < 2:
        return np.full(graph.num_nodes, -1), []
    own = graph.get("label_names")
    names = [str(own[code]) if own is not None else str(code) for code in classes]
    return np.where(label >= 0, np.searchsorted(classes, label), -1), names


def _clusters(unit: NDArray[np.float32], label: Integers, count: int, seed: int) -> Integers:
    """k-means as the probe does it; a cluster gets the number of the class it overlaps most, so that colours match."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans

    count = min(count, len(unit))
    found = KMeans(count, n_init=10, random_state=seed).fit_predict(unit).astype(np.int64)
    if (label < 0).all():
        largest_first = np.argsort(-np.bincount(found, minlength=count), kind="stable")
        return np.argsort(largest_first)[found]
    both = np.zeros((count, int(label.max()) + 1), dtype=np.int64)
    np.add.at(both, (found[label >= 0], label[label >= 0]), 1)
    rows, columns = linear_sum_assignment(both, maximize=True)
    return columns[np.argsort(rows)][found]


def _cluster_names(found: Integers, label: Integers, names: list[str]) -> list[str]:
    """``cluster 3 (91% cats)``: the label that most of its labelled nodes have."""
    titles = []
    for cluster in range(int(found.max()) + 1):
        inside = label[(found == cluster) & (label >= 0)]
        counts = np.bincount(inside, minlength=1)
        share = f" ({counts.max() / len(inside):.0%} {names[int(counts.argmax())]})" if len(inside) else ""
        titles.append(f"cluster {cluster + 1}{share}")
    return titles


def _groups(of: Integers, names: list[str], edge_index: Integers, shown: Integers) -> Groups:
    source, target = edge_index
    known = (of[source] >= 0) & (of[target] >= 0)
    same = known & (of[source] == of[target])
    counts = [np.bincount(source[mask], minlength=len(of))[shown] for mask in (same, known)]
    return Groups(of[shown], names, *counts)


def _nearest(unit: NDArray[np.float32]) -> Integers:
    """The rows of the largest cosine with each row but itself; Euclidean distance says the same of unit rows."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=min(NEAREST, len(unit) - 1), algorithm="brute").fit(unit)
    found: Integers = nearest.kneighbors(return_distance=False)
    return found


def _among(edge_index: Integers, shown: Integers, n: int) -> Integers:
    """The edges between nodes shown, by their places in ``shown``."""
    place = np.full(n, -1)
    place[shown] = np.arange(len(shown))
    inside = place[edge_index]
    return inside[:, (inside >= 0).all(0)]
