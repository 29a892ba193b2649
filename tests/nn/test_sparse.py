"""Sparse constants against the same matrices written out, gradients included."""

import pytest
import torch

from costa.nn import SparseMatrix, sparse_if_faster
from costa.nn.sparse import (
    SPARSE_BELOW,
    csr,
    from_coo,
    from_scipy,
    is_csr,
    row_pointer,
    scale_columns,
    scale_rows,
    select_csr_rows,
    to_scipy,
)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def holes(*shape, seed=0):
    """A matrix of which about a third is not zero, with an empty row and an empty column."""
    generator = torch.Generator().manual_seed(seed)
    x = random(*shape, seed=seed) * (torch.rand(shape, generator=generator) < 0.35)
    x[1], x[:, 2] = 0, 0
    return x


def test_product_and_gradient():
    x, b, upstream = holes(7, 5), random(5, 3, seed=1).requires_grad_(), random(7, 3, seed=2)
    a = SparseMatrix.from_dense(x)
    torch.testing.assert_close(a @ b, x @ b)
    (gradient,) = torch.autograd.grad(a @ b, b, upstream)
    torch.testing.assert_close(gradient, x.T @ upstream)
    assert torch.autograd.gradcheck(lambda b: a @ b, b)


@pytest.mark.parametrize("rows", [[0, 1, 4], [6, 2, 2], [1], []])
def test_rows_are_those_of_the_matrix(rows):
    x, rows, shift = holes(7, 5), torch.tensor(rows, dtype=torch.int64), random(5, seed=3)
    a = SparseMatrix.from_csr(SparseMatrix.from_dense(x).a, shift)
    assert torch.equal(select_csr_rows(a.a, rows).to_dense(), x[rows])
    torch.testing.assert_close(a.at(rows).to_dense(), (x - shift)[rows])
    assert torch.equal(a.at(rows).a_t.to_dense(), x[rows].T)


def test_a_shift_is_subtracted_from_every_row():
    x, shift, b, upstream = holes(7, 5), random(5, seed=3), random(5, 3, seed=1).requires_grad_(), random(7, 3, seed=2)
    a, shifted = SparseMatrix.from_csr(SparseMatrix.from_dense(x).a, shift), x - shift
    torch.testing.assert_close(a @ b, shifted @ b)
    (gradient,) = torch.autograd.grad(a @ b, b, upstream)
    torch.testing.assert_close(gradient, shifted.T @ upstream)
    torch.testing.assert_close(a.to_dense(), shifted)
    torch.testing.assert_close(a.to("cpu").to_dense(), shifted)


def test_rows_and_columns_are_scaled_as_csr():
    x, rows, columns = holes(7, 5), random(7, seed=4), random(5, seed=5)
    a = SparseMatrix.from_dense(x).a
    torch.testing.assert_close(scale_rows(a, rows).to_dense(), rows[:, None] * x)
    torch.testing.assert_close(scale_columns(a, columns).to_dense(), x * columns)
    assert is_csr(scale_rows(a, rows))
    assert not is_csr(x)


def test_both_layouts_are_csr_with_short_indices():
    x = holes(7, 5)
    a = SparseMatrix.from_dense(x)
    torch.testing.assert_close(a.a.to_dense(), x)
    torch.testing.assert_close(a.a_t.to_dense(), x.T)
    for part in (a.a, a.a_t):
        assert part.layout == torch.sparse_csr
        assert part.crow_indices().dtype == part.col_indices().dtype == torch.int32
        assert part.values().numel() == int((x != 0).sum())


def test_coordinates_may_come_in_any_order():
    x = holes(7, 5)
    row, col = x.nonzero(as_tuple=True)
    order = torch.randperm(row.numel(), generator=torch.Generator().manual_seed(3))
    a = SparseMatrix.from_coo(row[order], col[order], x[row, col][order], (7, 5))
    torch.testing.assert_close(a.a.to_dense(), x)
    torch.testing.assert_close(a.a_t.to_dense(), x.T)


def test_a_matrix_without_an_entry():
    a = SparseMatrix.from_dense(torch.zeros(3, 4))
    b = torch.ones(4, 2, requires_grad=True)
    (a @ b).sum().backward()
    assert torch.equal(a @ b, torch.zeros(3, 2))
    assert torch.equal(b.grad, torch.zeros(4, 2))


@pytest.mark.filterwarnings("error")
def test_the_layout_is_made_without_a_notice():
    csr(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))


def test_row_pointer_counts_empty_rows():
    assert row_pointer(torch.tensor([1, 1, 3]), 5).tolist() == [0, 0, 2, 2, 3, 3]
    assert row_pointer(torch.tensor([], dtype=torch.long), 2).tolist() == [0, 0, 0]


def test_sparse_where_its_density_says_so():
    x = torch.zeros(10, 10)
    x.view(-1)[: int(SPARSE_BELOW * 100) - 1] = 1
    assert isinstance(sparse_if_faster(x), SparseMatrix)
    x.view(-1)[: int(SPARSE_BELOW * 100)] = 1
    assert sparse_if_faster(x) is x
    crowded = SparseMatrix.from_csr(SparseMatrix.from_dense(x).a, shift=torch.ones(10))
    assert torch.equal(sparse_if_faster(crowded), x - 1)


def test_repr():
    assert repr(SparseMatrix.from_dense(torch.eye(3))) == "SparseMatrix(3 × 3, 3 non-zeros)"


def test_there_and_back_by_way_of_scipy_and_coo():
    x = holes(7, 5)
    a = SparseMatrix.from_dense(x).a
    assert torch.equal(torch.from_numpy(to_scipy(a).toarray()), x)
    for back in (from_scipy(to_scipy(a)), from_coo(x.to_sparse_coo())):
        assert is_csr(back)
        assert torch.equal(back.to_dense(), x)
