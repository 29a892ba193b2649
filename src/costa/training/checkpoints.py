"""Checkpoints of a training: weights, optimiser and generator of one seed, as safetensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from costa.errors import InputError
from costa.methods.base import GradientMethod
from costa.writing import replacing

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Progress:
    """How far training has come.

    Attributes:
        epochs: Whole epochs done.
        seconds: Seconds of training.
        losses: Losses of the batches of the next epoch that are done.
    """

    epochs: int
    seconds: float
    losses: tuple[float, ...] = ()


def save_checkpoint(folder: Path, method: GradientMethod, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Write a checkpoint into a RUN folder, replacing the previous one."""
    from safetensors.torch import save_file

    tensors = {f"model.{key}": value for key, value in method.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in state.items()}
    tensors["generator"] = method.generator.get_state()
    with replacing(folder / CHECKPOINT) as temporary:
        save_file(
            {key: value.contiguous() for key, value in tensors.items()},
            temporary,
            {"progress": json.dumps(asdict(progress))},
        )


def read_progress(folder: Path) -> int | None:
    """The number of epochs in a folder's checkpoint; None if there is no checkpoint, or it cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / CHECKPOINT, framework="pt") as file:
            return int(json.loads(file.metadata()["progress"])["epochs"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None


def load_checkpoints(
    folders: Sequence[Path], methods: Sequence[GradientMethod], optimizers: Sequence[torch.optim.Optimizer]
) -> list[Progress]:
    """Load each folder's checkpoint into its method, optimiser and generator; all must be from the same step."""
    progress = [load_checkpoint(*each) for each in zip(folders, methods, optimizers, strict=True)]
    if len({(each.epochs, len(each.losses)) for each in progress}) > 1:
        raise InputError(f"the runs in {folders[0].parent} were stopped at different epochs; resume them one by one.")
    return progress


def load_checkpoint(folder: Path, method: GradientMethod, optimizer: torch.optim.Optimizer) -> Progress:
    """Load a folder's checkpoint into a method, its optimiser and its generator."""
    from safetensors import SafetensorError, safe_open

    path = folder / CHECKPOINT
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
            progress = json.loads(file.metadata()["progress"])
        method.generator.set_state(tensors.pop("generator"))
        weights, state = {}, dict[int, dict[str, Any]]()
        for key, value in tensors.items():
            part, _, rest = key.partition(".")
            if part == "model":
                weights[rest] = value
            else:
                number, _, name = rest.partition(".")
                state.setdefault(int(number), {})[name] = value
        method.load_state_dict(weights)
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        return Progress(progress["epochs"], progress["seconds"], tuple(progress.get("losses", ())))
    except (SafetensorError, KeyError, RuntimeError, ValueError, TypeError):
        raise InputError(
            f"{path} is not a checkpoint of this method, graph and device; train again into another folder."
        ) from None
