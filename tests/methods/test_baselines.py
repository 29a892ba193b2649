import pytest
import torch
import torch.nn.functional as F

from costa import training
from costa.graphs.synthetic import planted_partition
from costa.methods import baselines, get_method
from costa.nn import Adjacency, SparseMatrix
from costa.nn.sparse import is_csr


@pytest.fixture(scope="module")
def graph():
    return planted_partition(30, 2, 5, seed=0)


@pytest.fixture(scope="module")
def run(merged):
    def run(name, graph, **values):
        built = training.build(get_method(name), merged(name, **values), graph, 0, torch.device("cpu"))
        outcome = training.train(built, graph)
        assert (outcome.status, outcome.epochs) == ("ok", 0)
        return built

    return run


def test_raw_is_the_features(run, graph):
    assert torch.equal(run("raw", graph, features__scaling="none").embed(graph), graph.x)
    standard = run("raw", graph, features__scaling="standard").embed(graph)
    torch.testing.assert_close(standard.mean(0), torch.zeros(5), atol=1e-5, rtol=0)


def test_diffused_features_are_those_of_personalised_pagerank(run, graph):
    ours = run("diffused", graph, features__scaling="none", encoder__teleport=0.2).embed(graph)
    a = Adjacency(graph.edge_index, 30).normalized().a.to_dense().double()
    far = torch.linalg.solve(torch.eye(30, dtype=torch.float64) - 0.8 * a, 0.2 * graph.x.double())
    # what is left after ten steps: 0.8¹⁰ of the distance at the start
    left = torch.linalg.matrix_power(0.8 * a, 10) @ (graph.x.double() - far)
    torch.testing.assert_close(ours.double(), far + left, rtol=1e-5, atol=1e-6)
    assert torch.equal(run("diffused", graph, features__scaling="none", encoder__steps=0).embed(graph), graph.x)


def plain_hops(graph, powers, steps, teleport):
    """u of X's hops side by side, in float64."""
    a = Adjacency(graph.edge_index, 30).normalized().a.to_dense().double()
    x = walk = graph.x.double()
    for _ in range(steps):
        walk = (1 - teleport) * a @ walk + teleport * x
    hops = [torch.linalg.matrix_power(a, power) @ x for power in powers]
    return torch.cat([F.normalize(block) for block in (*hops, walk)], 1)


@pytest.mark.parametrize("powers", [(0, 1, 3), (1, 3), ()])
def test_hops_are_the_features_and_what_comes_along_edges_each_of_length_one(run, graph, powers):
    given = {"features__scaling": "none", "encoder__powers": powers, "encoder__teleport": 0.2}
    ours = run("hops", graph, encoder__steps=3, **given).embed(graph)
    torch.testing.assert_close(ours.double(), plain_hops(graph, powers, 3, 0.2), rtol=1e-4, atol=1e-5)
    reduced = run("hops", graph, features__rank=2, encoder__steps=3, **given).embed(graph)
    assert reduced.shape == (30, 2 * (len(powers) + 1))
    if powers:
        assert torch.equal(run("hops", graph, encoder__steps=0, **given).embed(graph), ours[:, :-5])


def test_hops_of_the_table_are_the_features_one_edge_two_four_and_pagerank(run, graph):
    ours = run("hops", graph, features__scaling="none").embed(graph)
    torch.testing.assert_close(ours.double(), plain_hops(graph, (0, 1, 2, 4), 10, 0.1), rtol=1e-4, atol=1e-5)


def test_hops_of_a_node_without_features_or_neighbours_are_zero(run, graph):
    alone = graph.clone()
    alone.edge_index = alone.edge_index[:, (alone.edge_index != 4).all(0)]
    alone.x = alone.x.clone()
    alone.x[4] = 0
    z = run("hops", alone, features__scaling="none").embed(alone)
    assert (z[4] == 0).all()
    assert z.isfinite().all()


def test_untrained_is_the_encoder_as_it_starts(run, graph):
    method = run("untrained", graph, features__scaling="none", encoder__width=8)
    expected = method.encoder(graph.x, Adjacency(graph.edge_index, 30).normalized())
    torch.testing.assert_close(method.embed(graph), expected)


@pytest.fixture
def words(graph):
    """The graph with sparse features, dense and CSR."""
    dense = graph.clone()
    dense.x = (torch.rand(30, 40, generator=torch.Generator().manual_seed(0)) < 0.05).float()
    sparse = dense.clone()
    sparse.x = SparseMatrix.from_dense(dense.x).a
    return dense, sparse


@pytest.mark.parametrize("name", ["raw", "diffused", "untrained"])
@pytest.mark.parametrize("scaling", ["none", "rows", "standard"])
def test_csr_features_give_what_dense_ones_give(run, words, name, scaling):
    expected, ours = (run(name, each, features__scaling=scaling).embed(each) for each in words)
    torch.testing.assert_close(ours.to_dense(), expected)
    assert is_csr(ours) == (name == "raw" and scaling != "standard")


@pytest.mark.parametrize(("name", "values"), [("raw", {}), ("diffused", {"encoder__steps": 0})])
def test_reduced_features_have_so_many_columns_and_the_longest_directions(run, words, name, values):
    dense, sparse = words
    z = run(name, sparse, features__scaling="none", features__rank=7, **values).embed(sparse)
    expected = torch.linalg.svdvals(dense.x)[:7].norm()
    assert z.shape == (30, 7)
    assert 0.98 * expected < z.norm() <= 1.0001 * expected


def test_features_that_would_fill_in_are_reduced_if_they_are_large(words, monkeypatch):
    dense, sparse = words
    assert "features.rank" not in get_method("diffused").choose(sparse)
    monkeypatch.setattr(baselines, "FULL", 4 * 30 * 40 - 1)
    assert get_method("diffused").choose(sparse)["features.rank"] == 512
    assert "features.rank" not in get_method("diffused").choose(dense)
    assert "features.rank" not in get_method("raw").choose(sparse)
    sparse.x = -sparse.x  # standardised, and no longer sparse
    assert get_method("raw").choose(sparse) == {"features.scaling": "standard", "features.rank": 512}
