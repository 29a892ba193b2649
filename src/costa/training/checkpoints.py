"""Checkpoints of a training: the state of one seed and what its watch remembers, as safetensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from costa.errors import InputError
from costa.methods.base import GradientMethod
from costa.training.state import load_state, state_of
from costa.training.watch import Watch
from costa.writing import replacing

CHECKPOINT = "checkpoint.safetensors"
WATCH = "watch."
"""What the names of the watch's tensors start with."""


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


def save_checkpoint(
    folder: Path,
    method: GradientMethod,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    watch: Watch | None = None,
) -> None:
    """Write a checkpoint into a RUN folder, replacing the previous one."""
    from safetensors.torch import save_file

    tensors, texts = state_of(method, optimizer), {"progress": json.dumps(asdict(progress))}
    if watch is not None:
        values, fine = watch.memory()
        tensors |= {WATCH + key: value for key, value in fine.items()}
        texts["watch"] = json.dumps(values)
    with replacing(folder / CHECKPOINT) as temporary:
        save_file(tensors, temporary, texts)


def read_progress(folder: Path) -> int | None:
    """The number of epochs in a folder's checkpoint; None if there is no checkpoint, or it cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / CHECKPOINT, framework="pt") as file:
            return int(json.loads(file.metadata()["progress"])["epochs"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None


def load_checkpoints(
    folders: Sequence[Path],
    methods: Sequence[GradientMethod],
    optimizers: Sequence[torch.optim.Optimizer],
    watches: Sequence[Watch | None],
) -> list[Progress]:
    """Load each folder's checkpoint into its method, optimiser and watch; all must be from the same step."""
    progress = [load_checkpoint(*each) for each in zip(folders, methods, optimizers, watches, strict=True)]
    if len({(each.epochs, len(each.losses)) for each in progress}) > 1:
        raise InputError(f"the runs in {folders[0].parent} were stopped at different epochs; resume them one by one.")
    return progress


def load_checkpoint(
    folder: Path, method: GradientMethod, optimizer: torch.optim.Optimizer, watch: Watch | None = None
) -> Progress:
    """Load a folder's checkpoint into a method with its generator, its optimiser and its watch."""
    from safetensors import SafetensorError, safe_open

    path = folder / CHECKPOINT
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
            progress, watched = (json.loads(file.metadata().get(key, "null")) for key in ("progress", "watch"))
        load_state({key: value for key, value in tensors.items() if not key.startswith(WATCH)}, method, optimizer)
        if watch is not None and watched is not None:
            fine = {key.removeprefix(WATCH): value for key, value in tensors.items() if key.startswith(WATCH)}
            watch.recall(watched, fine, optimizer)
        return Progress(progress["epochs"], progress["seconds"], tuple(progress.get("losses", ())))
    except (SafetensorError, KeyError, RuntimeError, ValueError, TypeError):
        raise InputError(
            f"{path} is not a checkpoint of this method, graph and device; train again into another folder."
        ) from None
