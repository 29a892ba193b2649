"""Personalised PageRank against the inverse of the whole matrix in float64."""

import pytest
import torch

from costa.graphs import diffusion
from costa.graphs.diffusion import BLOCK, TOLERANCE, top_ppr
from costa.graphs.synthetic import planted_partition
from costa.nn import Adjacency

N = 3 * BLOCK + 5


@pytest.fixture(scope="module")
def weighted():
    """A graph with weights, whose last node has no edge."""
    graph = planted_partition(N - 1, 3, 2, degree=6, seed=0)
    row, col = graph.edge_index
    weight = 0.1 + ((row + 1) * (col + 1)).double() % 7
    return graph.edge_index, weight


def transition(weighted, dtype):
    edge_index, weight = weighted
    return Adjacency(edge_index, N, weight, dtype=dtype).normalized().a


def inverse(t, alpha):
    t = t.to_dense().double()
    return alpha * torch.linalg.inv(torch.eye(len(t), dtype=torch.float64) - (1 - alpha) * t)


def dense(index, values, n):
    s = torch.zeros(n, n, dtype=torch.float64)
    s[index[0], index[1]] = values.double()
    assert int((s != 0).sum()) == len(values)  # every entry once
    return s


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.9])
def test_with_all_entries_it_is_the_inverse(weighted, alpha, dtype):
    s = dense(*top_ppr(transition(weighted, dtype), alpha, k=10 * N), N)
    expected = inverse(transition(weighted, torch.float64), alpha)
    assert (s - expected).abs().max() < 2 * TOLERANCE


def test_the_tolerance_holds_where_the_spectrum_is_widest():
    # a ring of even length without self-loops has the eigenvalues 1 and −1
    ring = torch.eye(10, dtype=torch.float64).roll(1, 0)
    t = (ring + ring.T) / 2
    for alpha in (0.01, 0.2):
        assert (dense(*top_ppr(t, alpha, k=10), 10) - inverse(t, alpha)).abs().max() < 2 * TOLERANCE


@pytest.mark.parametrize("k", [1, 7])
def test_the_largest_entries_are_kept_and_the_rows_keep_their_sums(weighted, k):
    t = transition(weighted, torch.float64)
    s, whole = dense(*top_ppr(t, 0.2, k), N), inverse(t, 0.2)
    least = whole.topk(k, dim=1).values[:, -1:]
    largest = torch.where(whole >= least - 2 * TOLERANCE, whole, 0)
    assert torch.equal(s[:-1] > 0, largest[:-1] > 0)
    torch.testing.assert_close(s.sum(1), whole.sum(1), rtol=0, atol=1e-5)
    scaled = largest * whole.sum(1, keepdim=True) / largest.sum(1, keepdim=True)
    torch.testing.assert_close(s[:-1], scaled[:-1], rtol=0, atol=1e-5)


def test_nothing_reaches_another_component(weighted):
    index, values = top_ppr(transition(weighted, torch.float32), 0.2, k=7)
    alone = (index == N - 1).any(0)
    assert index[:, alone].tolist() == [[N - 1], [N - 1]]
    assert values[alone].item() == pytest.approx(1, abs=2 * TOLERANCE)
    assert index[0].bincount().tolist() == [7] * (N - 1) + [1]


def test_without_edges_it_is_the_identity():
    index, values = top_ppr(torch.eye(3), 0.2, k=2)
    assert torch.equal(index, torch.arange(3).expand(2, 3))
    torch.testing.assert_close(values, torch.ones(3), rtol=0, atol=2 * TOLERANCE)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_the_same(weighted, monkeypatch):
    monkeypatch.setattr(diffusion, "WIDE_BLOCK", BLOCK)
    t = transition(weighted, torch.float32)
    index, values = top_ppr(t.cuda(), 0.2, k=N)
    assert (dense(index.cpu(), values.cpu(), N) - inverse(t, 0.2)).abs().max() < 2 * TOLERANCE
