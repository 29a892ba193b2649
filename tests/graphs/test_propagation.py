"""Hops of a graph on disk against hops in memory."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
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


def count_products(monkeypatch, killed=None):
    """A list that gets the columns of each product from now on; one of the products is killed."""
    products = []

    class Counting(DiskAdjacency):
        def multiply(self, g, *others):
            products.append(g.shape[1])
            if len(products) == killed:
                raise KeyboardInterrupt
            return super().multiply(g, *others)

    monkeypatch.setattr(propagation, "DiskAdjacency", Counting)
    return products


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
    products = count_products(monkeypatch, killed)
    with pytest.raises(KeyboardInterrupt):
        stored_hops(graph, preparation, powers, steps, 0.1)
    hops = stored_hops(graph, preparation, powers, steps, 0.1)
    assert products[killed:] == again
    for ours, theirs in zip(blocks(hops), in_memory(made(), preparation, powers, steps), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert not [path for path in Path(graph.folder).glob("hops/*/*") if path.suffix != ".npy"]


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("weighted", [False, True])
def test_after_a_kill_other_memory_and_other_hops_give_the_same_bits(kind, weighted, monkeypatch):
    graph, preparation = keep_on_disk(made(weighted=weighted), MEMORY), prepared(made())

    def tried(powers, steps, at_once, killed=None):
        """The hops, so many columns at a time, and the columns of each product; killed in one of these."""
        products = count_products(monkeypatch, killed)
        monkeypatch.setattr(propagation, "columns_at_once", lambda *_: at_once)
        if killed is None:
            return blocks(stored_hops(graph, preparation, powers, steps, 0.1, kind)), products
        with pytest.raises(KeyboardInterrupt):
            stored_hops(graph, preparation, powers, steps, 0.1, kind)
        return None

    undisturbed, _ = tried((1, 4), 10, 12)
    for path in Path(graph.folder).glob("hops/*/*"):
        path.unlink()
    tried((1, 4), 10, 3, killed=3 * 10 + 5)  # the powers are done, of PageRank the first 9 columns are
    (fourth,), products = tried((4,), 0, 7)
    assert torch.equal(fourth, undisturbed[1])
    assert products == []
    tried((1, 4), 10, 2, killed=2)
    ours, products = tried((1, 4), 10, 5)
    assert products == 10 * [3]
    for hop, theirs in zip(ours, undisturbed, strict=True):
        assert torch.equal(hop, theirs)


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


class Heard:
    """The lines of the stages that have begun, and the shares of each that were done."""

    def __init__(self):
        self.shares = {}

    def __call__(self, stage, share=0.0):
        shares = self.shares.setdefault(stage, [])
        assert share > max(shares, default=0) or not (share or shares)
        shares.extend([share] if share else [])


@pytest.mark.parametrize("features", ["npy", "npz", "sparse", "csv"])
@pytest.mark.parametrize("edges", ["csv", "parquet"])
def test_the_graph_names_the_stages_of_reading_and_what_is_done(edges, features, tmp_path, monkeypatch):
    monkeypatch.setattr("costa.graphs.matrices.ENTRIES", 16 * 4)
    monkeypatch.setattr("costa.graphs.edges.CHUNK", 2)
    monkeypatch.setattr("costa.graphs.chunks.BLOCK", 20)
    source, target = [0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]
    rows = "".join(f"{ends[0]},{ends[1]}\n" for ends in zip(source, target, strict=True))
    (tmp_path / "edges.csv").write_text(f"source,target\n{rows}")
    if edges == "parquet":
        pyarrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
        (tmp_path / "edges.csv").unlink()
        parquet.write_table(pyarrow.table({"source": source, "target": target}), tmp_path / "edges.parquet")
    x = np.eye(30, dtype=np.float32)[:, :20]
    if features == "npy":
        np.save(tmp_path / "features.npy", x)
    elif features == "npz":
        np.savez(tmp_path / "features.npz", x)
    elif features == "sparse":
        scipy.sparse.save_npz(tmp_path / "features.npz", scipy.sparse.csr_array(x))
    else:
        header = ",".join(f"c{column}" for column in range(20))
        np.savetxt(tmp_path / "features.csv", x, delimiter=",", header=header, comments="")
    heard = Heard()
    load_graph(tmp_path, memory="1GiB", report=heard)
    assert [line.split(" in ")[0] for line in heard.shares] == [
        *("Reading the features", "Reading the edges", "Laying out the edges …")
    ]
    assert [shares[-1] for shares in heard.shares.values()] == [1, 1, pytest.approx(1)]
    laid_out = heard.shares["Laying out the edges …"]
    assert len(laid_out) > 4


def test_the_graph_names_the_stages_of_propagation_and_what_is_done(monkeypatch):
    monkeypatch.setattr(propagation, "columns_at_once", lambda *_: 5)
    heard = Heard()
    graph = keep_on_disk(made(), MEMORY, heard)
    for _ in range(2):
        stored_hops(graph, prepared(made()), (4,), 10, 0.1)
    assert list(heard.shares) == ["Preparing the features …", "Propagating 12 columns, 5 at a time …"]
    assert heard.shares["Propagating 12 columns, 5 at a time …"] == pytest.approx(
        [columns / 120 for columns in (*range(5, 101, 5), *range(102, 121, 2))]
    )
