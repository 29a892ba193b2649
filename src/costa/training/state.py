"""All that a training goes on from: weights, optimiser and generator of one seed, as named tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from costa.methods.base import GradientMethod


def state_of(method: GradientMethod, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """A copy of the state."""
    tensors = {f"model.{key}": value for key, value in method.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in state.items()}
    copies = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
    return copies | {"generator": method.generator.get_state()}


def load_state(tensors: Mapping[str, Tensor], method: GradientMethod, optimizer: torch.optim.Optimizer) -> None:
    """Load a copy of such a state."""
    method.generator.set_state(tensors["generator"])
    weights, state = {}, dict[int, dict[str, Any]]()
    for key, value in tensors.items():
        part, _, rest = key.partition(".")
        if part == "model":
            weights[rest] = value
        elif part == "optimizer":
            number, _, name = rest.partition(".")
            # an optimiser keeps what it is given, and steps change it in place
            state.setdefault(int(number), {})[name] = value.clone()
    method.load_state_dict(weights)
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
