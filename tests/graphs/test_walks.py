import random

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch_geometric.data import Batch, Data

from costa.graphs.synthetic import planted_partition
from costa.graphs.walks import RandomWalks

# two triangles with an edge in common, a tail, and a loop at its end
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 5)]
WEIGHTS = [1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 0.7, 2.0]


COPIES = 500


def small_graph(weights=None):
    index = torch.tensor(EDGES).T
    apart = index[0] != index[1]
    graph = Data(edge_index=torch.cat([index, index[:, apart].flip(0)], 1), num_nodes=6)
    if weights is not None:
        weight = torch.tensor(weights)
        graph.edge_weight = torch.cat([weight, weight[apart]])
    return graph


def many(graph):
    """Disjoint copies whose walkers step at once: node i of each is i modulo n."""
    return Batch.from_data_list([graph] * COPIES)


def dense(graph):
    a = np.zeros((graph.num_nodes, graph.num_nodes))
    weight = graph.edge_weight
    np.add.at(a, tuple(graph.edge_index.numpy()), 1.0 if weight is None else weight.numpy())
    return a


def chance(a, t, v, p, q):
    """Equation 2 of node2vec, one x after the other."""
    weights = [a[v, x] * (1 / p if x == t else 1 if a[t, x] else 1 / q) for x in range(len(a))]
    return np.array(weights) / sum(weights)


def assert_fits(counts, expected):
    assert not counts[expected == 0].any()
    assert chisquare(counts[expected > 0], counts.sum() * expected[expected > 0]).pvalue > 1e-4


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.25), (1, 0.5), (0.2, 0.3), (5, 3)])
def test_steps_have_the_probabilities_of_the_paper(weights, p, q):
    graph = small_graph(weights)
    a = dense(graph)
    walks = RandomWalks(many(graph), number=1, length=40, seed=3, p=p, q=q).round(0) % 6
    counts = np.zeros((6, 6, 6), dtype=int)
    np.add.at(counts, (walks[:, :-2], walks[:, 1:-1], walks[:, 2:]), 1)
    for t, v in zip(*a.nonzero(), strict=True):
        assert_fits(counts[t, v], chance(a, t, v, p, q))


def test_the_first_step_goes_by_weight_alone():
    graph = small_graph(WEIGHTS)
    a = dense(graph)
    counts = np.zeros((6, 6), dtype=int)
    np.add.at(counts, tuple(RandomWalks(many(graph), number=1, length=2, seed=0, p=0.05, q=20).round(0).T % 6), 1)
    for v in range(6):
        assert_fits(counts[v], a[v] / a[v].sum())


def test_every_node_starts_a_walk_in_every_round():
    graph = planted_partition(50, 2, 1, degree=8, seed=0)
    walks = RandomWalks(graph, number=3, length=7, seed=0)
    rounds = [walks.round(index) for index in range(3)]
    for drawn in rounds:
        assert drawn.shape == (50, 7)
        assert sorted(drawn[:, 0]) == list(range(50))
    assert not np.array_equal(rounds[0], rounds[1])
    assert list(walks) == [walk for drawn in rounds for walk in drawn.tolist()]


def test_a_seed_is_the_same_walks_however_often_they_are_read():
    graph = planted_partition(50, 2, 1, degree=8, seed=0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    walks = RandomWalks(graph, number=2, length=9, seed=2**62 + 5, q=0.5)
    first = list(walks)
    assert first == list(walks) == list(RandomWalks(graph, number=2, length=9, seed=2**62 + 5, q=0.5))
    assert first != list(RandomWalks(graph, number=2, length=9, seed=6, q=0.5))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


@pytest.mark.parametrize("q", [1, 0.5])
def test_a_walk_ends_where_there_is_no_way_on(q):
    # 0 → 1 → 2, a way in and none out; 3 is isolated, and the only edge of 4 weighs nothing
    graph = Data(
        edge_index=torch.tensor([[0, 1, 4], [1, 2, 0]]), edge_weight=torch.tensor([1.0, 1.0, 0.0]), num_nodes=5
    )
    walks = RandomWalks(graph, number=1, length=6, seed=0, q=q)
    assert sorted(walks) == [[0, 1, 2], [1, 2], [2], [3], [4]]
    assert walks.linked.tolist() == [True, True, True, False, False]


def test_an_edge_that_is_listed_twice_counts_twice():
    graph = Data(edge_index=torch.tensor([[0, 0, 0], [1, 1, 2]]), num_nodes=3)
    walks = RandomWalks(many(graph), number=1, length=2, seed=0).round(0)
    ends = walks[walks[:, 0] % 3 == 0, 1] % 3
    assert_fits(np.bincount(ends, minlength=3), np.array([0, 2, 1]) / 3)


def test_heavy_edges_elsewhere_do_not_swallow_light_ones():
    graph = Data(
        edge_index=torch.tensor([[0, 2, 2], [1, 0, 1]]), edge_weight=torch.tensor([1e20, 1.0, 3.0]), num_nodes=3
    )
    walks = RandomWalks(many(graph), number=1, length=2, seed=0).round(0)
    ends = walks[walks[:, 0] % 3 == 2, 1] % 3
    assert_fits(np.bincount(ends, minlength=3), np.array([1, 3, 0]) / 4)


class Last:
    """Draws the largest number below 1."""

    def random(self, count):
        return np.full(count, np.nextafter(1, 0))


def test_a_draw_that_is_rounded_up_stays_with_its_node():
    n = 3000
    pairs = torch.arange(n)
    ring = Data(edge_index=torch.stack([pairs.repeat(3), torch.cat([(pairs + k) % n for k in (1, 2, 3)])]), num_nodes=n)
    walks = RandomWalks(ring, number=1, length=2, seed=0)
    v = np.arange(n)
    assert ((walks._neighbour(v, Last()) - v) % n <= 3).all()
