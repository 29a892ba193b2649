"""Constant sparse matrices that multiply dense ones, with the gradient as another sparse product.

For a constant A: forward A·B, backward Aᵀ·G. PyTorch would transpose (or densify) A in every backward pass; here Aᵀ is
stored too. Centred columns, A − 1·sᵀ, stay sparse too: forward A·B − 1·(sᵀB), backward Aᵀ·G − s·(1ᵀG).

A graph's ``x`` is a dense tensor or a CSR tensor (``torch.sparse_csr``). What multiplies a weight is a dense tensor or
a :class:`SparseMatrix`, :data:`Features`; a CSR tensor becomes one in :class:`costa.nn.FeatureScaling`.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeGuard

import torch
from torch import Tensor

SPARSE_BELOW = 0.1
"""Features with a smaller share of non-zeros are kept as CSR. Measured on 2 CPU cores for X·W and its gradient, 512
wide: 16 times as fast as dense at a density of 0.01, on a par near 0.12."""


def csr(crow: Tensor, col: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    """A CSR tensor from valid parts, without PyTorch's warnings (beta layout, invariants unchecked).

    MKL and cuSPARSE both take 32-bit indices, which are half as much to read.
    """
    if max(values.numel(), *size) < 2**31:
        crow, col = crow.int(), col.int()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(crow, col, values, size, check_invariants=False)


def is_csr(x: object) -> TypeGuard[Tensor]:
    """Whether it is a CSR tensor."""
    return isinstance(x, Tensor) and x.layout == torch.sparse_csr


def to_scipy(a: Tensor) -> Any:
    """A CSR tensor on the CPU as SciPy's ``csr_array``, which shares its memory."""
    from scipy.sparse import csr_array

    parts = (a.values().numpy(), a.col_indices().numpy(), a.crow_indices().numpy())
    return csr_array(parts, shape=tuple(a.shape))


def from_scipy(matrix: Any) -> Tensor:
    """A SciPy matrix as a CSR tensor without duplicates or stored zeros, its columns in order; the input is kept."""
    from scipy.sparse import csr_array

    own = csr_array(matrix, copy=True)
    own.sum_duplicates()
    own.eliminate_zeros()
    crow, col, values = (torch.from_numpy(part) for part in (own.indptr, own.indices, own.data))
    return csr(crow, col, values, own.shape)


def from_coo(a: Tensor) -> Tensor:
    """A COO tensor as a CSR tensor; duplicates are summed."""
    a = a.coalesce()
    row, col = a.indices()
    return csr(row_pointer(row, a.size(0)), col, a.values(), (a.size(0), a.size(1)))


def rows_of(a: Tensor) -> Tensor:
    """The row of every stored value of a CSR tensor."""
    return torch.repeat_interleave(a.crow_indices().diff())


def scale_rows(a: Tensor, factor: Tensor) -> Tensor:
    """diag(factor)·A of a CSR tensor, as CSR."""
    return with_values(a, a.values() * factor[rows_of(a)])


def scale_columns(a: Tensor, factor: Tensor) -> Tensor:
    """A·diag(factor) of a CSR tensor, as CSR."""
    return with_values(a, a.values() * factor[a.col_indices()])


def select_csr_rows(a: Tensor, rows: Tensor) -> Tensor:
    """These rows of a CSR tensor, as CSR, in memory linear in what they hold."""
    place, count = entries_of(a.crow_indices(), rows)
    crow = torch.cat([count.new_zeros(1), count.cumsum(0)])
    return csr(crow, a.col_indices()[place], a.values()[place], (len(rows), a.size(1)))


def entries_of(crow: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The places of the stored values of these rows, one row after the other; and how many each row has.

    >>> entries_of(torch.tensor([0, 2, 2, 3]), torch.tensor([2, 0]))
    (tensor([2, 0, 1]), tensor([1, 2]))
    """
    first = crow[rows].long()
    count = crow[rows + 1].long() - first
    before = count.cumsum(0) - count
    return torch.arange(int(count.sum()), device=crow.device) + (first - before).repeat_interleave(count), count


def with_values(a: Tensor, values: Tensor) -> Tensor:
    """A CSR tensor with other values in the same places."""
    return csr(a.crow_indices(), a.col_indices(), values, (a.size(0), a.size(1)))


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, b: Tensor) -> Tensor:
        ctx.matrix = matrix
        product = matrix.a @ b
        return product if matrix.shift is None else product.sub_(matrix.shift[None] @ b)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.transposed_product(grads[0])


class SparseMatrix:
    """A constant n × m matrix A − 1·sᵀ, with A and its transpose as CSR: ``a @ b`` with its gradient.

    Args:
        a: A.
        a_t: Aᵀ.
        shift: s, what is subtracted from each column, m numbers; None for nothing.

    >>> a = SparseMatrix.from_dense(torch.tensor([[0., 2.], [1., 0.], [0., 0.]]))
    >>> b = torch.ones(2, 1, requires_grad=True)
    >>> (a @ b).sum().backward()
    >>> b.grad.flatten().tolist()
    [1.0, 2.0]
    """

    def __init__(self, a: Tensor, a_t: Tensor, shift: Tensor | None = None) -> None:
        self.a, self.a_t, self.shift = a, a_t, shift

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseMatrix:
        """The non-zeros of a dense matrix."""
        row, col = x.nonzero(as_tuple=True)
        return cls.from_coo(row, col, x[row, col], (x.size(0), x.size(1)))

    @classmethod
    def from_coo(cls, row: Tensor, col: Tensor, values: Tensor, size: tuple[int, int]) -> SparseMatrix:
        """From coordinates in any order, without duplicates."""
        order = torch.argsort(row * size[1] + col)
        row, col, values = row[order], col[order], values[order]
        return cls.from_csr(csr(row_pointer(row, size[0]), col, values, size))

    @classmethod
    def from_csr(cls, a: Tensor, shift: Tensor | None = None) -> SparseMatrix:
        """From a CSR tensor, without duplicates in a row, and the shift."""
        n, m = a.shape
        col = a.col_indices()
        back = torch.argsort(col, stable=True)  # the rows of each column stay in order
        a_t = csr(row_pointer(col[back], m), rows_of(a)[back], a.values()[back], (m, n))
        return cls(csr(a.crow_indices(), col, a.values(), (n, m)), a_t, shift)

    @property
    def shape(self) -> torch.Size:
        """(n, m)."""
        return self.a.shape

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.a.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of its values."""
        return self.a.dtype

    @property
    def density(self) -> float:
        """The share of A's entries that are stored."""
        return self.a.values().numel() / max(1, self.a.numel())

    def to(self, device: torch.device | str) -> SparseMatrix:
        """The same matrix on another device."""
        shift = None if self.shift is None else self.shift.to(device)
        return SparseMatrix(self.a.to(device), self.a_t.to(device), shift)

    def at(self, rows: Tensor) -> SparseMatrix:
        """These rows of the matrix."""
        return SparseMatrix.from_csr(select_csr_rows(self.a, rows), self.shift)

    def to_dense(self) -> Tensor:
        """The matrix written out, the shift included."""
        dense = self.a.to_dense()
        return dense if self.shift is None else dense.sub_(self.shift)

    def transposed_product(self, g: Tensor) -> Tensor:
        """AᵀG − s·(1ᵀG)."""
        product = self.a_t @ g
        return product if self.shift is None else product.sub_(torch.outer(self.shift, g.sum(0)))

    def __matmul__(self, b: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self, b)
        return product

    def __repr__(self) -> str:
        n, m = self.shape
        return f"{type(self).__name__}({n} × {m}, {self.a.values().numel()} non-zeros)"


def row_pointer(row: Tensor, n: int) -> Tensor:
    """The CSR row pointer of sorted row indices: of rows 0, 0, 2 with n = 3 it is 0, 2, 2, 3."""
    return torch.cat([row.new_zeros(1), torch.bincount(row, minlength=n).cumsum(0)])


Features = Tensor | SparseMatrix
"""A dense X or a sparse one: both take ``x @ weight``, ``x.shape``, ``x.device`` and ``x.to``."""


def sparse_if_faster(x: Features) -> Features:
    """``x`` as CSR if it is sparse enough for faster products, else dense."""
    if isinstance(x, SparseMatrix):
        return x if x.density < SPARSE_BELOW else x.to_dense()
    return SparseMatrix.from_dense(x) if int(x.count_nonzero()) < SPARSE_BELOW * x.numel() else x
