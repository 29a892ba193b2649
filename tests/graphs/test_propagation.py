"""Hops of a graph on disk against hops in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from costa.graphs import load_graph, propagation
from costa.graphs.propagation import DiskAdjacency, OnDisk, fitted_rows, stored_hops
from costa.graphs.streaming import keep_on_disk
from costa.nn import Adjacency, FeatureScaling
from costa.nn.held_out import InMemory, held_out_scores
from costa.nn.hops import propagate
from tests.graphs.processes import MEMORY, made, prepared

CANDIDATES = [((0,), 0), ((0, 1, 4), 5), ((2,), 5)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def in_memory(graph, preparation, powers, steps):
    x = preparation.apply(graph.x)
    x = x if isinstance(x, torch.Tensor) else x.to_dense()
    adjacency = Adjacency(graph.edge_index, graph.num_nodes, graph.get("edge_weight")).normalized()
    return propagate(x, adjacency, powers, steps, 0.1)


def blocks(hops):
    return [hop.block[:] for hop in hops]


@pytest.mark.parametrize("kind", [{}, {"weighted": True}, {"sparse": True}, {"isolated": True}])
@pytest.mark.parametrize(("scaling", "rank"), [("none", 0), ("standard", 0), ("rows", 5)])
@pytest.mark.parametrize("at_once", [1, 5, 100])
def test_hops_are_those_in_memory(kind, scaling, rank, at_once, monkeypatch):
    monkeypatch.setattr(propagation, "EDGES", 100)
    monkeypatch.setattr(propagation, "ENTRIES", 500)
    monkeypatch.setattr(propagation, "columns_at_once", lambda *_: at_once)
    graph = made(**kind)
    preparation = prepared(graph, scaling, rank)
    hops = stored_hops(keep_on_disk(graph, MEMORY), preparation, (4, 0, 1), 10, 0.1)
    for ours, theirs in zip(blocks(hops), in_memory(graph, preparation, (4, 0, 1), 10), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_hops_that_are_there_are_not_computed_again(monkeypatch):
    graph, preparation = keep_on_disk(made(), MEMORY), prepared(made())
    first = blocks(stored_hops(graph, preparation, (1, 4), 10, 0.1))
    monkeypatch.setattr(propagation, "DiskAdjacency", None)
    again = blocks(stored_hops(graph, preparation, (4,), 10, 0.1))
    assert torch.equal(blocks(stored_hops(graph, preparation, (1,), 0, 0.1))[0], first[0])
    assert torch.equal(first[1], again[0])
    assert torch.equal(first[2], again[1])


def test_hops_of_both_types_lie_side_by_side(monkeypatch):
    monkeypatch.setattr(propagation, "columns_at_once", lambda *_: 5)
    graph, preparation = keep_on_disk(made(), MEMORY), prepared(made())
    halves = blocks(stored_hops(graph, preparation, (0, 4), 10, 0.1, "float16"))
    full = blocks(stored_hops(graph, preparation, (0, 4), 10, 0.1))
    assert torch.equal(halves[0], full[0])  # X, from which the others are computed
    for ours, theirs in zip(halves[1:], full[1:], strict=True):
        assert not torch.equal(ours, theirs)
        assert ((ours - theirs).abs() <= theirs.abs() / 2048).all()
    assert {path.name for path in Path(graph.folder).glob("hops/*/*")} == {
        *("0.npy", "4.npy", "4-float16.npy", "pagerank-10-0.1.npy", "pagerank-10-0.1-float16.npy")
    }


@pytest.mark.parametrize(
    ("powers", "steps", "killed", "again"),
    # products of 5 columns: in the second block; in the first, between the two powers; in the last
    [((1, 4), 10, 15, 10 * [5] + 10 * [2]), ((4, 1), 0, 3, 8 * [5] + 4 * [2]), ((4, 1), 0, 10, 4 * [2])],
)
def test_after_a_kill_the_other_columns_follow(powers, steps, killed, again, monkeypatch):
    monkeypatch.setattr(propagation, "columns_at_once", lambda *_: 5)
    graph, preparation = keep_on_disk(made(), MEMORY), prepared(made())
    products = []

    class Counting(DiskAdjacency):
        def multiply(self, g, out):
            products.append(g.shape[1])
            if len(products) == killed:
                raise KeyboardInterrupt
            return super().multiply(g, out)

    monkeypatch.setattr(propagation, "DiskAdjacency", Counting)
    with pytest.raises(KeyboardInterrupt):
        stored_hops(graph, preparation, powers, steps, 0.1)
    hops = stored_hops(graph, preparation, powers, steps, 0.1)
    assert products[killed:] == again
    for ours, theirs in zip(blocks(hops), in_memory(made(), preparation, powers, steps), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert not list(Path(graph.folder).glob("hops/*/*.partial"))


@pytest.mark.parametrize("kind", [{}, {"weighted": True}, {"sparse": True}])
@pytest.mark.parametrize("rank", [3, 128])
def test_held_out_scores_are_those_in_memory(kind, rank, monkeypatch):
    monkeypatch.setattr("costa.nn.held_out.RANK", rank)
    graph, stored = made(**kind), keep_on_disk(made(**kind), MEMORY)
    scaling = FeatureScaling("standard", graph.num_features)
    scaling.fit(graph.x)
    adjacency = Adjacency(graph.edge_index, graph.num_nodes, graph.get("edge_weight")).normalized()
    plain = held_out_scores(InMemory(scaling(graph.x), adjacency), CANDIDATES)
    ours = held_out_scores(OnDisk(stored, scaling), CANDIDATES)
    assert ours == pytest.approx(plain, abs=1e-3)


def test_few_rows_fit_the_preparation_of_a_large_graph(monkeypatch):
    monkeypatch.setattr(propagation, "FITTED", 50)
    graph = keep_on_disk(made(), MEMORY)
    assert torch.equal(fitted_rows(graph), made().x[::4])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_rows_that_are_fitted_to_fit_into_the_memory(sparse):
    graph = made(sparse=sparse)
    counts = [len(fitted_rows(keep_on_disk(graph, memory))) for memory in (2**13, 2**15, 2**28, 2**40)]
    assert counts[0] < counts[1] < counts[2] == counts[3] == 200
    entries = [graph.x.values().numel() / 200 + 256 if sparse else 12] * 2
    assert all(4 * 4 * count * each <= 2**bits for count, each, bits in zip(counts, entries, (13, 15), strict=False))


def test_a_run_reads_a_graph_from_disk(costa, tmp_path):
    runs = {}
    for where, given in (("memory", []), ("disk", ["--memory", "1GiB"])):
        out = tmp_path / where
        result = costa("train", "digits", "--out", out, "--no-probe", *given)
        assert result.code == 0, result.err
        runs[where] = np.load(out / "embeddings.npy")
    # Adam makes steps of one size even of what rounding left
    cosines = (runs["disk"] * runs["memory"]).sum(1) / np.prod([np.linalg.norm(z, axis=1) for z in runs.values()], 0)
    assert cosines.min() > 0.95
    assert cosines.mean() > 0.99


def test_a_limit_that_is_no_amount_is_refused(costa):
    result = costa("train", "digits", "--memory", "much")
    assert result.code == 2
    assert "'much' is not an amount of memory; write it as 4GiB or 500MB." in result.err


def test_the_graph_names_the_stages_of_reading(tmp_path):
    said = []
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    np.save(tmp_path / "features.npy", np.eye(3, dtype=np.float32))
    load_graph(tmp_path, memory="1GiB", report=said.append)
    assert [line.split()[0] for line in said] == ["Reading", "Reading", "Laying"]


def test_the_graph_names_the_stages_of_propagation(monkeypatch):
    monkeypatch.setattr(propagation, "columns_at_once", lambda *_: 5)
    said = []
    graph = keep_on_disk(made(), MEMORY, said.append)
    for _ in range(2):
        stored_hops(graph, prepared(made()), (4,), 10, 0.1)
    assert said == [
        "Preparing the features …",
        "Propagating 12 columns, 5 at a time …",
        "  5 of 12 columns done",
        "  10 of 12 columns done",
    ]
