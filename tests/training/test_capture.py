"""Which epochs are captured; that captured ones are the epochs is tested on a GPU."""

from types import SimpleNamespace

import pytest
import torch

from costa import settings, training
from costa.nn import kernels
from costa.training import capture

FAST = settings.Train()


@pytest.fixture
def kind_of_steps(graph, monkeypatch):
    """kind_of_steps(method, train, cuda) → "captured" or "as they are", without a GPU to make any."""
    monkeypatch.setattr(capture, "CapturedSteps", lambda *arguments: "captured")
    monkeypatch.setattr(capture, "Steps", lambda *arguments: "as they are")

    def kind(method, train=FAST, cuda=True):
        monkeypatch.setattr(method, "parameters", lambda: iter([SimpleNamespace(is_cuda=cuda)]))
        return training.make_steps([method], graph, train)

    return kind


@pytest.mark.parametrize("usable", [False, True])
def test_nothing_is_captured_without_a_gpu(graph, build, monkeypatch, usable):
    monkeypatch.setattr(kernels, "usable", lambda rows: usable)  # in Triton's interpreter they are
    steps = training.make_steps([build()], graph, FAST)
    assert type(steps) is training.Steps
    assert not steps.captures


def test_with_a_gpu_epochs_are_captured(build, kind_of_steps, monkeypatch):
    monkeypatch.setattr(kernels, "usable", lambda rows: True)
    assert kind_of_steps(build()) == "captured"
    assert kind_of_steps(build(), cuda=False) == "as they are"
    assert kind_of_steps(build(), settings.Train(parts=8, group=4)) == "as they are"
    assert kind_of_steps(build(), settings.Train(parts=8)) == "captured"  # all in one group


def test_what_speaks_against_capturing(build, kind_of_steps, monkeypatch):
    monkeypatch.setattr(kernels, "usable", lambda rows: True)
    waits_for_the_gpu = build(**{"sketch.kind": "svd", "sketch.k": 4})
    assert kind_of_steps(waits_for_the_gpu) == "as they are"
    assert kind_of_steps(build(), settings.Train(kernels="plain")) == "as they are"
    torch.use_deterministic_algorithms(True)
    try:
        assert kind_of_steps(build()) == "as they are"
    finally:
        torch.use_deterministic_algorithms(False)
    monkeypatch.setattr(kernels, "usable", lambda rows: False)  # too small a card, or no Triton
    assert kind_of_steps(build()) == "as they are"
