"""Clusters: planted blocks are found, whatever their number, and every node is in one."""

import csv

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.insight import clusters
from costa.insight.clusters import cluster_nodes, number_in, write_clusters
from costa.methods import get_method
from costa.settings.presets import resolve
from costa.training import train_and_embed


def blobs(sizes, d=12, noise=0.15, seed=0):
    """Vectors around as many directions, of random lengths, and the direction of each."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    y = y[torch.randperm(len(y), generator=generator)]
    z = torch.eye(len(sizes), d)[y] + noise * torch.randn(len(y), d, generator=generator)
    return z * (0.1 + torch.rand(len(y), 1, generator=generator)), y.numpy()


@pytest.mark.parametrize("sizes", [(150, 100), (90, 80, 60, 50, 40)])
def test_auto_finds_the_number_that_was_planted(sizes):
    z, y = blobs(sizes)
    found = cluster_nodes(z)
    assert found.sizes == list(sizes)
    assert found.of.tolist() == y.tolist()  # both are numbered by size
    assert found.silhouette > 0.4


def test_planted_blocks_of_a_graph_are_found():
    graph = planted_partition(1200, 4, 32, degree=12, homophily=0.9, signal=2, seed=0)
    method = get_method("diffused")
    z = train_and_embed(method, resolve(method, graph).values, graph, device=torch.device("cpu"))[2]
    found = cluster_nodes(z)
    assert len(found.sizes) == 4
    assert adjusted_rand_score(graph.y.numpy(), found.of) > 0.95


def test_a_number_that_is_given_is_kept():
    z, _ = blobs((60, 50, 40))
    found = cluster_nodes(z, 2)
    assert (len(found.sizes), found.silhouette) == (2, None)
    assert found.sizes == sorted(found.sizes, reverse=True)
    assert sum(found.sizes) == 150


def test_typical_nodes_are_those_nearest_to_the_centre():
    z, _ = blobs((60, 50, 40))
    found = cluster_nodes(z, 3)
    unit = (z / z.norm(dim=1, keepdim=True)).numpy()
    for number, rows in enumerate(found.typical):
        inside = np.flatnonzero(found.of == number)
        distance = np.linalg.norm(unit[inside] - unit[inside].mean(0), axis=1)
        assert rows == inside[np.argsort(distance)[:5]].tolist()


def test_a_large_graph_is_clustered_by_a_sample_and_in_blocks(monkeypatch):
    z, y = blobs((900, 700, 400))
    monkeypatch.setattr(clusters, "FITTED", 300)
    monkeypatch.setattr(clusters, "JUDGED", 200)
    monkeypatch.setattr(clusters, "ROWS", 128)
    found = cluster_nodes(z)
    assert found.of.tolist() == y.tolist()
    again = cluster_nodes(z)
    assert (found.of == again.of).all()


def test_what_cannot_be_clustered_is_one_sentence():
    z, _ = blobs((30, 20))
    with pytest.raises(InputError, match="all vectors point the same way"):
        cluster_nodes(torch.ones(20, 3))
    for wrong in (0, 1, 51):
        with pytest.raises(InputError, match=f"the vectors make 2 to 50 clusters, not {wrong}; choose another"):
            cluster_nodes(z, wrong)
    two = torch.eye(2).repeat(10, 1)
    assert cluster_nodes(two).sizes == [10, 10]
    assert cluster_nodes(torch.eye(2)).sizes == [1, 1]


def test_the_file_has_every_node(tmp_path):
    z, y = blobs((3, 2))
    graph = Data(x=z, num_nodes=5, node_ids=["a", "b", "c", "d", "é,e"])
    write_clusters(tmp_path / "clusters.csv", graph, cluster_nodes(z, 2))
    with (tmp_path / "clusters.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "cluster"]
    assert rows == [[node, str(of + 1)] for node, of in zip(graph.node_ids, y, strict=True)]


def test_the_number_of_clusters_is_read_from_their_file(tmp_path):
    path = tmp_path / "clusters.csv"
    assert number_in(path) is None
    path.write_text("id,cluster\na,2\nb,11\nc,1\n")
    assert number_in(path) == 11
    for damaged in ("", "id,cluster\n", "id,group\na,1\n", "id,cluster\na,one\n", "id,cluster\na,1\nb\n"):
        path.write_text(damaged)
        with pytest.raises(InputError, match=r"clusters\.csv is damaged; write it again"):
            number_in(path)
