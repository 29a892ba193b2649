"""Parts: all nodes in parts of about one size, few edges between them; the streams against a plain loop."""

import logging
import sys

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee

from costa.errors import InputError
from costa.graphs import partition as module
from costa.graphs.partition import by_streams, partition, undirected
from costa.graphs.synthetic import planted_partition


@pytest.fixture(params=["METIS", "streams"])
def kind(request, monkeypatch, tmp_path):
    """Either partition, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if request.param == "METIS":
        pytest.importorskip("pymetis")
    else:
        monkeypatch.setitem(sys.modules, "pymetis", None)
    return request.param


@pytest.fixture(scope="module")
def graph():
    return planted_partition(2000, 20, 2, degree=10, seed=0)


def between(part, edge_index):
    return float((part[edge_index[0]] != part[edge_index[1]]).float().mean())


@pytest.mark.parametrize("parts", [1, 2, 16, 100])
def test_parts_have_about_one_size_and_few_edges_between_them(kind, graph, parts):
    part = partition(graph.edge_index, 2000, parts)
    sizes = part.bincount(minlength=parts)
    assert len(sizes) == parts
    assert 0.7 * 2000 / parts <= sizes.min()
    assert sizes.max() <= np.ceil(1.1 * 2000 / parts)
    chance = torch.arange(2000) % parts
    assert between(part, graph.edge_index) <= 0.75 * between(chance, graph.edge_index)
    assert torch.equal(part, partition(graph.edge_index, 2000, parts))


@pytest.mark.parametrize("n", [4, 5, 60])
def test_a_part_has_two_nodes_whatever_the_graph(kind, n):
    star = torch.stack([torch.zeros(n - 1, dtype=torch.int64), torch.arange(1, n)])
    nothing = torch.empty(2, 0, dtype=torch.int64)
    for edges in (torch.cat([star, star.flip(0)], 1), nothing):
        for parts in {1, 2, n // 2}:
            sizes = partition(edges, n, parts).bincount(minlength=parts)
            assert len(sizes) == parts
            assert sizes.min() >= 2


def test_more_parts_than_pairs_of_nodes_are_one_sentence(kind, graph):
    with pytest.raises(InputError, match=r"train.parts = 1,001 leaves less than 2 of 2,000 nodes for each part; lower"):
        partition(graph.edge_index, 2000, 1001)


def test_directions_loops_and_copies_change_nothing(graph):
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    loops = torch.arange(2000).expand(2, -1)
    expected = undirected(graph.edge_index, 2000)
    given = undirected(torch.cat([once, loops, once[:, :50]], 1), 2000)
    assert np.array_equal(given.indptr, expected.indptr)
    assert np.array_equal(given.indices, expected.indices)


def test_the_second_time_it_is_read_from_the_cache(kind, graph, monkeypatch, tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger=module.__name__):
        first = partition(graph.edge_index, 2000, 16)
    assert len(caplog.records) == 1
    assert ("METIS divides" if kind == "METIS" else "pymetis is not installed") in caplog.text

    def forbidden(*given):
        raise AssertionError("computed again")

    found = "by_metis" if kind == "METIS" else "by_streams"
    original = getattr(module, found)
    monkeypatch.setattr(module, found, forbidden)
    assert torch.equal(partition(graph.edge_index, 2000, 16), first)
    assert len(caplog.records) == 1
    for edges, parts in ((graph.edge_index, 8), (graph.edge_index[:, 2:], 16)):  # another question
        with pytest.raises(AssertionError, match="computed again"):
            partition(edges, 2000, parts)
    monkeypatch.setattr(module, found, original)
    (file,) = (tmp_path / "costa" / "parts").iterdir()
    for damage in (b"", b"nothing", file.read_bytes()[:200]):
        file.write_bytes(damage)
        assert torch.equal(partition(graph.edge_index, 2000, 16), first)


def test_a_cache_that_cannot_be_written_is_done_without(kind, graph, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(partition(graph.edge_index, 2000, 4)) == 2000


def plain_streams(neighbours, parts):
    """One node after the other."""
    n = neighbours.shape[0]
    capacity = int(np.ceil(module.SLACK * n / parts))
    part, size = [-1] * n, [0] * parts
    for _ in range(module.PASSES):
        for v in reverse_cuthill_mckee(neighbours, symmetric_mode=True):
            if part[v] >= 0:
                size[part[v]] -= 1
            beside = [part[u] for u in neighbours.indices[neighbours.indptr[v] : neighbours.indptr[v + 1]]]
            scores = [beside.count(i) * ((capacity - size[i]) / capacity) for i in range(parts)]
            best = max(range(parts), key=scores.__getitem__)
            part[v] = best if scores[best] > 0 else min(range(parts), key=size.__getitem__)
            size[part[v]] += 1
    return part


@pytest.mark.parametrize("parts", [2, 7, 30])
def test_nodes_that_are_streamed_singly_choose_as_in_the_plain_loop(parts, monkeypatch):
    monkeypatch.setattr(module, "CHUNKS", 10**6)
    graph = planted_partition(150, 5, 2, degree=4, seed=1)
    neighbours = undirected(graph.edge_index, 150)
    assert by_streams(neighbours, parts).tolist() == plain_streams(neighbours, parts)


def test_chunks_cut_hardly_more_edges_than_single_nodes(graph):
    neighbours = undirected(graph.edge_index, 2000)
    plain, chunked = (torch.tensor(found(neighbours, 16)) for found in (plain_streams, by_streams))
    assert between(chunked, graph.edge_index) <= 1.2 * between(plain, graph.edge_index)
