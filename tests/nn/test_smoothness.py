"""z of the edges: its moments under random edges, and the graphs on which it says nothing."""

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from costa.nn.smoothness import smoothness


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def both_scores(x, edges, weight):
    """z of xᵢ·xⱼ and of xᵢ·C xⱼ by the formulas, an edge at a time."""
    x = x - x.mean(0)
    n = len(x)
    c = x.T @ x / n
    scores = []
    for inner in (torch.eye(len(c), dtype=c.dtype), c):
        t = sum(w * x[i] @ inner @ x[j] for (i, j), w in zip(edges, weight, strict=True))
        expected = -sum(weight) * torch.trace(inner @ c) / (n - 1)
        variance = sum(w**2 for w in weight) * torch.trace(inner @ c @ inner @ c)
        scores.append(float((t - expected) / variance.sqrt()))
    return scores


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_larger_of_two_scores(weighted):
    x = normal(12, 4)
    edges = [(0, 1), (2, 5), (3, 4), (7, 11), (1, 9)]
    weight = [0.5, 2.0, 1.0, 3.0, 0.25] if weighted else [1.0] * 5
    both_ways = torch.tensor([*edges, *((j, i) for i, j in edges), (6, 6)]).T
    weights = torch.tensor([*weight, *weight, 9.0]) if weighted else None
    ours = smoothness(x, both_ways, weights)
    assert ours == pytest.approx(max(both_scores(x, edges, weight)), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("skewed", [False, True])
def test_random_edges_give_mean_zero_and_variance_one(weighted, skewed):
    """Permuting the nodes permutes the features' rows: the edges stay, and chance decides what they join."""
    x = normal(150, 6) * (torch.logspace(0, 1, 6, dtype=torch.float64) if skewed else 1)
    generator = torch.Generator().manual_seed(1)
    source, target = torch.randint(150, (2, 400), generator=generator)
    edges = torch.stack([source, target])[:, source < target]
    weight = torch.rand(edges.shape[1], generator=generator) if weighted else None
    draws = 400
    scores = torch.tensor(
        [both_scores_fast(x[torch.randperm(150, generator=generator)], edges, weight) for _ in range(draws)]
    )
    # the mean's standard error is 1/√400; the variance's is about √(2/400)
    assert scores.mean(0).abs().max() < 4 / draws**0.5
    assert (scores.var(0) - 1).abs().max() < 5 * (2 / draws) ** 0.5
    # the larger of the two is what is returned
    assert smoothness(x, edges, weight) == pytest.approx(max(both_scores_fast(x, edges, weight)), rel=1e-6)


def both_scores_fast(x, edges, weight):
    weight = torch.ones(edges.shape[1]) if weight is None else weight
    x = x - x.mean(0)
    c = x.T @ x / len(x)
    scores = []
    for inner in (torch.eye(len(c), dtype=c.dtype), c):
        t = (weight * ((x @ inner)[edges[0]] * x[edges[1]]).sum(1)).sum()
        expected = -weight.sum() * torch.trace(inner @ c) / (len(x) - 1)
        scores.append(float((t - expected) / (weight.square().sum() * torch.trace(inner @ c @ inner @ c)).sqrt()))
    return scores


def test_chance_seldom_exceeds_two_and_communities_always_do():
    chance = []
    for seed in range(40):
        graph = planted_partition(150, 3, 10, homophily=1 / 3, seed=seed)
        chance.append(smoothness(graph.x, graph.edge_index))
    assert sum(score > 2 for score in chance) <= 6
    for seed in range(5):
        graph = planted_partition(150, 3, 10, homophily=0.8, signal=3.0, seed=seed)
        assert smoothness(graph.x, graph.edge_index) > 5
        unlike = planted_partition(150, 3, 10, homophily=0.02, signal=3.0, seed=seed)
        assert smoothness(unlike.x, unlike.edge_index) < 0


def test_scale_and_shift_of_the_features_do_not_matter():
    x, edges = normal(30, 3).float(), torch.tensor([[0, 4, 7], [1, 5, 8]])
    assert smoothness(100 * x + 5, edges) == pytest.approx(smoothness(x, edges), rel=1e-3)


@pytest.mark.parametrize(
    ("x", "edges"),
    [
        (normal(2, 3), [[0, 1], [1, 0]]),
        (normal(5, 3), [[], []]),
        (normal(5, 3), [[0, 1], [0, 1]]),
        (torch.ones(5, 3), [[0, 1], [1, 2]]),
        (torch.zeros(5, 3), [[0, 1], [1, 2]]),
        (torch.ones(5, 1), [[0, 1], [1, 2]]),
    ],
    ids=["two nodes", "no edges", "self-loops", "constant", "zero", "one column"],
)
def test_zero_where_nothing_can_be_said(x, edges):
    assert smoothness(x, torch.tensor(edges, dtype=torch.int64)) == 0.0


def test_zero_where_every_weight_is_zero():
    assert smoothness(normal(5, 3), torch.tensor([[0, 1], [1, 2]]), torch.zeros(2)) == 0.0


def test_many_edges_are_summed_in_parts(monkeypatch):
    graph = planted_partition(80, 3, 10, seed=0)
    whole = smoothness(graph.x, graph.edge_index)
    monkeypatch.setattr("costa.nn.smoothness.EDGES", 7)
    assert smoothness(graph.x, graph.edge_index) == pytest.approx(whole, rel=1e-5)
