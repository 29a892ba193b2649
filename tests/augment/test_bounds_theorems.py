"""What is proved: second moments by enumeration and by drawing, the tails against exact laws and against draws."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from costa.augment import make_sketch
from costa.augment.bounds import (
    Guarantee,
    Statistics,
    draw_errors,
    gaussian_failure,
    gaussian_spectral_tail,
    gaussian_tail,
    relative_covariance_error,
    second_moment,
    selection_failure,
    selection_spectral_tail,
    selection_tail,
)
from costa.errors import InputError


def features(n, d, seed=0):
    """Rows of different lengths, one of them dominant."""
    h = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    h[0] *= 3
    return h


def squared_error(h, p):
    gram = h.T @ h
    return float((gram - h.T @ p.T @ p @ h).square().sum() / h.square().sum() ** 2)


def of(rows):
    return torch.tensor(rows, dtype=torch.float64)


# --- the second moment, over every P there is -------------------------------------------------------------------

H = features(3, 2)


def independent_entries(values, chances, k=1):
    """E over all P of k rows whose entries take these values, scaled by 1/√k."""
    total = 0.0
    for entries in itertools.product(range(len(values)), repeat=3 * k):
        chance = math.prod(chances[e] for e in entries)
        total += chance * squared_error(H, of([values[e] for e in entries]).view(k, 3) / math.sqrt(k))
    return total


def every_bucket(k=2):
    total = 0.0
    for buckets in itertools.product(range(k), repeat=3):
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            p = torch.zeros(k, 3, dtype=torch.float64)
            p[list(buckets), range(3)] = of(signs)
            total += squared_error(H, p) / (2 * k) ** 3
    return total


def every_selection(scaling, k=2):
    norms = H.norm(dim=1)
    p = norms.square() / norms.square().sum() if scaling == "unbiased" else norms / norms.sum()
    scale = (k * p).rsqrt() if scaling == "unbiased" else torch.ones(3)
    total = 0.0
    for chosen in itertools.product(range(3), repeat=k):
        matrix = torch.zeros(k, 3, dtype=torch.float64)
        matrix[range(k), list(chosen)] = scale[list(chosen)].double()
        total += math.prod(float(p[i]) for i in chosen) * squared_error(H, matrix)
    return total


def gauss_hermite(degree=5):
    """Nodes and weights that are exact for the fourth powers of N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(degree)
    return nodes.tolist(), (weights / weights.sum()).tolist()


def every_noise(std):
    h, (nodes, weights) = H[:2], gauss_hermite()
    total = 0.0
    for entries in itertools.product(range(5), repeat=4):
        noisy = h + std * of([nodes[e] for e in entries]).view(2, 2)
        error = (h.T @ h - noisy.T @ noisy).square().sum() / h.square().sum() ** 2
        total += math.prod(weights[e] for e in entries) * float(error)
    return total


@pytest.mark.parametrize(
    ("name", "options", "enumerated"),
    [
        ("gaussian", {"k": 2}, lambda: independent_entries(*gauss_hermite(3), k=2)),
        ("rademacher", {"k": 2}, lambda: independent_entries((-1, 1), (0.5, 0.5), k=2)),
        ("sparse", {"k": 1, "density": 0.2}, lambda: independent_entries((-(5**0.5), 0, 5**0.5), (0.1, 0.8, 0.1))),
        ("sparse", {"k": 2, "density": 1.0}, lambda: independent_entries((-1, 1), (0.5, 0.5), k=2)),
        ("countsketch", {"k": 2}, every_bucket),
        ("selection", {"k": 2}, lambda: every_selection("unbiased")),
        ("selection", {"k": 2, "scaling": "printed"}, lambda: every_selection("printed")),
    ],
)
def test_second_moments_exactly(name, options, enumerated):
    sketch = make_sketch(name, center=False, **options)
    assert second_moment(Statistics(H), sketch) == pytest.approx(enumerated(), rel=1e-10)


def test_second_moment_of_noise_exactly():
    sketch = make_sketch("noise", noise_std=0.7, center=False)
    assert second_moment(Statistics(H[:2]), sketch) == pytest.approx(every_noise(0.7), rel=1e-10)


SKETCHES = [
    ("gaussian", {"k": 6}),
    ("rademacher", {"k": 6}),
    ("sparse", {"k": 6, "density": 0.3}),
    ("countsketch", {"k": 6}),
    ("selection", {"k": 6}),
    ("selection", {"k": 6, "scaling": "printed"}),
    ("noise", {"noise_std": 0.5}),
]


@pytest.mark.parametrize(("name", "options"), SKETCHES)
def test_second_moments_by_drawing(name, options):
    statistics = Statistics(features(12, 3, seed=1))
    sketch = make_sketch(name, center=False, **options)
    errors, squares = draw_errors(statistics, sketch, 600, torch.Generator().manual_seed(3))
    deviation = float(squares.mean()) - second_moment(statistics, sketch)
    assert abs(deviation) < 4 * float(squares.std()) / math.sqrt(600)
    # ‖·‖₂ ≤ ‖·‖_F ≤ √d·‖·‖₂
    assert (errors.square() <= squares * (1 + 1e-9)).all()
    assert (squares <= 3 * errors.square() * (1 + 1e-9)).all()


def test_second_moment_of_the_svd_is_its_error():
    h = features(9, 4)
    statistics = Statistics(h)
    sketch = make_sketch("svd", k=3, center=False)
    errors, squares = draw_errors(statistics, sketch, 1, torch.Generator())
    assert second_moment(statistics, sketch) == pytest.approx(float(squares[0]), rel=1e-4)
    assert float(errors[0]) == pytest.approx(float(statistics.spectrum[3]), rel=1e-3)


def test_no_moment_where_noise_is_added():
    with pytest.raises(InputError, match="take noise_std = 0 for gaussian"):
        second_moment(Statistics(H), make_sketch("gaussian", k=2, noise_std=0.1))


# --- the tails --------------------------------------------------------------------------------------------------


def test_gaussian_tail_exactly_for_rank_one():
    k = np.arange(1, 300)
    for eps in (0.05, 0.2, 0.5, 0.9, 1.5):
        exact = stats.chi2.cdf(k * (1 - eps), k) + stats.chi2.sf(k * (1 + eps), k)
        assert (exact <= [gaussian_tail(eps, int(rows)) for rows in k]).all()


def test_moments_of_every_h_are_below_those_of_rank_one():
    """E‖·‖_F^{2m} ≤ E(χ²_k/k − 1)^{2m}·Tr^{2m}: what the tail rests on; m = 1 exactly, m = 2 by drawing."""
    k = 8
    for h in (features(30, 1), features(30, 5), torch.linalg.qr(features(30, 5)).Q):
        statistics = Statistics(h)
        sketch = make_sketch("gaussian", k=k, center=False)
        assert second_moment(statistics, sketch) <= 2 / k * (1 + 1e-12)
        squares = draw_errors(statistics, sketch, 500, torch.Generator().manual_seed(0))[1].square()
        fourth = 12 / k**2 + 48 / k**3
        assert float(squares.mean()) <= fourth + 4 * float(squares.std()) / math.sqrt(500)


def test_the_gaussian_lemma_follows_from_what_is_proved():
    """For ε²k ≥ 2.87 the second moment, the fourth, or the tail is below the lemma's probability, whatever H."""
    for k in [*range(3, 60), 100, 300, 1000, 10_000]:
        for eps in np.linspace(math.sqrt(2.87 / k), 1, 200, endpoint=False):
            x = eps**2 * k
            proved = min(2 / x, (12 + 48 / k) / x**2, gaussian_tail(eps, k))
            assert proved <= gaussian_failure(eps, k)


def test_the_gaussian_lemma_is_false_for_small_eps():
    """k = 1 row cannot hold two equal directions: the error is at least half the trace, in every draw."""
    statistics = Statistics(torch.eye(2))
    errors, _ = draw_errors(statistics, make_sketch("gaussian", k=1, center=False), 200, torch.Generator())
    assert float(errors.min()) >= 0.5 - 1e-6
    assert gaussian_failure(0.4, 1) < 0.99


@pytest.mark.parametrize("name", ["gaussian", "selection"])
@pytest.mark.parametrize("h", [features(40, 1), torch.linalg.qr(features(40, 8)).Q], ids=["rank-one", "flat"])
def test_what_is_proved_holds_by_drawing(name, h):
    statistics, draws = Statistics(h), 300
    for k in (4, 32):
        guarantee = Guarantee(statistics, make_sketch(name, k=k, center=False))
        errors, _ = draw_errors(statistics, guarantee.sketch, draws, torch.Generator().manual_seed(5))
        for eps in (0.05, 0.1, 0.2, 0.4, 0.8):
            failures = int((errors > eps + 1e-6).sum())
            assert stats.binom.sf(failures - 1, draws, guarantee.proved(eps)) > 1e-6


@given(eps=st.floats(0.01, 2), k=st.integers(1, 10_000), r=st.floats(1, 500), rho=st.floats(0, 1))
def test_tails_are_probabilities_that_fall(eps, k, r, rho):
    for tail in (
        gaussian_tail,
        lambda e, rows: gaussian_spectral_tail(e, rows, r),
        lambda e, rows: selection_tail(e, rows, rho),
        lambda e, rows: selection_spectral_tail(e, rows, r, 20),
    ):
        here = tail(eps, k)
        assert 0 <= here <= 1
        assert tail(eps, k + 1) <= here * (1 + 1e-12)
        assert tail(eps * 1.1, k) <= here * (1 + 1e-12)


def test_selections_tails_are_the_formulas():
    assert selection_tail(0.5, 64) == pytest.approx(math.exp(-9))
    assert selection_tail(0.5, 64, concentration=0.75) == pytest.approx(math.exp(-(3.5**2)))
    assert selection_tail(0.1, 64) == 1
    assert selection_spectral_tail(0.3, 100, 5.0, 8) == pytest.approx(16 * math.exp(-4.5 / 0.3))


@given(eps=st.floats(0.01, 1), k=st.integers(1, 10_000))
def test_selections_lemma_follows_from_its_tail(eps, k):
    assert selection_tail(eps, k) <= selection_failure(eps, k)


@given(k=st.integers(1, 5000), r=st.floats(1, 200), t=st.floats(0.1, 8))
def test_gaussian_spectral_tail_inverts_its_eps(k, r, t):
    eta = (1 + (1 + t) / math.sqrt(r)) / math.sqrt(k)
    stated = 2 * math.exp(-(t**2) / 2)
    assert gaussian_spectral_tail(2 * eta / math.sqrt(r) + eta**2, k, r) == pytest.approx(min(1, stated), rel=1e-5)


# --- for one sketch of one H ------------------------------------------------------------------------------------


@given(name=st.sampled_from(["gaussian", "rademacher", "countsketch", "selection", "svd"]), k=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_the_smallest_proved_eps(name, k):
    guarantee = Guarantee(Statistics(features(10, 4)), make_sketch(name, k=k, center=False))
    eps = guarantee.proved_eps(0.05)
    if eps > 1e-9:
        assert guarantee.proved(eps * (1 + 1e-9)) <= 0.05
        assert guarantee.proved(eps * (1 - 1e-6)) > 0.05
    stated = guarantee.stated_eps(0.05)
    if name in ("rademacher", "countsketch"):
        assert stated is guarantee.stated(0.1) is None
    elif stated is not None and stated > 0:
        assert guarantee.stated(stated * (1 + 1e-9)) <= 0.05 * (1 + 1e-6)


def test_what_a_guarantee_says_of_printed_selection():
    guarantee = Guarantee(Statistics(H), make_sketch("selection", k=4, scaling="printed", center=False))
    assert guarantee.stated(0.3) is guarantee.stated_eps(0.05) is None
    assert guarantee.proved(10.0) == pytest.approx(guarantee.moment / 100)


def test_statistics_of_known_matrices():
    one = Statistics(torch.outer(torch.tensor([3.0, 0.0, 0.0]), torch.tensor([1.0, 2.0])))
    assert (one.stable_rank, one.concentration, one.dominance) == pytest.approx((1, 1, 1))
    flat = Statistics(5 * torch.eye(4))
    assert (flat.stable_rank, flat.concentration, flat.dominance) == pytest.approx((4, 0.25, 0.25))
    assert flat.largest == pytest.approx(float(relative_covariance_error(torch.eye(4), torch.zeros(1, 4))))
    with pytest.raises(InputError, match="H is zero"):
        Statistics(torch.zeros(3, 2))


def test_errors_are_those_of_single_draws(monkeypatch):
    """Batches and Lanczos' iteration change nothing."""
    h = features(20, 6).float()
    sketch = make_sketch("gaussian", k=5, center=False)
    generator = torch.Generator().manual_seed(9)
    one_by_one = [float(relative_covariance_error(h, sketch.draw(h, generator).apply(h))) for _ in range(5)]
    for batch, wide in ((2**22, 512), (72, 512), (2**22, 2)):
        monkeypatch.setattr("costa.augment.bounds.BATCH", batch)
        monkeypatch.setattr("costa.augment.bounds.WIDE", wide)
        errors, _ = draw_errors(Statistics(h), sketch, 5, torch.Generator().manual_seed(9))
        assert errors.tolist() == pytest.approx(one_by_one, rel=1e-5)


def test_lanczos_iteration_on_rows_that_sum_to_one(monkeypatch):
    h = features(20, 6).abs()
    h = h / h.sum(1, keepdim=True)
    h = h - h.mean(0)
    found = []
    for wide in (512, 2):
        monkeypatch.setattr("costa.augment.bounds.WIDE", wide)
        sketch = make_sketch("gaussian", k=5, center=False)
        found.append(draw_errors(Statistics(h), sketch, 5, torch.Generator().manual_seed(9))[0].tolist())
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_a_sketch_that_centres_is_refused():
    with pytest.raises(InputError, match="give center=False"):
        draw_errors(Statistics(H), make_sketch("gaussian", k=2), 1, torch.Generator())
