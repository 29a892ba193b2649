"""What the probe and the clustering accept, and what they refuse."""

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.evaluate import inputs
from costa.evaluate.inputs import checked_labels, class_codes, stacked_rows, unit_rows
from costa.evaluate.probe import linear_probe
from costa.nn.sparse import SparseMatrix, is_csr


def test_classes_are_numbered_and_unlabelled_nodes_are_minus_one():
    assert class_codes(torch.tensor([40, -1, 3, 40, -7])).tolist() == [1, -1, 0, 1, -1]


def test_labels_become_integers_on_the_cpu():
    for given in (np.array([0, 1, 1], dtype=np.int8), torch.tensor([0, 1, 1], dtype=torch.int32)):
        label = checked_labels(given)
        assert (label.dtype, label.tolist()) == (torch.int64, [0, 1, 1])


def test_labels_may_be_text(blobs):
    for given in (["red", "blue", "", "red"], np.array(["red", "blue", None, "red"], dtype=object)):
        assert checked_labels(given).tolist() == [1, 0, -1, 1]
    z, y = blobs()
    texts = [f"class {label}" if label >= 0 else "" for label in y.tolist()]
    assert linear_probe(z, texts, repeats=2) == linear_probe(z, y, repeats=2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "has no labels"),
        (torch.full((100,), -1), "has no labels"),
        (torch.zeros(100, dtype=torch.long), "all labelled nodes are of one class"),
        (torch.zeros(100, 2, dtype=torch.long), r"one integer or text per node, not int64 of shape \(100, 2\)"),
        (["red", "", "red"], "all labelled nodes are of one class"),
        (np.array([["red"], ["blue"]]), r"not text of shape \(2, 1\)"),
        (torch.zeros(100), "one integer or text per node, not float32"),
    ],
)
def test_bad_labels_get_a_sentence(y, message):
    with pytest.raises(InputError, match=message):
        checked_labels(y)


def test_rows_are_scaled_to_length_one():
    z = torch.randn(200, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z[5] = 0
    x = unit_rows(z * torch.logspace(-30, 30, 200, dtype=torch.float64)[:, None], 200, None)
    torch.testing.assert_close(x.norm(dim=1)[6:], torch.ones(194, dtype=torch.float64))
    assert torch.equal(x[5], torch.zeros(8, dtype=torch.float64))
    assert unit_rows(torch.full((2, 3), 1e-30), 2, None).norm(dim=1).tolist() == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("z", "message"),
    [
        (torch.zeros(99, 4), r"must be 100 × d, a row for each label, not of shape \(99, 4\)"),
        (torch.zeros(100), r"not of shape \(100,\)"),
        (torch.zeros(100, 0), r"not of shape \(100, 0\)"),
        (torch.zeros(100, 2).index_fill(0, torch.tensor(17), torch.nan), "not finite, first in row 17"),
        (np.full((100, 2), np.inf), "not finite, first in row 0"),
    ],
)
def test_bad_vectors_get_a_sentence(z, message):
    with pytest.raises(InputError, match=message):
        unit_rows(z, 100, None)


@pytest.mark.parametrize(
    ("zs", "message"),
    [
        ([], "must have one width, not none"),
        ([torch.ones(100, 4), torch.ones(100, 3)], "must have one width, not 3 and 4; probe them separately"),
        ([torch.ones(100, 4), torch.ones(99, 4)], r"must be 100 × d, a row for each label, not of shape \(99, 4\)"),
        (torch.ones(100, 4), r"not of shape \(4,\)"),
    ],
)
def test_vectors_that_cannot_be_stacked_get_a_sentence(zs, message):
    with pytest.raises(InputError, match=message):
        stacked_rows(zs, 100, None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_that_is_absent_is_said():
    with pytest.raises(InputError, match="CUDA, which this machine does not have"):
        unit_rows(torch.ones(100, 4), 100, "cuda")


def test_a_csr_is_scaled_like_the_dense_vectors_and_stays_one():
    z = torch.randn(20, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = z * (z > 0.5) * torch.logspace(-30, 30, 20, dtype=torch.float64)[:, None]
    x = unit_rows(SparseMatrix.from_dense(z).a, 20, None)
    assert is_csr(x)
    torch.testing.assert_close(x.to_dense(), unit_rows(z, 20, None))
    z[4, 2] = torch.nan
    with pytest.raises(InputError, match="not finite, first in row 4"):
        unit_rows(SparseMatrix.from_dense(z).a, 20, None)


def test_a_large_csr_is_not_written_out(monkeypatch):
    z = SparseMatrix.from_dense(torch.eye(6, 9)).a
    assert torch.equal(stacked_rows([z], 6, None), torch.eye(6, 9)[None])
    monkeypatch.setattr(inputs, "DENSE", 10)
    (kept,) = stacked_rows([z], 6, None)
    assert is_csr(kept)
