import numpy as np
import pytest
import torch
from scipy.special import zeta

from reproduction.bias import power_law


def sample(exponent, start, size, seed=0):
    """Degrees from ``start`` on that follow the law, and as many below that do not."""
    k = np.arange(start, 10**5)
    p = k**-exponent / zeta(exponent, start)
    rng = np.random.default_rng(seed)
    below = rng.integers(1, start, size) if start > 1 else k[:0]
    return np.concatenate([rng.choice(k, size, p=p / p.sum()), below])


@pytest.mark.parametrize("exponent", [2.3, 3.0])
def test_it_finds_the_exponent_and_where_the_tail_begins(exponent):
    fit = power_law.fit_power_law(sample(exponent, 6, 3000))
    assert fit.exponent == pytest.approx(exponent, abs=0.1)
    assert fit.start == 6
    assert fit.tail == 3000


def test_the_exponent_is_the_likelihood_s_maximum():
    drawn = sample(2.5, 1, 2000)
    fit = power_law._fit_from(*np.unique(drawn, return_counts=True), 2000)
    grid = np.arange(2.0, 3.0, 0.001)
    likelihood = -grid * np.log(drawn).sum() - 2000 * np.log(zeta(grid, 1))
    assert fit.exponent == pytest.approx(grid[likelihood.argmax()], abs=0.002)


def test_its_distance_is_the_largest_gap_between_the_two_distributions():
    drawn = sample(2.5, 1, 400)
    fit = power_law._fit_from(*np.unique(drawn, return_counts=True), 400)
    k = np.arange(1, drawn.max() + 2)
    gaps = [abs((drawn >= at).mean() - zeta(fit.exponent, at) / zeta(fit.exponent, 1)) for at in k]
    assert fit.distance == pytest.approx(max(gaps))


def test_a_power_law_is_plausible_and_a_poisson_law_is_not():
    for drawn, plausible in (
        (sample(2.5, 3, 800, seed=2), True),
        (np.random.default_rng(0).poisson(5, 2000), False),
    ):
        p = power_law.plausibility(drawn, power_law.fit_power_law(drawn), samples=20, seed=0)
        assert (p >= 0.1) == plausible


def test_a_graph_whose_degrees_are_all_alike_has_none():
    assert power_law.fit_power_law(torch.full((100,), 4)) is None
    assert power_law.fit_power_law(torch.arange(1, 20)) is None
