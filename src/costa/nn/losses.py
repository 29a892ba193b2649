"""Losses without negatives, and discriminator losses; the contrastive ones are in :mod:`costa.nn.contrast`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from costa.nn.contrast import unit_rows


def barlow_twins_loss(u: Tensor, v: Tensor) -> Tensor:
    """Σᵢ (1 − Cᵢᵢ)² + λ Σ_{i≠j} Cᵢⱼ², with C = ŨᵀṼ the columns' correlations across the views and λ = 1/d.

    Ũ is U with every column at mean 0 and length 1, so that C lies in [−1, 1]. A constant column has no correlations:
    it costs 1 and has no gradient.

    Args:
        u, v: n × d, the two views.

    >>> u = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> float(barlow_twins_loss(u, u)), float(barlow_twins_loss(u, u.flip(1)))  # C is I; C is its mirror image
    (0.0, 3.0)
    """
    c = _unit_columns(u).mT @ _unit_columns(v)
    on = (1 - c.diagonal()).square().sum()
    off = c.masked_fill(torch.eye(len(c), dtype=torch.bool, device=c.device), 0).square().sum()
    return on + off / c.size(-1)


def cca_loss(u: Tensor, v: Tensor, weight: float) -> Tensor:
    """‖Ũ − Ṽ‖²_F + λ (‖ŨᵀŨ − I‖²_F + ‖ṼᵀṼ − I‖²_F), the views' agreement and the decorrelation of each one's columns.

    Ũ is U with every column at mean 0 and length 1: standardised, and divided by √n. A constant column stays at 0; it
    costs 2λ and has no gradient.

    Args:
        u, v: n × d, the two views.
        weight: λ.

    >>> u = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> float(cca_loss(u, u, 0.5)), float(cca_loss(u, -u, 0.5)), float(cca_loss(u[:, [0, 0]], u[:, [0, 0]], 0.5))
    (0.0, 8.0, 2.0)
    """
    u, v = _unit_columns(u), _unit_columns(v)
    eye = torch.eye(u.size(-1), dtype=u.dtype, device=u.device)
    apart = (u - v).square().sum()
    correlated = [(z.mT @ z - eye).square().sum() for z in (u, v)]
    return apart + weight * (correlated[0] + correlated[1])


def bootstrap_loss(q1: Tensor, q2: Tensor, h1: Tensor, h2: Tensor) -> Tensor:
    """2 − mean cos(q₁ᵢ, h₂ᵢ) − mean cos(q₂ᵢ, h₁ᵢ): each view's predictions against the other's targets.

    Args:
        q1, q2: n × d, the predictions from the first and from the second view.
        h1, h2: n × d, the targets of the first and of the second view; detach them to keep them fixed.

    >>> q, h = torch.eye(2), torch.eye(2).flip(1)
    >>> float(bootstrap_loss(q, h, 3 * h, 5 * q)), float(bootstrap_loss(q, h, q, h))
    (0.0, 2.0)
    """
    return 2 - (unit_rows(q1) * unit_rows(h2)).sum(-1).mean() - (unit_rows(q2) * unit_rows(h1)).sum(-1).mean()


def discrimination_loss(real: Tensor, fake: Tensor) -> Tensor:
    """−mean log σ(rᵢ) − mean log(1 − σ(fⱼ)): the loss of a discriminator between real and fake, by its logits.

    As softplus of the logits it has a gradient everywhere. In float32 1 − σ(f) is 0 from f ≈ 17 on, and its logarithm,
    shifted by an ε or not, has no gradient for a fake taken for real.

    Args:
        real: r, the logits of the real ones.
        fake: f, the logits of the fake ones; their number may differ.

    >>> round(float(discrimination_loss(torch.zeros(3), torch.zeros(5))), 4)  # 2·log 2
    1.3863
    """
    return F.softplus(-real).mean() + F.softplus(fake).mean()


def kl_to_standard_normal(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """1/n Σᵢ KL(N(μᵢ, diag σᵢ²) ‖ N(0, I)) = 1/n Σᵢ ½ Σ_c (μ² + σ² − 1 − 2·log σ).

    Args:
        mu: μ, n × d.
        log_sigma: log σ, n × d.

    >>> float(kl_to_standard_normal(torch.ones(4, 3), torch.zeros(4, 3)))
    1.5
    """
    return (mu.square() + (2 * log_sigma).exp() - 1 - 2 * log_sigma).sum(-1).mean() / 2


def _unit_columns(z: Tensor) -> Tensor:
    """Columns at mean 0, scaled to length 1. A column that varies only by the mean's rounding becomes 0."""
    centred = z - z.mean(0, keepdim=True)
    length, before = (torch.linalg.vector_norm(each, dim=0, keepdim=True) for each in (centred, z))
    return centred / torch.where(length > 10 * torch.finfo(z.dtype).eps * before, length, torch.inf)
