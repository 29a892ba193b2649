"""How long a training will take: one step, timed on a copy that is thrown away."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch_geometric.data import Data

from costa.methods.base import GradientMethod, Method
from costa.training.loop import build, prepare
from costa.training.steps import Steps


def expected_seconds(method: type[Method], settings: Any, graph: Data, device: torch.device) -> float:
    """Seconds that all epochs of one seed of a method with a loss take; the first step warms up, the second counts.

    On CUDA, where epochs are captured, training is faster than this.
    """
    built = build(method, settings, graph, 0, device)
    assert isinstance(built, GradientMethod)
    prepare([built], graph)
    steps = Steps([built], graph, settings.train)
    steps.run(1)
    began = time.perf_counter()
    steps.run(1)
    return (time.perf_counter() - began) * steps.per_epoch * float(settings.train.epochs)
