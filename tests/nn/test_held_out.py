"""R² of held-out features: a plain twin in float64, sparse features, and graphs whose answer is known."""

import pytest
import torch
import torch.nn.functional as F

from costa.graphs.synthetic import planted_partition
from costa.nn import Adjacency, FeatureScaling, SparseMatrix
from costa.nn.held_out import OWN, PENALTIES, SPLITS, InMemory, held_out_scores

NODE, BESIDE, FAR = ((0,), 0), ((0, 1, 4), 10), ((4,), 10)
CANDIDATES = [NODE, BESIDE, FAR, ((2, 1), 0), ((), 10)]


def scores_of(graph, candidates, **values):
    adjacency = Adjacency(graph.edge_index, graph.num_nodes, graph.get("edge_weight")).normalized()
    return held_out_scores(InMemory(graph.x, adjacency), candidates, **values)


# --- the twin -------------------------------------------------------------------------------------------------


def plain_vectors(x, a, powers, steps, teleport):
    """v_1·u(Âᵖ X), v_2·u(…), …"""
    walk = x
    for _ in range(steps):
        walk = (1 - teleport) * a @ walk + teleport * x
    hops = [torch.linalg.matrix_power(a, power) @ x for power in powers] + [walk] * (steps > 0)
    v = torch.tensor([OWN if power == 0 else 1.0 for power in powers] + [1.0] * (steps > 0), dtype=torch.float64)
    return torch.cat([weight * F.normalize(hop) for weight, hop in zip(v / v.norm(), hops, strict=True)], 1)


def leading(x, rank):
    """X V of the exact leading directions; X itself if it has no more."""
    return x @ torch.linalg.svd(x, full_matrices=False).Vh[:rank].T if x.shape[1] > rank else x


def plain_r_squared(z, y, known, tested):
    """1 − min_λ ‖Y_T − K_TR (K_RR + λI)⁻¹ Y_R‖² / ‖Y_T‖², a system of equations for every λ."""
    y = y - y[known].mean(0)
    k = z @ z.T + 1
    errors = []
    for penalty in PENALTIES:
        system = k[known][:, known] + penalty * torch.eye(len(known), dtype=torch.float64)
        predicted = k[tested][:, known] @ torch.linalg.solve(system, y[known])
        errors.append((y[tested] - predicted).square().sum())
    return 1 - float(min(errors) / y[tested].square().sum())


def plain_scores(graph, candidates, teleport, known_at_most, tested_at_most, rank, targets):
    """The formula of the module's docstring, for a dense X that has an edge at most once in each direction."""
    x, (n, d) = graph.x.double(), graph.x.shape
    a = torch.eye(n, dtype=torch.float64)
    a[tuple(graph.edge_index.flip(0))] = 1.0 if graph.get("edge_weight") is None else graph.edge_weight.double()
    degree = a.sum(1)
    a = a / (degree[:, None] * degree).sqrt()
    generator = torch.Generator().manual_seed(0)
    scores = [0.0] * len(candidates)
    for _ in range(SPLITS):
        columns, nodes = torch.randperm(d, generator=generator), torch.randperm(n, generator=generator)
        first, second = columns[: (d + 1) // 2], columns[(d + 1) // 2 :]
        known = nodes[: min(known_at_most, n // 2)]
        tested = nodes[len(known) :][:tested_at_most]
        for one, other in ((first, second), (second, first)):
            chosen = torch.cat([known, tested])
            rows = F.normalize(x[chosen][:, other])
            directions = leading(rows - rows.mean(0), targets)
            y = torch.zeros(n, directions.shape[1], dtype=torch.float64).index_copy(0, chosen, directions)
            part = leading(x[:, one], rank)
            for number, (powers, steps) in enumerate(candidates):
                z = plain_vectors(part, a, powers, steps, teleport)
                scores[number] += plain_r_squared(z, y, known, tested) / (2 * SPLITS)
    return scores


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("features", "limits"),
    [
        (9, {"KNOWN": 600, "TESTED": 2000, "RANK": 128, "TARGETS": 16}),  # none of which is reached
        (24, {"KNOWN": 25, "TESTED": 40, "RANK": 5, "TARGETS": 3}),
        # with room for every direction the randomised SVD is exact
        (2, {"KNOWN": 30, "TESTED": 2000, "RANK": 1, "TARGETS": 1}),
    ],
)
def test_scores_are_those_of_the_formula(features, limits, weighted, monkeypatch):
    for name, limit in limits.items():
        monkeypatch.setattr(f"costa.nn.held_out.{name}", limit)
    graph = planted_partition(80, 3, features, degree=6, homophily=0.8, signal=3.0, seed=1)
    if weighted:
        lower = torch.rand(80, 80, generator=torch.Generator().manual_seed(2))
        graph.edge_weight = (lower + lower.T)[tuple(graph.edge_index)]
    ours = scores_of(graph, CANDIDATES, teleport=0.2)
    twin = plain_scores(graph, CANDIDATES, 0.2, limits["KNOWN"], limits["TESTED"], limits["RANK"], limits["TARGETS"])
    assert ours == pytest.approx(twin, rel=1e-3, abs=1e-4)
    assert max(twin) > 0.05  # so that there is something to compare


# --- sparse features ------------------------------------------------------------------------------------------


def words(n, features):
    """A bag of words, and a node without any."""
    graph = planted_partition(n, 3, features, degree=8, homophily=0.9, signal=6.0, seed=0)
    graph.x = (graph.x > graph.x.quantile(0.95)).float()
    graph.x[7], graph.num_nodes = 0, n
    return graph


@pytest.mark.parametrize("scaling", ["none", "rows", "standard"])
@pytest.mark.parametrize("features", [60, 400], ids=["every column", "reduced"])
def test_sparse_features_score_as_dense_ones_do(scaling, features):
    dense = words(200, features)
    sparse, scale = dense.clone(), FeatureScaling(scaling, features)
    scale.fit(dense.x)
    sparse.x = scale(SparseMatrix.from_dense(dense.x).a)
    dense.x = scale(dense.x)
    assert isinstance(sparse.x, SparseMatrix)
    assert (sparse.x.shift is not None) == (scaling == "standard")
    expected = scores_of(dense, CANDIDATES)
    assert scores_of(sparse, CANDIDATES) == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert max(expected) > 0.02


# --- graphs whose answer is known -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_where_edges_join_what_is_alike_the_region_predicts_better_than_the_node(seed):
    graph = planted_partition(400, 3, 24, degree=8, homophily=0.9, signal=2.0, seed=seed)
    node, beside, far = scores_of(graph, [NODE, BESIDE, FAR])
    assert far > 2 * node > 0
    assert beside > 2 * node


@pytest.mark.parametrize("seed", range(3))
def test_where_edges_join_what_is_unlike_the_node_predicts_better_than_the_region(seed):
    graph = planted_partition(400, 5, 24, degree=3, homophily=0.1, signal=3.0, seed=seed)
    node, beside, far = scores_of(graph, [NODE, BESIDE, FAR])
    assert node > 1.3 * far > 0
    assert node > beside


def test_columns_that_follow_from_each_other_are_predicted_whole_and_noise_is_not():
    graph = planted_partition(300, 3, 20, degree=8, homophily=0.5, seed=0)
    graph.x = graph.x[:, :1] * torch.arange(1.0, 21.0)
    assert scores_of(graph, [NODE, FAR])[0] > 0.999
    graph.x = torch.randn(300, 20, generator=torch.Generator().manual_seed(1))
    assert all(abs(score) < 0.01 for score in scores_of(graph, CANDIDATES))


def test_a_candidate_scores_the_same_whatever_the_others_are():
    graph = planted_partition(100, 3, 12, seed=0)
    assert scores_of(graph, CANDIDATES[::-1]) == scores_of(graph, CANDIDATES)[::-1]


@pytest.mark.parametrize("number", range(len(CANDIDATES)))
def test_a_candidate_alone_has_its_score_too(number):
    graph = planted_partition(100, 3, 12, seed=0)
    assert scores_of(graph, [CANDIDATES[number]]) == [scores_of(graph, CANDIDATES)[number]]


# --- where nothing can be said --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["dense", "sparse", "shifted"])
@pytest.mark.parametrize(
    "x",
    [
        torch.arange(77.0)[:, None],
        torch.zeros(77, 6),
        torch.ones(77, 6),
        torch.tensor([0.1, 0.7, 1.3]).repeat(77, 1),
        torch.randn(3, 6, generator=torch.Generator().manual_seed(0)),
        torch.randn(1, 6, generator=torch.Generator().manual_seed(0)),
    ],
    ids=["one column", "zero", "equal columns", "constant columns", "three nodes", "one node"],
)
def test_zeros_where_nothing_can_be_said(x, layout):
    n = len(x)
    ring = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
    adjacency = Adjacency(torch.cat([ring, ring.flip(0)], 1), n).normalized()
    if layout != "dense":
        shift = torch.full((x.shape[1],), 0.25) if layout == "shifted" else None
        x = SparseMatrix.from_csr(SparseMatrix.from_dense(x).a, shift)
    assert held_out_scores(InMemory(x, adjacency), CANDIDATES) == [0.0] * len(CANDIDATES)


@pytest.mark.parametrize("n", [4, 5])
def test_four_nodes_are_enough(n):
    x = torch.randn(n, 6, generator=torch.Generator().manual_seed(0))
    adjacency = Adjacency(torch.tensor([[0, 1], [1, 0]]), n).normalized()
    scores = torch.tensor(held_out_scores(InMemory(x, adjacency), CANDIDATES))
    assert scores.isfinite().all()
    assert (scores <= 1).all()
    assert (scores != 0).any()


def test_constant_columns_beside_others_change_no_more_than_the_draw():
    graph = planted_partition(300, 3, 24, degree=8, homophily=0.9, signal=3.0, seed=0)
    graph.x = torch.cat([graph.x, torch.zeros(300, 6)], 1)
    node, far = scores_of(graph, [NODE, FAR])
    assert 0 < 1.5 * node < far < 1


# --- randomness -----------------------------------------------------------------------------------------------


def test_the_same_graph_scores_the_same_and_the_global_generator_is_left_alone():
    graph = words(120, 300)
    before = torch.random.get_rng_state()
    first = scores_of(graph, CANDIDATES)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(5)
    assert scores_of(graph, CANDIDATES) == first
    torch.random.set_rng_state(before)


def test_columns_made_from_one_are_not_predicted_from_each_other():
    graph = planted_partition(600, 3, 6, degree=10, homophily=0.9, seed=0)
    noise = torch.randn(600, 8, generator=torch.Generator().manual_seed(0))
    # eight columns that say nothing of the classes, each twice, as a number and what else was made of it
    x = torch.cat([0.3 * graph.x, noise, noise.sign()], 1).float()
    hops = InMemory(x, Adjacency(graph.edge_index, 600).normalized())
    candidates = [((0,), 0), ((4,), 10)]
    own, _ = held_out_scores(hops, candidates)
    own_apart, _ = held_out_scores(hops, candidates, groups=[*range(14), *range(6, 14)])
    assert own > 0.1
    assert own_apart < 0.02
    assert held_out_scores(hops, candidates, groups=list(range(22))) == held_out_scores(hops, candidates)
    assert held_out_scores(hops, candidates, groups=[0] * 22) == [0, 0]
