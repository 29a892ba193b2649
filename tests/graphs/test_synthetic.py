import math

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.graphs.checks import check_graph
from costa.graphs.synthetic import planted_partition


def test_shape_and_form() -> None:
    data = planted_partition(101, 4, 8, seed=0)
    check_graph(data)
    assert data.x.shape == (101, 8)
    assert data.x.dtype == torch.float32
    assert sorted(data.y.bincount().tolist()) == [25, 25, 25, 26]
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    # The classes are not in the order of the nodes.
    assert (data.y.diff() < 0).sum() > 10


@pytest.mark.parametrize(("degree", "homophily"), [(10.0, 0.8), (6.0, 0.25), (4.0, 1.0), (5.0, 0.0)])
def test_degree_and_homophily_are_as_asked(degree: float, homophily: float) -> None:
    n = 20_000
    data = planted_partition(n, 5, 2, degree=degree, homophily=homophily, seed=1)
    # Binomial counts: five standard deviations.
    edges = data.num_edges / 2
    assert abs(edges - n * degree / 2) < 5 * math.sqrt(n * degree / 2)
    within = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).sum().item() / 2
    assert abs(within - homophily * edges) <= 5 * math.sqrt(edges * homophily * (1 - homophily))


def test_every_pair_of_a_kind_is_equally_likely() -> None:
    n, draws = 7, 3000
    # Equal to the model drawn pair by pair: p_in = h·m/K_in, p_out = (1 − h)·m/K_out.
    counts = {True: np.zeros(draws), False: np.zeros(draws)}
    joined = np.zeros((n, n))
    same = np.zeros((n, n))
    for seed in range(draws):
        data = planted_partition(n, 2, 1, degree=2.0, homophily=0.5, seed=seed)
        y = data.y.numpy()
        adjacency = np.zeros((n, n))
        adjacency[tuple(data.edge_index.numpy())] = 1
        alike = y[:, None] == y[None, :]
        joined += adjacency * alike
        same += alike
        for kind in counts:
            counts[kind][seed] = np.triu(adjacency * (alike == kind), 1).sum()
    pairs = {True: 4 * 3 / 2 + 3 * 2 / 2, False: 4 * 3}
    for kind, k in pairs.items():
        p = 3.5 / k
        assert abs(counts[kind].mean() - 3.5) < 5 * math.sqrt(k * p * (1 - p) / draws)
        assert abs(counts[kind].var() / (k * p * (1 - p)) - 1) < 0.2
    off = ~np.eye(n, dtype=bool)
    p = 3.5 / pairs[True]
    assert np.abs(joined[off] / same[off] - p).max() < 5 * math.sqrt(p * (1 - p) / same[off].min())


def test_features_are_centre_and_noise() -> None:
    data = planted_partition(30_000, 3, 6, signal=2.5, seed=3)
    for c in range(3):
        x = data.x[data.y == c].double()
        assert abs(x.mean(0).norm().item() - 2.5) < 0.05
        assert (x.T.cov() - torch.eye(6, dtype=torch.float64)).abs().max() < 0.06


def test_a_seed_is_a_graph() -> None:
    first, again, other = (planted_partition(200, 3, 4, seed=seed) for seed in (5, 5, 6))
    for key in ("x", "edge_index", "y"):
        assert torch.equal(first[key], again[key])
        assert not torch.equal(first[key], other[key])


def test_the_global_generators_are_left_as_found() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    planted_partition(50, 2, 2, seed=0)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def test_a_million_pairs_of_a_million_nodes_are_never_visited() -> None:
    # 5·10¹¹ pairs: anything quadratic would not end.
    data = planted_partition(1_000_000, 2, 1, degree=2.0, seed=0)
    assert abs(data.num_edges - 2_000_000) < 10_000


def test_edge_cases() -> None:
    assert planted_partition(10, 2, 1, degree=0.0, seed=0).num_edges == 0
    complete = planted_partition(4, 1, 1, degree=3.0, homophily=1.0, seed=0)
    assert complete.num_edges == 12


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n": 1}, "n ≥ 2"),
        ({"classes": 0}, "1 ≤ classes ≤ n"),
        ({"classes": 21}, "1 ≤ classes ≤ n"),
        ({"features": 0}, "features ≥ 1"),
        ({"homophily": 1.5}, "homophily must lie in"),
        ({"homophily": math.nan}, "homophily must lie in"),
        ({"degree": -1.0}, "degree be zero or more"),
        ({"degree": 15.0}, "edges within classes do not fit"),
        ({"classes": 1}, "edges between classes do not fit into 0 pairs"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(arguments: dict[str, float], sentence: str) -> None:
    settings = {"n": 20, "classes": 2, "features": 3, "degree": 4.0} | arguments
    with pytest.raises(InputError, match=sentence):
        planted_partition(**settings, seed=0)  # type: ignore[arg-type]
