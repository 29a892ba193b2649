"""A search for settings by validation accuracy alone, in a study on disk that the same command continues.

A trial draws settings, trains them with a few tuning seeds and is evaluated at checkpoints; the best checkpoint sets
the number of epochs. A trial has two scores, each a mean validation accuracy over seeds × splits:

- under ``strict-10-10-80``: the only score that the sampler and the pruner see by default, so that labels outside its
  fixed fifth do not influence which settings are tried, kept or chosen;
- under ``random-10-10-80``: a second score, from validation nodes of the whole graph.

The best trials by each score are trained again with other tuning seeds, and the best mean of those wins: the first
score chooses the preset ``strict``, the second ``tuned``. A search guided by the second score chooses only ``tuned``,
because labels outside the fifth then guide it. No test node is ever predicted
(:func:`costa.evaluate.probe.validation_accuracies`), and the seeds of reported numbers, 0 to 19, are never used.
"""

from __future__ import annotations

import json
import math
import statistics
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from costa.errors import InputError
from costa.settings.layers import flatten
from costa.settings.presets import load_config, resolve
from costa.tuning.jobs import FINAL_SEED, GUIDES, OutOfTime, TuningJob, attempt, import_optuna
from costa.tuning.space import searched_part
from costa.tuning.trials import START_UP, WARM_UP, train_again, try_settings
from costa.wording import counted

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Ended:
    """An ended trial: its guiding score and the epochs that reach it, or ``why`` it was given up."""

    number: int
    seconds: float
    accuracy: float | None
    epochs: int
    why: str | None
    best: float | None
    """The best guiding score in the study so far."""


@dataclass(frozen=True)
class Final:
    """A finalist for one preset: its validation accuracy with each of the final seeds, or ``why`` it failed.

    One that is not evaluated yet has neither.
    """

    preset: str
    number: int
    epochs: int
    accuracies: tuple[float, ...]
    why: str | None

    @property
    def mean(self) -> float:
        """Mean accuracy over the seeds; −∞ without accuracies."""
        return statistics.mean(self.accuracies) if self.accuracies else -math.inf

    @property
    def percent(self) -> str:
        """The mean and, for more than one seed, ± the standard deviation, in percent."""
        spread = f" ± {100 * statistics.stdev(self.accuracies):.1f}" if len(self.accuracies) > 1 else ""
        return f"{100 * self.mean:.1f}{spread}"


def open_study(path: Path, job: TuningJob, *, starts: Sequence[Path] = (), seed: int | None = None) -> Study:
    """Open the job's study in a file, new or continued; several processes may have it open.

    The first trial has the settings that the graph gets untuned with the kind of encoder that is searched.

    Args:
        path: The file; its folder is created.
        job: The job; it must be the study's, except for its time limit.
        starts: Files of settings to try next, unless they were tried. A number outside the searched range is clipped
            to it; a choice that is not searched is drawn.
        seed: Random seed of the sampler; by default random, so that processes do not try the same settings.
    """
    optuna = import_optuna()
    job.check()
    path.parent.mkdir(parents=True, exist_ok=True)
    place = str(path.resolve())
    journal = optuna.storages.journal
    try:
        storage = optuna.storages.JournalStorage(
            # the lock of a killed process expires after a while
            journal.JournalFileBackend(place, lock_obj=journal.JournalFileOpenLock(place))
        )
        study: Study = optuna.create_study(
            study_name=f"{job.method.name} on {job.graph.name}",
            storage=storage,
            # settings that another process is trying count as bad until that trial ends
            sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=START_UP, n_warmup_steps=WARM_UP),
            direction="maximize",
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not a study, or is damaged; choose another --study.") from None
    options = {"epochs": job.epochs, "seeds": job.seeds, "splits": job.splits, "nodes": job.graph.num_nodes}
    options |= {"guide": job.guide, "set": job.kept}
    stored = study.user_attrs.get("job")
    if stored is None:
        study.set_user_attr("job", options)
        study.enqueue_trial(searched_part(job, resolve(job.method, job.graph, given=job.encoder).values))
    for key, value in (stored or {}).items():
        if options[key] != value:
            raise InputError(
                f"the study in {path} was started with {key} = {value}, not {options[key]}; use that or choose another"
                " --study."
            )
    for start in starts:
        given = {} if "encoder.kind" in load_config(start) else job.encoder
        drawn = searched_part(job, resolve(job.method, job.graph, config=start, given=given).values)
        key = f"start {json.dumps(drawn, sort_keys=True)}"
        if key not in study.user_attrs:
            study.set_user_attr(key, True)
            study.enqueue_trial(drawn)
    return study


def finished(study: Study) -> list[FrozenTrial]:
    """The trials that count: the completed ones and those that were given up."""
    states = import_optuna().trial.TrialState
    return study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED))


def search(job: TuningJob, study: Study, trials: int) -> Iterator[Ended]:
    """Try settings until the study has this many finished trials, from all processes; yield those of this process.

    Settings that diverge, collapse, do not fit into memory or do worse than the median are given up. An interrupted
    trial does not count.
    """
    states = import_optuna().trial.TrialState
    while len(finished(study)) < trials:
        if time.monotonic() > job.until:
            raise OutOfTime
        trial = study.ask()
        began = time.perf_counter()
        try:
            result = attempt(job, partial(try_settings, job, trial))
        except BaseException:
            study.tell(trial, state=states.FAIL)
            raise
        if isinstance(result, str):
            trial.set_user_attr("why", result)
            study.tell(trial, state=states.PRUNED)
            (accuracy, epochs), why = (None, 0), result
        else:
            study.tell(trial, result[0])
            (accuracy, epochs), why = result, None
        best = max((other.value for other in _complete(study) if other.value is not None), default=None)
        yield Ended(trial.number, time.perf_counter() - began, accuracy, epochs, why, best)


def evaluate_finalists(job: TuningJob, study: Study, count: int, seeds: int) -> Iterator[Final]:
    """Train the best ``count`` trials by each score again, with other seeds, unless the study has the result.

    Several processes share the work: each first takes a finalist that no other has started.
    """
    while waiting := [
        final for final in _finalists(job, study, count, seeds) if final.why is None and not final.accuracies
    ]:
        attributes = study.user_attrs
        free = (final.number for final in waiting if not attributes.get(f"begun {final.number}"))
        number = next(free, waiting[0].number)
        study.set_user_attr(f"begun {number}", True)
        wanted = {final.preset: final.epochs for final in waiting if final.number == number}
        values = next(trial for trial in _complete(study) if trial.number == number).user_attrs["settings"]
        trained = train_again(job, values, wanted, range(FINAL_SEED, FINAL_SEED + seeds))
        results = dict.fromkeys(wanted, trained) if isinstance(trained, str) else trained
        for preset, result in results.items():
            study.set_user_attr(_final_key(preset, number, seeds, job.final_splits), result)
        yield from (_final(preset, number, epochs, results[preset]) for preset, epochs in wanted.items())


def write_presets(job: TuningJob, study: Study, count: int, seeds: int, out: Path) -> list[Path]:
    """Write the settings of the best finalist for each preset to OUT/PRESET/METHOD/DATASET.toml."""
    tried, finals = len(finished(study)), _finalists(job, study, count, seeds)
    order = list(flatten(job.method.Settings()))
    paths = []
    for preset in job.presets:
        protocol = GUIDES[preset]
        rivals = [final for final in finals if final.preset == preset]
        best = max(rivals, key=lambda final: final.mean, default=None)
        if best is None or not best.accuracies:
            raise InputError(
                f"none of the {counted(tried, 'trial')} gave settings that can be used; try more --trials."
            )
        values = next(trial for trial in _complete(study) if trial.number == best.number).user_attrs["settings"]
        values = values | {"train.epochs": best.epochs}
        used = f"tuning seeds {FINAL_SEED} … {FINAL_SEED + seeds - 1}" if seeds > 1 else f"tuning seed {FINAL_SEED}"
        among = f"the best of {len(rivals)} finalists" if len(rivals) > 1 else "the one finalist"
        kept = f" that kept {', '.join(job.kept)}" if job.kept else ""
        comment = (
            f"Chosen by validation accuracy ({protocol}, {used} × {job.final_splits} splits): {best.percent}"
            f"{' over the seeds' if seeds > 1 else ''}, {among} of {counted(tried, 'trial')}{kept}."
            " Untested: reported numbers use other seeds."
        )
        lines = [f"# {line}" for line in textwrap.wrap(comment, 116)]
        # JSON and TOML write scalars and lists of numbers alike
        lines += [f"{key} = {json.dumps(values[key])}" for key in sorted(values, key=order.index)]
        path = out / preset / job.method.name / f"{job.graph.name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def _complete(study: Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(import_optuna().trial.TrialState.COMPLETE,))


def _final_key(preset: str, number: int, seeds: int, splits: int) -> str:
    return f"final {preset} {number} × {seeds} × {splits}"


def _finalists(job: TuningJob, study: Study, count: int, seeds: int) -> list[Final]:
    """The best trials by each score, with the results that the study has."""
    known = study.user_attrs
    finals = []
    for preset in job.presets:
        ranked = sorted(_complete(study), key=lambda trial: (-trial.user_attrs[preset]["accuracy"], trial.number))
        for trial in ranked[:count]:
            result = known.get(_final_key(preset, trial.number, seeds, job.final_splits), [])
            finals.append(_final(preset, trial.number, trial.user_attrs[preset]["epochs"], result))
    return finals


def _final(preset: str, number: int, epochs: int, result: Sequence[float] | str) -> Final:
    """A finalist from its result in the study: accuracies, or the reason why there are none."""
    if isinstance(result, str):
        return Final(preset, number, epochs, (), result)
    return Final(preset, number, epochs, tuple(result), None)
