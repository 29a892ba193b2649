"""The covariance error against NumPy, and the lemmas in their domains: exactly where that can be, else by drawing."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from costa.augment import make_sketch
from costa.augment.bounds import (
    Guarantee,
    Statistics,
    covariance_error,
    gaussian_failure,
    gaussian_rows,
    relative_covariance_error,
    selection_failure,
    selection_rows,
    svd_bound,
)
from costa.errors import InputError


def features(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def decaying(n: int, d: int) -> Tensor:
    """An H whose columns have lengths 1, 1/2, 1/4, …: far from isotropic, as hidden features are."""
    return features(n, d, seed=1) * 0.5 ** torch.arange(d)


def assert_lemma(h: Tensor, name: str, k: int, eps: float, stated: float, draws: int = 1500) -> None:
    """That the failures among independent draws are no sign of a failure probability above `stated`.

    If the lemma is true, the count is stochastically below Binomial(draws, stated); a count whose exact upper tail
    is under 1e-6 refutes it. The seed is fixed, so this never changes its mind.
    """
    sketch = make_sketch(name, k=k, center=False, generator=torch.Generator().manual_seed(17))
    sketches = torch.stack([sketch.draw(h).apply(h) for _ in range(draws)])
    differences = h.T @ h - sketches.mT @ sketches
    errors = torch.linalg.eigvalsh(differences).abs().amax(dim=1) / h.square().sum()
    failures = int((errors > eps).sum())
    assert stats.binom.sf(failures - 1, draws, stated) > 1e-6, f"{failures} of {draws} fail, stated {stated:.3g}"


# --- the measure ----------------------------------------------------------------------------------------------


@given(n=st.integers(1, 10), k=st.integers(1, 10), d=st.integers(1, 6), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_covariance_error_is_the_spectral_norm(n: int, k: int, d: int, seed: int) -> None:
    h, h_tilde = features(n, d, seed), features(k, d, seed + 1)
    a, b = h.numpy(), h_tilde.numpy()
    expected = np.linalg.norm(a.T @ a - b.T @ b, ord=2)
    assert float(covariance_error(h, h_tilde)) == pytest.approx(expected, rel=1e-10)
    relative = relative_covariance_error(h, h_tilde)
    assert float(relative) == pytest.approx(expected / np.trace(a.T @ a), rel=1e-10)
    assert relative.dtype == torch.float64


def test_covariance_error_is_computed_in_float64() -> None:
    # In float32, 4096² + 1 is 4096²: the difference would be lost.
    h = torch.tensor([[4096.0], [1.0]], requires_grad=True)
    error = covariance_error(h, h[:1])
    assert float(error) == 1.0
    assert not error.requires_grad


def test_relative_error_of_a_zero_h() -> None:
    assert float(relative_covariance_error(torch.zeros(3, 2), torch.zeros(1, 2))) == 0.0
    assert float(relative_covariance_error(torch.zeros(3, 2), torch.ones(1, 2))) == math.inf


@pytest.mark.parametrize(
    ("h", "h_tilde", "sentence"),
    [
        (torch.zeros(3, 2), torch.zeros(3, 4), "2 columns and H̃ has 4"),
        (torch.zeros(3), torch.zeros(3, 4), "H must be a matrix"),
        (torch.zeros(3, 2), torch.zeros(0, 2), "H̃ must be a matrix"),
        (torch.zeros(3, 2), torch.full((2, 2), math.nan), "H̃ holds NaN"),
    ],
)
def test_bad_matrices_get_a_sentence(h: Tensor, h_tilde: Tensor, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        covariance_error(h, h_tilde)


# --- svd ------------------------------------------------------------------------------------------------------


@given(n=st.integers(1, 12), d=st.integers(1, 8), seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=60, deadline=None)
def test_svd_lemma_holds_always(n: int, d: int, seed: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, min(n, d)))
    h = features(n, d, seed)
    bound = svd_bound(h, k)
    sigma = np.linalg.svd(h.numpy(), compute_uv=False)
    assert float(bound) == pytest.approx(sigma[k] / sigma[0] if k < len(sigma) else 0.0, rel=1e-10)
    error = relative_covariance_error(h, make_sketch("svd", k=k, center=False).draw(h).apply(h))
    assert float(error) <= float(bound) + 1e-12


def test_svd_bound_is_zero_from_the_rank_on() -> None:
    h = features(20, 3) @ features(3, 8, seed=1)
    assert float(svd_bound(h, 2)) > 1e-3
    assert [float(svd_bound(h, k)) for k in (3, 7, 8, 100)] == [0.0] * 4
    assert float(svd_bound(torch.zeros(4, 3), 1)) == 0.0


# --- gaussian -------------------------------------------------------------------------------------------------


def test_gaussian_lemma_exactly_for_rank_one() -> None:
    """For H of rank one, error/trace is |χ²_k/k − 1|, so the failure probability is known without drawing."""
    k = np.arange(1, 400)
    for eps in (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99):
        exact = stats.chi2.cdf(k * (1 - eps), k) + stats.chi2.sf(k * (1 + eps), k)
        assert (exact <= [gaussian_failure(eps, int(rows)) for rows in k]).all()


@pytest.mark.parametrize(("k", "eps"), [(4, 0.3), (16, 0.5), (64, 0.3)])
@pytest.mark.parametrize("h", [features(30, 1), decaying(30, 4)], ids=["rank-one", "decaying"])
def test_gaussian_lemma_by_drawing(h: Tensor, k: int, eps: float) -> None:
    assert_lemma(h, "gaussian", k, eps, gaussian_failure(eps, k))


def test_drawing_would_see_a_false_lemma() -> None:
    """The Gaussian statement does not hold for a sparse P: with one dominant row every draw fails."""
    h = torch.zeros(30, 2, dtype=torch.float64)
    h[3] = torch.tensor([1.0, 2.0])
    sketch = make_sketch("sparse", density=0.01, k=50, center=False, generator=torch.Generator().manual_seed(1))
    errors = [float(relative_covariance_error(h, sketch.draw(h).apply(h))) for _ in range(200)]
    assert min(errors) > 0.3
    assert gaussian_failure(0.3, 50) == pytest.approx(0.57, abs=0.005)
    with pytest.raises(AssertionError, match="fail, stated"):
        assert_lemma(h, "sparse", 50, 0.3, gaussian_failure(0.3, 50), draws=200)


# --- selection ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "eps"), [(16, 0.3), (64, 0.2), (64, 0.4), (256, 0.1)])
@pytest.mark.parametrize("h", [features(30, 6), decaying(30, 4)], ids=["isotropic", "decaying"])
def test_selection_lemma_by_drawing(h: Tensor, k: int, eps: float) -> None:
    assert eps * math.sqrt(k) > 1
    assert_lemma(h, "selection", k, eps, selection_failure(eps, k))


def test_selection_lemma_says_nothing_below_its_domain() -> None:
    """k = 16, ε = 0.02: the printed expression is 0.90, and every draw fails."""
    h = features(30, 6)
    sketch = make_sketch("selection", k=16, center=False, generator=torch.Generator().manual_seed(1))
    assert all(float(relative_covariance_error(h, sketch.draw(h).apply(h))) > 0.02 for _ in range(200))
    assert math.exp(-((0.02 * 4 - 1) ** 2) / 8) == pytest.approx(0.90, abs=0.005)
    assert selection_failure(0.02, 16) == 1.0
    assert selection_failure(0.25, 16) == 1.0
    assert selection_failure(0.2501, 16) < 1.0


# --- the formulas ---------------------------------------------------------------------------------------------


@given(eps=st.floats(0.01, 0.99), k=st.integers(1, 10_000))
def test_failure_probabilities_are_the_formulas(eps: float, k: int) -> None:
    assert gaussian_failure(eps, k) == pytest.approx(math.exp(-eps * eps * k / 8))
    if eps * math.sqrt(k) > 1:
        assert selection_failure(eps, k) == pytest.approx(math.exp(-((eps * math.sqrt(k) - 1) ** 2) / 8))


@given(eps=st.floats(0.01, 0.99), delta=st.floats(1e-9, 0.999))
def test_rows_are_the_fewest_that_suffice(eps: float, delta: float) -> None:
    for rows, failure in ((gaussian_rows, gaussian_failure), (selection_rows, selection_failure)):
        k = rows(eps, delta)
        assert failure(eps, k) <= delta
        assert k == 1 or failure(eps, k - 1) > delta


@given(eps=st.floats(0.01, 0.99), k=st.integers(1, 5000))
def test_rows_undo_the_failure_probability(eps: float, k: int) -> None:
    delta = gaussian_failure(eps, k)
    assume(0 < delta < 1)
    assert gaussian_rows(eps, delta) == k


@pytest.mark.parametrize("eps", [0, 1, -0.1, 1.5, math.nan])
def test_gaussian_domain(eps: float) -> None:
    with pytest.raises(InputError, match="0 < ε < 1"):
        gaussian_failure(eps, 10)
    with pytest.raises(InputError, match="0 < ε < 1"):
        gaussian_rows(eps, 0.1)


@pytest.mark.parametrize("eps", [0, -0.1, math.inf, math.nan])
def test_selection_domain(eps: float) -> None:
    with pytest.raises(InputError, match="ε must be above 0"):
        selection_failure(eps, 10)
    with pytest.raises(InputError, match="ε must be above 0"):
        selection_rows(eps, 0.1)


def test_rows_and_delta_are_checked() -> None:
    for call in (
        lambda: gaussian_failure(0.3, 0),
        lambda: selection_failure(0.3, 0),
        lambda: svd_bound(features(3, 2), 0),
    ):
        with pytest.raises(InputError, match="at least k = 1"):
            call()
    for delta in (0, 1, math.nan):
        for rows in (gaussian_rows, selection_rows):
            with pytest.raises(InputError, match="failure probability δ"):
                rows(0.3, delta)


@pytest.mark.parametrize(
    ("kind", "k", "options"),
    [("sparse", 4, {"density": 1.0}), ("selection", 1, {"scaling": "printed"}), ("rademacher", 4, {})],
)
def test_an_error_that_is_certain_to_be_zero_is_no_less_than_that(kind, k, options):
    """One row alone: what is left of 1 + ρ − 2κ is rounding, of either sign."""
    for seed in range(20):
        h = torch.zeros(5, 3, dtype=torch.float64)
        h[2] = torch.randn(3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        promise = Guarantee(Statistics(h), make_sketch(kind, k=k, center=False, **options))
        assert 0 <= promise.moment < 1e-12
        assert 0 <= promise.proved_eps(0.1) < 1e-5
