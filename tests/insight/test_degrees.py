import numpy as np
import pytest
import torch
from scipy.special import zeta
from scipy.stats import spearmanr

from costa.insight import degrees


def test_a_degree_counts_neighbours_but_not_oneself():
    edges = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
    assert degrees.degrees(edges, 4).tolist() == [1, 2, 1, 0]


def test_every_node_is_in_one_bin():
    degree = torch.tensor([0, 1, 1, 4, 5, 6, 99, 100, 5000])
    found = degrees.bins(degree)
    assert [name for name, _ in found] == ["0", "1", "4", "5–6", "50–99", "100–199", "≥ 1,000"]
    assert torch.equal(torch.stack([inside for _, inside in found]).sum(0), torch.ones(9, dtype=torch.int64))


def test_quartiles_of_a_bin_leave_out_what_is_no_number():
    degree = torch.tensor([1, 1, 1, 1, 1, 2])
    values = torch.tensor([0.0, 1.0, 2.0, 3.0, float("nan"), float("nan")])
    first, second = degrees.by_degree(degree, values)
    assert (first["degree"], first["nodes"], first["quartiles"]) == ("1", 5, [0.75, 1.5, 2.25])
    assert np.isnan(second["quartiles"]).all()


def test_rank_correlation_is_spearman_s():
    generator = torch.Generator().manual_seed(0)
    degree = torch.randint(1, 6, (50,), generator=generator)
    values = torch.rand(50, generator=generator, dtype=torch.float64) - 0.1 * degree
    assert degrees.rank_correlation(degree, values) == pytest.approx(spearmanr(degree, values).statistic)
    values[3] = float("nan")
    keep = torch.arange(50) != 3
    expected = spearmanr(degree[keep], values[keep]).statistic
    assert degrees.rank_correlation(degree, values) == pytest.approx(expected)
    assert np.isnan(degrees.rank_correlation(torch.ones(50), values))


class TestPowerLaw:
    def sample(self, exponent, start, size, seed=0):
        """Degrees from ``start`` on that follow the law, and as many below that do not."""
        k = np.arange(start, 10**5)
        p = k**-exponent / zeta(exponent, start)
        rng = np.random.default_rng(seed)
        below = rng.integers(1, start, size) if start > 1 else k[:0]
        return np.concatenate([rng.choice(k, size, p=p / p.sum()), below])

    @pytest.mark.parametrize("exponent", [2.3, 3.0])
    def test_it_finds_the_exponent_and_where_the_tail_begins(self, exponent):
        fit = degrees.fit_power_law(self.sample(exponent, 6, 3000))
        assert fit.exponent == pytest.approx(exponent, abs=0.1)
        assert fit.start == 6
        assert fit.tail == 3000

    def test_the_exponent_is_the_likelihood_s_maximum(self):
        drawn = self.sample(2.5, 1, 2000)
        fit = degrees._fit_from(*np.unique(drawn, return_counts=True), 2000)
        grid = np.arange(2.0, 3.0, 0.001)
        likelihood = -grid * np.log(drawn).sum() - 2000 * np.log(zeta(grid, 1))
        assert fit.exponent == pytest.approx(grid[likelihood.argmax()], abs=0.002)

    def test_its_distance_is_the_largest_gap_between_the_two_distributions(self):
        drawn = self.sample(2.5, 1, 400)
        fit = degrees._fit_from(*np.unique(drawn, return_counts=True), 400)
        k = np.arange(1, drawn.max() + 2)
        gaps = [abs((drawn >= at).mean() - zeta(fit.exponent, at) / zeta(fit.exponent, 1)) for at in k]
        assert fit.distance == pytest.approx(max(gaps))

    def test_a_power_law_is_plausible_and_a_poisson_law_is_not(self):
        for drawn, plausible in (
            (self.sample(2.5, 3, 800, seed=2), True),
            (np.random.default_rng(0).poisson(5, 2000), False),
        ):
            p = degrees.plausibility(drawn, degrees.fit_power_law(drawn), samples=20, seed=0)
            assert (p >= 0.1) == plausible

    def test_a_graph_whose_degrees_are_all_alike_has_none(self):
        assert degrees.fit_power_law(torch.full((100,), 4)) is None
        assert degrees.fit_power_law(torch.arange(1, 20)) is None


def test_shares():
    assert degrees.share_below(torch.tensor([1, 2, 3, 4]), (3, 4)) == [0.5, 0.75]
