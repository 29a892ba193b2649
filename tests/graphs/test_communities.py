"""The synthetic graph of communities within classes: its permutation, edges, degrees, features and difficulty."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from costa import settings, training
from costa.errors import InputError
from costa.evaluate.probe import linear_probe
from costa.graphs.communities import (
    BESIDE,
    ENTRIES,
    FLAT,
    ON_TOPIC,
    SIGNAL,
    STRAYS,
    TOPICS,
    WITHIN,
    Communities,
    Permutation,
    blocks,
)
from costa.methods import get_method

PLAIN = {"columns": 16, "classes": 10, "exponent": 2.5, "seed": 0}


def draw(name: str, graph: Communities, total: int) -> np.ndarray:
    """All blocks of one kind."""
    axis = 1 if name in ("nodes", "edges") else 0
    return np.concatenate([getattr(graph, name)(block) for block in blocks(total)], axis=axis)


@pytest.fixture(scope="module")
def graph() -> Communities:
    return Communities(50_000, 500_000, **PLAIN)


@pytest.fixture(scope="module")
def edges(graph: Communities) -> np.ndarray:
    return draw("edges", graph, graph.num_edges)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 99, 100, 101, 65_537])
def test_a_permutation_hits_every_number_once(n: int) -> None:
    permutation = Permutation(n, np.random.default_rng(1))
    ids = permutation(np.arange(n))
    assert (np.sort(ids) == np.arange(n)).all()
    assert (permutation.inverse(ids) == np.arange(n)).all()


def test_a_permutation_leaves_no_order() -> None:
    n = 100_000
    ids = Permutation(n, np.random.default_rng(2))(np.arange(n))
    # correlations of independent numbers have a standard deviation of 1/√n
    assert abs(np.corrcoef(ids, np.arange(n))[0, 1]) < 5 / np.sqrt(n)
    for step in (1, 2, 317):
        assert abs(np.corrcoef(ids[step:], ids[:-step])[0, 1]) < 5 / np.sqrt(n)


def test_class_shares_fall_as_one_over_the_root(graph: Communities) -> None:
    ids, label = draw("nodes", graph, graph.num_nodes)
    assert (ids == np.arange(graph.num_nodes)).all()
    share = 1 / np.sqrt(np.arange(1, 11))
    share /= share.sum()
    spread = np.sqrt(share * (1 - share) / graph.num_nodes)
    assert (np.abs(np.bincount(label) / graph.num_nodes - share) < 5 * spread).all()


def test_ids_say_nothing_of_classes_and_communities(graph: Communities) -> None:
    place = graph.ids.inverse(np.arange(graph.num_nodes))
    label = np.searchsorted(graph.starts, place, side="right") - 1
    community = (place - graph.starts[label]) % graph.communities[label] + 1000 * label
    for parts in (label, community):
        share = np.bincount(parts) / len(parts)
        alike = (parts[1:] == parts[:-1]).mean()
        assert abs(alike - (share**2).sum()) < 5 * np.sqrt((share**2).sum() / len(parts))
        first = np.bincount(parts[: len(parts) // 2], minlength=len(share))
        assert (np.abs(first - share * len(parts) / 2) <= 5 * np.sqrt(share * len(parts) / 4)).all()


def test_so_many_edges_stay_within_and_beside(graph: Communities, edges: np.ndarray) -> None:
    place = graph.ids.inverse(edges.ravel()).reshape(edges.shape)
    label = np.searchsorted(graph.starts, place, side="right") - 1
    turn = (place - graph.starts[label]) % graph.communities[label]
    same = label[0] == label[1]
    share = graph.lengths / graph.num_nodes
    anywhere, chance = 1 - WITHIN - BESIDE, (share**2).sum()
    # edges to anywhere meet a class by chance, and a community about as often as there are many
    assert abs(same.mean() - (WITHIN + BESIDE + anywhere * chance)) < 5 * 0.5 / np.sqrt(len(same))
    by_chance = anywhere * (share**2 / graph.communities).sum()
    assert abs((same & (turn[0] == turn[1])).mean() - (WITHIN + by_chance)) < 0.005
    follows = (turn[1] - turn[0]) % graph.communities[label[0]] == 1
    assert abs((same & follows).mean() - (BESIDE + by_chance)) < 0.005


def test_loops_and_repeats_are_rare(graph: Communities, edges: np.ndarray) -> None:
    loops = edges[0] == edges[1]
    assert loops.mean() < 0.01
    kept = np.sort(edges[:, ~loops], axis=0)
    assert len(np.unique(kept[0] * graph.num_nodes + kept[1])) > 0.93 * kept.shape[1]


def chances(graph: Communities) -> np.ndarray:
    """How likely each place is to be one end of an edge, by the docstring's law."""

    def law(length: int, delta: float) -> np.ndarray:
        x = np.arange(length + 1) / length
        return np.diff(
            ((x + delta) ** graph.power - delta**graph.power) / ((1 + delta) ** graph.power - delta**graph.power)
        )

    parts = []
    for length, turns in zip(graph.lengths.tolist(), graph.communities.tolist(), strict=True):
        part = (1 - WITHIN - BESIDE) * law(length, 0)
        for turn in range(turns):
            part[turn::turns] += (WITHIN + BESIDE) * law(len(part[turn::turns]), FLAT) / turns
        parts.append(part * length / graph.num_nodes)
    return np.concatenate(parts)


def test_degrees_are_those_of_the_law(graph: Communities, edges: np.ndarray) -> None:
    expected = 2 * graph.num_edges * chances(graph)
    assert abs(expected.mean() - 20) < 1e-9
    degree = np.bincount(graph.ids.inverse(edges.ravel()), minlength=graph.num_nodes)
    for low, high in ((0, 10), (10, 15), (15, 30), (30, 60), (60, 150), (150, 500), (500, np.inf)):
        some = (expected >= low) & (expected < high)
        assert some.sum() >= 10
        assert abs((degree - expected)[some].sum()) < 5 * np.sqrt(expected[some].sum())


@pytest.mark.parametrize("exponent", [2.3, 2.5, 3.0])
def test_degrees_have_the_tail_that_was_asked_for(exponent: float) -> None:
    n = 200_000
    graph = Communities(n, 10 * n, **(PLAIN | {"exponent": exponent}))
    label = np.searchsorted(graph.starts, graph.ids.inverse(np.arange(n)), side="right") - 1
    edges = draw("edges", graph, 10 * n)
    between = edges[:, label[edges[0]] != label[edges[1]]]
    degree = np.sort(np.bincount(between.ravel(), minlength=n))[::-1]
    assert degree[0] > 100 * degree.mean()
    # Hill's estimate from the 200 largest degrees, whose standard error is (γ − 1)/√200
    hill = 1 + 1 / np.log(degree[:200] / degree[200]).mean()
    assert abs(hill - exponent) < 3 * (exponent - 1) / np.sqrt(200)


@pytest.mark.parametrize("delta", [0.0, FLAT])
def test_ends_follow_the_law_of_the_docstring(graph: Communities, delta: float) -> None:
    u, b = np.linspace(0, 1, 1001), 1 / 3
    x = graph._falling(u, np.full_like(u, delta))
    law = ((x + delta) ** b - delta**b) / ((1 + delta) ** b - delta**b)
    np.testing.assert_allclose(law, u, atol=1e-12)


def test_a_pair_of_topics_belongs_to_one_class(graph: Communities) -> None:
    assert graph.pairs.shape == (10, 4, 2)
    assert len({tuple(sorted(pair)) for pair in graph.pairs.reshape(-1, 2).tolist()}) == 40
    assert (graph.pairs[..., 0] != graph.pairs[..., 1]).all()
    many = Communities(20_000, 20_000, **(PLAIN | {"classes": 120})).pairs
    assert many.shape == (120, 1, 2)


def test_strays_have_the_class_of_another_place(graph: Communities) -> None:
    label = draw("nodes", graph, graph.num_nodes)[1]
    at_place = np.searchsorted(graph.starts, graph.ids.inverse(np.arange(graph.num_nodes)), side="right") - 1
    moved = STRAYS * (1 - ((graph.lengths / graph.num_nodes) ** 2).sum())
    assert abs((label != at_place).mean() - moved) < 5 * np.sqrt(moved / graph.num_nodes)


def test_dense_features_are_a_topic_and_noise(graph: Communities) -> None:
    x = draw("dense", graph, graph.num_nodes).astype(np.float64)
    topic = np.concatenate([graph._labels_and_topics(block)[1] for block in blocks(graph.num_nodes)])
    assert x.shape == (50_000, 16)
    np.testing.assert_allclose(np.linalg.norm(graph.means, axis=1), SIGNAL, rtol=1e-5)
    noise = x - graph.means[topic]
    assert np.abs(np.cov(noise.T) - np.eye(16)).max() < 0.03
    assert np.abs(noise.mean(0)).max() < 5 / np.sqrt(len(x))


def test_sparse_features_are_on_topic_as_often_as_asked() -> None:
    graph = Communities(20_000, 20_000, **(PLAIN | {"columns": 4000}))
    columns = draw("sparse", graph, graph.num_nodes)
    topic = np.concatenate([graph._labels_and_topics(block)[1] for block in blocks(graph.num_nodes)])
    assert columns.shape == (20_000, ENTRIES)
    assert (np.diff(columns, axis=1) > 0).all()
    assert columns.min() >= 0
    assert columns.max() < 4000
    share = (columns * TOPICS // 4000 == topic[:, None]).mean()
    # a few entries leave their topic because some columns are kept free at the end
    assert abs(share - (ON_TOPIC + (1 - ON_TOPIC) / TOPICS)) < 0.01


def test_entries_fit_into_few_columns() -> None:
    columns = Communities(1000, 1000, **(PLAIN | {"columns": ENTRIES + 1})).sparse(0)
    assert (np.diff(columns, axis=1) > 0).all()
    assert columns.max() == ENTRIES


def test_a_seed_is_a_graph_whatever_was_drawn_before(graph: Communities, edges: np.ndarray) -> None:
    again, other = Communities(50_000, 500_000, **PLAIN), Communities(50_000, 500_000, **(PLAIN | {"seed": 1}))
    last = blocks(500_000)[-1]
    tail = edges.shape[1] - 2**13 * last
    assert (again.edges(last) == edges[:, -tail:]).all()
    assert not (other.edges(last) == edges[:, -tail:]).any(axis=0).all()
    for name in ("nodes", "dense", "sparse"):
        assert (getattr(again, name)(1) == getattr(graph, name)(1)).all()
        assert not (getattr(other, name)(1) == getattr(graph, name)(1)).all()
    assert not (graph.dense(0) == graph.dense(1)).any()


def test_the_global_generators_are_left_as_found() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    Communities(1000, 1000, **PLAIN).edges(0)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


@pytest.mark.parametrize("edge_count", [1, 100, 2_000_000])
def test_few_and_many_edges_have_their_ends_in_the_graph(edge_count: int) -> None:
    graph = Communities(1000, edge_count, **PLAIN)
    edges = draw("edges", graph, edge_count)
    assert edges.shape == (2, edge_count)
    assert edges.min() >= 0
    assert edges.max() < 1000


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_there_is_something_to_gain(kind: str) -> None:
    n = 8000
    graph = Communities(n, 10 * n, **(PLAIN | {"columns": 128}))
    x = draw(kind, graph, n)
    if kind == "sparse":
        filled = np.zeros((n, 128), np.float32)
        np.put_along_axis(filled, x, 1, axis=1)
        x = filled
    label = torch.from_numpy(draw("nodes", graph, n)[1])
    edge_index = remove_self_loops(torch.from_numpy(draw("edges", graph, 10 * n)))[0]
    data = Data(x=torch.from_numpy(x), y=label, edge_index=to_undirected(edge_index, num_nodes=n))
    chance = label.bincount().max().item() / n
    gained = {}
    for name in ("raw", "diffused"):
        method = get_method(name)
        merged = settings.merge(method.Settings, [("graph", method.choose(data))])[0]
        z = training.train_and_embed(method, merged, data, device=torch.device("cpu"))[2]
        gained[name] = (linear_probe(z, label, repeats=2).accuracy.mean - chance) / (1 - chance)
    # the bounds are 0.5 and 0.85
    assert 0.02 < gained["raw"] < 0.3
    assert 0.4 < gained["diffused"] < 0.8


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"classes": 0}, "1 to 120 classes"),
        ({"classes": 121, "nodes": 100_000}, "1 to 120 classes"),
        ({"nodes": 999}, "a hundred nodes for each"),
        ({"edges": 0}, "an edge and a column"),
        ({"columns": 0}, "an edge and a column"),
        ({"exponent": 2.0}, "above 2"),
        ({"exponent": float("inf")}, "above 2"),
        ({"exponent": float("nan")}, "above 2"),
        ({"seed": -1}, "seed 0 or more"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(arguments: dict[str, float], sentence: str) -> None:
    given = {"nodes": 1000, "edges": 1000} | PLAIN | arguments
    with pytest.raises(InputError, match=sentence):
        Communities(**given)
