"""The runs behind a table or a figure: which are asked for, which the store has, and how the others are made.

A *cell* is one number of a table or one point of a figure: a method on a dataset with settings, run with several
seeds. Runs are looked for in the store by their settings, whoever made them, and only what is missing is trained: on a
GPU all seeds of a cell as one program where the method can be stacked, else each in a process. The processes are
joblib's: inside ``joblib.parallel_config("dask")``, or Ray's, they are on other machines.

Runs that share a device share its time. A cell whose seconds are asked for is run *alone*: after all others, in this
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

from costa import many, runs, settings, training
from costa.bench.measure import FIRST_EPOCHS
from costa.bench.suites import subgraph
from costa.errors import InputError, is_out_of_memory
from costa.experiments import presets, store
from costa.graphs import load_graph
from costa.methods import get_method
from costa.methods.base import GradientMethod

PROTOCOLS = (*runs.DEFAULT_PROTOCOLS, "random-10-80-10", "strict-10-10-80")
"""What every run of an experiment is judged by."""

TIMINGS = 3
"""Runs that a time is the median of, at the most."""
WARM_UP_NODES = 500
"""Of the subgraph on which a method without epochs warms up: random walks on the whole would take as long again."""

Settings = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        method: One of :data:`costa.methods.METHODS`.
        dataset: A benchmark's name.
        preset: The settings it starts from; the method's own where the dataset has none.
        given: Settings over those, as ``--set`` would give them.
        experiment: Its folder under ``results/experiments/``; none for the main tables, which are in ``results/``.
        alone: Whether its runs are there for their seconds: warmed up, nothing beside them, judged by one protocol.
    """

    method: str
    dataset: str
    preset: str = "tuned"
    given: Settings = ()
    experiment: str | None = None
    alone: bool = False

    @property
    def label(self) -> str:
        """What it is, for a person."""
        changed = "".join(f", {key} {value}" for key, value in self.given)
        preset = f" ({self.preset})" if self.preset != "tuned" else ""
        return f"{self.method}{preset} on {self.dataset}{changed}{', alone' * self.alone}"

    def file(self, results: Path) -> Path:
        """Where its runs are, among others of the method on the dataset."""
        return self.root(results) / self.method / f"{self.dataset}.jsonl"

    def root(self, results: Path) -> Path:
        """The store they are in."""
        return results / "experiments" / self.experiment if self.experiment else results

    def seeds(self, count: int) -> range:
        """Those it is run with; a method without randomness is the same with every seed, but for its seconds."""
        if self.alone:
            return range(min(count, TIMINGS))
        return range(count if get_method(self.method).random else 1)

    @property
    def protocols(self) -> Sequence[str]:
        """What its runs are judged by; of those that are timed, enough to see that they are the table's models."""
        return PROTOCOLS[:1] if self.alone else PROTOCOLS

    @functools.cached_property
    def asked(self) -> dict[str, Any]:
        """Its settings by dotted key, as the store has them, without those that are left to the graph."""
        method = get_method(self.method)
        preset = presets.load_preset(self.preset, self.method, self.dataset) or {}
        merged: Any = settings.merge(method.Settings, [(self.preset, preset), ("given", dict(self.given))])[0]
        left = set(presets.FROM_GRAPH) - set(preset) - set(dict(self.given))
        flat: dict[str, Any] = json.loads(json.dumps(settings.flatten(merged)))
        return {key: value for key, value in flat.items() if key not in left}

    def fits(self, run: Mapping[str, Any]) -> bool:
        """Whether a run of the store is one of this cell's.

        It has the cell's settings, was judged unless it came to nothing, and was run alone if and only if the cell is.
        What the cell leaves to the graph, nobody asked the run for either.
        """
        known = settings.flatten(get_method(self.method).Settings())
        # what an older run did not know of, it had by default
        had = json.loads(json.dumps(known)) | run["settings"]
        judged = {probe["protocol"] for probe in run["probes"]}
        complete = run["status"] != "ok" or judged.issuperset(self.protocols)
        same_kind = run.get("alone", False) == self.alone
        left = set(presets.FROM_GRAPH) - set(self.asked)
        return (
            same_kind
            and complete
            and left.isdisjoint(run.get("set", ()))
            and all(had[key] == value for key, value in self.asked.items())
        )


def find(cell: Cell, results: Path, count: int) -> dict[int, dict[str, Any]]:
    """The cell's runs in the store, by seed; of a seed that was run twice the last."""
    path = cell.file(results)
    found = {run["seed"]: run for run in store.read(path) if cell.fits(run)}
    return {seed: found[seed] for seed in cell.seeds(count) if seed in found}


def missing(cells: Sequence[Cell], results: Path, count: int) -> list[tuple[Cell, list[int]]]:
    """Each cell that lacks runs, once, with the seeds it lacks; cells with the same settings share their runs."""
    unlike: dict[Any, Cell] = {}
    for cell in cells:
        unlike.setdefault((cell.file(results), cell.alone, json.dumps(cell.asked, sort_keys=True)), cell)
    lacking = {cell: sorted(set(cell.seeds(count)) - set(find(cell, results, count))) for cell in unlike.values()}
    return [(cell, seeds) for cell, seeds in lacking.items() if seeds]


def pairs(cell: Cell, found: Mapping[int, Mapping[str, Any]], protocol: str, count: int) -> dict[int, float]:
    """By split the accuracy of seed s on split s; of a method without randomness that of its one run.

    A run that diverged or collapsed has none.
    """
    scores = {
        seed: runs.by_split(probe)
        for seed, run in found.items()
        for probe in run["probes"]
        if probe["protocol"] == protocol
    }
    if not get_method(cell.method).random:
        return {split: own[split] for own in scores.values() for split in range(count) if split in own}
    return {seed: own[seed] for seed, own in scores.items() if seed in own}


@dataclass(frozen=True)
class Done:
    """What a task has made: a cell's runs with some seeds, as the store keeps them; or ``why`` it made none."""

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
    """Make the runs and add them to the store, each as soon as it is there.

    Args:
        work: From :func:`missing`.
        results: The store.
        device: Where to train.
        data_dir: Where benchmark graphs are.
        jobs: Tasks at a time, but for runs alone; what joblib is configured for where it is not given.
        report: Hears of each task that has ended.
    """
    import joblib

    tasks = list(_tasks(work, device))
    shared = [joblib.delayed(_train)(*task, device, data_dir) for task in tasks if not task[0].alone]
    beside_others = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(shared)
    # none begins before the last of the others has ended
    alone = (_train(*task, device, data_dir) for task in tasks if task[0].alone)
    for done in itertools.chain(beside_others, alone):
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
    """Whether a GPU has all seeds of a cell at once; those of a method without a loss share what is computed once."""
    method = get_method(cell.method)
    if not issubclass(method, GradientMethod):
        return True
    # what a graph would choose makes no difference to this
    scaling = {"features.scaling": "none"}
    values: Any = settings.merge(method.Settings, [("any", scaling), ("cell", cell.asked)])[0]
    built = method.build(values, 1, torch.Generator())
    assert isinstance(built, GradientMethod)
    return built.stackable


def _train(cell: Cell, seeds: list[int], device: torch.device, data_dir: Path | None) -> Done:
    """Train and judge the cell with these seeds; its RUN folders do not outlive it.

    Where they cannot be trained, the others still can: it is said, and the store goes without them.
    """
    graph = _graph(cell.dataset, data_dir)
    resolved = presets.resolve(get_method(cell.method), graph, preset=cell.preset, given=dict(cell.given))
    flat = settings.flatten(resolved.values)
    try:
        if cell.alone:
            device = _warm_up(cell.method, resolved.values, graph, device)
        job = runs.Job(graph, cell.dataset, cell.method, resolved, device, protocols=cell.protocols, paired=True)
        with tempfile.TemporaryDirectory() as room:
            folders = {seed: Path(room) / str(seed) for seed in seeds}
            metrics = list(many.execute(job, folders, data_dir))
    except InputError as problem:
        return Done(cell, seeds, [], flat, str(problem))
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
    else:
        own = {"set": resolved.set_by_hand} | ({"alone": True} if cell.alone else {})
        return Done(cell, seeds, [run | own for run in metrics], flat)
    # out here, where nothing holds what was allocated any more; other processes may need it
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return Done(cell, seeds, [], flat, "there is not enough memory for it.")


def _warm_up(name: str, values: Any, graph: Data, device: torch.device) -> torch.device:
    """Do once, untimed, what only the first training in a process pays for: starting CUDA, compiling, importing.

    With the same graph and settings, since kernels are compiled for their shapes.

    Returns:
        Where the method computes. One without weights does so where the graph is, on the CPU, and its line should say.
    """
    method = training.build(get_method(name), values, graph, seed=0, device=device)
    train = getattr(values, "train", None)
    if train is None:
        graph = subgraph(graph, min(WARM_UP_NODES, graph.num_nodes))
    else:
        train = replace(train, epochs=min(FIRST_EPOCHS, train.epochs))
    training.train(method, graph, train)
    method.embed(graph)
    return device if next(method.parameters(), None) is not None else torch.device("cpu")


@functools.lru_cache(maxsize=1)
def _graph(dataset: str, data_dir: Path | None) -> Data:
    """Cells of a dataset follow each other."""
    return load_graph(dataset, data_dir=data_dir)
