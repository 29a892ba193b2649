"""The most likely missing edges, against all pairs in float64."""

import csv

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate.pair_scores import PairScore, adjacency
from costa.graphs.pairs import count_pairs, edge_numbers, number_pairs, pairs_of
from costa.graphs.synthetic import planted_partition
from costa.insight import links
from costa.insight.links import likely_links, write_links


@pytest.fixture(scope="module")
def graph():
    return planted_partition(120, 3, 6, degree=8, seed=0)


@pytest.fixture(scope="module")
def score():
    random = torch.Generator().manual_seed(0)
    return PairScore(torch.randn(120, 6, generator=random), torch.rand(6, generator=random))


def best_of(score, numbers, k):
    """The k best pairs with these numbers, in float64."""
    z, weight = score.rows.double(), score.weight.double()
    i, j = pairs_of(numbers)
    scores = (z[i] * weight * z[j]).sum(1)
    order = scores.argsort(descending=True)[:k]
    return numbers[order.numpy()].tolist(), scores[order]


@pytest.mark.parametrize("block", [links.BLOCK, 700])
@pytest.mark.parametrize("k", [1, 40, 10**6])
def test_all_pairs_without_an_edge_are_ranked(graph, score, block, k, monkeypatch):
    monkeypatch.setattr(links, "BLOCK", block)
    found = likely_links(score, score.rows, graph, k)
    others = np.setdiff1d(np.arange(count_pairs(120)), edge_numbers(graph))
    numbers, scores = best_of(score, others, k)
    assert number_pairs(found.pairs).tolist() == numbers
    assert (found.pairs[0] < found.pairs[1]).all()
    torch.testing.assert_close(found.scores.double(), scores, rtol=1e-5, atol=1e-5)
    assert found.looked_at == f"all {len(others):,} pairs without an edge"


def test_of_equals_the_same_are_kept_whatever_the_block(graph, monkeypatch):
    same = PairScore(torch.ones(120, 1))
    found = [likely_links(same, same.rows, graph, 30)]
    monkeypatch.setattr(links, "BLOCK", 500)
    found.append(likely_links(same, same.rows, graph, 30))
    assert torch.equal(found[0].pairs, found[1].pairs)


@pytest.mark.parametrize("products", [links.PRODUCTS, 900])
def test_of_a_large_graph_pairs_two_steps_apart_and_of_similar_nodes_are(graph, score, products, monkeypatch):
    monkeypatch.setattr(links, "ALL_PAIRS", 100)
    monkeypatch.setattr(links, "PRODUCTS", products)
    monkeypatch.setattr(links, "GROUP", 20)
    groups = links._groups(PairScore(score.rows), 120)
    assert max(map(len, groups)) <= 20
    inside = [
        number_pairs(torch.from_numpy(np.stack([g[i], g[j]]))) for g in groups for i, j in [np.triu_indices(len(g), 1)]
    ]
    a = adjacency(graph)
    i, j = (a @ a).toarray().nonzero()
    near = number_pairs(torch.from_numpy(np.stack([i, j])[:, i < j]))
    monkeypatch.setattr(links, "cosine", lambda z: PairScore(z))
    candidates = np.setdiff1d(np.unique(np.concatenate([near, *inside])), edge_numbers(graph))
    assert len(candidates) < count_pairs(120) - len(edge_numbers(graph))
    for k in (25, 10**6):
        found = likely_links(score, score.rows, graph, k)
        assert number_pairs(found.pairs).tolist() == best_of(score, candidates, k)[0]
    assert found.looked_at.startswith(f"pairs two steps apart, and pairs of the same of {len(groups)} groups")
    assert found.looked_at.endswith("not all 7,140 pairs")


def test_a_complete_graph_lacks_no_edge():
    pairs = pairs_of(np.arange(count_pairs(5)))
    graph = Data(x=torch.eye(5), edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), name="all")
    with pytest.raises(InputError, match="all has an edge between any two nodes"):
        likely_links(PairScore(graph.x), graph.x, graph, 3)


def test_ids_with_commas_are_quoted(tmp_path):
    write_links(tmp_path / "links.csv", [("a, b", 'c"d', 0.25)])
    rows = list(csv.reader((tmp_path / "links.csv").open(newline="")))
    assert rows == [["source", "target", "score"], ["a, b", 'c"d', "0.25"]]
