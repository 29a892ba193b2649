"""The one training loop: epochs, progress, log, checkpoints, resume, and a watch over the vectors."""

from __future__ import annotations

import contextlib
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.methods.base import GradientMethod, Method
from costa.methods.encoding import EncoderMethod
from costa.settings.groups import Train
from costa.training.capture import make_steps
from costa.training.checkpoints import CHECKPOINT, Progress, load_checkpoints, save_checkpoint
from costa.training.steps import MOST_AT_ONCE, Steps
from costa.training.watch import Watch, Watched, next_check

LOG = "log.csv"
WENT_BACK = "went back"
"""The status of a seed inside this module that the watch has sent back."""

CHECKPOINT_EVERY_SECONDS = 30.0

FETCH_EVERY_SECONDS = 0.25
"""Seconds between two checks of captured epochs: short enough for a Ctrl-C, long enough to cost nothing."""

REPORT_EVERY_SECONDS = 1.0
"""Seconds between two reports inside an epoch that lasts longer."""

Report = Callable[[float, float], None]
"""Called with the epochs done and the last loss: after each epoch, each second inside a long one or, on CUDA,
a few times a second."""


@dataclass(frozen=True)
class Outcome:
    """How training ended.

    ``status`` is ``ok``, ``interrupted`` or ``diverged``; ``watched`` is what the watch changed, None for nothing;
    ``losses`` are the mean losses of the epochs.
    """

    status: str
    epochs: int
    seconds: float
    watched: Watched | None = None
    losses: tuple[float, ...] = ()


def build(method: type[Method], settings: Any, graph: Data, seed: int, device: torch.device) -> Method:
    """The method with the weights of ``seed``, on ``device``, ready to train.

    The weights are drawn on the CPU, so that a seed gives the same start everywhere. Later random numbers are drawn on
    the device, from a seed that continues the same stream, so the first P is independent of the weights.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed {seed} is out of range: 0 to 2^63 − 1.")
    start = torch.Generator().manual_seed(seed)
    built = method.build(settings, graph.num_features, start).to(device)
    stream = int(torch.randint(2**63 - 1, (), generator=start))
    built.generator = torch.Generator(device).manual_seed(stream)
    return built


def prepare(methods: Sequence[GradientMethod], graph: Data) -> None:
    """Prepare one method with several seeds, which share the inputs of the first."""
    first, *others = methods
    first.prepare(graph)
    for other in others:
        other.share(first)
        other.prepare(graph)


def train_and_embed(
    method: type[Method],
    settings: Any,
    graph: Data,
    *,
    seed: int = 0,
    device: torch.device,
    report: Report | None = None,
) -> tuple[Method, Outcome, torch.Tensor]:
    """Build the method with the weights of ``seed``, train it, reporting the progress, and embed the graph.

    Returns:
        The trained method, how training ended, and the vectors, n × d.
    """
    built = build(method, settings, graph, seed, device)
    outcome = train(built, graph, getattr(settings, "train", None), report=report)
    return built, outcome, built.embed(graph)


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
    """Train ``method`` on ``graph``: Adam, each step on the whole graph, a batch of rows or a group of parts.

    Args:
        method: A method that :func:`build` made.
        graph: A checked graph, on the CPU.
        train: Epochs, learning rate, weight decay; None for a method without a loss, which is fitted.
        folder: Where ``log.csv`` and checkpoints go; None writes nothing.
        resume: Continue from the checkpoint in ``folder``.
        report: Called with the progress.
        should_stop: Called as often as ``report``; True ends training as ``interrupted``.
    """
    if not isinstance(method, GradientMethod):
        began = time.perf_counter()
        method.prepare(graph)
        method.fit(graph)
        return Outcome("ok", 0, time.perf_counter() - began)
    assert train is not None
    folders = None if folder is None else [folder]
    (outcome,) = train_together(
        [method], graph, train, folders=folders, resume=resume, report=report, should_stop=should_stop
    )
    return outcome


def train_together(
    methods: Sequence[GradientMethod],
    graph: Data,
    train: Train,
    *,
    folders: Sequence[Path] | None = None,
    resume: bool = False,
    report: Report | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """:func:`train` for one method with several seeds, each with its own folder and its own outcome.

    On CUDA the seeds run in parallel. Each outcome's seconds are those of all seeds together. Of several processes that
    train one method (:mod:`costa.training.distributed`) the first writes, all read the checkpoint, and all stop if one
    should.
    """
    began, ranks = time.perf_counter(), methods[0].ranks
    prepare(methods, graph)
    steps = make_steps(methods, graph, train)
    watches = [
        Watch(method, method.hidden, optimizer, graph) if isinstance(method, EncoderMethod) else None
        for method, optimizer in zip(methods, steps.optimizers, strict=True)
    ]
    start = [Progress(0, 0.0)] * len(methods)
    losses: list[list[float]] = [[] for _ in methods]
    there = folders is not None and all((folder / CHECKPOINT).exists() for folder in folders)
    if ranks.agree(resume and there) == (True,):
        assert folders is not None
        start = _resumed(steps, watches, folders, train)
        losses = [_read_losses(folder, progress.epochs) for folder, progress in zip(folders, start, strict=True)]
    folders = folders if ranks.first else None

    def seconds() -> float:
        return start[0].seconds + time.perf_counter() - began

    outcomes = _run(steps, watches, train, start, losses, folders, seconds, report, should_stop)
    del steps  # before others are captured
    for index, (method, watch) in enumerate(zip(methods, watches, strict=True)):
        # A seed that went back is no longer at the same epoch as the others, and goes on alone.
        while watch is not None and outcomes[index].status == WENT_BACK:
            if any(outcome.status == "interrupted" for outcome in outcomes):
                outcomes[index] = replace(outcomes[index], status="interrupted", seconds=seconds())
                break
            alone = make_steps([method], graph, train)
            watch.go_back(alone.optimizers[0])
            place, at = None if folders is None else [folders[index]], [Progress(watch.epochs, seconds())]
            (outcomes[index],) = _run(alone, [watch], train, at, [losses[index]], place, seconds, report, should_stop)
    for method in methods:
        method.settle(graph)
    return outcomes


def _run(
    steps: Steps,
    watches: Sequence[Watch | None],
    train: Train,
    start: Sequence[Progress],
    losses: Sequence[list[float]],
    folders: Sequence[Path] | None,
    seconds: Callable[[], float],
    report: Report | None,
    should_stop: Callable[[], bool],
) -> list[Outcome]:
    """Train the seeds until the last epoch, except those that must go back and on from there, :data:`WENT_BACK`.

    ``losses`` are those of the epochs before, of each seed, and get those of the epochs that are trained.
    """
    methods, back = steps.methods, dict[int, Watch]()
    steps.should_stop = should_stop
    # the losses of the batches of an epoch that is not over, for each seed
    partial = [list(progress.losses) for progress in start]
    steps.done = start[0].epochs * steps.per_epoch + len(partial[0])
    total, lost, interrupted = train.epochs * steps.per_epoch, dict[int, int](), False

    def save(index: int, epochs: int) -> None:
        if folders is not None:
            progress = Progress(epochs, seconds(), tuple(partial[index]))
            save_checkpoint(folders[index], methods[index], steps.optimizers[index], progress, watches[index])

    def save_all() -> None:
        for index in set(range(len(methods))) - set(back):
            save(index, steps.done // steps.per_epoch)

    def watch_over(index: int) -> None:
        watch, optimizer = watches[index], steps.optimizers[index]
        if watch is None or watch.check(steps.done // steps.per_epoch, optimizer, lambda: steps.loss(index)):
            return
        back[index] = watch
        watch.go_back(optimizer)
        del losses[index][watch.epochs :]
        steps.leave(index)
        if folders is not None:
            with _open_log(folders[index], watch.epochs):
                pass  # the rows that no longer count are gone
        if not watch.stopped:
            save(index, watch.epochs)

    with contextlib.ExitStack() as open_logs:
        logs = [open_logs.enter_context(_open_log(folder, start[0].epochs)) for folder in folders or []]
        saved, at_once = time.perf_counter(), 1
        reported = saved
        while steps.done < total and len(lost) + len(back) < len(methods):
            check = min(total, next_check(steps.done // steps.per_epoch) * steps.per_epoch)
            count = min(at_once, check - steps.done)
            before, done = seconds(), steps.done
            ran = steps.run(count)
            per_step = (seconds() - before) / count
            for index in set(range(len(methods))) - set(back):
                good = 0 if index in lost else _finite_rows(ran[:, index])
                for row in range(count):
                    partial[index].append(float(ran[row, index]))
                    if len(partial[index]) == steps.per_epoch:
                        if row < good:
                            losses[index].append(fmean(partial[index]))
                        if logs and row < good:
                            epoch = (done + row + 1) // steps.per_epoch
                            logs[index](epoch, losses[index][-1], before + (row + 1) * per_step)
                        partial[index].clear()
                if good < count and index not in lost:
                    lost[index] = (done + good) // steps.per_epoch
                elif steps.done == check and index not in lost:
                    watch_over(index)
            whole, now = steps.done % steps.per_epoch == 0, time.perf_counter()
            if report is not None and (whole or now - reported > REPORT_EVERY_SECONDS):
                report(steps.done / steps.per_epoch, float(ran[-1].nanmean()))
                reported = now
            if steps.done < total and steps.told_to_stop:
                interrupted = True
                break
            if folders is not None and time.perf_counter() - saved > CHECKPOINT_EVERY_SECONDS:
                save_all()
                saved = time.perf_counter()
            if steps.captures:
                at_once = min(MOST_AT_ONCE, max(1, int(FETCH_EVERY_SECONDS / max(per_step, 1e-6))), 2 * count + 1)
    if interrupted:
        save_all()
    for index, watch in back.items():
        watch.go_back(steps.optimizers[index])  # once more: captured steps have gone on with these weights

    def outcome(index: int) -> Outcome:
        watch = watches[index]
        changed, epochs = None if watch is None else watch.changed, steps.done // steps.per_epoch
        status = "interrupted" if interrupted else "ok"
        if index in lost:
            status, epochs = "diverged", lost[index]
        elif index in back:
            status = "ok" if back[index].stopped else "interrupted" if interrupted else WENT_BACK
            epochs = back[index].epochs
        return Outcome(status, epochs, seconds(), changed, tuple(losses[index]))

    return [outcome(index) for index in range(len(methods))]


def _finite_rows(losses: torch.Tensor) -> int:
    """The number of losses before the first that is not finite."""
    finite = losses.isfinite()
    return len(losses) if finite.all() else int(finite.int().argmin())


def _resumed(steps: Steps, watches: Sequence[Watch | None], folders: Sequence[Path], train: Train) -> list[Progress]:
    """Continue from the checkpoints in the folders."""
    method = steps.methods[0]
    if method.unresumable:
        raise InputError(f"{method.name} cannot be resumed: {method.unresumable}; train again into another folder.")
    progress = load_checkpoints(folders, steps.methods, steps.optimizers, watches)
    if progress[0].epochs > train.epochs:
        raise InputError(
            f"the run has already trained {progress[0].epochs} epochs, more than the {train.epochs} requested; raise"
            " train.epochs."
        )
    return progress


def _read_losses(folder: Path, epochs: int) -> list[float]:
    """The losses of the first epochs in ``log.csv``, as many as are there."""
    path = folder / LOG
    rows = path.read_text().splitlines()[1 : epochs + 1] if path.exists() else []
    return [float(row.split(",")[1]) for row in rows]


@contextlib.contextmanager
def _open_log(folder: Path, done: int) -> Iterator[Callable[[int, float, float], None]]:
    """Open ``log.csv`` and keep the rows of the first ``done`` epochs: a checkpoint may be older than the last row."""
    path = folder / LOG
    kept = path.read_text().splitlines()[1 : done + 1] if done and path.exists() else []
    with path.open("w", newline="", buffering=1) as file:
        writer = csv.writer(file, lineterminator="\n")
        file.write("\n".join(["epoch,loss,seconds", *kept]) + "\n")
        yield lambda epoch, loss, seconds: writer.writerow([epoch, f"{loss:.6g}", f"{seconds:.3f}"])
