"""Scores of pairs, against NetworkX, scikit-learn and float64."""

import networkx
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from costa.evaluate import pair_scores
from costa.evaluate.pair_scores import PairScore, adamic_adar, common_neighbours, cosine, preferential_attachment
from costa.graphs import hold_out_edges, load_graph
from costa.graphs.pairs import count_pairs, edge_numbers, pairs_of, sample_non_edges
from costa.graphs.synthetic import planted_partition
from costa.nn.sparse import from_scipy
from tests.graphs.other_edges import with_other_edges

EVERY = pairs_of(np.arange(count_pairs(60)))


@pytest.fixture(scope="module")
def graph():
    """With weights and self-loops, neither of which counts."""
    made = planted_partition(60, 2, 5, degree=6, seed=0)
    index = torch.cat([made.edge_index, torch.tensor([[4, 9], [4, 9]])], dim=1)
    return Data(x=made.x, edge_index=index, edge_weight=torch.rand(index.shape[1]), num_nodes=60)


@pytest.mark.parametrize(
    ("score", "reference"),
    [
        (common_neighbours, networkx.common_neighbor_centrality),
        (adamic_adar, networkx.adamic_adar_index),
        (preferential_attachment, networkx.preferential_attachment),
    ],
)
def test_neighbours_are_scored_as_networkx_does(graph, score, reference, monkeypatch):
    plain = to_networkx(graph, to_undirected=True)
    plain.remove_edges_from(list(networkx.selfloop_edges(plain)))
    more = {"alpha": 1} if reference is networkx.common_neighbor_centrality else {}
    expected = [value for _, _, value in reference(plain, [tuple(pair) for pair in EVERY.T.tolist()], **more)]
    for at_once in (pair_scores.AT_ONCE, 1000):
        monkeypatch.setattr(pair_scores, "AT_ONCE", at_once)
        assert score(graph)(EVERY).tolist() == pytest.approx(expected, rel=1e-6)


def test_neighbours_on_disk_are_the_same():
    in_memory, on_disk = load_graph("digits"), load_graph("digits", memory="2GiB")
    pairs = torch.randint(1797, (2, 500), generator=torch.Generator().manual_seed(0))
    for score in (common_neighbours, adamic_adar, preferential_attachment):
        assert torch.equal(score(in_memory)(pairs), score(on_disk)(pairs))


def test_cosine_of_dense_and_sparse_rows():
    x = torch.randn(60, 7, generator=torch.Generator().manual_seed(0)).relu()
    x[3] = 0
    reference = torch.nn.functional.cosine_similarity(x[EVERY[0]].double(), x[EVERY[1]].double())
    for rows in (x, from_scipy(x.numpy())):
        torch.testing.assert_close(cosine(rows)(EVERY).double(), reference, rtol=1e-5, atol=1e-6)


def test_a_weighted_score_is_the_same_for_pairs_and_for_all_at_once():
    random = torch.Generator().manual_seed(0)
    z, weight = torch.randn(60, 7, generator=random), torch.randn(7, generator=random)
    score = PairScore(z, weight)
    reference = (z.double() * weight.double()) @ z.double().T
    torch.testing.assert_close(score(EVERY).double(), reference[EVERY[0], EVERY[1]], rtol=1e-5, atol=1e-5)
    some = torch.tensor([3, 50, 7])
    torch.testing.assert_close(score.between(some, some).double(), reference[some][:, some], rtol=1e-5, atol=1e-5)


def test_the_regression_is_scikit_learns_and_finds_what_makes_an_edge():
    graph = planted_partition(300, 2, 5, degree=10, homophily=0.95, seed=0)
    z = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
    z[:, 0] += 3.0 * (2 * graph.y - 1)  # of six columns one tells the classes, so which pairs are joined
    numbers, random = edge_numbers(graph), np.random.default_rng(0)
    edges = random.choice(numbers, len(numbers), replace=False)
    i, j = pairs_of(np.concatenate([edges, sample_non_edges(numbers, 300, len(numbers), random)]))
    unit = z.double() / z.double().norm(dim=1, keepdim=True)
    products = (unit[i] * unit[j]).numpy()
    scaled, truth = products / products.std(axis=0), np.arange(len(i)) < len(numbers)
    reference = LogisticRegression(C=2, max_iter=1000).fit(scaled, truth)
    weak, score = pair_scores.logistic(z, graph, (0.1, 2.0 * len(i)))  # a strength is that of the mean
    assert weak.weight.norm() < score.weight.norm()
    expected = reference.decision_function(scaled) - reference.intercept_
    np.testing.assert_allclose(score(torch.stack([i, j])).numpy(), expected, rtol=1e-2, atol=1e-3)
    assert score.weight.argmax() == 0


def test_the_regression_does_not_look_at_held_out_edges():
    graph = planted_partition(150, 2, 5, degree=8, seed=1)
    z = torch.randn(150, 6, generator=torch.Generator().manual_seed(0))
    (one, _), (other, _) = (hold_out_edges(each, 0.2) for each in (graph, with_other_edges(graph, 0.2)))
    first, second = (pair_scores.vector_score("logistic", z, each, 10.0) for each in (one, other))
    assert torch.equal(first.weight, second.weight)
