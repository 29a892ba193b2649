import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from costa.evaluate.profiles import profiles
from costa.graphs import load_graph
from costa.insight import clusters
from costa.insight.clusters import cluster_nodes
from costa.report import nodes
from costa.report.nodes import map_nodes


@pytest.fixture
def square(monkeypatch):
    """0 – 1 – 2 – 3 – 0 and the pair 4 – 5; vectors of two directions; node 3 has no label."""
    monkeypatch.setattr(clusters, "TYPICAL", 1)  # so that a sample is not the whole graph
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5]])
    graph = Data(
        x=torch.eye(6),
        edge_index=torch.cat([edges, edges.flip(1)]).T,
        y=torch.tensor([2, 2, 7, -1, 7, 7]),
        name="square",
    )
    z = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.1, 3.0], [0.0, 1.0], [0.2, 1.0], [0.1, 1.0]])
    return z, graph


def test_labels_clusters_and_neighbours(square):
    found = map_nodes(*square)
    assert found.labels.names == ["2", "7"]
    assert found.labels.of.tolist() == [0, 0, 1, -1, 1, 1]
    assert found.labels.same.tolist() == [1, 1, 0, 0, 1, 1]
    assert found.labels.known.tolist() == [1, 2, 1, 0, 1, 1]  # of neighbours with a label, beside a node that has one
    assert found.clusters.of.tolist() == [0, 0, 1, 1, 1, 1]  # in the places of the classes they overlap
    assert found.clusters.names == ["cluster 2 (100% 2)", "cluster 1 (100% 7)"]
    assert found.clusters.numbers == [2, 1]  # as costa clusters numbers them, by size
    assert found.clusters.same.tolist() == [1, 1, 1, 1, 1, 1]
    assert found.degree.tolist() == [2, 2, 2, 2, 1, 1]
    assert found.nearest[0, 0] == 1
    assert found.nearest[2, 0] == 3 or found.nearest[2, 0] == 5
    assert all(node not in row for node, row in enumerate(found.nearest.tolist()))


def test_cosines_are_those_of_the_vectors(square):
    z, graph = square
    found, unit = map_nodes(z, graph), torch.nn.functional.normalize(z).numpy()
    cosine = unit @ unit.T
    assert found.similar == pytest.approx(np.take_along_axis(cosine, found.nearest, axis=1), abs=1e-6)
    assert found.tied == pytest.approx([cosine[a, b] for a, b in [(0, 1), (0, 3), (1, 2), (2, 3), (4, 5)]], abs=1e-6)


def test_clusters_and_what_sets_them_apart_are_those_of_all_nodes(square):
    z, graph = square
    for number in (None, 3):
        found, part = cluster_nodes(z, number), map_nodes(z, graph, number, most=3)
        assert (part.found.sizes, part.found.typical) == (found.sizes, found.typical)
        assert part.found.of.tolist() == found.of.tolist()
        assert part.traits == profiles(graph, found.of, len(found.sizes))
        assert [part.clusters.numbers[place] - 1 for place in part.clusters.of] == found.of[part.shown].tolist()


def test_of_a_sample_the_typical_nodes_are_shown(square):
    z, graph = square
    part = map_nodes(z.repeat(20, 1), Data(x=z.repeat(20, 1), edge_index=graph.edge_index, num_nodes=120), most=4)
    assert {*itertools.chain(*part.found.typical)} <= {*part.shown.tolist()}
    assert len(part.shown) <= 4 + len(part.found.typical)


def test_ids_and_notes_belong_to_the_nodes_shown(square):
    z, graph = square
    assert (map_nodes(z, graph).packed()["ids"], map_nodes(z, graph).packed()["notes"]) == (None, None)
    graph.node_ids, graph.node_notes = list("abcdef"), [f"note {i}" for i in range(6)]
    part = map_nodes(z, graph, most=2)
    assert part.packed()["ids"] == ["abcdef"[node] for node in part.shown]
    assert part.packed()["notes"] == [f"note {node}" for node in part.shown]


def test_without_labels_clusters_are_counted_by_size(square):
    z, graph = square
    graph.y = None
    found = map_nodes(z, graph)
    assert found.labels is None
    assert (found.clusters.names, found.clusters.numbers) == (["cluster 1", "cluster 2"], [1, 2])
    assert np.bincount(found.clusters.of).tolist() == found.found.sizes == [4, 2]


def test_one_class_alone_is_no_label(square):
    z, graph = square
    graph.y = torch.tensor([1, -1, -1, -1, -1, 1])
    assert map_nodes(z, graph).labels is None


def test_a_sample_keeps_counts_of_the_whole_graph(square):
    z, graph = square
    whole, part = map_nodes(z, graph), map_nodes(z, graph, most=2)
    assert len(part.shown) < 6
    assert part.degree.tolist() == whole.degree[part.shown].tolist()
    assert part.labels.same.tolist() == whole.labels.same[part.shown].tolist()
    assert part.packed()["ids"] == [str(node) for node in part.shown]
    names = {(int(part.shown[a]), int(part.shown[b])) for a, b in part.edges.T}
    assert names <= {(int(a), int(b)) for a, b in graph.edge_index.T}


@pytest.mark.parametrize("most", [200, 5000])
def test_the_map_of_a_graph_on_disk_is_that_of_one_in_memory(most):
    memory, disk = load_graph("digits"), load_graph("digits", memory="1GiB")
    z = torch.randn(memory.num_nodes, 8, generator=torch.Generator().manual_seed(0))
    one, other = (map_nodes(z, graph, most=most) for graph in (memory, disk))
    for name in ("shown", "degree", "nearest"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    for name in ("of", "names", "same", "known"):
        assert np.array_equal(getattr(one.labels, name), getattr(other.labels, name))
        assert np.array_equal(getattr(one.clusters, name), getattr(other.clusters, name))
    assert sorted(map(tuple, one.edges.T)) == sorted(map(tuple, other.edges.T))


def test_of_a_sample_neighbours_that_are_not_shown_count_with_their_cluster(square):
    z, graph = square
    whole, part = map_nodes(z, graph), map_nodes(z, graph, most=2)
    assert len(part.shown) < 6
    assert part.clusters.known.tolist() == whole.clusters.known[part.shown].tolist()
    assert part.clusters.same.tolist() == whole.clusters.same[part.shown].tolist()


def test_too_many_edges_are_left_out(square, monkeypatch):
    monkeypatch.setattr(nodes, "MOST_EDGES", 4)
    found = map_nodes(*square)
    assert found.edges is None
    assert found.packed()["edges"] is None
    assert found.degree.tolist() == [2, 2, 2, 2, 1, 1]


def test_wide_vectors_are_compared_by_principal_components(square, monkeypatch):
    monkeypatch.setattr(nodes, "WIDE", 1)
    found = map_nodes(*square)
    assert found.reduced
    assert found.clusters.of.tolist() == [0, 0, 1, 1, 1, 1]
