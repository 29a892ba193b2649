"""The runs behind a table or a figure: which are needed, which the store has, and how the others are made.

A *cell* is one number of a table or one point of a figure: a method on a dataset with settings, run with several
seeds. Runs are found in the store by their settings, whoever made them, and only missing ones are trained: on a GPU,
all seeds of a cell together if the method can be captured, otherwise each in its own process. The processes are
joblib's: inside ``joblib.parallel_config("dask")``, or Ray's, they are on other machines.

Runs that share a device share its time. A cell whose time is measured is run *alone*: after all others, in this
process, one seed after the other.
"""

from __future__ import annotations

import functools
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa import runs, settings, training
from costa.errors import InputError, is_out_of_memory
from costa.graphs import load_graph
from costa.methods import get_method
from costa.methods.base import GradientMethod
from costa.runs import several
from costa.settings import presets
from reproduction import store
from reproduction.bench.measure import FIRST_EPOCHS
from reproduction.bench.suites import subgraph

EVALUATED_BY = (*runs.DEFAULT_PROTOCOLS, "random-10-80-10", "strict-10-10-80")
"""Protocols that every run of an experiment is evaluated under."""

TIMINGS = 3
"""Largest number of runs that a time is the median of."""
WARM_UP_NODES = 500
"""Nodes of the subgraph on which a method without epochs warms up; random walks on the whole would double the time."""

Settings = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        method: One of :data:`costa.methods.METHODS`.
        dataset: A benchmark's name.
        preset: The settings it starts from; the method's defaults if the preset lacks the dataset.
        given: Settings that override those, as ``--set`` does.
        experiment: Its folder under ``results/experiments/``; None for the main tables, which are in ``results/``.
        alone: Whether its runs are timed: warmed up, alone on the device, evaluated under one protocol.
    """

    method: str
    dataset: str
    preset: str = "tuned"
    given: Settings = ()
    experiment: str | None = None
    alone: bool = False

    @property
    def label(self) -> str:
        """A readable name."""
        changed = "".join(f", {key} {value}" for key, value in self.given)
        preset = f" ({self.preset})" if self.preset != "tuned" else ""
        return f"{self.method}{preset} on {self.dataset}{changed}{', alone' * self.alone}"

    def file(self, results: Path) -> Path:
        """The file of its runs, which also has other runs of the method on the dataset."""
        return self.root(results) / self.method / f"{self.dataset}.jsonl"

    def root(self, results: Path) -> Path:
        """The store that its runs are in."""
        return results / "experiments" / self.experiment if self.experiment else results

    def seeds(self, count: int) -> range:
        """The seeds it is run with; a method without randomness needs only one, unless it is timed."""
        if self.alone:
            return range(min(count, TIMINGS))
        return range(count if get_method(self.method).random else 1)

    @property
    def protocols(self) -> Sequence[str]:
        """Protocols that its runs are evaluated under; one is enough to see that timed runs are the table's models."""
        return EVALUATED_BY[:1] if self.alone else EVALUATED_BY

    @functools.cached_property
    def fixed_settings(self) -> dict[str, Any]:
        """Its settings by dotted key, as the store has them, without those that are chosen from the graph."""
        method = get_method(self.method)
        layers = [*presets.preset_layers(self.preset, self.method, self.dataset), ("given", dict(self.given))]
        merged: Any = settings.merge(method.Settings, layers)[0]
        flat: dict[str, Any] = json.loads(json.dumps(settings.flatten(merged)))
        from_graph = _from_graph(flat).difference(*(values for _, values in layers))
        return {key: value for key, value in flat.items() if key not in from_graph}

    def fits(self, run: Mapping[str, Any]) -> bool:
        """Whether a run of the store belongs to this cell.

        It has the cell's settings, was evaluated unless it diverged or collapsed, and was run alone if and only if the
        cell is. Settings that the cell leaves to the graph were not set by hand for the run either.
        """
        of_run = _base(self.method) | run["settings"]
        evaluated = {probe["protocol"] for probe in run["probes"]}
        complete = run["status"] != "ok" or evaluated.issuperset(self.protocols)
        same_kind = run.get("alone", False) == self.alone
        from_graph = _from_graph(self.fixed_settings) - set(self.fixed_settings)
        return (
            same_kind
            and complete
            and from_graph.isdisjoint(run.get("set", ()))
            and all(of_run[key] == value for key, value in self.fixed_settings.items())
        )


def _from_graph(values: Mapping[str, Any]) -> set[str]:
    """Settings that a graph may choose, beside these values by dotted key."""
    return {*presets.FROM_GRAPH, *(presets.FROM_GRAPH_HOPS if values.get("encoder.kind") == "hops" else ())}


@functools.cache
def _base(method: str) -> dict[str, Any]:
    """What an older run had for each setting that did not exist yet, by dotted key as the store has it."""
    merged: Any = settings.merge(get_method(method).Settings, [("base", presets.load_base(method))])[0]
    flat: dict[str, Any] = json.loads(json.dumps(settings.flatten(merged)))
    return flat


def find(cell: Cell, results: Path, count: int) -> dict[int, dict[str, Any]]:
    """The cell's runs in the store, by seed; if a seed was run twice, the last."""
    by_seed = {run["seed"]: run for run in store.read(cell.file(results)) if cell.fits(run)}
    return {seed: by_seed[seed] for seed in cell.seeds(count) if seed in by_seed}


def missing(cells: Sequence[Cell], results: Path, count: int) -> list[tuple[Cell, list[int]]]:
    """Each cell that lacks runs, once, with the seeds it lacks; cells with the same settings share their runs."""
    distinct: dict[Any, Cell] = {}
    for cell in cells:
        distinct.setdefault((cell.file(results), cell.alone, json.dumps(cell.fixed_settings, sort_keys=True)), cell)
    lacking = {cell: sorted(set(cell.seeds(count)) - set(find(cell, results, count))) for cell in distinct.values()}
    return [(cell, seeds) for cell, seeds in lacking.items() if seeds]


def pairs(cell: Cell, by_seed: Mapping[int, Mapping[str, Any]], protocol: str, count: int) -> dict[int, float]:
    """Accuracy of seed s on split s, by split; a method without randomness has one run for all splits.

    A run that diverged or collapsed has no accuracy.
    """
    scores = {
        seed: dict(enumerate(probe["accuracy"]["per_split"], probe.get("split", 0)))
        for seed, run in by_seed.items()
        for probe in run["probes"]
        if probe["protocol"] == protocol
    }
    if not get_method(cell.method).random:
        return {split: by_split[split] for by_split in scores.values() for split in range(count) if split in by_split}
    return {seed: by_split[seed] for seed, by_split in scores.items() if seed in by_split}


@dataclass(frozen=True)
class Done:
    """The result of a task: a cell's runs with some seeds, as the store keeps them; or ``why`` there are none."""

    cell: Cell
    seeds: list[int]
    metrics: list[dict[str, Any]]
    settings: dict[str, Any]
    why: str | None = None


def fill(
    work: Sequence[tuple[Cell, list[int]]],
    results: Path,
    device: torch.device,
    *,
    data_dir: Path | None = None,
    jobs: int | None = None,
    report: Callable[[Done], None] = lambda done: None,
) -> None:
    """Make the runs and add them to the store, each as soon as it has ended.

    Args:
        work: From :func:`missing`.
        results: The store.
        device: Where to train.
        data_dir: Folder of the benchmark graphs.
        jobs: Tasks at a time, except for runs alone; None for what joblib is configured for.
        report: Called with each task that has ended.
    """
    import joblib

    tasks = list(_tasks(work, device))
    shared = [joblib.delayed(_train)(*task, device, data_dir) for task in tasks if not task[0].alone]
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(shared)
    # lazy: none starts before the last of the others has ended
    alone = (_train(*task, device, data_dir) for task in tasks if task[0].alone)
    for done in itertools.chain(parallel, alone):
        for metrics in done.metrics:
            if metrics["status"] == "interrupted":
                raise KeyboardInterrupt
            store.append(done.cell.root(results), metrics, done.settings)
        report(done)


def _tasks(work: Sequence[tuple[Cell, list[int]]], device: torch.device) -> Iterator[tuple[Cell, list[int]]]:
    for cell, seeds in work:
        if device.type == "cuda" and not cell.alone and _is_one_program(cell):
            yield cell, seeds
        else:
            yield from ((cell, [seed]) for seed in seeds)


def _is_one_program(cell: Cell) -> bool:
    """Whether a GPU runs all seeds of a cell together; without a loss, the seeds share what is computed once."""
    method = get_method(cell.method)
    if not issubclass(method, GradientMethod):
        return True
    # what is chosen from the graph makes no difference here
    scaling = {"features.scaling": "none"}
    values: Any = settings.merge(method.Settings, [("any", scaling), ("cell", cell.fixed_settings)])[0]
    built = method.build(values, 1, torch.Generator())
    assert isinstance(built, GradientMethod)
    return built.capturable


def _train(cell: Cell, seeds: list[int], device: torch.device, data_dir: Path | None) -> Done:
    """Train and evaluate the cell with these seeds, in temporary RUN folders; if it cannot be trained, say why."""
    graph = _graph(cell.dataset, data_dir)
    resolved = presets.resolve(get_method(cell.method), graph, preset=cell.preset, given=dict(cell.given))
    flat = settings.flatten(resolved.values)
    try:
        if cell.alone:
            device = _warm_up(cell.method, resolved.values, graph, device)
        job = runs.Job(graph, cell.dataset, cell.method, resolved, device, protocols=cell.protocols, paired=True)
        with tempfile.TemporaryDirectory() as temporary:
            folders = {seed: Path(temporary) / str(seed) for seed in seeds}
            metrics = list(several.execute(job, folders, data_dir))
    except InputError as problem:
        return Done(cell, seeds, [], flat, str(problem))
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
    else:
        about = {"set": resolved.set_by_hand} | ({"alone": True} if cell.alone else {})
        return Done(cell, seeds, [run.to_dict() | about for run in metrics], flat)
    # outside the except block nothing holds the memory any more; other processes may need it
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return Done(cell, seeds, [], flat, "there is not enough memory for it.")


def _warm_up(name: str, values: Any, graph: Data, device: torch.device) -> torch.device:
    """Do once, untimed, what only the first training in a process pays for: starting CUDA, compiling, importing.

    The graph and the settings are the cell's, since kernels are compiled for their shapes.

    Returns:
        The device that the method computes on: the CPU, where the graph is, if it has no weights.
    """
    if not hasattr(values, "train"):
        graph = subgraph(graph, min(WARM_UP_NODES, graph.num_nodes))
    else:
        values = replace(values, train=replace(values.train, epochs=min(FIRST_EPOCHS, values.train.epochs)))
    method, _, _ = training.train_and_embed(get_method(name), values, graph, device=device)
    return device if next(method.parameters(), None) is not None else torch.device("cpu")


@functools.lru_cache(maxsize=1)
def _graph(dataset: str, data_dir: Path | None) -> Data:
    """Cached, since the cells of a dataset follow each other."""
    return load_graph(dataset, data_dir=data_dir)
