"""Whether a loss fell, against its own noise."""

import random

import pytest

from costa import settings, training
from costa.training.falling import ENOUGH, loss_fell


def noise(count, scale=1.0):
    rng = random.Random(0)
    return [rng.gauss(0, scale) for _ in range(count)]


@pytest.mark.parametrize("epochs", [ENOUGH, 30, 300])
def test_noise_alone_is_flat(epochs):
    assert loss_fell([5 + each for each in noise(epochs)]) is False


@pytest.mark.parametrize("epochs", [ENOUGH, 30, 300])
def test_a_loss_that_rises_did_not_fall(epochs):
    assert loss_fell([5 + 0.1 * epoch for epoch in range(epochs)]) is False
    assert loss_fell([5.0] * epochs) is False


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([5 - 0.01 * epoch + each for epoch, each in enumerate(noise(300, 0.5))], id="slowly, with noise"),
        pytest.param([8.0, *(5 + each for each in noise(299, 0.1))], id="at once, then no more"),
        pytest.param([5 * 0.9**epoch for epoch in range(ENOUGH)], id="in few epochs"),
    ],
)
def test_a_loss_that_falls_is_seen_to(losses):
    assert loss_fell(losses) is True


def test_few_epochs_say_nothing():
    assert loss_fell([]) is None
    assert loss_fell([5.0] * (ENOUGH - 1)) is None


def test_an_outcome_has_the_losses_of_the_log_also_after_an_interruption(build, graph, after, read_log, tmp_path):
    train = settings.Train(epochs=9)
    first = training.train(build(), graph, train, folder=tmp_path, should_stop=after(4))
    assert (first.status, len(first.losses)) == ("interrupted", 4)
    outcome = training.train(build(), graph, train, folder=tmp_path, resume=True)
    assert outcome.losses == pytest.approx(read_log(tmp_path).losses, rel=1e-5)
    assert len(outcome.losses) == 9
