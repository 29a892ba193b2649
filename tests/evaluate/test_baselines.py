"""The baselines: what they are, and that their cache is only a cache."""

import pytest
import torch
from scipy.sparse import csr_array

from costa.evaluate import baselines
from costa.graphs import load_graph
from costa.graphs.storage import open_stored, store
from costa.graphs.synthetic import planted_partition
from costa.nn import SparseMatrix
from costa.nn.sparse import from_scipy


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    return tmp_path


@pytest.fixture(scope="module")
def graph():
    return planted_partition(200, 2, 8, seed=0)


def test_once_for_a_graph_and_a_protocol(graph, empty_cache):
    told = []
    first = baselines.baseline_scores(graph, "random-10-10-80", 3, announce=told.append)
    again = baselines.baseline_scores(graph, "random-10-10-80", 3, announce=told.append)
    assert first == again
    assert len(told) == 1
    assert set(first) == {"raw", "diffused", "hops", "untrained"}
    assert min(first[name].accuracy for name in ("untrained", "diffused", "hops")) > first["raw"].accuracy
    other = planted_partition(200, 2, 8, seed=1)
    baselines.baseline_scores(graph, "random-20-80", 3, announce=told.append)
    baselines.baseline_scores(other, "random-10-10-80", 3, announce=told.append)
    assert len(told) == 3


def test_an_untrained_network_that_does_not_fit_is_left_out_until_it_does(empty_cache):
    graph, told = load_graph("digits", memory="1GiB"), []
    whole, graph.memory = graph.memory, 2**20
    assert set(baselines.baseline_scores(graph, "random-20-80", 1, announce=told.append)) == {"raw", "diffused", "hops"}
    graph.memory = whole
    assert "untrained" in baselines.baseline_scores(graph, "random-20-80", 1, announce=told.append)
    assert told[1].startswith("Evaluating the untrained network on digits")


def test_a_damaged_cache_is_made_anew(graph, empty_cache):
    first = baselines.baseline_scores(graph, "random-10-10-80", 2)
    (file,) = (empty_cache / "costa" / "floors").iterdir()
    file.write_text("{")
    assert baselines.baseline_scores(graph, "random-10-10-80", 2) == first


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(graph, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "file"))
    assert baselines.baseline_scores(graph, "random-10-10-80", 2)["raw"].accuracy > 0


def test_sparse_features_are_scored_like_dense_ones_and_cached_by_their_content(graph, empty_cache, monkeypatch):
    words, told = graph.clone(), []
    words.x = (graph.x > graph.x.quantile(0.95)).float()
    dense = baselines.baseline_scores(words, "random-10-10-80", 2)
    words.x = SparseMatrix.from_dense(words.x).a
    monkeypatch.setattr("costa.evaluate.inputs.DENSE", 0)  # never written out
    sparse = baselines.baseline_scores(words, "random-10-10-80", 2, announce=told.append)
    assert {name: score.nmi for name, score in sparse.items()} == pytest.approx(
        {name: score.nmi for name, score in dense.items()}, abs=1e-6
    )
    for name, score in dense.items():
        assert sparse[name].accuracy == pytest.approx(score.accuracy, abs=0.01)
    baselines.baseline_scores(words.clone(), "random-10-10-80", 2, announce=told.append)
    assert len(told) == 1
    words.x = 2 * words.x
    baselines.baseline_scores(words, "random-10-10-80", 2, announce=told.append)
    assert len(told) == 2


@pytest.mark.parametrize("form", ["in memory", "sparse", "on a disk"])
def test_raw_features_of_some_nodes_are_those_rows_of_the_baselines_vectors(graph, form, tmp_path):
    nodes = torch.tensor([3, 150, 7])
    if form == "sparse":
        graph = graph.clone()
        graph.x = from_scipy(csr_array((graph.x * (graph.x > 1)).numpy()))
    expected = baselines._fitted("raw", graph).embed(graph).to_dense()[nodes]
    if form == "on a disk":
        store(graph, tmp_path)
        graph = open_stored(tmp_path, 2**26)
    torch.testing.assert_close(baselines.raw_rows(graph, nodes).to_dense(), expected)
