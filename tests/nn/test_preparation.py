import torch

from costa.nn import FeatureReduction, FeatureScaling, Preparation

X = torch.randn(30, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 1, 1, 1, 1, 100.0])


def test_what_is_reduced_has_been_scaled():
    preparation = Preparation(FeatureScaling("standard", 6), FeatureReduction(2, 6))
    preparation.fit(X)
    z = preparation.apply(X)
    assert z.shape == (30, preparation.out_features) == (30, 2)
    scaled = ((X - X.mean(0)) / X.std(0, correction=0)).double()
    # the large column counts no more than the others
    torch.testing.assert_close(torch.linalg.svdvals(z.double()), torch.linalg.svdvals(scaled)[:2], rtol=1e-4, atol=0)


def test_without_a_rank_every_column_stays():
    preparation = Preparation(FeatureScaling("none", 6), FeatureReduction(0, 6))
    preparation.fit(X)
    assert preparation.apply(X) is X
