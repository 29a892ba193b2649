"""The one loop: epochs, progress, log, checkpoints, resume."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.methods.base import GradientMethod, Method
from costa.settings import Train

CHECKPOINT = "checkpoint.safetensors"
LOG = "log.csv"
CHECKPOINT_EVERY_SECONDS = 30.0

Report = Callable[[int, float], None]
"""Called after each epoch with the number of epochs done and the loss."""


@dataclass(frozen=True)
class Outcome:
    """How a training ended. ``status`` is ``ok``, ``interrupted`` or ``diverged``."""

    status: str
    epochs: int
    seconds: float


def resolve_device(name: str) -> torch.device:
    """``auto`` is CUDA where there is one.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {name!r}; there are auto, cpu and cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("the device cuda was asked for, but PyTorch sees no CUDA device here; use cpu or auto.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def make_deterministic() -> None:
    """Only deterministic kernels from here on, in the whole process; on CUDA some are slower."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)


def build(method: type[Method], settings: Any, graph: Data, seed: int, device: torch.device) -> Method:
    """The method with the weights of ``seed``, on ``device``, ready to train.

    The weights are drawn on the CPU, so that a seed means the same start everywhere. What is random later is drawn on
    the device, from a seed that continues the same stream: the first P owes nothing to what the weights were made of.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed {seed} is out of range: 0 to 2^63 − 1.")
    start = torch.Generator().manual_seed(seed)
    built = method.build(settings, graph.num_features, start).to(device)
    stream = int(torch.randint(2**63 - 1, (), generator=start))
    built.generator = torch.Generator(device).manual_seed(stream)
    return built


def train(
    method: Method,
    graph: Data,
    train: Train | None = None,
    *,
    folder: Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train ``method`` on ``graph``: Adam, the whole graph each epoch.

    Args:
        method: Built, on its device, with its generator set (see :func:`build`).
        graph: Checked, on the CPU.
        train: Epochs, learning rate, weight decay. A method without a loss has none and is fitted.
        folder: Where ``log.csv`` and checkpoints go; nothing is written if left out.
        resume: Go on from the checkpoint in ``folder``.
        report: Hears of every epoch.
        should_stop: Asked after every epoch; True ends the training as ``interrupted``.
    """
    began = time.perf_counter()
    method.prepare(graph)
    if not isinstance(method, GradientMethod):
        method.fit(graph)
        return Outcome("ok", 0, time.perf_counter() - began)

    assert train is not None
    optimizer = torch.optim.Adam(method.parameters(), lr=train.lr, weight_decay=train.weight_decay)
    done, earlier = 0, 0.0
    if resume and folder is not None and (folder / CHECKPOINT).exists():
        if not method.resumable:
            raise InputError("a fixed sketch that depends on H cannot be resumed; train anew into another folder.")
        done, earlier = _load_checkpoint(folder / CHECKPOINT, method, optimizer)
        if done > train.epochs:
            raise InputError(f"{done} epochs are done already, more than the {train.epochs} asked for; ask for more.")
    status = "ok"
    method.train()

    def seconds() -> float:
        return earlier + time.perf_counter() - began

    with _open_log(folder, done) as write_row:
        saved = time.perf_counter()
        while done < train.epochs:
            optimizer.zero_grad()
            loss = method.loss(graph)
            value = loss.item()
            if not math.isfinite(value):
                status = "diverged"
                break
            # a one-row sketch has a constant loss, which has no gradient to descend
            if loss.requires_grad:
                loss.backward()
                optimizer.step()
                method.after_step()
            done += 1
            write_row(done, value, seconds())
            if report is not None:
                report(done, value)
            if done < train.epochs and should_stop():
                status = "interrupted"
                break
            if folder is not None and time.perf_counter() - saved > CHECKPOINT_EVERY_SECONDS:
                _save_checkpoint(folder / CHECKPOINT, method, optimizer, done, seconds())
                saved = time.perf_counter()
    if folder is not None and status == "interrupted":
        _save_checkpoint(folder / CHECKPOINT, method, optimizer, done, seconds())
    return Outcome(status, done, seconds())


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C asks the training to stop after the epoch it is in; a second one stops at once.

    An interrupt in the middle of an optimiser's step would leave weights that belong to no epoch.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = threading.Event()
    default = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, default)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, default)


@contextlib.contextmanager
def _open_log(folder: Path | None, done: int) -> Iterator[Callable[[int, float, float], None]]:
    """``log.csv``, with the rows of the first ``done`` epochs kept: a checkpoint may be older than the last row."""
    if folder is None:
        yield lambda epoch, loss, seconds: None
        return
    path = folder / LOG
    kept = path.read_text().splitlines()[1 : done + 1] if done and path.exists() else []
    with path.open("w", newline="", buffering=1) as file:
        writer = csv.writer(file, lineterminator="\n")
        file.write("\n".join(["epoch,loss,seconds", *kept]) + "\n")
        yield lambda epoch, loss, seconds: writer.writerow([epoch, f"{loss:.6g}", f"{seconds:.3f}"])


def _save_checkpoint(path: Path, method: Method, optimizer: torch.optim.Optimizer, done: int, seconds: float) -> None:
    from safetensors.torch import save_file

    tensors = {f"model.{key}": value for key, value in method.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{key}": value for key, value in state.items()}
    tensors["generator"] = method.generator.get_state()
    # Written beside, then renamed: a crash in between leaves the older checkpoint whole.
    beside = path.with_suffix(".partial")
    save_file(
        {key: value.contiguous() for key, value in tensors.items()},
        beside,
        {"progress": json.dumps({"epochs": done, "seconds": seconds})},
    )
    os.replace(beside, path)


def _load_checkpoint(path: Path, method: Method, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
            progress = json.loads(file.metadata()["progress"])
        model = {key[len("model.") :]: value for key, value in tensors.items() if key.startswith("model.")}
        method.load_state_dict(model)
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".", 2)
                state.setdefault(int(index), {})[name] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        method.generator.set_state(tensors["generator"])
        return progress["epochs"], progress["seconds"]
    except (SafetensorError, KeyError, RuntimeError, ValueError):
        raise InputError(
            f"{path} is not a checkpoint of this method, graph and device; train anew into another folder."
        ) from None
