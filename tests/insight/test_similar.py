"""The nearest nodes: those of a brute force in float64, ties, zero vectors and extreme lengths included."""

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.graphs.storage import mapped
from costa.insight import similar
from costa.insight.similar import find_node, most_similar


def brute_force(z, node, k):
    """The k nearest in float64, equal cosines in the nodes' order."""
    x = np.asarray(z, dtype=np.float64)
    lengths = np.linalg.norm(x, axis=1)
    unit = x / np.where(lengths > 0, lengths, 1)[:, None]
    cosines = (unit * unit[node]).sum(1).round(12)
    order = [row for row in np.argsort(-cosines, kind="stable") if row != node][:k]
    return order, cosines[order]


def check(z, node, k):
    rows, cosines = zip(*most_similar(z, node, k), strict=True)
    expected, exact = brute_force(z, node, k)
    assert list(rows) == expected
    np.testing.assert_allclose(cosines, exact, atol=1e-12)


@pytest.fixture
def blocks(monkeypatch):
    """Blocks of eight rows of 16 columns, so that a few hundred rows are many."""
    monkeypatch.setattr(similar, "BLOCK", 8 * 16 * 4)


@pytest.mark.parametrize("k", [1, 7, 299, 5000])
def test_they_are_those_of_a_brute_force(blocks, k):
    z = torch.randn(300, 16, generator=torch.Generator().manual_seed(0))
    for node in (0, 150, 299):
        check(z, node, k)


def test_vectors_that_float32_cannot_tell_apart_are_in_their_true_order(blocks):
    generator = torch.Generator().manual_seed(1)
    base = torch.randn(16, generator=generator)
    z = base * (1 + torch.rand(200, 1, generator=generator)) + 1e-4 * torch.randn(200, 16, generator=generator)
    single = z @ (z[3] / z[3].norm()) / z.norm(dim=1)
    expected, _ = brute_force(z, 3, 20)
    assert single.argsort(descending=True)[:21].tolist() != [3, *expected]  # float32 alone is wrong here
    check(z, 3, 20)


def test_equal_cosines_are_in_the_nodes_order(blocks):
    z = torch.randn(5, 16, generator=torch.Generator().manual_seed(2)).repeat(40, 1)
    z[100:] *= 3
    found = [row for row, _ in most_similar(z, 52, 39)]
    assert found == [row for row in range(2, 200, 5) if row != 52]
    check(z, 52, 60)


def test_zero_vectors_are_as_near_as_right_angles(blocks):
    z = torch.randn(40, 16, generator=torch.Generator().manual_seed(3))
    z[::4] = 0
    check(z, 1, 39)
    assert most_similar(z, 0, 3) == [(1, 0.0), (2, 0.0), (3, 0.0)]  # a zero vector has no direction: all are ties


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_very_short_and_very_long_vectors_have_their_cosine(blocks, scale):
    z = torch.randn(60, 16, generator=torch.Generator().manual_seed(4))
    z[::3] *= scale
    for node in (0, 1):
        check(z, node, 10)


def test_vectors_on_a_disk_are_read_there(tmp_path):
    z = np.random.default_rng(0).normal(size=(50, 8)).astype("float32")
    np.save(tmp_path / "z.npy", z)
    check(mapped(np.load(tmp_path / "z.npy", mmap_mode="r")), 4, 10)


def test_a_single_node_has_no_neighbour_and_k_is_at_least_one():
    assert most_similar(torch.ones(1, 3), 0, 5) == []
    with pytest.raises(InputError, match="must be at least 1, not 0"):
        most_similar(torch.ones(4, 3), 0, 0)


def test_a_node_is_found_by_its_id():
    assert find_node(["ann", "bob", "7"], " bob ") == 1
    assert find_node(["ann", "bob", "7"], 7) == 2
    assert find_node(range(20), "12") == 12


@pytest.mark.parametrize(
    ("given", "hint"),
    [("ANN lee", "did you mean 'Ann Lee'"), ("Ann Le", "did you mean 'Ann Lee'"), ("zzz", "'zzz'; give one of")],
)
def test_an_unknown_id_is_one_sentence(monkeypatch, given, hint):
    ids = ["Bob", "Ann Lee", "Carol"]
    for alike in (similar.ALIKE, 2):  # of a graph with very many nodes, only ids that begin alike are compared
        monkeypatch.setattr(similar, "ALIKE", alike)
        with pytest.raises(InputError, match="there is no node ") as refused:
            find_node(ids, given)
        assert hint in str(refused.value)
