"""The one loop: epochs, progress, log, checkpoints, resume.

On CUDA an epoch is captured once as a graph of kernels and replayed, and losses are fetched a few times a second: a
small graph's epoch is bound by the launching of kernels, not by their work. Several initialisations of one method can
train as one program (:func:`stacked`): each draws and computes what it would alone.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.augment.streams import as_list
from costa.errors import InputError
from costa.methods.base import GradientMethod, Method, stack, state_of
from costa.nn import kernels
from costa.settings import Train
from costa.writing import replacing

CHECKPOINT = "checkpoint.safetensors"
LOG = "log.csv"
CHECKPOINT_EVERY_SECONDS = 30.0
FETCH_EVERY_SECONDS = 0.25
"""How long captured epochs run before anybody looks: soon enough for a Ctrl-C, seldom enough to cost nothing."""
WARM_UP = 3
"""Epochs that run as they are before one is captured: libraries choose their kernels and set up in the first ones."""
MOST_AT_ONCE = 4096

Report = Callable[[int, float], None]
"""Called with the number of epochs done and the last loss, after each epoch or, on CUDA, a few times a second."""


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


def stacked(
    method: type[Method], settings: Any, graph: Data, seeds: Sequence[int], device: torch.device
) -> GradientMethod | None:
    """The method with the weights of all ``seeds`` in one, or None where it cannot be stacked."""
    built = [build(method, settings, graph, seed, device) for seed in seeds]
    if not isinstance(built[0], GradientMethod) or not built[0].stackable:
        return None
    shell = method.build(settings, graph.num_features, torch.Generator()).to(device)
    one = stack(shell, built)
    assert isinstance(one, GradientMethod)
    return one


class Steps:
    """Epochs of a method: loss, gradient, Adam's step.

    On CUDA, where the method allows it, they are captured and replayed, which does what they would do one by one. Dense
    products are then TensorFloat-32, as precise as the float16 of the kernels beside them.

    Args:
        method: Prepared, on its device.
        graph: What it was prepared for.
        train: Learning rate, weight decay; ``kernels = "plain"`` captures nothing.
    """

    def __init__(self, method: GradientMethod, graph: Data, train: Train) -> None:
        self.method = method
        self._graph = graph
        self._parameters = list(method.parameters())
        self.device = self._parameters[0].device
        cuda = self.device.type == "cuda"
        self.captures = (
            kernels.usable(self._parameters[0])
            and method.capturable
            and train.kernels == "fast"
            and not torch.are_deterministic_algorithms_enabled()
        )
        self.optimizer = torch.optim.Adam(
            self._parameters, lr=train.lr, weight_decay=train.weight_decay, fused=True, capturable=cuda
        )
        self._warm_up = WARM_UP
        self._captured: torch.cuda.CUDAGraph | None = None
        self._side: torch.cuda.Stream | None = None
        self._losses = torch.zeros(MOST_AT_ONCE, max(1, method.stack_size), device=self.device)
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)
        method.train()

    def run(self, count: int) -> Tensor:
        """Train ``count`` epochs, at most MOST_AT_ONCE.

        Returns:
            The losses on the CPU, ``count`` × initialisations. Once one is not finite, that initialisation is lost; on
            a CPU, where each loss is looked at, a single one's weights are those before.
        """
        if not self.captures:
            for _ in range(count):
                self._epoch()
            return self._fetch(count)
        # What is captured must not run on the default stream, and what warms up should run where it will be captured.
        side = self._side = self._side or torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side), tensor_float():
            for _ in range(count):
                if self._captured is not None:
                    self._captured.replay()
                elif self._warm_up:
                    self._warm_up -= 1
                    self._epoch()
                else:
                    self._captured = self._capture(side)
                    self._captured.replay()
        torch.cuda.current_stream(self.device).wait_stream(side)
        return self._fetch(count)

    def _fetch(self, count: int) -> Tensor:
        losses = self._losses[:count].to("cpu", copy=True)  # on a CPU they would be overwritten by the next run
        self._place.zero_()
        return losses

    def _epoch(self) -> None:
        loss = self.method.loss(self._graph)
        self._losses.index_copy_(0, self._place, loss.detach().float().view(1, -1))
        self._place += 1
        if self.device.type == "cpu" and not bool(loss.isfinite().any()):
            return
        # Not backward(): what accumulates into .grad runs on the stream where the parameters were first used.
        gradients = torch.autograd.grad(loss.sum(), self._parameters, allow_unused=True)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            # a gradient through a transposed stack has its strides, which the fused step refuses
            parameter.grad = None if gradient is None else gradient.contiguous()
        self.optimizer.step()
        self.method.after_step()

    def _capture(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        captured = torch.cuda.CUDAGraph()
        for generator in as_list(self.method.generator):
            captured.register_generator_state(generator)
        with torch.cuda.graph(captured, stream=stream):
            self._epoch()
        return captured


@contextlib.contextmanager
def tensor_float() -> Iterator[None]:
    """Within it, float32 products on CUDA may round their factors to TensorFloat-32."""
    products: Any = torch.backends.cuda.matmul
    before = products.fp32_precision
    products.fp32_precision = "tf32"
    try:
        yield
    finally:
        products.fp32_precision = before


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
        report: Hears of the epochs.
        should_stop: Asked when the report is due; True ends the training as ``interrupted``.
    """
    if not isinstance(method, GradientMethod):
        began = time.perf_counter()
        method.prepare(graph)
        method.fit(graph)
        return Outcome("ok", 0, time.perf_counter() - began)
    assert train is not None
    folders = None if folder is None else [folder]
    (outcome,) = train_stacked(
        method, graph, train, folders=folders, resume=resume, report=report, should_stop=should_stop
    )
    return outcome


def train_stacked(
    method: GradientMethod,
    graph: Data,
    train: Train,
    *,
    folders: Sequence[Path] | None = None,
    resume: bool = False,
    report: Report | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """:func:`train` for all initialisations that ``method`` holds, each with its own folder and its own outcome.

    Seconds are those of all of them together.
    """
    began = time.perf_counter()
    method.prepare(graph)
    steps = Steps(method, graph, train)
    done, earlier = 0, 0.0
    if resume and folders is not None and all((folder / CHECKPOINT).exists() for folder in folders):
        if method.unresumable:
            raise InputError(f"{method.name} cannot be resumed: {method.unresumable}; train anew into another folder.")
        done, earlier = _load_checkpoints(folders, steps)
        if done > train.epochs:
            raise InputError(f"{done} epochs are done already, more than the {train.epochs} asked for; ask for more.")
    lost: dict[int, int] = {}
    interrupted = False

    def seconds() -> float:
        return earlier + time.perf_counter() - began

    with contextlib.ExitStack() as open_logs:
        logs = [open_logs.enter_context(_open_log(folder, done)) for folder in folders or []]
        saved, at_once = time.perf_counter(), 1
        while done < train.epochs and len(lost) < max(1, method.stack_size):
            count = min(at_once, train.epochs - done)
            before = seconds()
            losses = steps.run(count)
            per_epoch = (seconds() - before) / count
            for index in range(losses.shape[1]):
                if index in lost:
                    continue
                finite = losses[:, index].isfinite()
                good = count if finite.all() else int(finite.int().argmin())
                for row in range(good if index < len(logs) else 0):
                    logs[index](done + row + 1, float(losses[row, index]), before + (row + 1) * per_epoch)
                if good < count:
                    lost[index] = done + good
            done += count
            if report is not None:
                report(done, float(losses[-1].nanmean()))
            if done < train.epochs and should_stop():
                interrupted = True
                break
            if folders is not None and time.perf_counter() - saved > CHECKPOINT_EVERY_SECONDS:
                _save_checkpoints(folders, steps, done, seconds())
                saved = time.perf_counter()
            if steps.captures:
                at_once = min(MOST_AT_ONCE, max(1, int(FETCH_EVERY_SECONDS / max(per_epoch, 1e-6))), 2 * count + 1)
    if folders is not None and interrupted:
        _save_checkpoints(folders, steps, done, seconds())
    ended = "interrupted" if interrupted else "ok"
    return [
        Outcome("diverged", lost[index], seconds()) if index in lost else Outcome(ended, done, seconds())
        for index in range(max(1, method.stack_size))
    ]


@contextlib.contextmanager
def stop_on_interrupt(then: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C asks the training to stop after the epoch it is in; a second one stops at once.

    An interrupt in the middle of an optimiser's step would leave weights that belong to no epoch. ``then`` is called
    when it comes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = threading.Event()
    default = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: object) -> None:
        asked.set()
        then()
        signal.signal(signal.SIGINT, default)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, default)


@contextlib.contextmanager
def _open_log(folder: Path, done: int) -> Iterator[Callable[[int, float, float], None]]:
    """``log.csv``, with the rows of the first ``done`` epochs kept: a checkpoint may be older than the last row."""
    path = folder / LOG
    kept = path.read_text().splitlines()[1 : done + 1] if done and path.exists() else []
    with path.open("w", newline="", buffering=1) as file:
        writer = csv.writer(file, lineterminator="\n")
        file.write("\n".join(["epoch,loss,seconds", *kept]) + "\n")
        yield lambda epoch, loss, seconds: writer.writerow([epoch, f"{loss:.6g}", f"{seconds:.3f}"])


def _save_checkpoints(folders: Sequence[Path], steps: Steps, done: int, seconds: float) -> None:
    """A checkpoint for each initialisation, in its own folder, as if it had been trained alone."""
    from safetensors.torch import save_file

    names = [name for name, _ in steps.method.named_parameters()]
    of_optimizer = steps.optimizer.state_dict()["state"]
    for index, folder in enumerate(folders):
        state = state_of(steps.method, index)
        tensors = {f"model.{key}": value for key, value in state.items()}
        for number, name in enumerate(names):
            for key, value in of_optimizer.get(number, {}).items():
                own = steps.method.stack_size and value.dim() > state[name].dim()
                tensors[f"optimizer.{number}.{key}"] = value[index] if own else value
        tensors["generator"] = as_list(steps.method.generator)[index].get_state()
        with replacing(folder / CHECKPOINT) as beside:
            save_file(
                {key: value.contiguous() for key, value in tensors.items()},
                beside,
                {"progress": json.dumps({"epochs": done, "seconds": seconds})},
            )


def read_progress(folder: Path) -> int | None:
    """The number of epochs in a folder's checkpoint; None where there is none, or it cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / CHECKPOINT, framework="pt") as file:
            return int(json.loads(file.metadata()["progress"])["epochs"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None


def _load_checkpoints(folders: Sequence[Path], steps: Steps) -> tuple[int, float]:
    """Set the method, the optimiser and the generators to the folders' checkpoints, which are of the same epoch."""
    from safetensors import SafetensorError, safe_open

    method = steps.method
    found: list[tuple[dict[str, Tensor], dict[str, Any]]] = []
    for folder in folders:
        path = folder / CHECKPOINT
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
                progress = json.loads(file.metadata()["progress"])
            as_list(method.generator)[len(found)].set_state(tensors.pop("generator"))
        except (SafetensorError, KeyError, RuntimeError, ValueError, TypeError):
            raise _no_checkpoint(path) from None
        found.append((tensors, progress))
    progress = found[0][1]
    if any(other["epochs"] != progress["epochs"] for _, other in found):
        raise InputError(f"the runs in {folders[0].parent} were stopped at different epochs; resume them one by one.")
    own = {f"model.{name}": tensor.dim() for name, tensor in method.state_dict().items()}
    try:
        merged = {
            key: torch.stack([tensors[key] for tensors, _ in found])
            if method.stack_size and (own.get(key, 0) > value.dim() or key.startswith("optimizer."))
            else value
            for key, value in found[0][0].items()
        }
        method.load_state_dict({key[len("model.") :]: v for key, v in merged.items() if key.startswith("model.")})
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in merged.items():
            if key.startswith("optimizer."):
                _, number, name = key.split(".", 2)
                # Adam counts the steps of a parameter once, whatever it holds
                state.setdefault(int(number), {})[name] = value.flatten()[0] if name == "step" else value
        steps.optimizer.load_state_dict(steps.optimizer.state_dict() | {"state": state})
        return progress["epochs"], progress["seconds"]
    except (KeyError, RuntimeError, ValueError):
        raise _no_checkpoint(folders[0] / CHECKPOINT) from None


def _no_checkpoint(path: Path) -> InputError:
    return InputError(f"{path} is not a checkpoint of this method, graph and device; train anew into another folder.")
