"""How vectors spread: mean cosine and effective rank."""

from __future__ import annotations

import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Tensor

from costa.nn.sparse import is_csr

ROWS = 2048
"""The most rows used for the effective rank, evenly spaced: the spectrum of a wide Z is slow. Cosines are summed
over so many rows at a time."""
MOST_ENTRIES = 2**26
"""The most entries of a CSR tensor's rows, once they are dense."""
LINE = 2.0
"""Vectors with a lower effective rank lie along a line."""


def mean_cosine(z: Tensor) -> float:
    """The cosine of two rows of Z, averaged over all pairs: ‖mean of the rows scaled to length one‖².

    >>> mean_cosine(torch.eye(2)), mean_cosine(torch.ones(2, 3))
    (0.5, 1.0)
    """
    total = torch.stack([F.normalize(rows.double()).sum(0) for rows in z.split(ROWS)]).sum(0)
    return float((total / len(z)).square().sum().clamp(max=1))


def effective_rank(z: Tensor, device: torch.device | None = None) -> float:
    """exp(−Σ pᵢ ln pᵢ) with pᵢ = σᵢ/Σσ, σ the singular values of Z without its mean (Roy and Vetterli, 2007).

    It is r for vectors that spread evenly over r dimensions, and 0 for equal vectors. Z may be CSR. ``device`` computes
    the spectrum, by default the device of Z; a CPU takes a second for a thousand columns.

    >>> line = torch.arange(10.0)[:, None] * torch.ones(3)
    >>> round(effective_rank(line), 6), effective_rank(torch.ones(4, 3))
    (1.0, 0.0)
    """
    gram, size = _gram(z, device)
    sigma = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
    if not float(sigma.sum()) > 1e-12 * size:
        return 0.0
    return float(torch.special.entr(sigma / sigma.sum()).sum().exp())


def participation(z: Tensor) -> float:
    """(Σσᵢ²)²/Σσᵢ⁴ of the same σ: a lower bound of the effective rank that is cheap, as it needs no spectrum.

    It is below exp of the entropy of shares σᵢ²/Σσ², which are less even than σᵢ/Σσ.

    >>> z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> round(participation(z), 2), round(effective_rank(z), 2), participation(torch.ones(4, 3))
    (1.47, 1.89, 0.0)
    """
    gram, size = _gram(z)
    total = float(gram.trace())
    return (total / float(gram.norm())) ** 2 if total > (1e-12 * size) ** 2 else 0.0


def _gram(z: Tensor, device: torch.device | None = None) -> tuple[Tensor, float]:
    """A matrix whose eigenvalues are σ², and the norm of the rows with their mean."""
    sample = some_rows(z).to(device or z.device).double()
    rows = sample - sample.mean(0)
    return rows @ rows.T if rows.shape[0] < rows.shape[1] else rows.T @ rows, float(sample.norm())


def some_rows(z: Tensor) -> Tensor:
    """At most ROWS rows, evenly spaced and dense; fewer of a CSR tensor with very many columns."""
    if not is_csr(z):
        return z[:: max(1, -(-len(z) // ROWS))]
    most = max(1, min(ROWS, MOST_ENTRIES // max(1, z.shape[1])))
    parts = (part.cpu().numpy() for part in (z.values(), z.col_indices(), z.crow_indices()))
    rows = scipy.sparse.csr_array(tuple(parts), shape=tuple(z.shape))[:: max(1, -(-len(z) // most))]
    return torch.from_numpy(rows.toarray())
