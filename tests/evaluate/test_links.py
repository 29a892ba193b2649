"""Scores on held-out edges: the measures, and that nothing leaks."""

import json

import numpy as np
import pytest
import torch

from costa import training
from costa.errors import InputError
from costa.evaluate import links
from costa.evaluate.links import LINK_BASELINES, LinkProbe, LinkScore, link_probe
from costa.evaluate.pair_scores import VECTOR_SCORES
from costa.graphs import hold_out_edges
from costa.graphs.pairs import count_pairs, edge_numbers, number_pairs
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings.presets import resolve


@pytest.mark.parametrize("ties", [False, True])
def test_the_measures_are_what_their_definitions_say(ties):
    random = np.random.default_rng(0)
    edges, non_edges = random.normal(0.7, size=80), random.normal(size=60)
    if ties:
        edges, non_edges = edges.round(), non_edges.round()
    score = LinkScore.of(edges, non_edges)
    above = (edges[:, None] > non_edges).mean() + (edges[:, None] == non_edges).mean() / 2
    assert score.auc == pytest.approx(above)
    precisions = [(edges >= each).sum() / ((edges >= each).sum() + (non_edges >= each).sum()) for each in edges]
    assert score.ap == pytest.approx(np.mean(precisions))
    for k in (10, 50):
        better = [(edge > non_edges).sum() > len(non_edges) - k for edge in edges]
        if not ties:
            assert score.hits[k] == pytest.approx(np.mean(better))
        kth = sorted(non_edges, reverse=True)[k - 1]
        assert score.hits[k] == sum(edge > kth for edge in edges) / len(edges)
    assert score.hits[100] is None


def test_chance_is_what_random_scores_reach():
    random = np.random.default_rng(0)
    drawn = [LinkScore.of(random.random(400), random.random(4000)) for _ in range(100)]
    chance = LinkScore.of_chance(400, 4000)
    assert np.mean([score.auc for score in drawn]) == pytest.approx(chance.auc, abs=0.006)
    assert np.mean([score.ap for score in drawn]) == pytest.approx(chance.ap, rel=0.05)
    for k in links.HITS:
        assert np.mean([score.hits[k] for score in drawn]) == pytest.approx(chance.hits[k], rel=0.2)


def vectors(graph):
    """Those of the default method after some epochs."""
    method = get_method("costa-mv")
    resolved = resolve(method, graph, given={"encoder.width": 16}, epochs=10)
    return training.train_and_embed(method, resolved.values, graph, seed=0, device=torch.device("cpu"))[2]


@pytest.fixture(scope="module")
def noise():
    """A random graph with random features: which pairs are joined cannot be told."""
    return planted_partition(500, 2, 8, degree=12, homophily=0.5, signal=0, seed=0)


def standard_error(result):
    """Of an AUC of ½."""
    return np.sqrt((1 / result.edges[1] + 1 / result.non_edges[1]) / 12)


def test_where_there_is_nothing_to_tell_every_score_is_at_chance(noise):
    training_graph, held = hold_out_edges(noise, 0.4)
    result = link_probe(vectors(training_graph), noise, training_graph, held)
    assert set(result.scores) == set(VECTOR_SCORES)
    assert set(result.baselines) == set(LINK_BASELINES)
    for score in (result.scores | result.baselines).values():
        assert abs(score.auc - 0.5) < 3.5 * standard_error(result)
    assert all(abs(auc - 0.5) < 5 * standard_error(result) for auc in result.validation.values())


def test_a_leak_would_be_seen(noise):
    _, held = hold_out_edges(noise, 0.4)
    result = link_probe(vectors(noise), noise, noise, held)
    for name in ("cosine", "logistic"):
        assert result.scores[name].auc > 0.5 + 6 * standard_error(result)
    assert result.baselines["preferential-attachment"].auc > 0.5 + 6 * standard_error(result)
    assert result.baselines["diffused"].auc > 0.5 + 6 * standard_error(result)


def test_communities_are_told():
    graph = planted_partition(500, 5, 8, degree=12, homophily=0.9, signal=2, seed=0)
    training_graph, held = hold_out_edges(graph, 0.2)
    result = link_probe(vectors(training_graph), graph, training_graph, held)
    assert result.chosen == max(result.validation, key=result.validation.get)
    assert result.scores[result.chosen].auc > 0.75
    assert result.scores[result.chosen].hits[100] > result.chance.hits[100]
    assert result.baselines["common-neighbours"].auc > 0.6


def test_parts_do_not_overlap_and_no_edge_is_a_non_edge(noise):
    _, held = hold_out_edges(noise, 0.2)
    (first, others), (rest, more) = links._parts(noise, held)
    assert sorted([*number_pairs(first), *number_pairs(rest)]) == sorted(number_pairs(held))
    assert first.shape[1] == held.shape[1] // 3
    assert others.shape[1] == more.shape[1] == links.NON_EDGES
    drawn = np.concatenate([number_pairs(others), number_pairs(more)])
    assert len(set(drawn)) == len(drawn)
    assert not np.isin(drawn, edge_numbers(noise)).any()


def test_a_small_graph_gives_all_its_non_edges():
    graph = planted_partition(40, 2, 4, degree=6, seed=0)
    _, held = hold_out_edges(graph, 0.2)
    (_, others), (_, more) = links._parts(graph, held)
    assert others.shape[1] + more.shape[1] == count_pairs(40) - len(edge_numbers(graph))


def test_too_few_edges_are_refused_or_noted(noise):
    training_graph, held = hold_out_edges(noise, 0.2)
    with pytest.raises(InputError, match="only 2 edges held out, too few"):
        link_probe(torch.randn(500, 4), noise, training_graph, held[:, :2])
    few = link_probe(torch.randn(500, 4), noise, training_graph, held[:, :9])
    assert few.too_few() == "with only 6 edges to test on, these scores are uncertain by several points"


def test_it_is_said_which_baseline_a_run_is_not_above():
    ours, low, high = (LinkScore(auc, 0.5, {10: hits, 50: None}) for auc, hits in ((0.8, 0.4), (0.7, 0.4), (0.6, 0.7)))
    probe = LinkProbe((9, 18), (40, 40), {"dot": 0.8}, "dot", 1.0, {"dot": ours}, {"raw": low, "adamic-adar": high})
    assert probe.not_above() == [("AP", "raw features", 0.5, 0.5), ("hits@10", "Adamic–Adar", 0.7, 0.4)]


def test_a_result_comes_back_from_json(noise):
    training_graph, held = hold_out_edges(noise, 0.2)
    result = link_probe(torch.randn(500, 4), noise, training_graph, held)
    assert result.too_few() is None
    assert LinkProbe.from_dict(json.loads(json.dumps(result.to_dict()))) == result
