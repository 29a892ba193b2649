"""Effective rank and mean cosine against their definitions."""

import math

import pytest
import torch

from costa.nn import spectrum


def test_effective_rank_is_the_exponential_of_the_entropy_of_the_spectrum():
    z = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)) @ torch.diag(torch.arange(1.0, 8.0))
    sigma = torch.linalg.svdvals((z - z.mean(0)).double())
    p = sigma / sigma.sum()
    assert spectrum.effective_rank(z) == pytest.approx(math.exp(-(p * p.log()).sum()), rel=1e-6)


def test_a_wide_matrix_has_the_rank_of_its_transposed_gram():
    z = torch.randn(9, 40, generator=torch.Generator().manual_seed(0))
    sigma = torch.linalg.svdvals((z - z.mean(0)).double())[:-1]  # the mean takes one dimension away
    p = sigma / sigma.sum()
    assert spectrum.effective_rank(z) == pytest.approx(math.exp(-(p * p.log()).sum()), rel=1e-5)


def test_of_many_rows_a_part_is_enough():
    z = torch.randn(3 * spectrum.ROWS, 8, generator=torch.Generator().manual_seed(0))
    assert spectrum.effective_rank(z) == pytest.approx(8, rel=0.01)
    z[1::3] = 1e6  # rows that are passed over
    assert spectrum.effective_rank(z) == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize("steepness", [0.0, 0.5, 2.0, 5.0])
def test_participation_is_a_lower_bound(steepness):
    z = torch.randn(50, 9, generator=torch.Generator().manual_seed(0)) * torch.arange(1.0, 10.0) ** -steepness
    sigma = torch.linalg.svdvals((z - z.mean(0)).double())
    assert spectrum.participation(z) == pytest.approx(float(sigma.square().sum() ** 2 / (sigma**4).sum()), rel=1e-6)
    assert 1 <= spectrum.participation(z) <= spectrum.effective_rank(z)


def test_a_sparse_matrix_has_the_rank_of_the_same_dense_one(monkeypatch):
    z = torch.randn(40, 12, generator=torch.Generator().manual_seed(0)).relu()
    assert spectrum.effective_rank(z.to_sparse_csr()) == pytest.approx(spectrum.effective_rank(z), rel=1e-9)
    monkeypatch.setattr(spectrum, "MOST_ENTRIES", 10 * 12)
    assert spectrum.effective_rank(z.to_sparse_csr()) == pytest.approx(spectrum.effective_rank(z[::4]), rel=1e-9)


def test_mean_cosine_is_that_of_all_pairs():
    z = torch.randn(20, 5, generator=torch.Generator().manual_seed(1)) + 1
    unit = z / z.norm(dim=1, keepdim=True)
    assert spectrum.mean_cosine(z) == pytest.approx(float((unit @ unit.T).mean()), rel=1e-5)
