"""Several real processes propagate a graph on disk, each the rows that it holds, as one does."""

import os
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

from costa.graphs import propagation
from costa.graphs.propagation import stored_hops
from costa.graphs.streaming import keep_on_disk
from costa.nn.ranks import ALONE, Ranks
from tests.graphs import processes
from tests.graphs.processes import GRAPHS, MEMORY, POWERS, STEPS, TRAININGS, made, prepared, together

KINDS = ("float32", "float16")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The user's cache is elsewhere: a function that makes another one."""
    before = os.environ.get("XDG_CACHE_HOME")

    def another():
        folder = tmp_path_factory.mktemp("cache")
        os.environ["XDG_CACHE_HOME"] = str(folder)
        return folder

    another()
    yield another
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="module")
def one(cache):
    cache()
    return {"hops": processes.hops(ALONE), "trained": processes.trained(ALONE)}


@pytest.fixture(scope="module", params=[2, 3])
def several(request, cache, one, tmp_path_factory):
    """What each process finds, and the folders of what they wrote and share."""
    shared, folder = cache(), tmp_path_factory.mktemp("processes")
    return together(processes.everything, request.param, folder), shared, folder


def joined(ranks, *keys):
    """The rows of every rank, one after the other."""
    for key in keys:
        ranks = [rank[key] for rank in ranks]
    return [torch.cat(parts) for parts in zip(*ranks, strict=True)]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_hops_have_the_bits_of_one_process(one, several, name, kind):
    ranks, *_ = several
    for rank, found in enumerate(ranks):
        held = Ranks(rank, len(ranks)).range(200)
        assert all(len(block) == len(held) for block in found["hops"][name, kind])
    for ours, theirs in zip(joined(ranks, "hops", (name, kind)), one["hops"][name, kind], strict=True):
        assert torch.equal(ours, theirs)


def test_ranks_that_share_no_disk_have_the_rows_that_they_hold(one, several):
    ranks, _, folder = several
    for ours, theirs in zip(joined(ranks, "apart"), one["hops"]["plain", "float32"], strict=True):
        assert torch.equal(ours, theirs)
    for rank in range(len(ranks)):
        files = {path.name for path in (folder / f"cache of {rank}").rglob("hops/*/*") if "-of-" in path.name}
        part = f".part-{rank}-of-{len(ranks)}.npy"
        assert {f"{name}{part}" for name in ("0", "1", "3", "pagerank-2-0.1")} <= files


def test_a_rank_may_have_no_row(several):
    ranks, *_ = several
    x, once = (torch.cat(parts) for parts in zip(*[rank["tiny"][::-1] for rank in ranks], strict=True))
    assert x.shape == once.shape == (2, 12)
    assert len(ranks[-1]["tiny"][0]) == 1


@pytest.mark.parametrize("name", TRAININGS)
def test_what_is_fitted_and_the_vectors_are_those_of_one_process(one, several, name):
    scale, basis, vectors = one["trained"][name]
    ranks, *_ = several
    for rank in ranks:
        its_scale, its_basis, _ = rank["trained"][name]
        torch.testing.assert_close(its_scale, scale, rtol=1e-6, atol=0)
        torch.testing.assert_close(its_basis, basis, rtol=0, atol=1e-5)
        assert torch.equal(its_scale, ranks[0]["trained"][name][0])
        assert torch.equal(its_basis, ranks[0]["trained"][name][1])
    assert (ranks[0]["trained"][name][2] - vectors).abs().max() < 1e-4


def test_propagation_receives_what_is_said(several):
    for received, said in (rank["bytes"] for rank in several[0]):
        assert received == said > 0


def test_the_first_of_each_machine_comes_before_the_others(several):
    ranks, _, folder = several
    assert (folder / "order").read_text() == ("021" if len(ranks) == 3 else "01")


@pytest.mark.parametrize("kind", KINDS)
def test_one_process_joins_what_several_have_written(one, several, kind, monkeypatch):
    _, shared, _ = several
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared))
    graph = keep_on_disk(made(), MEMORY)
    monkeypatch.setattr(propagation, "DiskAdjacency", None)
    hops = [hop.block[:] for hop in stored_hops(graph, prepared(made()), POWERS, STEPS, 0.1, kind)]
    for ours, theirs in zip(hops, one["hops"]["plain", kind], strict=True):
        assert torch.equal(ours, theirs)
    half = "-float16" if kind == "float16" else ""
    names = {path.name for path in Path(hops_folder(graph)).iterdir()}
    assert {"0.npy", f"1{half}.npy", f"3{half}.npy", f"pagerank-2-0.1{half}.npy"} <= names
    assert not any(name.startswith((f"1{half}.part", f"3{half}.part", "0.part")) for name in names)


def hops_folder(graph):
    """The folder of the hops of the standardised features."""
    return next(path for path in Path(graph.folder).glob("hops/*") if list(path.glob("3*")))


def test_after_a_kill_the_columns_that_all_ranks_have_are_not_computed_again(one, cache, tmp_path):
    shared = cache()
    with pytest.raises((mp.ProcessExitedException, mp.ProcessRaisedException)):
        together(processes.killed, 2, tmp_path)
    notes = sorted(shared.rglob("pagerank-*.done"))
    assert [path.read_text() for path in notes] == ["7", "7"]
    notes[0].write_text("12")  # as if this rank had come farther
    ranks = together(processes.resumed, 2, tmp_path)
    for products, _ in ranks:
        assert products == 3 * [5]
    for ours, theirs in zip(joined(ranks, 1), one["hops"]["plain", "float32"], strict=True):
        assert torch.equal(ours, theirs)
    assert not [path for pattern in ("*.done", "*.partial") for path in shared.rglob(pattern)]
