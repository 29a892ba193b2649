import random
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from costa import settings, training
from costa.errors import InputError
from costa.evaluate import health
from costa.evaluate.probe import linear_probe
from costa.graphs.synthetic import planted_partition
from costa.graphs.walks import RandomWalks
from costa.methods import get_method, walks

SMALL = {"walks.number": 2, "walks.length": 10, "walks.window": 3, "walks.dimension": 8}
NAMES = pytest.mark.parametrize("name", ["deepwalk", "node2vec", "deepwalk-x"])


@pytest.fixture(scope="module")
def graph():
    return planted_partition(40, 2, 5, degree=6, seed=0)


@pytest.fixture(scope="module")
def build(merged):
    """The method on a device, not prepared."""

    def build(name, graph, values, seed=0, device="cpu"):
        return training.build(get_method(name), merged(name, graph, **values), graph, seed, torch.device(device))

    return build


@pytest.fixture(scope="module")
def fit(build):
    def fit(name, graph, seed=0, **values):
        pytest.importorskip("gensim")
        method = build(name, graph, SMALL | {f"walks.{key}": value for key, value in values.items()}, seed)
        assert training.train(method, graph).status == "ok"
        return method

    return fit


@NAMES
def test_a_seed_fixes_every_bit_and_the_global_generators_are_left_alone(fit, graph, name):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first, again, other = (fit(name, graph, seed).embed(graph) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


def test_the_vectors_are_the_skip_grams_of_the_walks(fit, graph):
    method = fit("node2vec", graph, p=0.5, q=2.0)
    corpus = list(RandomWalks(graph, number=2, length=10, seed=method.seed, p=0.5, q=2.0))
    expected = walks.skip_gram(corpus, 40, method.walks, method.seed)
    assert np.array_equal(method.embed(graph).numpy(), expected)
    assert not np.array_equal(walks.skip_gram(corpus, 40, method.walks, method.seed + 1), expected)


def test_neutral_node2vec_is_deepwalk(fit, graph):
    deepwalk = fit("deepwalk", graph).embed(graph)
    assert torch.equal(fit("node2vec", graph, q=1.0).embed(graph), deepwalk)
    assert not torch.equal(fit("node2vec", graph).embed(graph), deepwalk)


@pytest.mark.parametrize("key", settings.flatten(walks.Node2VecSettings()))
def test_every_setting_counts(fit, graph, key):
    usual = fit("node2vec", graph)
    key = key.removeprefix("walks.")
    other = fit("node2vec", graph, **{key: getattr(usual.walks, key) + 1})
    assert not torch.equal(usual.embed(graph), other.embed(graph))


@NAMES
def test_communities_are_found(fit, name):
    communities = planted_partition(300, 3, 200, degree=8, homophily=0.75, signal=2.0, seed=1)
    z = fit(name, communities, number=10, length=20, window=5, dimension=32, epochs=5).embed(communities)
    accuracy = [linear_probe(rows, communities.y, repeats=3).accuracy.mean for rows in (communities.x, z)]
    assert accuracy[0] < 0.5
    assert accuracy[1] > 0.7
    assert health.status(z, communities.x) == "ok"
    assert health.effective_rank(z) > 5


def test_a_node_without_an_edge_has_the_zero_vector(fit, graph):
    alone = graph.clone()
    alone.edge_index = graph.edge_index[:, (graph.edge_index != 7).all(0)]
    lengths = fit("deepwalk", alone).embed(alone).norm(dim=1)
    assert lengths[7] == 0
    assert (lengths > 0).sum() == 39


def test_without_edges_there_is_nothing_to_learn(build, graph):
    empty = graph.clone()
    empty.edge_index = graph.edge_index[:, :0]
    with pytest.raises(InputError, match="deepwalk learns from edges alone"):
        build("deepwalk", empty, SMALL).fit(empty)


def test_vectors_and_features_stand_beside_each_other_with_rows_of_length_one(fit, graph):
    method = fit("deepwalk-x", graph)
    assert method.scaling.kind == "standard"
    z = method.embed(graph)
    assert torch.equal(z[:, :8], F.normalize(fit("deepwalk", graph).embed(graph)))
    standard = (graph.x - graph.x.mean(0)) / graph.x.std(0, correction=0)
    torch.testing.assert_close(z[:, 8:], F.normalize(standard))


@NAMES
def test_a_run_is_read_again_for_its_own_graph_alone(costa, own_graph, tmp_path, name):
    pytest.importorskip("gensim")
    given = [text for key, value in SMALL.items() for text in ("--set", f"{key}={value}")]
    ended = costa("train", own_graph, "--method", name, "--seeds", 2, "--out", tmp_path, "--no-probe", *given)
    assert ended.code == 0, ended.err
    run = tmp_path / f"friends-{name}-1"
    assert costa("embed", run, own_graph, "--out", tmp_path / "again.npy").code == 0
    assert np.array_equal(np.load(tmp_path / "again.npy"), np.load(run / "embeddings.npy"))

    nodes = own_graph / "nodes.csv"
    head, *lines = nodes.read_text().splitlines(keepends=True)
    nodes.write_text("".join([head, *reversed(lines)]))
    refused = costa("embed", run, own_graph, "--out", tmp_path / "other.npy")
    assert refused.code == 2
    assert "has other nodes, or the same in another order" in refused.err

    other = own_graph.rename(own_graph.with_name("others"))
    refused = costa("embed", run, other, "--out", tmp_path / "other.npy")
    assert refused.code == 2
    assert f"{name} gives vectors only for the graph it was trained on" in refused.err


def test_a_graph_of_another_size_is_refused(fit, graph):
    with pytest.raises(InputError, match="vectors for 40 nodes, and the graph has 30"):
        fit("deepwalk", graph).embed(planted_partition(30, 2, 5, seed=0))


def test_without_gensim_it_says_what_to_install(build, graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"pip install 'costa-gcl\[walks\]'"):
        build("deepwalk", graph, SMALL).fit(graph)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("number", 0),
        ("length", 1),
        ("length", 10_001),
        ("window", 0),
        ("dimension", 0),
        ("epochs", 0),
        ("p", 0),
        ("q", 200),
    ],
)
def test_values_out_of_range_are_refused(build, graph, key, value):
    with pytest.raises(InputError, match=f"walks.{key} = {value}"):
        build("node2vec", graph, {f"walks.{key}": value})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@NAMES
def test_a_model_on_a_gpu_has_the_vectors_of_the_cpu(build, graph, name, monkeypatch):
    def seeded(corpus, n, walks, seed):
        return np.random.default_rng(seed).normal(size=(n, walks.dimension)).astype("float32")

    monkeypatch.setattr("costa.methods.walks.skip_gram", seeded)
    found = []
    for device in ("cpu", "cuda"):
        method = build(name, graph, SMALL, device=device)
        training.train(method, graph)
        found.append(method.embed(graph).cpu())
    assert torch.equal(*found)
