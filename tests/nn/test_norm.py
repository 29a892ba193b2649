"""Alone, it is torch's BatchNorm, bit for bit; with others, see tests/training/test_distributed.py."""

import pytest
import torch
from torch import nn

from costa.nn.norm import BatchNorm


@pytest.mark.parametrize("training", [True, False])
def test_alone_it_is_torchs(training):
    ours, theirs = BatchNorm(5).train(training), nn.BatchNorm1d(5).train(training)
    for seed in range(3):
        h = 3 + torch.randn(20, 5, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(ours(h), theirs(h))
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(tensor, theirs.state_dict()[name]) for name, tensor in ours.state_dict().items())


def test_the_moments_are_those_of_the_rows():
    h = torch.tensor([[1.0, 4.0], [3.0, 4.0]])
    mean, variance, n = BatchNorm(2).moments(h)
    assert (mean.tolist(), variance.tolist(), n) == ([2.0, 4.0], [1.0, 0.0], 2)
