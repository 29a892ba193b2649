"""The randomised SVD against the exact one."""

import pytest
import torch

from costa.nn import FeatureReduction, FeatureScaling, SparseMatrix
from costa.nn.reduction import right_singular_vectors


def decaying(n, m, seed=0):
    """A matrix of which a third is not zero, whose singular values fall like 1/i."""
    generator = torch.Generator().manual_seed(seed)
    u, v = (torch.linalg.qr(torch.randn(side, min(n, m), generator=generator)).Q for side in (n, m))
    x = u * (1 / torch.arange(1.0, min(n, m) + 1)) @ v.T
    return x * (torch.rand(n, m, generator=generator) < 0.35)


def exact(x, rank):
    v = torch.linalg.svd(x.double(), full_matrices=False).Vh[:rank].T
    return v * v.gather(0, v.abs().argmax(0, keepdim=True)).sign()


def layouts(x):
    """The same matrix dense, sparse, and sparse with the mean of its columns subtracted from X + mean."""
    sparse = x.to_sparse_csr()
    scaling = FeatureScaling("standard", x.shape[1])
    scaling.fit(sparse)
    return {"dense": (x, x), "sparse": (SparseMatrix.from_csr(sparse), x), "shifted": (scaling(sparse), scaling(x))}


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("layout", ["dense", "sparse", "shifted"])
@pytest.mark.parametrize("size", [(60, 25), (40, 70)])
def test_it_keeps_nearly_what_the_exact_vectors_keep_in_every_layout(layout, size):
    x, dense = layouts(decaying(*size))[layout]
    v = right_singular_vectors(x, 8)
    kept, best = (torch.linalg.vector_norm(dense.double() @ w.double()).square() for w in (v, exact(dense, 8)))
    assert 0.995 * best < kept <= best * (1 + 1e-6)
    torch.testing.assert_close(v.T @ v, torch.eye(8), atol=1e-5, rtol=0)


def test_given_room_it_finds_the_very_vectors_with_the_largest_entry_positive():
    x = decaying(60, 25)  # oversampling covers all 25 directions
    torch.testing.assert_close(right_singular_vectors(x, 10).double(), exact(x, 10), atol=1e-4, rtol=0)


def test_a_direction_that_x_lacks_is_a_zero_column():
    v = right_singular_vectors(decaying(6, 30), 9)
    assert v.shape == (30, 9)
    assert v[:, :6].any(0).all()
    assert not v[:, 6:].any()
    assert not right_singular_vectors(torch.zeros(5, 4), 2).any()


def test_the_seed_is_its_own():
    before = torch.random.get_rng_state()
    first = right_singular_vectors(decaying(40, 70), 8)
    torch.manual_seed(5)
    assert torch.equal(first, right_singular_vectors(decaying(40, 70), 8))
    torch.random.set_rng_state(before)
    right_singular_vectors(decaying(40, 70), 8)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(("rank", "out"), [(0, 20), (20, 20), (21, 20), (7, 7)])
def test_it_reduces_only_wider_features_and_is_saved_only_then(rank, out):
    reduction, x = FeatureReduction(rank, 20), decaying(40, 20)
    reduction.fit(x)
    assert reduction.out_features == out == reduction(x).shape[1]
    assert (reduction(x) is x) == (out == 20) == (not reduction.state_dict())


def test_a_saved_reduction_reduces_another_graph():
    reduction, fresh = FeatureReduction(5, 20), FeatureReduction(5, 20)
    reduction.fit(decaying(40, 20))
    fresh.load_state_dict(reduction.state_dict())
    other = decaying(12, 20, seed=1)
    torch.testing.assert_close(fresh(SparseMatrix.from_dense(other)), other @ reduction.basis)
