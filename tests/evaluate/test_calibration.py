"""Temperatures and calibration errors against logits whose probabilities are known."""

import pytest
import torch

from costa.evaluate.calibration import calibration_error, error_by_chance, fit_temperature, probabilities


def drawn(n, classes, temperature, seed=0):
    """Logits, and classes drawn with the probabilities softmax(logits / temperature)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, classes, generator=generator)
    return logits, torch.multinomial((logits / temperature).softmax(1), 1, generator=generator).squeeze(1)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_temperature_of_the_truth_is_found_and_makes_probabilities_exact(temperature):
    logits, truth = drawn(20_000, 4, temperature)
    found = fit_temperature(logits, truth)
    assert found == pytest.approx(temperature, rel=0.05)
    sure, predicted = probabilities(logits, found).max(1)
    assert calibration_error(sure, predicted == truth) < 0.015
    if temperature != 1:
        sure = probabilities(logits, 1.0).amax(1)
        assert calibration_error(sure, predicted == truth) > 0.05


def test_a_few_nodes_that_are_all_right_do_not_make_every_probability_one():
    truth = torch.arange(3).repeat(4)
    sure = probabilities(torch.eye(3)[truth], fit_temperature(torch.eye(3)[truth], truth)).amax(1)
    assert float(sure.max()) == pytest.approx(1 - 1 / 14, abs=1e-4)


def test_a_class_that_was_not_trained_has_no_probability_and_does_not_spoil_the_temperature():
    logits, truth = drawn(5000, 3, 2.0)
    wider = torch.cat([logits, torch.full((5000, 1), -torch.inf)], 1)
    unseen = torch.cat([truth[:-50], torch.full((50,), 3)])
    found = fit_temperature(wider, unseen)
    assert found == pytest.approx(fit_temperature(logits[:-50], truth[:-50]), rel=1e-3)
    assert float(probabilities(wider, found)[:, 3].max()) == 0


def test_where_nothing_can_be_fitted_the_temperature_is_one():
    alone = torch.tensor([[0.0, -torch.inf]])
    assert fit_temperature(alone, torch.tensor([0])) == fit_temperature(alone, torch.tensor([1])) == 1.0


def test_the_error_is_the_mean_distance_of_the_ranges():
    sure = torch.tensor([0.95, 0.95, 0.65, 1.0])
    assert calibration_error(sure, torch.tensor([True, True, False, False])) == pytest.approx((0.9 + 0.65) / 4)


def test_what_chance_makes_falls_with_the_number_of_nodes():
    sure = torch.rand(10_000, generator=torch.Generator().manual_seed(1)) / 2 + 0.5
    few, many = error_by_chance(sure[:100]), error_by_chance(sure)
    assert few > 5 * many > 0
    assert error_by_chance(torch.ones(50)) == 0
