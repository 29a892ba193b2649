"""Collapsed and diverged vectors, and what to do about them."""

import pytest
import torch

from costa.evaluate import health


@pytest.mark.parametrize(
    ("z", "status"),
    [
        (torch.eye(4), "ok"),
        (torch.tensor([[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]]), "collapsed"),
        (torch.zeros(3, 2), "collapsed"),
        (torch.tensor([[1.0, float("nan")], [1.0, 0.0]]), "diverged"),
    ],
)
def test_status(z, status):
    assert health.status(z) == status
    assert (health.measure(z) is None) == (status == "diverged")
