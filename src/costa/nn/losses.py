r"""The contrastive losses, minimised; the paper prints what is maximised, the negative.

u_i, v_i are rows of U, V scaled to length 1, τ the temperature. Everything goes through log-sum-exp, so that τ = 0.01
(exponents of ±100, past float32's e⁸⁸) is as stable as τ = 1. With a single row each loss is 0, and so is its gradient.

``mask`` marks the rows that count. A row of the sketch that saw no node is noise or nothing; it is left out, as anchor
and as negative, without changing the shapes.

Similarities are never stored: :mod:`costa.nn.contrast` sums over tiles of them. ``plain=True`` writes them out, k × k,
and leaves the gradient to autograd: the same numbers up to rounding, and what the tiles are tested against.

U and V may be stacked, S × k × d; the loss is then S numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from costa.nn.contrast import across, among, spread


def cross_view_loss(u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None, *, plain: bool = False) -> Tensor:
    """``cross``: ½·CE(UVᵀ/τ, i) + ½·CE(VUᵀ/τ, i). Negatives come from the other view alone; the released code's loss.

    Args:
        u: k × d, one view.
        v: k × d, the other; row i is the positive of ``u``'s row i.
        tau: Temperature.
        mask: k booleans, the rows that count; all if left out.
        plain: Write the similarities out.

    >>> u = torch.eye(3)
    >>> round(float(cross_view_loss(u, u, tau=1.0)), 4)  # log(e + 2) − 1
    0.5514
    """
    u, v = _unit(u), _unit(v)
    if plain:
        uv = u @ v.mT / tau
        negatives = (_hide(uv, mask).logsumexp(-1) + _hide(uv.mT, mask).logsumexp(-1)) / 2
        return _mean(negatives - uv.diagonal(dim1=-2, dim2=-1), mask)
    return across(u, v, tau, mask) / (2 * _rows(u, mask))


def both_views_loss(
    u: Tensor,
    v: Tensor,
    tau: float,
    mask: Tensor | None = None,
    *,
    include_self: bool = False,
    plain: bool = False,
) -> Tensor:
    """``both``: −log e^{uᵢ·vᵢ/τ} / (Σⱼ e^{uᵢ·vⱼ/τ} + Σ_{j≠i} e^{uᵢ·uⱼ/τ}), mean over i and both ways. GRACE's loss.

    The denominators of both ways are sums over all other rows of [U; V].

    Args:
        u: k × d, one view.
        v: k × d, the other.
        tau: Temperature.
        mask: k booleans, the rows that count; all if left out.
        include_self: Keep j = i in the second sum: the equation as printed.
        plain: Write the similarities out.

    >>> u = torch.eye(3)
    >>> round(float(both_views_loss(u, u, tau=1.0)), 4)  # log(e + 2 + 2) − 1
    0.9048
    """
    u, v = _unit(u), _unit(v)
    if plain:
        uv = u @ v.mT / tau
        positive = uv.diagonal(dim1=-2, dim2=-1)

        def one_way(to_other: Tensor, within: Tensor) -> Tensor:
            # as in self_contrast_loss, a row's product with itself is 1 by definition
            within = within.masked_fill(_diagonal(within), 1 / tau if include_self else -torch.inf)
            return torch.cat([_hide(to_other, mask), _hide(within, mask)], dim=-1).logsumexp(-1) - positive

        return _mean((one_way(uv, u @ u.mT / tau) + one_way(uv.mT, v @ v.mT / tau)) / 2, mask)
    return among(u, v, tau, mask, own=include_self) / (2 * _rows(u, mask))


def self_contrast_loss(u: Tensor, tau: float, mask: Tensor | None = None, *, plain: bool = False) -> Tensor:
    """``self``: −mean log e^{1/τ} / Σⱼ e^{uᵢ·uⱼ/τ}. One view: the positive is constant, the rows are spread apart.

    Args:
        u: k × d.
        tau: Temperature.
        mask: k booleans, the rows that count; all if left out.
        plain: Write the similarities out.

    >>> round(float(self_contrast_loss(torch.eye(3), tau=1.0)), 4)
    0.5514
    """
    u = _unit(u)
    if plain:
        # A row's product with itself is 1 by definition; written so, rounding and its gradient cannot enter.
        uu = (u @ u.mT / tau).masked_fill(_diagonal(u), 1 / tau)
        return _mean(_hide(uu, mask).logsumexp(-1) - 1 / tau, mask)
    return spread(u, tau, mask) / _rows(u, mask)


def _unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1. A zero row stays zero, with a gradient of its own size; divided by a tiny ε as
    ``F.normalize`` does, it would have one of 1e12."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return rows / torch.where(length > 0, length, 1)


def _diagonal(like: Tensor) -> Tensor:
    return torch.eye(like.size(-2), dtype=torch.bool, device=like.device)


def _hide(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Columns that do not count leave the sum. The diagonal stays, so that no row is left without a term."""
    if mask is None:
        return logits
    return logits.masked_fill(~mask[..., None, :] & ~_diagonal(logits), -torch.inf)


def _mean(per_row: Tensor, mask: Tensor | None) -> Tensor:
    total = (per_row if mask is None else torch.where(mask, per_row, 0)).sum(-1)
    return total / _rows(per_row.unsqueeze(-1), mask)


def _rows(like: Tensor, mask: Tensor | None) -> Tensor | int:
    """How many rows count, at least 1."""
    return like.size(-2) if mask is None else mask.sum(-1).clamp(min=1)
