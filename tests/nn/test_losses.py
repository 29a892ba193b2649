"""Each loss against a plain float64 twin, written as the formula reads."""

import math

import pytest
import torch

from costa.nn import (
    barlow_twins_loss,
    bootstrap_loss,
    both_views_loss,
    cca_loss,
    cross_view_loss,
    discrimination_loss,
    kl_to_standard_normal,
    self_contrast_loss,
)

KINDS = ["cross", "both", "both-printed", "self"]
TAUS = [1.0, 0.4, 0.05, 0.01]


def loss_of(kind, u, v, tau, mask=None, *, plain=False):
    if kind == "cross":
        return cross_view_loss(u, v, tau, mask, plain=plain)
    if kind == "self":
        return self_contrast_loss(u, tau, mask, plain=plain)
    return both_views_loss(u, v, tau, mask, include_self=kind == "both-printed", plain=plain)


def twin_of(kind, u, v, tau):
    """Row by row; shifted by 1/τ so that float64 does not overflow at τ = 0.01."""
    u = u / u.norm(dim=1, keepdim=True)
    v = v / v.norm(dim=1, keepdim=True)
    k = len(u)

    def e(a, b):
        return torch.exp((a @ b - 1) / tau)

    def one_way(u, v):
        total = 0
        for i in range(k):
            if kind == "cross":
                below = sum(e(u[i], v[j]) for j in range(k))
            elif kind == "self":
                below = 1 + sum(e(u[i], u[j]) for j in range(k) if j != i)
            else:
                printed = kind == "both-printed"
                below = sum(e(u[i], v[j]) for j in range(k))
                below = below + sum(e(u[i], u[j]) for j in range(k) if printed or j != i)
            positive = 1.0 if kind == "self" else e(u[i], v[i])
            total = total - torch.log(positive / below)
        return total / k

    return one_way(u, v) if kind == "self" else (one_way(u, v) + one_way(v, u)) / 2


def rows(k, d, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(k, d, generator=generator, dtype=dtype)
    # A pair as training makes it, alike but not the same: at τ = 0.01 unrelated rows would all be at the limit.
    v = u + 0.3 * torch.randn(k, d, generator=generator, dtype=dtype)
    return u.requires_grad_(), v.requires_grad_()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("plain", [False, True])
def test_equals_the_twin_in_float64_gradients_included(kind, tau, plain):
    u, v = rows(7, 5, seed=1)
    ours, twin = loss_of(kind, u, v, tau, plain=plain), twin_of(kind, u, v, tau)
    assert ours.item() == pytest.approx(twin.item(), rel=1e-9, abs=1e-12)
    inputs = (u,) if kind == "self" else (u, v)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(twin, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_is_stable_in_float32_at_the_smallest_tau(kind):
    u, v = rows(40, 16, seed=2, dtype=torch.float32)
    loss = loss_of(kind, u, v, 0.01)
    exact = loss_of(kind, u.detach().double().requires_grad_(), v.detach().double(), 0.01)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-4, abs=1e-4)
    loss.backward()
    assert u.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["cross", "both", "self"])
def test_one_row_has_no_loss_and_no_gradient(kind):
    u, v = rows(1, 4, seed=3)
    loss = loss_of(kind, u, v, 0.1)
    assert loss.item() == pytest.approx(0, abs=1e-12)
    loss.backward()
    assert u.grad is None or u.grad.abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plain", [False, True])
def test_masked_rows_are_as_if_they_were_not_there(kind, plain):
    u, v = rows(9, 5, seed=4)
    mask = torch.tensor([True, False, True, True, False, True, True, True, False])
    masked, without = (
        loss_of(kind, u, v, 0.2, mask, plain=plain),
        loss_of(kind, u[mask], v[mask], 0.2, plain=plain),
    )
    assert masked.item() == pytest.approx(without.item(), rel=1e-12)
    (a,), (b,) = torch.autograd.grad(masked, (u,)), torch.autograd.grad(without, (u,))
    torch.testing.assert_close(a, b)
    assert (a[~mask] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_masked_zero_row_leaves_no_huge_gradient(kind):
    u, v = rows(6, 5, seed=5)
    u.data[2] = v.data[2] = 0
    loss_of(kind, u, v, 0.1, torch.arange(6) != 2).backward()
    assert u.grad.abs().max() < 100
    assert (u.grad[2] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_zero_row_that_counts_is_harmless_too(kind):
    """P may mix only nodes whose H is zero: isolated ones without a feature."""
    u, v = rows(6, 5, seed=5)
    u.data[2] = v.data[2] = 0
    loss_of(kind, u, v, 0.1).backward()
    assert u.grad.abs().max() < 100


def test_no_row_that_counts_gives_zero():
    u, v = rows(3, 2, seed=6)
    for kind in KINDS:
        assert loss_of(kind, u, v, 0.5, torch.zeros(3, dtype=torch.bool)).item() == 0


def test_one_view_is_the_cross_loss_of_a_view_with_itself():
    u, _ = rows(8, 4, seed=7)
    one, two = self_contrast_loss(u, 0.3), cross_view_loss(u, u, 0.3)
    assert one.item() == pytest.approx(two.item(), rel=1e-12)
    (a,), (b,) = torch.autograd.grad(one, (u,)), torch.autograd.grad(two, (u,))
    torch.testing.assert_close(a, b)


def test_the_length_of_a_row_does_not_matter():
    u, v = rows(5, 3, seed=8)
    assert cross_view_loss(10 * u, v / 7, 0.5).item() == pytest.approx(cross_view_loss(u, v, 0.5).item())
    assert not math.isclose(cross_view_loss(-u, v, 0.5).item(), cross_view_loss(u, v, 0.5).item())


def columns(z):
    """Each column at mean 0 and variance 1 over the rows."""
    n = len(z)
    standard = []
    for column in z.T:
        mean = sum(column) / n
        std = (sum((value - mean) ** 2 for value in column) / n).sqrt()
        standard.append((column - mean) / std)
    return standard


def correlations(u, v):
    return [[(a * b).mean() for b in columns(v)] for a in columns(u)]


def barlow_twins_twin(u, v):
    c = correlations(u, v)
    d = len(c)
    loss = 0
    for i in range(d):
        for j in range(d):
            loss = loss + ((1 - c[i][i]) ** 2 if i == j else c[i][j] ** 2 / d)
    return loss


def cca_twin(u, v, weight):
    n = len(u)
    apart = sum(((a - b) ** 2).sum() / n for a, b in zip(columns(u), columns(v), strict=True))
    correlated = 0
    for c in (correlations(u, u), correlations(v, v)):
        for i, row in enumerate(c):
            for j, value in enumerate(row):
                correlated = correlated + (value - float(i == j)) ** 2
    return apart + weight * correlated


WITHOUT_NEGATIVES = {
    "barlow twins": (barlow_twins_loss, barlow_twins_twin),
    "cca": (lambda u, v: cca_loss(u, v, 0.3), lambda u, v: cca_twin(u, v, 0.3)),
}


@pytest.mark.parametrize("kind", WITHOUT_NEGATIVES)
def test_without_negatives_equals_the_twin_in_float64_gradients_included(kind):
    loss, twin = WITHOUT_NEGATIVES[kind]
    u, v = rows(9, 4, seed=11)
    ours, expected = loss(u, v), twin(u, v)
    assert ours.item() == pytest.approx(expected.item(), rel=1e-12)
    for a, b in zip(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(expected, (u, v)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["barlow twins", "cca"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1000.1])
def test_a_constant_column_correlates_with_none_and_has_no_gradient(kind, value):
    """Its mean is rounded, and what is left of it must not be blown up to length 1."""
    u, v = rows(2000, 2, seed=15, dtype=torch.float32)
    c = correlations(u.detach(), v.detach())[0][0]
    u.data[:, 1] = v.data[:, 1] = value
    loss, _ = WITHOUT_NEGATIVES[kind]
    expected = (1 - c) ** 2 + 1 if kind == "barlow twins" else 2 - 2 * c + 0.3 * 2
    assert loss(u, v).item() == pytest.approx(expected.item(), rel=1e-5)
    (gradient,) = torch.autograd.grad(loss(u, v), (u,))
    assert gradient[:, 0].abs().max() > 0
    assert gradient[:, 1].abs().max() == 0


def test_the_bootstrap_equals_the_twin_in_float64_gradients_included():
    (q1, h1), (q2, h2) = rows(7, 5, seed=16), rows(7, 5, seed=17)
    tensors = (q1, q2, h1, h2)

    def cosine(a, b):
        return (a @ b) / (a @ a).sqrt() / (b @ b).sqrt()

    twin = 2 - sum(cosine(q1[i], h2[i]) + cosine(q2[i], h1[i]) for i in range(7)) / 7
    ours = bootstrap_loss(*tensors)
    assert ours.item() == pytest.approx(twin.item(), rel=1e-12)
    for a, b in zip(torch.autograd.grad(ours, tensors), torch.autograd.grad(twin, tensors), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_the_bootstrap_of_a_zero_row_is_harmless():
    (q1, h1), (q2, h2) = rows(4, 3, seed=18), rows(4, 3, seed=19)
    q1.data[2] = h2.data[1] = 0
    bootstrap_loss(q1, q2, h1, h2).backward()
    assert q1.grad.abs().max() < 10


def test_discrimination_equals_the_twin_in_float64_gradients_included():
    real, fake = (3 * t.flatten().detach() for t in rows(7, 5, seed=20))
    real, fake = real.requires_grad_(), fake[:20].requires_grad_()
    twin = (
        -sum(torch.log(torch.sigmoid(r)) for r in real) / 35 - sum(torch.log(1 - torch.sigmoid(f)) for f in fake) / 20
    )
    ours = discrimination_loss(real, fake)
    assert ours.item() == pytest.approx(twin.item(), rel=1e-12)
    pair = (real, fake)
    for a, b in zip(torch.autograd.grad(ours, pair), torch.autograd.grad(twin, pair), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_discrimination_hears_of_what_is_far_on_the_wrong_side():
    real, fake = torch.tensor([-50.0], requires_grad=True), torch.tensor([200.0], requires_grad=True)
    loss = discrimination_loss(real, fake)
    assert loss.item() == pytest.approx(250.0)
    assert [g.item() for g in torch.autograd.grad(loss, (real, fake))] == pytest.approx([-1.0, 1.0])


def test_the_divergence_equals_torchs_gradients_included():
    mu, log_sigma = rows(7, 5, seed=21)
    normal = torch.distributions.Normal(mu, log_sigma.exp())
    standard = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
    twin = torch.distributions.kl_divergence(normal, standard).sum() / 7
    ours = kl_to_standard_normal(mu, log_sigma)
    assert ours.item() == pytest.approx(twin.item(), rel=1e-12)
    pair = (mu, log_sigma)
    for a, b in zip(torch.autograd.grad(ours, pair), torch.autograd.grad(twin, pair), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
