"""How long a training will take: a few steps, timed on a copy that is thrown away."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch_geometric.data import Data

from costa.methods.base import GradientMethod, Method
from costa.settings import Train
from costa.training.loop import build, prepare
from costa.training.steps import Steps


def expected_seconds(method: type[Method], settings: Any, graph: Data, device: torch.device) -> float:
    """Seconds that all epochs of one seed of a method with a loss take; the first step warms up, the second counts.

    On CUDA, where epochs are captured, training is faster than this.
    """
    built = build(method, settings, graph, 0, device)
    assert isinstance(built, GradientMethod)
    prepare([built], graph)
    seconds, per_epoch = step_seconds(built, graph, settings.train)
    return seconds * per_epoch * float(settings.train.epochs)


def step_seconds(built: GradientMethod, graph: Data, train: Train, count: int = 1) -> tuple[float, int]:
    """Seconds of a step of a prepared method, after one that warms up, and the number of steps of an epoch."""
    steps = Steps([built], graph, train)
    steps.run(1)
    began = time.perf_counter()
    steps.run(count)
    return (time.perf_counter() - began) / count, steps.per_epoch
