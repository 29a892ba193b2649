"""Edges that are held out before training."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from costa.errors import InputError
from costa.graphs import as_graph, hold_out_edges, load_graph
from costa.graphs.held_edges import HeldOut
from costa.graphs.pairs import edge_numbers, number_pairs
from costa.graphs.structure import structural_features
from costa.graphs.synthetic import planted_partition
from tests.graphs.other_edges import with_other_edges


def weighted():
    """Each edge's weight tells which it is."""
    graph = planted_partition(80, 2, 4, seed=0)
    graph.edge_weight = torch.from_numpy(number_pairs(graph.edge_index)).float() + 1
    return graph


def test_both_directions_of_an_edge_go_together_and_its_weight_with_it():
    graph = weighted()
    before = graph.edge_index.clone()
    training, held = hold_out_edges(graph, 0.2, seed=3)
    assert held.shape[1] == round(0.2 * graph.num_edges / 2)
    assert (held[0] < held[1]).all()
    left, out = edge_numbers(training), number_pairs(held)
    assert not np.isin(left, out).any()
    assert sorted([*left, *out]) == edge_numbers(graph).tolist()
    assert is_undirected(training.edge_index, num_nodes=80)
    assert training.edge_weight.tolist() == (number_pairs(training.edge_index) + 1).tolist()
    assert torch.equal(graph.edge_index, before)


def test_the_seed_decides():
    graph = weighted()
    (_, first), (_, again), (_, other) = (hold_out_edges(graph, 0.2, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_edge_is_held_out_as_often():
    graph, draws = planted_partition(20, 2, 4, degree=4, seed=0), 2000
    numbers = edge_numbers(graph)
    held = np.concatenate([number_pairs(hold_out_edges(graph, 0.25, seed=seed)[1]) for seed in range(draws)])
    share = round(0.25 * len(numbers)) / len(numbers)
    times = np.array([(held == number).mean() for number in numbers]) * len(held) / draws
    assert np.abs(times - share).max() < 4.5 * np.sqrt(share * (1 - share) / draws)


def test_all_nodes_and_self_loops_stay_also_where_nodes_and_edges_are_as_many():
    # a star of four, and a loop: five columns of edge_index would be PyG's guess for a list of five ids
    index = torch.tensor([[0, 1, 0, 2, 4], [1, 0, 2, 0, 4]])
    ids = ["a", "b", "c", "d", "e"]
    graph = Data(x=torch.eye(5), edge_index=index, y=torch.arange(5), node_ids=ids, name="star")
    training, held = hold_out_edges(graph, 0.5)
    assert (training.num_nodes, training.node_ids, training.x.shape) == (5, ids, (5, 5))
    assert training.edge_index[:, -1].tolist() == [4, 4]
    assert training.num_edges == 3
    assert held.shape == (2, 1)


@pytest.mark.parametrize("made", [False, True])
def test_what_is_held_out_leaves_no_trace_in_the_training_graph(made):
    graph = planted_partition(150, 2, 4, degree=8, seed=1)
    other = with_other_edges(graph, 0.2)
    if made:
        graph, other = (as_graph(each.edge_index.numpy(), labels=each.y.tolist()) for each in (graph, other))
    (training, held), (instead, others) = (hold_out_edges(each, 0.2) for each in (graph, other))
    assert torch.equal(training.edge_index, instead.edge_index)
    assert torch.equal(training.x, instead.x)
    assert (number_pairs(held) != number_pairs(others)).mean() > 0.9
    if made:
        assert not torch.equal(training.x, graph.x)
        assert torch.equal(training.x, structural_features(training.edge_index, None, training.num_nodes))


def test_features_that_were_made_from_the_edges_are_marked_in_every_way_in(own_graph):
    (own_graph / "features.npy").unlink()
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    for graph in (load_graph(own_graph), as_graph(Data(edge_index=edges, num_nodes=4)), as_graph(edges.numpy())):
        training, _ = hold_out_edges(graph, 0.4)
        made = structural_features(training.edge_index, None, training.num_nodes)
        assert torch.equal(training.x, made)
    assert torch.equal(hold_out_edges(as_graph(Data(x=torch.eye(4), edge_index=edges)), 0.4)[0].x, torch.eye(4))


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, 1e-9, 0.9999, float("nan")])
def test_a_share_that_leaves_nothing_on_one_side_is_refused(share):
    with pytest.raises(InputError, match=r"of the \d+ edges cannot be held out.* such as 0.1"):
        hold_out_edges(weighted(), share)


def test_a_graph_on_disk_is_refused():
    with pytest.raises(InputError, match=r"stays on disk, where no edges can be held out; leave out --memory"):
        hold_out_edges(load_graph("digits", memory="2GiB"), 0.1)


def test_a_run_finds_its_held_out_edges_again_and_refuses_those_of_another_graph():
    graph = weighted()
    training, held = hold_out_edges(graph, 0.2, seed=5)
    record = HeldOut.of(training, held, 0.2, 5)
    again, same = HeldOut(**record.to_dict()).again(graph)
    assert torch.equal(again.edge_index, training.edge_index)
    assert torch.equal(same, held)
    with pytest.raises(InputError, match="has other edges than when 81 of them were held out"):
        record.again(with_other_edges(graph, 0.2, seed=5))
