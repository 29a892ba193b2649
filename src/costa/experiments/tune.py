"""A search for settings by validation accuracy alone, in a study on disk that the same command goes on with.

A trial draws settings, trains them with a few tuning seeds and is judged at checkpoints on the way; the best checkpoint
says for how many epochs. It is judged by two numbers, each a mean validation accuracy over seeds × splits:

- under ``strict-10-10-80``: all that the sampler and the pruner see by default, so that the labels outside its fixed
  fifth have no part in which settings are tried, kept or chosen;
- under ``random-10-10-80``: kept beside it, a number from the whole graph's validation nodes.

The best trials by each number are trained again with other tuning seeds, and the best mean of those chooses: the preset
``strict`` by the first number, ``tuned`` by the second. A search that is guided by the second chooses ``tuned`` alone:
what it tries is no longer a matter of that fifth. No test node is ever predicted
(:func:`costa.probe.validation_accuracies`), and the seeds that numbers are reported with, 0 to 19, are never used.
"""

from __future__ import annotations

import json
import math
import statistics
import textwrap
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import health, probe, runs, training
from costa.errors import InputError, is_out_of_memory
from costa.experiments.presets import resolve
from costa.methods.base import GradientMethod, Method
from costa.methods.costa import MOST_ROWS
from costa.settings import flatten, merge
from costa.wording import counted

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

FIRST_SEED = 1000
"""Of weights and of splits; reported numbers use 0 to 19."""
FINAL_SEED = FIRST_SEED + 100
"""The same for the finalists, who are judged by seeds that did not make them finalists."""
PROTOCOLS = {"strict": "strict-10-10-80", "tuned": "random-10-10-80"}
"""The presets that are chosen, each by validation under its protocol."""
WARM_UP, START_UP = 100, 10
"""Epochs and trials before the pruner speaks."""
AT_ONCE = 50
"""Epochs between two looks at the loss and the clock."""
COARSE: dict[str, Any] = {"strengths": probe.STRENGTHS[4::2], "tolerance": 1e-5}
"""How a trial's vectors are judged, in a third of the time that the finalists' full grid of strengths takes."""
FULL = "out of memory"
T = TypeVar("T")


class OutOfTime(Exception):
    """The job's time is over; what had ended by then is in the study."""


class _Lost(Exception):
    """Why a training gave no vectors worth judging."""


@dataclass(frozen=True)
class Job:
    """What is tuned, and with how much effort.

    Attributes:
        graph: Loaded and checked, with labels.
        method: Trained by a loss.
        device: Where to train and judge; on CUDA the seeds of a trial are one program.
        epochs: The most that a trial trains.
        seeds: Initialisations of a trial.
        splits: Splits that each is judged on, under each protocol.
        final_splits: Splits that a finalist is judged on. On a small graph few splits rank by luck: with 271 nodes to
            validate on, one split alone has a standard error of two points.
        until: When to stop, on the clock of ``time.monotonic``.
        guide: The preset whose number the sampler and the pruner see.
        given: Settings that are not searched, and their values, which may be text as ``--set`` has it.
    """

    graph: Data
    method: type[Method]
    device: torch.device
    epochs: int = 1000
    seeds: int = 2
    splits: int = 10
    final_splits: int = 20
    until: float = math.inf
    guide: str = "strict"
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def presets(self) -> tuple[str, ...]:
        """What the search may choose: settings that the whole graph's labels have led to are not strict."""
        return tuple(PROTOCOLS) if self.guide == "strict" else (self.guide,)

    @property
    def kept(self) -> dict[str, Any]:
        """What is given, read as the settings' own kinds."""
        merged = flatten(merge(self.method.Settings, [("--set", self.given)])[0])
        # a rate for each view as the search draws them and as a journal keeps them
        return {key: list(value) if isinstance(value := merged[key], tuple) else value for key in self.given}

    def check(self) -> None:
        """Refuse, before anything is trained, what no trial could be judged on."""
        if self.guide not in PROTOCOLS:
            raise InputError(f"a search is guided by {' or '.join(PROTOCOLS)}, not by {self.guide!r}.")
        if not issubclass(self.method, GradientMethod):
            raise InputError(f"{self.method.name} is not trained by a loss: nothing to tune; choose another --method.")
        if not runs.is_labelled(self.graph):
            raise InputError(
                f"{self.graph.name} has no labels of two classes, so there is nothing to validate on; label some nodes."
            )
        for protocol in PROTOCOLS.values():
            probe.splits(protocol, self.graph.y, repeats=1)
        # reading what is kept refuses settings that the method does not have
        if "train.epochs" in self.kept:
            raise InputError("the search chooses train.epochs; --epochs says the most.")

    def size(self) -> dict[str, Any]:
        """How much a trial's classifiers learn from, as :func:`costa.probe.too_few` asks; both numbers have as much."""
        y, protocol = self.graph.y, PROTOCOLS["strict"]
        (split,) = probe.splits(protocol, y, repeats=1)
        return {"protocol": protocol, "trained_on": len(split.train), "classes": len(probe.classes_of(y))}


@dataclass(frozen=True)
class Ended:
    """A trial that has ended: the number that guides and the epochs it is reached after, or ``why`` it has none."""

    number: int
    seconds: float
    accuracy: float | None
    epochs: int
    why: str | None
    best: float | None
    """The best of that number in the study so far."""


@dataclass(frozen=True)
class Final:
    """A finalist for one preset: its validation accuracy with each of the final seeds, or ``why`` it has none.

    One that is still to be judged has neither.
    """

    preset: str
    number: int
    epochs: int
    accuracies: tuple[float, ...]
    why: str | None

    @property
    def mean(self) -> float:
        """Over the seeds; −∞ where there is none."""
        return statistics.mean(self.accuracies) if self.accuracies else -math.inf

    @property
    def percent(self) -> str:
        """The mean and, of more than one seed, ± the standard deviation, in percent."""
        spread = f" ± {100 * statistics.stdev(self.accuracies):.1f}" if len(self.accuracies) > 1 else ""
        return f"{100 * self.mean:.1f}{spread}"


def open_study(path: Path, job: Job, *, starts: Sequence[Path] = (), seed: int | None = None) -> Study:
    """The job's study in a file, begun or gone on with; several processes may have it open.

    Its first trial has the settings that the graph gets untuned.

    Args:
        path: The file; its folder is made.
        job: Must be that of the study, up to its time.
        starts: Files of settings that are tried next, unless they were. Of a number beyond what is searched the nearest
            is taken; a choice that is not searched is drawn.
        seed: Of the sampler; by default another each time, so that processes do not try the same settings.
    """
    optuna = _optuna()
    job.check()
    path.parent.mkdir(parents=True, exist_ok=True)
    place = str(path.resolve())
    journal = optuna.storages.journal
    try:
        storage = optuna.storages.JournalStorage(
            # a lock that a killed process left behind is let go after a while
            journal.JournalFileBackend(place, lock_obj=journal.JournalFileOpenLock(place))
        )
        study: Study = optuna.create_study(
            study_name=f"{job.method.name} on {job.graph.name}",
            storage=storage,
            # settings that another process is still trying count as bad until they have ended
            sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=START_UP, n_warmup_steps=WARM_UP),
            direction="maximize",
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not a study, or is damaged; choose another --study.") from None
    own = {"epochs": job.epochs, "seeds": job.seeds, "splits": job.splits, "nodes": job.graph.num_nodes}
    own |= {"guide": job.guide, "set": job.kept}
    began = study.user_attrs.get("job")
    if began is None:
        study.set_user_attr("job", own)
        study.enqueue_trial(_searched(job, resolve(job.method, job.graph, preset="none").values))
    for key, value in (began or {}).items():
        if own[key] != value:
            raise InputError(
                f"the study in {path} was begun with {key} = {value}, not {own[key]}; go on with that or choose another"
                " --study."
            )
    for start in starts:
        drawn = _searched(job, resolve(job.method, job.graph, preset="none", config=start).values)
        key = f"start {json.dumps(drawn, sort_keys=True)}"
        if key not in study.user_attrs:
            study.set_user_attr(key, True)
            study.enqueue_trial(drawn)
    return study


def finished(study: Study) -> list[FrozenTrial]:
    """The trials that count: those that came to their end, and those that were given up."""
    states = _optuna().trial.TrialState
    return study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED))


def search(job: Job, study: Study, trials: int) -> Iterator[Ended]:
    """Try settings until the study holds so many finished trials, whoever finished them; yield one's own.

    Settings that diverge, collapse, do not fit into memory or do worse than the median are given up. A trial that is
    interrupted does not count.
    """
    states = _optuna().trial.TrialState
    while len(finished(study)) < trials:
        if time.monotonic() > job.until:
            raise OutOfTime
        trial = study.ask()
        began = time.perf_counter()
        try:
            found = _attempt(job, partial(_try, job, trial))
        except BaseException:
            study.tell(trial, state=states.FAIL)
            raise
        if isinstance(found, str):
            trial.set_user_attr("why", found)
            study.tell(trial, state=states.PRUNED)
            (accuracy, epochs), why = (None, 0), found
        else:
            study.tell(trial, found[0])
            (accuracy, epochs), why = found, None
        best = max((other.value for other in _complete(study) if other.value is not None), default=None)
        yield Ended(trial.number, time.perf_counter() - began, accuracy, epochs, why, best)


def judge_finalists(job: Job, study: Study, count: int, seeds: int) -> Iterator[Final]:
    """Train the best ``count`` trials by each number again, with so many other seeds, unless the study has it already.

    Several processes share the work: each takes first what no other has begun.
    """
    while waiting := [
        final for final in _finalists(job, study, count, seeds) if final.why is None and not final.accuracies
    ]:
        begun = study.user_attrs.get
        number = next((final.number for final in waiting if not begun(f"begun {final.number}")), waiting[0].number)
        study.set_user_attr(f"begun {number}", True)
        wanted = {final.preset: final.epochs for final in waiting if final.number == number}
        values = next(trial for trial in _complete(study) if trial.number == number).user_attrs["settings"]
        found = _train_again(job, values, wanted, range(FINAL_SEED, FINAL_SEED + seeds))
        results = dict.fromkeys(wanted, found) if isinstance(found, str) else found
        for preset, result in results.items():
            study.set_user_attr(_final_key(preset, number, seeds, job.final_splits), result)
        yield from (_final(preset, number, epochs, results[preset]) for preset, epochs in wanted.items())


def write_presets(job: Job, study: Study, count: int, seeds: int, out: Path) -> list[Path]:
    """Write the settings of the best finalist for each preset to OUT/PRESET/METHOD/DATASET.toml."""
    tried, finals = len(finished(study)), _finalists(job, study, count, seeds)
    order = list(flatten(job.method.Settings()))
    paths = []
    for preset in job.presets:
        protocol = PROTOCOLS[preset]
        rivals = [final for final in finals if final.preset == preset]
        best = max(rivals, key=lambda final: final.mean, default=None)
        if best is None or not best.accuracies:
            raise InputError(
                f"none of the {tried} trials came to a good end, so none can be chosen; try more --trials."
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
        # a scalar or a list of numbers is written alike in JSON and TOML
        lines += [f"{key} = {json.dumps(values[key])}" for key in sorted(values, key=order.index)]
        path = out / preset / job.method.name / f"{job.graph.name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def checkpoints(limit: int) -> list[int]:
    """After how many epochs a trial is judged: dense at first, every 500 from 1,000 on, and at the limit itself.

    >>> checkpoints(400)
    [10, 20, 50, 100, 200, 300, 400]
    """
    places = [10, 20, 50, 100, 200, 300, 500, 700, *range(1000, limit, 500)]
    return [place for place in places if place < limit] + [limit]


def sample(trial: Trial, method: type[Method], graph: Data, kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Settings for a trial, by dotted key: of all that is searched, what the method has and the other values leave use.

    Numbers are rounded to three digits before they are tried: what is written down is what was trained. Settings to be
    kept are not drawn, and are left out of a trial whose other values leave them no use.
    """
    draw = _Draw(trial, method, kept or {})
    views = method.views
    draw.one_of("features.scaling", ("none", "rows", "standard"))
    draw.one_of("encoder.width", (128, 256, 512, 1024, 2048))
    draw.one_of("encoder.layers", (1, 2, 3, 4))
    draw.one_of("encoder.activation", draw.known("encoder.activation"))
    draw.one_of("encoder.norm", draw.known("encoder.norm"))
    draw.one_of("encoder.steps", (0, 2, 4, 8, 16))
    if draw.values.get("encoder.steps"):
        draw.one_of("encoder.kind", draw.known("encoder.kind"))
        draw.between("encoder.teleport", 0.01, 0.5)
    else:
        draw.one_of("encoder.kind", ("gcn",))  # appnp has no other sight of the edges
    draw.one_of("head.width", (0, 128, 256, 512))
    if draw.values.get("head.width"):
        draw.one_of("head.activation", draw.known("head.activation"))
    draw.one_of("sketch.kind", ("gaussian", "rademacher", "sparse", "countsketch"))
    if draw.values.get("sketch.kind") == "sparse":
        draw.between("sketch.density", 0.001, 0.064)
    draw.between("sketch.ratio", *_ratios(graph.num_nodes))
    draw.one_of("sketch.center", (True, False))
    if draw.rates("augment.edge_rate", views) + draw.rates("augment.mask_rate", views):
        draw.one_of("augment.centrality", draw.known("augment.centrality"))
    draw.between("diffusion.alpha", 0.05, 0.5)
    draw.one_of("predictor.width", (256, 512))
    draw.one_of("target.decay", (0.9, 0.97, 0.99, 0.997))
    draw.one_of("loss.kind", ("self",) if views == 1 else ("cross", "both"))
    if draw.values.get("loss.kind") == "both":
        draw.one_of("loss.include_self", (False, True))
    elif views > 1:
        # the only legal value, but a preset beneath the file that is written might have the other
        draw.one_of("loss.include_self", (False,))
    draw.between("loss.tau", 0.1, 5.0)
    draw.between("loss.weight", 1e-4, 1e-2)
    for part in ("alpha", "beta", "gamma"):
        draw.between(f"loss.{part}", 0.1, 2.0)
    draw.between("train.lr", 1e-4, 1e-2)
    draw.between("train.weight_decay", 1e-6, 5e-2)
    idle = method.unused(merge(method.Settings, [("search", draw.values)])[0])
    return {key: value for key, value in draw.values.items() if key not in idle}


class _Draw:
    """Draws the settings of one trial; a key that the method does not have, or that is to be kept, is passed over."""

    def __init__(self, trial: Trial, method: type[Method], kept: Mapping[str, Any]) -> None:
        self.trial = trial
        self.defaults = method.Settings()
        self.keys = flatten(self.defaults)
        self.values = dict(kept)

    def known(self, key: str) -> Sequence[Any]:
        """All values that the settings allow."""
        group, _, item = key.partition(".")
        if key not in self.keys:
            return ()
        kind = typing.get_type_hints(type(getattr(self.defaults, group)))[item]
        assert typing.get_origin(kind) is Literal
        return typing.get_args(kind)

    def is_open(self, key: str) -> bool:
        """Whether the method has the key and nothing has decided its value."""
        return key in self.keys and key not in self.values

    def one_of(self, key: str, choices: Sequence[Any]) -> None:
        """One of the choices; a single one is taken as it is."""
        if self.is_open(key):
            self.values[key] = self.trial.suggest_categorical(key, choices) if len(choices) > 1 else choices[0]

    def between(self, key: str, low: float, high: float) -> None:
        """A number, its logarithm uniform."""
        if self.is_open(key):
            self.values[key] = _three_digits(self.trial.suggest_float(key, low, high, log=True))

    def rates(self, key: str, views: int) -> float:
        """A rate for each view, 0 … 0.8 in steps of 0.1; returns their sum."""
        if not self.is_open(key):
            return sum(self.values.get(key, ()))
        names = [f"{key}.{view + 1}" for view in range(views)]
        rates = [round(self.trial.suggest_float(name, 0.0, 0.8, step=0.1), 1) for name in names]
        self.values[key] = rates if views > 1 else rates[0]
        return sum(rates)


class _Wanted:
    """Stands in for a trial: of the wanted values it keeps those that are searched, of a number the nearest that is."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self.wanted = wanted
        self.kept: dict[str, Any] = {}

    def suggest_categorical(self, key: str, choices: Sequence[Any]) -> Any:
        if self.wanted.get(key) in choices:
            self.kept[key] = self.wanted[key]
        return self.kept.get(key, choices[0])

    def suggest_float(self, key: str, low: float, high: float, *, step: float = 0, log: bool = False) -> float:
        value = min(max(self.wanted[key], low), high)
        self.kept[key] = low + step * round((value - low) / step) if step else value
        return float(self.kept[key])


def _searched(job: Job, values: Any) -> dict[str, Any]:
    """Of merged settings those that the search could draw, by the names that :func:`sample` draws them under."""
    wanted: dict[str, Any] = {}
    for key, value in flatten(values).items():
        rates = value if isinstance(value, tuple) else ()
        wanted |= {f"{key}.{view + 1}": rates[min(view, len(rates) - 1)] for view in range(2) if rates} or {key: value}
    kept = _Wanted(wanted)
    sample(typing.cast("Trial", kept), job.method, job.graph, job.kept)
    return kept.kept


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _ratios(nodes: int) -> tuple[float, float]:
    """The least and the largest sketch.ratio: 0.05 and 1.5, less where that would be more than MOST_ROWS rows.

    >>> _ratios(2708), _ratios(34493)
    ((0.05, 1.5), (0.0295, 0.118))
    """
    high = min(1.5, MOST_ROWS / nodes)
    unit = 10.0 ** (math.floor(math.log10(high)) - 2)
    # cut to three digits, so that a value rounded to three never lies above
    high = _three_digits(math.floor(high / unit) * unit)
    return min(0.05, high / 4), high


def _try(job: Job, trial: Trial) -> tuple[float, int]:
    """Train and judge one trial's settings; its two numbers and their epochs become its attributes.

    Returns:
        The number that guides and its epochs.
    """
    values = sample(trial, job.method, job.graph, job.kept)
    trial.set_user_attr("settings", values)
    best = dict.fromkeys(PROTOCOLS, (-1.0, 0))
    waiting: list[tuple[int, list[Tensor]]] = []
    # of a training that knows how long it will be, a shorter one is no part
    places = [job.epochs] if job.method.scheduled else checkpoints(job.epochs)
    for epochs, zs in _vectors(job, values, range(FIRST_SEED, FIRST_SEED + job.seeds), places):
        waiting.append((epochs, zs))
        # those before the pruner speaks are judged together, which on a GPU takes as long as one
        if epochs < min(WARM_UP, job.epochs):
            continue
        found = _accuracies(job, [z for _, some in waiting for z in some], FIRST_SEED, job.splits, **COARSE)
        for index, (place, _) in enumerate(waiting):
            own = slice(index * job.seeds, (index + 1) * job.seeds)
            means = {preset: statistics.mean(accuracies[own]) for preset, accuracies in found.items()}
            for preset, accuracy in means.items():
                # of equals the fewest epochs
                if accuracy > best[preset][0]:
                    best[preset] = (accuracy, place)
            trial.report(means[job.guide], place)
        waiting.clear()
        if epochs < job.epochs and trial.should_prune():
            raise _optuna().TrialPruned
    for preset, (accuracy, epochs) in best.items():
        trial.set_user_attr(preset, {"accuracy": accuracy, "epochs": epochs})
    return best[job.guide]


def _vectors(
    job: Job, values: Mapping[str, Any], seeds: Sequence[int], places: Sequence[int]
) -> Iterator[tuple[int, list[Tensor]]]:
    """Train all seeds side by side and yield their vectors after each number of epochs in ``places``, a rising list."""
    chosen = resolve(job.method, job.graph, preset="none", given=values, epochs=places[-1]).values
    steps = []
    for method in _built(job, chosen, seeds):
        method.prepare(job.graph)
        steps.append(training.Steps(method, job.graph, chosen.train))
    done = 0
    for place in places:
        for start in range(done, place, AT_ONCE):
            for step in steps:
                if not step.run(min(AT_ONCE, place - start)).isfinite().all():
                    raise _Lost("diverged")
            if time.monotonic() > job.until:
                raise OutOfTime
        done = place
        zs = [z.float() for step in steps for z in _embedded(step.method, job.graph)]
        for z in zs:
            if (status := health.status(z)) != "ok":
                raise _Lost(status)
        yield place, zs


def _built(job: Job, chosen: Any, seeds: Sequence[int]) -> Iterable[GradientMethod]:
    """The method with the weights of each seed; one that holds them all where that is faster."""
    if job.device.type == "cuda" and len(seeds) > 1:
        stack = training.stacked(job.method, chosen, job.graph, seeds, job.device)
        if stack is not None:
            yield stack
            return
    for seed in seeds:
        method = training.build(job.method, chosen, job.graph, seed, job.device)
        assert isinstance(method, GradientMethod)
        yield method


def _embedded(method: Method, graph: Data) -> Iterable[Tensor]:
    z = method.embed(graph)
    return z if method.stack_size else [z]


def _attempt(job: Job, work: Callable[[], T]) -> T | str:
    """What the work gives, or in words why these settings give nothing."""
    try:
        return work()
    except _optuna().TrialPruned:
        return "below the median"
    except (_Lost, InputError) as problem:
        return str(problem)
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
    # out here, where nothing holds what was allocated any more
    if job.device.type == "cuda":
        torch.cuda.empty_cache()
    return FULL


def _accuracies(job: Job, zs: Sequence[Tensor], first: int, splits: int, **solver: Any) -> dict[str, list[float]]:
    """By preset the validation accuracy of each of the vectors, a mean over so many splits from the first."""
    # a CPU gains nothing from many at once
    groups = [zs] if job.device.type == "cuda" else [[z] for z in zs]
    names = tuple(PROTOCOLS.values())
    scores = [
        probe.validation_accuracies(
            group, job.graph.y, names, repeats=splits, first_split=first, device=job.device, **solver
        )
        for group in groups
    ]
    return {preset: [score.mean for found in scores for score in found[name]] for preset, name in PROTOCOLS.items()}


def _train_again(
    job: Job, values: Mapping[str, Any], wanted: Mapping[str, int], seeds: Sequence[int]
) -> dict[str, list[float]] | str:
    """A finalist's accuracies with each seed, for each preset after its own number of epochs; or why there are none.

    Seeds that do not fit into memory together are trained in halves.
    """
    found = _attempt(
        job,
        lambda: {
            preset: found[preset]
            for epochs, zs in _vectors(job, values, seeds, sorted(set(wanted.values())))
            for found in [_accuracies(job, zs, FINAL_SEED, job.final_splits)]
            for preset, own in wanted.items()
            if own == epochs
        },
    )
    if found != FULL or len(seeds) == 1:
        return found
    half = len(seeds) // 2
    first, second = (_train_again(job, values, wanted, part) for part in (seeds[:half], seeds[half:]))
    if isinstance(first, str) or isinstance(second, str):
        return first if isinstance(first, str) else second
    return {preset: first[preset] + second[preset] for preset in wanted}


def _complete(study: Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(_optuna().trial.TrialState.COMPLETE,))


def _final_key(preset: str, number: int, seeds: int, splits: int) -> str:
    return f"final {preset} {number} × {seeds} × {splits}"


def _finalists(job: Job, study: Study, count: int, seeds: int) -> list[Final]:
    """The best trials by each number, with what is known of them."""
    known = study.user_attrs
    finals = []
    for preset in job.presets:
        ranked = sorted(_complete(study), key=lambda trial: (-trial.user_attrs[preset]["accuracy"], trial.number))
        for trial in ranked[:count]:
            result = known.get(_final_key(preset, trial.number, seeds, job.final_splits), [])
            finals.append(_final(preset, trial.number, trial.user_attrs[preset]["epochs"], result))
    return finals


def _final(preset: str, number: int, epochs: int, result: Sequence[float] | str) -> Final:
    """A finalist from what the study keeps of it: accuracies, or the reason why there are none."""
    if isinstance(result, str):
        return Final(preset, number, epochs, (), result)
    return Final(preset, number, epochs, tuple(result), None)


def _optuna() -> Any:
    """The package optuna, an extra, with its own messages silenced."""
    try:
        import optuna
    except ImportError:
        raise InputError("a search needs optuna; pip install 'costa-gcl[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
