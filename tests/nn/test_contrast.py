"""The sums over tiles against similarities written out, value and gradient; float64 unless said otherwise."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from costa.nn import both_views_loss, contrast, cross_view_loss, self_contrast_loss

LOSSES = {
    "cross": cross_view_loss,
    "both": both_views_loss,
    "printed": lambda u, v, tau, mask, **form: both_views_loss(u, v, tau, mask, include_self=True, **form),
    "self": lambda u, v, tau, mask, **form: self_contrast_loss(u, tau, mask, **form),
}
SUMS = {
    "across": lambda u, v, tau: contrast._Across.apply(u, v, tau, None),
    "among": lambda u, v, tau: contrast._Within.apply(torch.cat([u, v]), tau, None, len(u), False),
    "among, own": lambda u, v, tau: contrast._Within.apply(torch.cat([u, v]), tau, None, len(u), True),
    "spread": lambda u, v, tau: contrast._Within.apply(u, tau, None, 0, False),
}
TAUS = [0.5, 0.05, 0.01]
K = 11


def views(tau, *shape, seed=0, dtype=torch.float64):
    """Two views of rows that are within √τ of each other: at a small τ of others next to no gradient is left."""
    generator = torch.Generator().manual_seed(seed)

    def noise(*size):
        return torch.randn(size, generator=generator, dtype=torch.float64) / size[-1] ** 0.5

    u = 3 * (noise(1, shape[-1]) + 1.5 * tau**0.5 * noise(*shape))
    v = u + tau**0.5 * noise(*shape)
    return [view.to(dtype).requires_grad_() for view in (u, v)]


def masks():
    """None, most rows, one row, no row."""
    most = torch.rand(K, generator=torch.Generator().manual_seed(1)) < 0.7
    most[2] = True
    return {"all": None, "most": most, "one": torch.arange(K) == 2, "none": torch.zeros_like(most)}


def gradients(loss, name, u, v):
    return torch.autograd.grad(loss, [u] if name == "self" else [u, v])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("counted", ["all", "most", "one", "none"])
@pytest.mark.parametrize("tile", [1, 40, 2**20])
def test_tiles_give_what_is_written_out(name, tau, counted, tile, monkeypatch):
    monkeypatch.setattr(contrast, "TILE", tile)
    u, v = views(tau, K, 6)
    mask = masks()[counted]
    ours, twin = LOSSES[name](u, v, tau, mask), LOSSES[name](u, v, tau, mask, plain=True)
    assert ours.shape == ()
    torch.testing.assert_close(ours, twin, rtol=1e-10, atol=1e-10)
    pairs = list(zip(gradients(ours, name, u, v), gradients(twin, name, u, v), strict=True))
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    if counted in ("all", "most"):  # there was something to compare
        assert all(float(b.norm()) > 0.01 for _, b in pairs)
    elif name != "printed":  # one row, or none, has nobody to be told from
        assert all(float(a.norm()) < 1e-12 for a, _ in pairs)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tau", [0.5, 0.02])
def test_losses_pass_gradcheck(name, tau, monkeypatch):
    monkeypatch.setattr(contrast, "TILE", 8)
    u, v = views(tau, 4, 3)
    mask = torch.tensor([True, True, False, True])
    for m in (None, mask):
        assert torch.autograd.gradcheck(lambda u, v, m=m: LOSSES[name](u, v, tau, m), (u, v))


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("tau", [0.5, 0.02])
def test_sums_pass_gradcheck_for_rows_of_any_length_up_to_one(name, tau):
    """Without the scaling to length one, which would hide a gradient along the row."""
    u, v = views(tau, 4, 3)
    shortened = [(0.7 * view / view.norm(dim=1).max()).detach().requires_grad_() for view in (u, v)]
    assert torch.autograd.gradcheck(lambda u, v: SUMS[name](u, v, tau), shortened)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("counted", [None, 1])
def test_one_row_has_no_loss_and_no_gradient(name, counted):
    u, v = views(0.1, 1, 6)
    loss = LOSSES[name](u, v, 0.1, None if counted is None else torch.ones(1, dtype=torch.bool))
    twin = LOSSES[name](u, v, 0.1, None, plain=True)
    torch.testing.assert_close(loss, twin, rtol=1e-12, atol=1e-12)
    if name != "printed":  # where a row is its own negative
        assert abs(loss.item()) < 1e-12
        assert all(float(gradient.norm()) < 1e-12 for gradient in gradients(loss, name, u, v))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tau", TAUS)
def test_single_precision_is_close_and_finite(name, tau):
    exact_views = views(tau, 40, 16)
    u, v = (view.detach().float().requires_grad_() for view in exact_views)
    loss, exact = LOSSES[name](u, v, tau, None), LOSSES[name](*exact_views, tau, None, plain=True)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=1e-6 / tau)
    for a, b in zip(gradients(loss, name, u, v), gradients(exact, name, *exact_views), strict=True):
        assert float((a - b).norm()) < 1e-5 / tau * float(b.norm())


ENDS = {
    "some": ([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]),
    "all the views": ([[1.0, 0.0]] * 3, [[-1.0, 0.0]] * 3),  # the other view is at −1/τ, the positive with it
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("which", ENDS)
def test_equal_and_opposite_rows_are_no_matter_for_single_precision(name, tau, which):
    """Similarities of −1/τ and 1/τ: at τ = 0.01 e^{2/τ} is far past what float32 holds."""
    u, v = (torch.tensor(rows, requires_grad=True) for rows in ENDS[which])
    loss = LOSSES[name](u, v, tau, None)
    twin = LOSSES[name](u.double(), v.double(), tau, None, plain=True)
    torch.testing.assert_close(loss.double(), twin, rtol=1e-5, atol=1e-5)
    assert all(gradient.isfinite().all() for gradient in gradients(loss, name, u, v))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_asks_no_kernel_off_the_gpu(name, dtype, monkeypatch):
    def never(*arguments):
        raise AssertionError("a kernel was asked")

    monkeypatch.setattr(contrast._Tiles, "_fused", never)
    exact_views = views(0.5, K, 6)
    u, v = (view.detach().to(dtype).requires_grad_() for view in exact_views)
    loss = LOSSES[name](u, v, 0.5, None)
    assert loss.item() == pytest.approx(LOSSES[name](*exact_views, 0.5, None).item(), rel=0.02)
    assert all(gradient.isfinite().all() for gradient in gradients(loss, name, u, v))


@pytest.mark.parametrize("name", LOSSES)
def test_a_small_loss_keeps_its_digits(name):
    """Views that agree and differ from all others: −log(1 − ε) for an ε below float32's rounding."""
    u = torch.eye(6, requires_grad=True)
    loss = LOSSES[name](u, u, 0.05, None)
    exact = LOSSES[name](u.double(), u.double(), 0.05, None)
    if name == "printed":
        assert loss.item() == pytest.approx(0.6931, abs=1e-4)
    else:
        assert 0 < exact.item() < 1e-7
        assert loss.item() == pytest.approx(exact.item(), rel=1e-4)


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that an operation gave."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.numel = max([self.numel, *(t.numel() for t in [out] if isinstance(t, torch.Tensor))])
        return out


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("masked", [False, True])
def test_the_similarities_are_never_stored(name, masked, monkeypatch):
    monkeypatch.setattr(contrast, "TILE", 1000)
    k, d = 200, 4
    u, v = views(0.5, k, d)
    mask = torch.arange(k) % 3 > 0 if masked else None
    with Largest() as made:
        gradients(LOSSES[name](u, v, 0.5, mask), name, u, v)
    assert made.numel <= max(2 * k * d, 1000) < k * k / 20
