"""Train and evaluate the settings of one trial."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from costa import training
from costa.evaluate import health, probe
from costa.methods.base import GradientMethod
from costa.settings.layers import flatten
from costa.settings.presets import resolve
from costa.tuning import jobs
from costa.tuning.jobs import FINAL_SEED, FIRST_SEED, GUIDES, OutOfTime, TrainingFailed, TuningJob
from costa.tuning.space import sample

if TYPE_CHECKING:
    from optuna import Trial

WARM_UP, START_UP = 100, 10
"""Epochs and trials before the pruner starts."""

AT_ONCE = 50
"""Steps between two checks of the loss and the clock."""

COARSE: dict[str, Any] = {"strengths": probe.STRENGTHS[4::2], "tolerance": 1e-5}
"""The probe of a trial: a third of the time of the full grid of strengths, which finalists get."""


def checkpoints(limit: int) -> list[int]:
    """After how many epochs a trial is evaluated: often at first, every 500 from 1,000 on, and at the limit.

    >>> checkpoints(400)
    [10, 20, 50, 100, 200, 300, 400]
    """
    places = [10, 20, 50, 100, 200, 300, 500, 700, *range(1000, limit, 500)]
    return [place for place in places if place < limit] + [limit]


def try_settings(job: TuningJob, trial: Trial) -> tuple[float, int]:
    """Train and evaluate one trial's settings; its two scores and their epochs become its attributes.

    Returns:
        The guiding score and its epochs.
    """
    values = pinned(job, sample(trial, job.method, job.graph, job.kept))
    trial.set_user_attr("settings", values)
    best = dict.fromkeys(GUIDES, (-1.0, 0))
    waiting: list[tuple[int, list[Tensor]]] = []
    # if epochs depend on their total number, a shorter training is not a part of a longer one
    places = [job.epochs] if job.method.scheduled else checkpoints(job.epochs)
    for epochs, zs in _vectors(job, values, range(FIRST_SEED, FIRST_SEED + job.seeds), places):
        waiting.append((epochs, zs))
        # checkpoints before the pruner starts are evaluated together: on a GPU that takes as long as one
        if epochs < min(WARM_UP, job.epochs):
            continue
        scores = _accuracies(job, [z for _, some in waiting for z in some], FIRST_SEED, job.splits, **COARSE)
        for index, (place, _) in enumerate(waiting):
            part = slice(index * job.seeds, (index + 1) * job.seeds)
            means = {preset: statistics.mean(accuracies[part]) for preset, accuracies in scores.items()}
            for preset, accuracy in means.items():
                # ties go to the fewest epochs
                if accuracy > best[preset][0]:
                    best[preset] = (accuracy, place)
            trial.report(means[job.guide], place)
        waiting.clear()
        if epochs < job.epochs and trial.should_prune():
            raise jobs.import_optuna().TrialPruned
    for preset, (accuracy, epochs) in best.items():
        trial.set_user_attr(preset, {"accuracy": accuracy, "epochs": epochs})
    return best[job.guide]


def pinned(job: TuningJob, values: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting that a trial uses, so that another default does not change what its settings mean.

    Unused settings are left out: they have no effect, and ``--config`` refuses them.
    """
    chosen = resolve(job.method, job.graph, preset="none", given=values).values
    unused = job.method.unused(chosen)
    # one rate per view is a list, as the study stores it
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in flatten(chosen).items()
        if key not in unused
    }


def _vectors(
    job: TuningJob, values: Mapping[str, Any], seeds: Sequence[int], places: Sequence[int]
) -> Iterator[tuple[int, list[Tensor]]]:
    """Train all seeds in parallel; yield their vectors after each number of epochs in ``places``, in rising order."""
    chosen = resolve(job.method, job.graph, preset="none", given=values, epochs=places[-1]).values
    methods = _built(job, chosen, seeds)
    training.prepare(methods, job.graph)
    steps = training.make_steps(methods, job.graph, chosen.train)
    for place in places:
        while (left := place * steps.per_epoch - steps.done) > 0:
            if not steps.run(min(AT_ONCE, left)).isfinite().all():
                raise TrainingFailed("diverged")
            if time.monotonic() > job.until:
                raise OutOfTime
        for method in methods:
            method.settle(job.graph)
        zs = [method.embed(job.graph).float() for method in methods]
        for method, z in zip(methods, zs, strict=True):
            if (status := health.status(z, job.graph.x, method.code_columns)) != "ok":
                raise TrainingFailed(status)
        yield place, zs


def _built(job: TuningJob, chosen: Any, seeds: Sequence[int]) -> list[GradientMethod]:
    """The method with the weights of each seed."""
    built = [training.build(job.method, chosen, job.graph, seed, job.device) for seed in seeds]
    return [method for method in built if isinstance(method, GradientMethod)]


def _accuracies(job: TuningJob, zs: Sequence[Tensor], first: int, splits: int, **solver: Any) -> dict[str, list[float]]:
    """The validation accuracy of each set of vectors by preset: the mean over the splits from ``first`` on."""
    # a CPU gains nothing from a batch
    groups = [zs] if job.device.type == "cuda" else [[z] for z in zs]
    names = tuple(GUIDES.values())
    scores = [
        probe.validation_accuracies(
            group, job.graph.y, names, repeats=splits, first_split=first, device=job.device, **solver
        )
        for group in groups
    ]
    return {preset: [score.mean for group in scores for score in group[name]] for preset, name in GUIDES.items()}


def train_again(
    job: TuningJob, values: Mapping[str, Any], wanted: Mapping[str, int], seeds: Sequence[int]
) -> dict[str, list[float]] | str:
    """A finalist's accuracies with each seed, after the epochs that each preset chose; or why there are none.

    Seeds that do not fit into memory together are trained in halves.
    """
    result = jobs.attempt(
        job,
        lambda: {
            preset: scores[preset]
            for epochs, zs in _vectors(job, values, seeds, sorted(set(wanted.values())))
            for scores in [_accuracies(job, zs, FINAL_SEED, job.final_splits)]
            for preset, chosen in wanted.items()
            if chosen == epochs
        },
    )
    if result != jobs.OUT_OF_MEMORY or len(seeds) == 1:
        return result
    half = len(seeds) // 2
    first, second = (train_again(job, values, wanted, part) for part in (seeds[:half], seeds[half:]))
    if isinstance(first, str) or isinstance(second, str):
        return first if isinstance(first, str) else second
    return {preset: first[preset] + second[preset] for preset in wanted}
