"""Collapsed and diverged vectors, and what to do about them."""

import pytest
import torch

from costa.evaluate import health

LINE = torch.linspace(-1, 1, 9)[:, None] * torch.tensor([1.0, 2.0, -1.0])
X = torch.eye(9)


@pytest.mark.parametrize(
    ("z", "status"),
    [
        (torch.eye(9), "ok"),
        (torch.linspace(0.5, 2, 9)[:, None] * torch.tensor([1.0, 2.0]), "collapsed"),
        (torch.zeros(9, 2), "collapsed"),
        (torch.eye(9).index_fill(0, torch.tensor([4]), torch.nan), "diverged"),
        (LINE, "collapsed"),  # though half of the vectors point the other way
        (LINE + 0.01 * torch.eye(9, 3), "collapsed"),
        (LINE[:, :1], "ok"),  # one column cannot be more than a line
        (LINE + torch.eye(9, 3), "ok"),
    ],
)
def test_status(z, status):
    assert health.status(z, X) == status
    assert (health.measure(z) is None) == (status == "diverged")


@pytest.mark.parametrize("x", [LINE, torch.ones(9, 1), LINE[:, :1]], ids=["line", "constant", "one column"])
def test_vectors_of_features_on_a_line_may_lie_on_one(x):
    assert health.status(LINE, x) == "ok"


def test_codes_must_be_alive_by_themselves():
    beside = torch.cat([LINE, X], dim=1)
    assert [health.status(beside, X, codes) for codes in (None, 3, 12)] == ["ok", "collapsed", "ok"]
    assert health.status(torch.cat([X, LINE], dim=1), X, 9) == "ok"


def test_features_may_be_csr():
    assert health.status(LINE, X.to_sparse_csr()) == "collapsed"
    assert health.status(LINE, LINE.to_sparse_csr()) == "ok"


def test_vectors_may_be_csr():
    assert health.status(X.to_sparse_csr(), X) == "ok"
    assert health.status(LINE.to_sparse_csr(), X) == "collapsed"
    assert health.status((X / 0).to_sparse_csr(), X) == "diverged"


def test_so_few_nodes_are_always_near_a_line():
    assert health.status(torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.1, 1.0]]), torch.eye(3)) == "ok"
