r"""The contrastive losses, minimised; the paper prints what is maximised, the negative.

u_i, v_i are rows of U, V scaled to length 1, τ the temperature. Everything goes through log-sum-exp, so that τ = 0.01
(exponents of ±100, past float32's e⁸⁸) is as stable as τ = 1. With a single row each loss is 0, and so is its gradient.

``mask`` marks the rows that count. A row of the sketch that saw no node is noise or nothing; it is left out, as anchor
and as negative, without changing the shapes.
"""

from __future__ import annotations

import torch
from torch import Tensor


def cross_view_loss(u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None) -> Tensor:
    """``cross``: ½·CE(UVᵀ/τ, i) + ½·CE(VUᵀ/τ, i). Negatives come from the other view alone; the released code's loss.

    Args:
        u: k × d, one view.
        v: k × d, the other; row i is the positive of ``u``'s row i.
        tau: Temperature.
        mask: k booleans, the rows that count; all if left out.

    >>> u = torch.eye(3)
    >>> round(float(cross_view_loss(u, u, tau=1.0)), 4)  # log(e + 2) − 1
    0.5514
    """
    u, v = _unit(u), _unit(v)
    uv = u @ v.T / tau
    positive = uv.diagonal()
    over_v = _hide(uv, mask).logsumexp(1)
    over_u = _hide(uv.T, mask).logsumexp(1)
    return _mean((over_v + over_u) / 2 - positive, mask)


def both_views_loss(
    u: Tensor, v: Tensor, tau: float, mask: Tensor | None = None, *, include_self: bool = False
) -> Tensor:
    """``both``: −log e^{uᵢ·vᵢ/τ} / (Σⱼ e^{uᵢ·vⱼ/τ} + Σ_{j≠i} e^{uᵢ·uⱼ/τ}), mean over i and both ways. GRACE's loss.

    Args:
        u: k × d, one view.
        v: k × d, the other.
        tau: Temperature.
        mask: k booleans, the rows that count; all if left out.
        include_self: Keep j = i in the second sum: the equation as printed.

    >>> u = torch.eye(3)
    >>> round(float(both_views_loss(u, u, tau=1.0)), 4)  # log(e + 2 + 2) − 1
    0.9048
    """
    u, v = _unit(u), _unit(v)
    uv = u @ v.T / tau
    positive = uv.diagonal()

    def one_way(across: Tensor, within: Tensor) -> Tensor:
        if not include_self:
            within = within.masked_fill(_diagonal(within), -torch.inf)
        return torch.cat([_hide(across, mask), _hide(within, mask)], dim=1).logsumexp(1) - positive

    return _mean((one_way(uv, u @ u.T / tau) + one_way(uv.T, v @ v.T / tau)) / 2, mask)


def self_contrast_loss(u: Tensor, tau: float, mask: Tensor | None = None) -> Tensor:
    """``self``: −mean log e^{1/τ} / Σⱼ e^{uᵢ·uⱼ/τ}. One view: the positive is constant, the rows are spread apart.

    Args:
        u: k × d.
        tau: Temperature.
        mask: k booleans, the rows that count; all if left out.

    >>> round(float(self_contrast_loss(torch.eye(3), tau=1.0)), 4)
    0.5514
    """
    u = _unit(u)
    # A row's product with itself is 1 by definition; written so, rounding and its gradient cannot enter.
    uu = (u @ u.T / tau).masked_fill(_diagonal(u), 1 / tau)
    return _mean(_hide(uu, mask).logsumexp(1) - 1 / tau, mask)


def _unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1. A zero row stays zero, with a gradient of its own size; divided by a tiny ε as
    ``F.normalize`` does, it would have one of 1e12."""
    length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / torch.where(length > 0, length, 1)


def _diagonal(like: Tensor) -> Tensor:
    return torch.eye(like.size(0), dtype=torch.bool, device=like.device)


def _hide(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Columns that do not count leave the sum. The diagonal stays, so that no row is left without a term."""
    if mask is None:
        return logits
    return logits.masked_fill(~mask & ~_diagonal(logits), -torch.inf)


def _mean(per_row: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return per_row.mean()
    return torch.where(mask, per_row, 0).sum() / mask.sum().clamp(min=1)
