r"""The losses, minimised. First the contrastive ones, of which the paper prints what is maximised, the negative; the
others, which need no negatives or tell true from false, follow, each with its formula.

u_i, v_i are rows of U, V scaled to length 1, τ the temperature. Everything goes through log-sum-exp, so that τ = 0.01
(exponents of ±100, past float32's e⁸⁸) is as stable as τ = 1. With a single row each loss is 0, and so is its gradient,
but for a two-view loss that counts a row's similarity with itself.

``mask`` marks the rows that count. A row of the sketch that saw no node is noise or nothing; it is left out, as anchor
and as negative, without changing the shapes.

Similarities are never stored: :mod:`costa.nn.contrast` sums over tiles of them. ``plain=True`` writes them out, k × k,
and leaves the gradient to autograd: the same numbers up to rounding, and what the tiles are tested against.

U and V may be stacked, S × k × d; the loss is then S numbers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
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


def barlow_twins_loss(u: Tensor, v: Tensor) -> Tensor:
    """Σᵢ (1 − Cᵢᵢ)² + λ Σ_{i≠j} Cᵢⱼ², with C = ŨᵀṼ the columns' correlations across the views and λ = 1/d.

    Ũ is U with every column at mean 0 and length 1, so that C lies in [−1, 1]. A constant column correlates with none:
    it costs 1 and has no gradient.

    Args:
        u: n × d, one view; or a stack of them.
        v: n × d, the other.

    >>> u = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> float(barlow_twins_loss(u, u)), float(barlow_twins_loss(u, u.flip(1)))  # C is I; C is its mirror image
    (0.0, 3.0)
    """
    c = _unit_columns(u).mT @ _unit_columns(v)
    on = (1 - c.diagonal(dim1=-2, dim2=-1)).square().sum(-1)
    off = c.masked_fill(_diagonal(c), 0).square().sum((-2, -1))
    return on + off / c.size(-1)


def cca_loss(u: Tensor, v: Tensor, weight: float) -> Tensor:
    """‖Ũ − Ṽ‖²_F + λ (‖ŨᵀŨ − I‖²_F + ‖ṼᵀṼ − I‖²_F), the views' agreement and the decorrelation of each one's columns.

    Ũ is U with every column at mean 0 and length 1: standardised, and divided by √n. A constant column stays at 0; it
    costs 2λ and has no gradient.

    Args:
        u: n × d, one view; or a stack of them.
        v: n × d, the other.
        weight: λ.

    >>> u = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> float(cca_loss(u, u, 0.5)), float(cca_loss(u, -u, 0.5)), float(cca_loss(u[:, [0, 0]], u[:, [0, 0]], 0.5))
    (0.0, 8.0, 2.0)
    """
    u, v = _unit_columns(u), _unit_columns(v)
    eye = torch.eye(u.size(-1), dtype=u.dtype, device=u.device)
    apart = (u - v).square().sum((-2, -1))
    correlated = [(z.mT @ z - eye).square().sum((-2, -1)) for z in (u, v)]
    return apart + weight * (correlated[0] + correlated[1])


def bootstrap_loss(q1: Tensor, q2: Tensor, h1: Tensor, h2: Tensor) -> Tensor:
    """2 − mean cos(q₁ᵢ, h₂ᵢ) − mean cos(q₂ᵢ, h₁ᵢ): each view's predictions against the other's targets.

    Args:
        q1: n × d, what is predicted from one view; or a stack of them.
        q2: n × d, what is predicted from the other.
        h1: n × d, the targets of the first view, without gradient where they are to stay targets.
        h2: n × d, the targets of the second.

    >>> q, h = torch.eye(2), torch.eye(2).flip(1)
    >>> float(bootstrap_loss(q, h, 3 * h, 5 * q)), float(bootstrap_loss(q, h, q, h))
    (0.0, 2.0)
    """
    return 2 - (_unit(q1) * _unit(h2)).sum(-1).mean(-1) - (_unit(q2) * _unit(h1)).sum(-1).mean(-1)


def discrimination_loss(real: Tensor, fake: Tensor) -> Tensor:
    """−mean log σ(rᵢ) − mean log(1 − σ(fⱼ)): what a discriminator loses that tells real from fake by its logits.

    As softplus of the logits it has a gradient everywhere. In float32 1 − σ(f) is 0 from f ≈ 17 on, and its logarithm,
    shifted by an ε or not, tells a fake taken for real nothing.

    Args:
        real: r, the logits of what is real; along the last dimension of a stack.
        fake: f, those of what is not; there may be more or fewer of them.

    >>> round(float(discrimination_loss(torch.zeros(3), torch.zeros(5))), 4)  # 2·log 2
    1.3863
    """
    return F.softplus(-real).mean(-1) + F.softplus(fake).mean(-1)


def kl_to_standard_normal(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """1/n Σᵢ KL(N(μᵢ, diag σᵢ²) ‖ N(0, I)) = 1/n Σᵢ ½ Σ_c (μ² + σ² − 1 − 2·log σ).

    Args:
        mu: μ, n × d; or a stack of them.
        log_sigma: log σ, n × d.

    >>> float(kl_to_standard_normal(torch.ones(4, 3), torch.zeros(4, 3)))
    1.5
    """
    return (mu.square() + (2 * log_sigma).exp() - 1 - 2 * log_sigma).sum(-1).mean(-1) / 2


def _unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1. A zero row stays zero, with a gradient of its own size; divided by a tiny ε as
    ``F.normalize`` does, it would have one of 1e12."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return rows / torch.where(length > 0, length, 1)


def _unit_columns(z: Tensor) -> Tensor:
    """Columns at mean 0, scaled to length 1. Deviations within the mean's rounding are none: such a column is 0."""
    centred = z - z.mean(-2, keepdim=True)
    length, before = (torch.linalg.vector_norm(each, dim=-2, keepdim=True) for each in (centred, z))
    return centred / torch.where(length > 10 * torch.finfo(z.dtype).eps * before, length, torch.inf)


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
