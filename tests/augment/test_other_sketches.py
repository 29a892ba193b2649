"""Row selection, SVD and noise: against their laws (fixed seeds, tolerances from the variance)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from costa.augment import make_sketch
from costa.errors import InputError

# Six standard deviations: for a normal average, a false alarm in 1e-9 an entry.
SIGMAS = 6.0


def generator(seed: int = 0, device: str = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def features(n: int, d: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """An n × d matrix with a mean that is not zero."""
    return (torch.randn(n, d, generator=generator(seed), dtype=torch.float64) + 0.7).to(dtype)


def centred(h: Tensor) -> Tensor:
    return h - h.mean(dim=0, keepdim=True)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_selection_keeps_the_covariance_on_average(k: int, center: bool) -> None:
    """E[H̃ᵀH̃] = HᵀH; H̃ᵀH̃ is a mean of k i.i.d. hᵢhᵢᵀ/pᵢ, whose variance is Σ (hᵢₐhᵢᵦ)²/pᵢ − (HᵀH)²ₐᵦ."""
    draws, h = 4000, features(6, 3)
    sketch, source = make_sketch("selection", k=k, center=center), generator(5)
    sketches = torch.stack([sketch.draw(h, source).apply(h) for _ in range(draws)])
    mean = torch.einsum("tka,tkb->ab", sketches, sketches) / draws

    h = centred(h) if center else h
    p = h.square().sum(1) / h.square().sum()
    gram = h.T @ h
    variance = (torch.einsum("ia,ib,i->ab", h.square(), h.square(), 1 / p) - gram.square()) / k
    assert ((mean - gram).abs() <= SIGMAS * (variance / draws).sqrt()).all()


def test_printed_selection_takes_plain_rows_by_length() -> None:
    h = features(5, 3) * torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]], dtype=torch.float64)
    sketch = make_sketch("selection", k=20_000, scaling="printed", center=False)
    p = sketch.draw(h, generator(2)).matrix()
    assert torch.equal(p.sum(dim=1), torch.ones(20_000, dtype=h.dtype))
    assert ((p == 0) | (p == 1)).all()
    lengths = h.norm(dim=1)
    expected = 20_000 * lengths / lengths.sum()
    assert stats.chisquare(p.sum(dim=0).numpy(), expected.numpy()).pvalue > 1e-4


def test_selection_never_draws_a_zero_row() -> None:
    h = torch.zeros(9, 2)
    h[[2, 5]] = torch.tensor([[1.0, 0.0], [1e-23, 0.0]])  # squares that float32 cannot hold count too
    sketch = make_sketch("selection", k=5000, center=False)
    p = sketch.draw(h, generator()).matrix()
    assert set(p.nonzero()[:, 1].tolist()) == {2}
    p = sketch.draw(h[3:], generator()).matrix()
    assert set(p.nonzero()[:, 1].tolist()) == {2}
    assert p.isfinite().all()


def test_selection_of_nothing_is_zero() -> None:
    h = torch.ones(6, 3, requires_grad=True)  # zero once it is centred
    h_tilde = make_sketch("selection", k=4)(h, generator=generator())
    assert torch.equal(h_tilde, torch.zeros(4, 3))
    h_tilde.sum().backward()
    assert h.grad is not None
    assert h.grad.isfinite().all()


def test_selection_passes_a_nan_on() -> None:
    h = torch.full((6, 3), math.nan)
    assert make_sketch("selection", k=4)(h, generator=generator()).isnan().all()


@given(n=st.integers(2, 12), d=st.integers(2, 8), data=st.data(), center=st.booleans())
@settings(max_examples=60, deadline=None)
def test_svd_error_is_exactly_the_next_singular_value(n: int, d: int, data: st.DataObject, center: bool) -> None:
    k = data.draw(st.integers(1, min(n, d)))
    h = features(n, d, seed=data.draw(st.integers(0, 1000)))
    p = make_sketch("svd", k=k, center=center).draw(h).matrix()
    torch.testing.assert_close(p @ p.T, torch.eye(k, dtype=h.dtype), rtol=0, atol=1e-12)
    largest = p.gather(1, p.abs().argmax(dim=1, keepdim=True))
    assert (largest > 0).all()

    h = centred(h) if center else h
    h_tilde = p @ h
    sigma = torch.linalg.svdvals(h)
    expected = sigma[k] ** 2 if k < len(sigma) else sigma.new_zeros(())
    error = torch.linalg.matrix_norm(h.T @ h - h_tilde.T @ h_tilde, ord=2)
    torch.testing.assert_close(error, expected, rtol=1e-9, atol=1e-10)


def test_svd_is_stable_in_float32() -> None:
    # Singular values from 1 to 1e-5, where the eigenvectors of HᵀH would be noise in float32.
    u = torch.linalg.qr(torch.randn(80, 12, generator=generator(1), dtype=torch.float64)).Q
    v = torch.linalg.qr(torch.randn(12, 12, generator=generator(2), dtype=torch.float64)).Q
    h = (u * torch.logspace(0, -5, 12, dtype=torch.float64)) @ v.T
    p = make_sketch("svd", k=8, center=False).draw(h.float()).matrix()
    assert p.dtype == torch.float32
    torch.testing.assert_close(p @ p.T, torch.eye(8), rtol=0, atol=1e-5)
    torch.testing.assert_close((p.double() @ u[:, :8]).abs().diagonal(), torch.ones(8).double(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("options", [{"ratio": 0.5}, {"k": 8}, {}])
def test_svd_says_what_is_allowed(options: dict[str, float]) -> None:
    h = features(70, 7)
    with pytest.raises(InputError, match=r"min\(n, d\) = 7 rows.*use k ≤ 7 or ratio ≤ 0\.1\.$"):
        make_sketch("svd", **options)(h)
    assert make_sketch("svd", k=7)(h).shape == (7, 7)
    assert make_sketch("svd", ratio=0.1)(h).shape == (7, 7)


@given(n=st.integers(2, 10**6), d=st.integers(1, 1024))
def test_the_ratio_that_svd_names_is_allowed(n: int, d: int) -> None:
    most = min(n, d)
    assert make_sketch("svd", ratio=float(f"{most / n:.6g}")).rows(n) == most


def test_svd_refuses_a_diverged_h() -> None:
    h = features(9, 4)
    h[3, 2] = math.nan
    with pytest.raises(InputError, match="NaN"):
        make_sketch("svd", k=2)(h)


def test_fixed_svd_keeps_the_first_p() -> None:
    h, other = features(20, 6), features(20, 6, seed=1)
    sketch = make_sketch("svd", k=3, fixed=True)
    first = sketch.draw(h).matrix()
    assert torch.equal(sketch.draw(other).matrix(), first)
    assert not torch.equal(make_sketch("svd", k=3).draw(other).matrix(), first)


def test_noise_law() -> None:
    """E[H̃ᵀH̃] = HᵀH + n·std²·I; the variance of entry (a, b) follows from the moments of a normal E."""
    n, std, draws = 8, 0.6, 4000
    h = features(n, 3)
    sketch = make_sketch("noise", noise_std=std, center=False, generator=generator(3))
    draw = sketch.draw(h)
    assert torch.equal(draw.matrix(), torch.eye(n, dtype=h.dtype))
    sketches = torch.stack([draw.apply(h) for _ in range(draws)])
    mean = torch.einsum("tka,tkb->ab", sketches, sketches) / draws

    squares = h.square().sum(0)
    variance = std**2 * (squares[:, None] + squares[None, :]) + n * std**4
    variance = variance.diagonal_scatter(4 * std**2 * squares + 2 * n * std**4)
    expected = h.T @ h + n * std**2 * torch.eye(3, dtype=h.dtype)
    assert ((mean - expected).abs() <= SIGMAS * (variance / draws).sqrt()).all()


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("selection", {"scaling": "paper"}, "'unbiased' or 'printed', not 'paper'"),
        ("noise", {"ratio": 0.5}, "keeps all n rows"),
        ("noise", {"k": 4}, "keeps all n rows"),
        ("noise", {"noise_std": -0.1}, "noise_std, a standard deviation, must be"),
    ],
)
def test_bad_settings_get_a_sentence(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make_sketch(name, **options)
    assert str(caught.value).endswith(".")


def test_repr() -> None:
    assert repr(make_sketch("selection")) == "RowSelection(scaling='unbiased', ratio=0.5)"
    assert repr(make_sketch("noise", center=False)) == "NoiseInjection(noise_std=1.0, center=False)"
