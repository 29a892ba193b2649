"""Graph augmentation: both directions together, the stated law, and nothing else touched."""

import math
from collections import Counter

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from costa.augment.topology import (
    CENTRALITIES,
    MOST_LIKELY,
    drop_probability,
    edge_ids,
    eigenvector_centrality,
    keep_mask,
    mask_attributes,
    pagerank_centrality,
    permute_edges,
    weigh,
)
from costa.errors import InputError
from costa.nn import SparseMatrix

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def generator(seed: int = 0, device: str = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def undirected(pairs: list[tuple[int, int]]) -> Tensor:
    """Both directions of each pair; a self-loop once."""
    entries = [entry for u, v in pairs for entry in dict.fromkeys([(u, v), (v, u)])]
    return torch.tensor(entries, dtype=torch.long).reshape(-1, 2).T


def pairs_of(edge_index: Tensor) -> set[tuple[int, int]]:
    return {(u, v) for u, v in edge_index.T.tolist()}


def ring(n: int) -> Tensor:
    return undirected([(i, (i + 1) % n) for i in range(n)])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, int]:
    """An undirected graph of 2 … 12 nodes, perhaps with self-loops and duplicates, its entries shuffled."""
    n = draw(st.integers(2, 12))
    node = st.integers(0, n - 1)
    edge_index = undirected(draw(st.lists(st.tuples(node, node), max_size=25)))
    order = torch.randperm(edge_index.shape[1], generator=generator(draw(st.integers(0, 1000))))
    return edge_index[:, order], n


# --- dropping edges -------------------------------------------------------------------------------------------


@given(graph=graphs())
@settings(max_examples=60, deadline=None)
def test_ids_are_those_of_undirected_edges(graph: tuple[Tensor, int]) -> None:
    edge_index, n = graph
    ids = edge_ids(edge_index, n).tolist()
    edges = [tuple(sorted(entry)) for entry in edge_index.T.tolist()]
    assert len(set(zip(ids, edges, strict=True))) == len(set(edges)) == len(set(ids))
    assert sorted(set(ids)) == list(range(len(set(edges))))


@given(graph=graphs(), rate=st.floats(0, 0.99), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_dropping_keeps_the_graph_symmetric(graph: tuple[Tensor, int], rate: float, seed: int) -> None:
    edge_index, n = graph
    mask = keep_mask(edge_ids(edge_index, n), rate, generator(seed))
    assert mask.dtype == torch.bool
    kept, dropped = pairs_of(edge_index[:, mask]), pairs_of(edge_index[:, ~mask])
    assert kept == {(v, u) for u, v in kept}
    assert dropped == {(v, u) for u, v in dropped}
    assert not kept & dropped  # of several copies of an edge all stay, or none


@given(graph=graphs())
@settings(max_examples=20, deadline=None)
def test_rate_zero_changes_nothing(graph: tuple[Tensor, int]) -> None:
    edge_index, n = graph
    assert keep_mask(edge_ids(edge_index, n), 0.0, generator()).all()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropping_is_bernoulli_for_each_edge(rate: float) -> None:
    n, draws = 50, 400
    edge_index, source = ring(n), generator(3)
    ids = edge_ids(edge_index, n)
    forward = edge_index[1] == (edge_index[0] + 1) % n
    kept = torch.stack([keep_mask(ids, rate, source)[forward] for _ in range(draws)])
    assert stats.binomtest(int(kept.sum()), draws * n, 1 - rate).pvalue > 1e-4
    # Independent edges: the number kept in one draw is binomial, so its variance is n·rate·(1 − rate).
    dispersion = kept.sum(dim=1).double().var() * (draws - 1) / (n * rate * (1 - rate))
    assert 1e-4 < stats.chi2.sf(float(dispersion), draws - 1) < 1 - 1e-4


# --- rewiring -------------------------------------------------------------------------------------------------


@given(graph=graphs(), rate=st.floats(0, 0.99), seed=st.integers(0, 2**31))
@settings(max_examples=80, deadline=None)
def test_rewiring_gives_a_simple_undirected_graph(graph: tuple[Tensor, int], rate: float, seed: int) -> None:
    edge_index, n = graph
    new, none = permute_edges(edge_index, rate, num_nodes=n, generator=generator(seed))
    assert none is None
    assert new.dtype == edge_index.dtype
    entries = [tuple(entry) for entry in new.T.tolist()]
    assert entries == sorted(set(entries))
    assert pairs_of(new) == pairs_of(new.flip(0))
    assert all(0 <= node < n for entry in entries for node in entry)
    loops = {entry for entry in pairs_of(new) if entry[0] == entry[1]}
    assert loops <= pairs_of(edge_index)
    before, after = ({tuple(sorted(entry)) for entry in pairs_of(e)} for e in (edge_index, new))
    assert len(after) <= len(before)

    ones = torch.ones(edge_index.shape[1])
    weighted, weight = permute_edges(edge_index, rate, num_nodes=n, edge_weight=ones, generator=generator(seed))
    assert torch.equal(weighted, new)
    assert weight is not None
    assert torch.equal(weight, torch.ones(new.shape[1]))


def test_rewiring_at_rate_zero_only_sorts() -> None:
    edge_index = undirected([(3, 1), (0, 2), (1, 3), (2, 2)])
    new, _ = permute_edges(edge_index, 0.0, num_nodes=4, generator=generator())
    assert new.T.tolist() == [[0, 2], [1, 3], [2, 0], [2, 2], [3, 1]]


def test_rewiring_draws_uniform_pairs() -> None:
    """One edge in 5 nodes: it stays with 1 − rate, else becomes each of the 10 pairs with rate/10."""
    rate, draws, source = 0.6, 4000, generator(4)
    edge_index = undirected([(1, 3)])
    seen: Counter[tuple[int, int]] = Counter()
    for _ in range(draws):
        new, _ = permute_edges(edge_index, rate, num_nodes=5, generator=source)
        assert new.shape == (2, 2)
        seen[(int(new.min()), int(new.max()))] += 1
    pairs = [(u, v) for u in range(5) for v in range(u + 1, 5)]
    expected = [draws * (rate / 10 + (1 - rate) * (pair == (1, 3))) for pair in pairs]
    assert stats.chisquare([seen[pair] for pair in pairs], expected).pvalue > 1e-4


def test_rewiring_replaces_the_stated_fraction() -> None:
    n, rate = 3000, 0.3
    edge_index = ring(n)
    new, _ = permute_edges(edge_index, rate, num_nodes=n, generator=generator(5))
    stayed = len(pairs_of(edge_index) & pairs_of(new)) // 2
    # A new edge is an old one with probability 2/(n − 1): less than one edge in all, far within the tolerance.
    assert abs(stayed - n * (1 - rate)) <= 6 * math.sqrt(n * rate * (1 - rate)) + 2


def test_weights_travel_with_their_edges() -> None:
    n = 200
    edge_index = ring(n)
    weight = 1.0 + edge_ids(edge_index, n)
    new, new_weight = permute_edges(edge_index, 0.5, num_nodes=n, edge_weight=weight, generator=generator(6))
    assert new_weight is not None
    old = {tuple(entry): w for entry, w in zip(edge_index.T.tolist(), weight.tolist(), strict=True)}
    now = {tuple(entry): w for entry, w in zip(new.T.tolist(), new_weight.tolist(), strict=True)}
    assert all(now[u, v] == now[v, u] for u, v in now)
    assert all(now[entry] >= old[entry] for entry in now.keys() & old.keys())
    counts = Counter(now.values())
    assert set(counts) <= set(old.values())
    assert set(counts.values()) == {2}  # each weight on one edge, in both directions
    assert len(counts) > n - 20  # a few edges have merged


def test_merged_edges_keep_the_larger_weight() -> None:
    # Two nodes have one pair: whatever is rewired falls on it, and the two entries disagree to begin with.
    edge_index = torch.tensor([[0, 1, 0], [1, 0, 0]])
    weight = torch.tensor([2.0, 5.0, 9.0])
    seen = set()
    for seed in range(30):
        new, new_weight = permute_edges(edge_index, 0.5, num_nodes=2, edge_weight=weight, generator=generator(seed))
        assert new_weight is not None
        seen.add((tuple(map(tuple, new.T.tolist())), tuple(new_weight.tolist())))
    assert seen == {(((0, 0), (0, 1), (1, 0)), (9.0, 5.0, 5.0)), (((0, 1), (1, 0)), (9.0, 9.0))}


# --- masking --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.7])
def test_masks_are_bernoulli(rate: float) -> None:
    mask = mask_attributes(20_000, rate, generator=generator(7))
    assert set(mask.tolist()) <= {0.0, 1.0}
    assert stats.binomtest(int(mask.sum()), 20_000, 1 - rate).pvalue > 1e-4
    rescaled = mask_attributes(20_000, rate, generator=generator(7), rescale=True)
    torch.testing.assert_close(rescaled, mask / (1 - rate))
    assert abs(float(rescaled.mean()) - 1) <= 6 * math.sqrt(rate / (1 - rate) / 20_000) + 1e-6


def test_masking_columns_is_masking_rows_of_the_weights() -> None:
    x = torch.randn(9, 5, generator=generator(1), dtype=torch.float64)
    w = torch.randn(5, 4, generator=generator(2), dtype=torch.float64)
    mask = mask_attributes(5, 0.4, generator=generator(3), rescale=True)
    assert 0 < int((mask == 0).sum()) < 5
    torch.testing.assert_close((x * mask) @ w, x @ (mask[:, None] * w))


# --- by centrality --------------------------------------------------------------------------------------------

SMALL = {
    "karate": nx.karate_club_graph(),
    "a star, bipartite": nx.star_graph(6),
    "a path, bipartite": nx.path_graph(7),
    "a loop, and a node without edges": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 3)]),
}
SMALL["a loop, and a node without edges"].add_node(4)


def entries_of(graph: nx.Graph) -> Tensor:
    return undirected(list(graph.edges))


def numbers(of_node: dict[int, float]) -> Tensor:
    return torch.tensor([of_node[node] for node in sorted(of_node)], dtype=torch.float64)


@pytest.mark.parametrize("name", SMALL)
def test_pagerank_is_networkxs(name: str) -> None:
    graph = SMALL[name]
    ours = pagerank_centrality(entries_of(graph), len(graph))
    expected = numbers(nx.pagerank(graph, alpha=0.85, weight=None, tol=1e-14, max_iter=1000))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_eigenvector_centrality_is_the_first_eigenvector(name: str) -> None:
    graph = SMALL[name]
    ours = eigenvector_centrality(entries_of(graph), len(graph))
    adjacency = torch.from_numpy(nx.to_numpy_array(graph, nodelist=sorted(graph), weight=None))
    torch.testing.assert_close(ours, torch.linalg.eigh(adjacency)[1][:, -1].abs(), rtol=0, atol=1e-9)
    if nx.is_connected(graph):
        expected = numbers(nx.eigenvector_centrality_numpy(graph, weight=None))
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-9)


def test_degrees_are_networkxs() -> None:
    ours = CENTRALITIES["degree"](entries_of(SMALL["karate"]), 34)
    torch.testing.assert_close(ours, numbers(dict(SMALL["karate"].degree())))


@pytest.mark.parametrize("name", CENTRALITIES)
def test_a_graph_without_edges_has_no_centre(name: str) -> None:
    phi = CENTRALITIES[name](torch.zeros(2, 0, dtype=torch.long), 5)
    assert phi.dtype == torch.float64
    torch.testing.assert_close(phi, phi[:1].expand(5))


weights = st.lists(st.floats(1e-3, 1e4), min_size=2, max_size=30)


@given(weight=weights, rate=st.floats(0.01, 0.99))
@settings(max_examples=80, deadline=None)
def test_probabilities_follow_the_formula(weight: list[float], rate: float) -> None:
    ours = drop_probability(torch.tensor(weight, dtype=torch.float64), rate)
    s = [math.log(w) for w in weight]
    highest, mean = max(s), sum(s) / len(s)
    if highest - min(s) < 1e-5:
        return
    expected = [min((highest - each) / (highest - mean) * rate, 0.7) for each in s]
    torch.testing.assert_close(ours, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-9)


def test_the_mean_probability_is_the_rate_until_the_cap() -> None:
    weight = torch.rand(500, generator=generator(1), dtype=torch.float64) + 0.1
    assert float(drop_probability(weight, 0.1).mean()) == pytest.approx(0.1)
    assert float(drop_probability(weight, 0.6).max()) == MOST_LIKELY


def test_what_nobody_has_is_dropped_most_often() -> None:
    p = drop_probability(torch.tensor([0.0, 3.0, 1.0, 2.0, 0.0]), 0.2)
    assert p[0] == p[4] == p[2] == p.max()


@pytest.mark.parametrize("weight", [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [2.0, 2.0 + 1e-12, 2.0], []])
def test_what_weighs_alike_has_the_rate(weight: list[float]) -> None:
    p = drop_probability(torch.tensor(weight, dtype=torch.float64), 0.3)
    torch.testing.assert_close(p, torch.full((len(weight),), 0.3, dtype=torch.float64))


@pytest.mark.parametrize("weight", [[0.0, 0.0], [2.0, 2.0]])
def test_but_for_the_cap(weight: list[float]) -> None:
    assert drop_probability(torch.tensor(weight), 0.8).tolist() == pytest.approx([MOST_LIKELY] * 2)


def test_one_number_near_zero_does_not_silence_the_others() -> None:
    """Beside s = log 1e-200 the others would all be s_max."""
    p = drop_probability(torch.tensor([1e-200, 0.1, 0.2, 0.4], dtype=torch.float64), 0.3)
    assert p[1] > p[2] > 0.03


def test_each_edge_and_column_has_its_own_rate() -> None:
    n, draws = 8, 1500
    edge_index = ring(n)[:, torch.randperm(2 * n, generator=generator(2))]
    ids = edge_ids(edge_index, n)
    rates = torch.linspace(0, 0.9, n)
    source = generator(3)
    kept = torch.stack([keep_mask(ids, rates[ids], source) for _ in range(draws)])
    masks = torch.stack([mask_attributes(n, rates, generator=source) for _ in range(draws)])
    assert all((kept[:, ids == edge].sum(1) != 1).all() for edge in range(n))  # both directions, or none
    for found, rate in ((kept, rates[ids]), (masks, rates)):
        for column, p in enumerate(rate.tolist()):
            assert stats.binomtest(int(found[:, column].sum()), len(found), 1 - p).pvalue > 1e-4


# --- seeds, the global generator, refusals --------------------------------------------------------------------


def test_seeds_decide_and_the_global_generator_is_left_as_found() -> None:
    edge_index = ring(40)
    before = torch.get_rng_state()

    def augmented(seed: int) -> list[Tensor]:
        source = generator(seed)
        return [
            keep_mask(edge_ids(edge_index, 40), 0.4, source),
            permute_edges(edge_index, 0.4, num_nodes=40, generator=source)[0],
            mask_attributes(40, 0.4, generator=source),
        ]

    first, again, other = augmented(1), augmented(1), augmented(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_graph_without_edges() -> None:
    none = torch.zeros(2, 0, dtype=torch.long)
    assert edge_ids(none, 3).shape == (0,)
    assert keep_mask(edge_ids(none, 3), 0.5, generator()).shape == (0,)
    assert permute_edges(none, 0.5, num_nodes=3, generator=generator())[0].shape == (2, 0)
    weighted = permute_edges(none, 0.5, num_nodes=3, edge_weight=torch.zeros(0), generator=generator())
    assert [part.shape for part in weighted if part is not None] == [(2, 0), (0,)]


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, math.nan])
def test_rates_are_checked(rate: float) -> None:
    edge_index = ring(4)
    for call in (
        lambda: keep_mask(edge_ids(edge_index, 4), rate, generator()),
        lambda: permute_edges(edge_index, rate, num_nodes=4, generator=generator()),
        lambda: mask_attributes(4, rate, generator=generator()),
    ):
        with pytest.raises(InputError, match="at least 0 and below 1"):
            call()


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "sentence"),
    [
        (torch.tensor([[0, 3], [3, 0]]), 3, "names the nodes 0 to 3, but num_nodes=3 allows 0 to 2"),
        (torch.tensor([[0, -1], [-1, 0]]), 3, "names the nodes -1 to 0"),
        (torch.tensor([0, 1]), 3, "two rows"),
        (torch.zeros(2, 3), 3, "whole numbers"),
    ],
)
def test_edges_are_checked(edge_index: Tensor, num_nodes: int, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        edge_ids(edge_index, num_nodes)
    with pytest.raises(InputError, match=sentence):
        permute_edges(edge_index, 0.5, num_nodes=num_nodes, generator=generator())


def test_rewiring_needs_two_nodes() -> None:
    with pytest.raises(InputError, match="at least two nodes"):
        permute_edges(torch.tensor([[0], [0]]), 0.5, num_nodes=1, generator=generator())


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("source", ["cpu", "cuda"])
def test_cuda_edges_and_masks(source: str) -> None:
    n = 300
    edge_index, weight = ring(n), torch.rand(2 * n, generator=generator(1))
    mask = keep_mask(edge_ids(edge_index.cuda(), n), 0.4, generator(2, source))
    edges, weights = permute_edges(
        edge_index.cuda(), 0.4, num_nodes=n, edge_weight=weight.cuda(), generator=generator(2, source)
    )
    assert weights is not None
    assert all(part.is_cuda for part in (mask, edges, weights))
    for each in (edge_index[:, mask.cpu()], edges):
        assert pairs_of(each) == pairs_of(each.flip(0))
    if source == "cpu":
        assert torch.equal(mask.cpu(), keep_mask(edge_ids(edge_index, n), 0.4, generator(2)))
        on_cpu, weights_on_cpu = permute_edges(edge_index, 0.4, num_nodes=n, edge_weight=weight, generator=generator(2))
        assert torch.equal(edges.cpu(), on_cpu)
        assert torch.equal(weights.cpu(), weights_on_cpu)
    assert mask_attributes(9, 0.5, generator=generator(3, source), device="cuda").is_cuda


@pytest.mark.parametrize("centrality", ["degree", "pagerank", "eigenvector"])
def test_attributes_of_a_csr_weigh_what_those_of_the_dense_features_do(centrality) -> None:
    edge_index = torch.tensor([[0, 1, 0, 2, 2, 3], [1, 0, 2, 0, 3, 2]])
    x = torch.tensor([[1.0, 0, 0], [0, -2, 0], [0, 0.5, 0], [3, 0, 0]])
    either = [weigh(edge_index, each, centrality) for each in (x, SparseMatrix.from_dense(x).a)]
    for dense, sparse in zip(*either, strict=True):
        torch.testing.assert_close(sparse, dense)
