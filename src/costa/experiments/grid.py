"""The runs behind a table or a figure: which are asked for, which the store has, and how the others are made.

A *cell* is one number of a table or one point of a figure: a method on a dataset with settings, run with several
seeds. Runs are looked for in the store by their settings, whoever made them, and only what is missing is trained: on a
GPU all seeds of a cell as one program, on a CPU each in a process. The processes are joblib's: inside
``joblib.parallel_config("dask")``, or Ray's, they are on other machines.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa import many, runs, settings
from costa.experiments import presets, store
from costa.graphs import load_graph
from costa.methods import get_method

PROTOCOLS = (*runs.DEFAULT_PROTOCOLS, "random-10-80-10", "strict-10-10-80")
"""What every run of an experiment is judged by."""
FROM_GRAPH = ("features.scaling", "sketch.ratio")
"""What a method may choose from the graph: where nobody asks for a value, any that was chosen will do."""

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
    """

    method: str
    dataset: str
    preset: str = "tuned"
    given: Settings = ()
    experiment: str | None = None

    @property
    def label(self) -> str:
        """What it is, for a person."""
        changed = "".join(f", {key} {value}" for key, value in self.given)
        preset = f" ({self.preset})" if self.preset != "tuned" else ""
        return f"{self.method}{preset} on {self.dataset}{changed}"

    def file(self, results: Path) -> Path:
        """Where its runs are, among others of the method on the dataset."""
        return self.root(results) / self.method / f"{self.dataset}.jsonl"

    def root(self, results: Path) -> Path:
        """The store they are in."""
        return results / "experiments" / self.experiment if self.experiment else results

    def seeds(self, count: int) -> range:
        """Those it is run with; a method without randomness is the same with every seed."""
        return range(count if get_method(self.method).random else 1)

    @functools.cached_property
    def asked(self) -> dict[str, Any]:
        """Its settings by dotted key, as the store has them, without those that are left to the graph."""
        method = get_method(self.method)
        preset = presets.load_preset(self.preset, self.method, self.dataset) or {}
        merged: Any = settings.merge(method.Settings, [(self.preset, preset), ("given", dict(self.given))])[0]
        left = set(FROM_GRAPH) - set(preset) - set(dict(self.given))
        flat: dict[str, Any] = json.loads(json.dumps(settings.flatten(merged)))
        return {key: value for key, value in flat.items() if key not in left}

    def fits(self, run: Mapping[str, Any]) -> bool:
        """Whether a run of the store is one of this cell's: with its settings, and judged unless it came to nothing."""
        known = settings.flatten(get_method(self.method).Settings())
        # what an older run did not know of, it had by default
        had = json.loads(json.dumps(known)) | run["settings"]
        judged = {probe["protocol"] for probe in run["probes"]}
        complete = run["status"] != "ok" or judged.issuperset(PROTOCOLS)
        return complete and all(had[key] == value for key, value in self.asked.items())


def find(cell: Cell, results: Path, count: int) -> dict[int, dict[str, Any]]:
    """The cell's runs in the store, by seed; of a seed that was run twice the last."""
    path = cell.file(results)
    found = {run["seed"]: run for run in store.read(path) if cell.fits(run)} if path.exists() else {}
    return {seed: found[seed] for seed in cell.seeds(count) if seed in found}


def missing(cells: Sequence[Cell], results: Path, count: int) -> list[tuple[Cell, list[int]]]:
    """Each cell that lacks runs, once, with the seeds it lacks."""
    lacking = {cell: sorted(set(cell.seeds(count)) - set(find(cell, results, count))) for cell in cells}
    return [(cell, seeds) for cell, seeds in lacking.items() if seeds]


def pairs(cell: Cell, found: Mapping[int, Mapping[str, Any]], protocol: str, count: int) -> list[float]:
    """The accuracy of seed s on split s, for each seed that was run; without randomness, of its one run on each split.

    A run that diverged or collapsed has none.
    """
    scores = {
        seed: probe["accuracy"]["per_split"]
        for seed, run in found.items()
        for probe in run["probes"]
        if probe["protocol"] == protocol
    }
    if not get_method(cell.method).random:
        return [accuracy for per_split in scores.values() for accuracy in per_split[:count]]
    return [per_split[seed] for seed, per_split in scores.items() if seed < len(per_split)]


@dataclass(frozen=True)
class Done:
    """What a task has made: a cell's runs with some seeds, as the store keeps them."""

    cell: Cell
    metrics: list[dict[str, Any]]
    settings: dict[str, Any]


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
        jobs: Tasks at a time; what joblib is configured for where it is not given.
        report: Hears of each task that has ended.
    """
    import joblib

    tasks = [joblib.delayed(_train)(cell, seeds, device, data_dir) for cell, seeds in _tasks(work, device)]
    for done in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
        for metrics in done.metrics:
            if metrics["status"] == "interrupted":
                raise KeyboardInterrupt
            store.append(done.cell.root(results), metrics, done.settings)
        report(done)


def _tasks(work: Sequence[tuple[Cell, list[int]]], device: torch.device) -> Iterator[tuple[Cell, list[int]]]:
    for cell, seeds in work:
        if device.type == "cuda":
            yield cell, seeds
        else:
            yield from ((cell, [seed]) for seed in seeds)


def _train(cell: Cell, seeds: list[int], device: torch.device, data_dir: Path | None) -> Done:
    """Train and judge the cell with these seeds; its RUN folders do not outlive it."""
    graph = _graph(cell.dataset, data_dir)
    resolved = presets.resolve(get_method(cell.method), graph, preset=cell.preset, given=dict(cell.given))
    job = runs.Job(graph, cell.dataset, cell.method, resolved, device, protocols=PROTOCOLS)
    with tempfile.TemporaryDirectory() as room:
        folders = {seed: Path(room) / str(seed) for seed in seeds}
        metrics = list(many.execute(job, folders, data_dir))
    return Done(cell, metrics, settings.flatten(resolved.values))


@functools.lru_cache(maxsize=1)
def _graph(dataset: str, data_dir: Path | None) -> Data:
    """Cells of a dataset follow each other."""
    return load_graph(dataset, data_dir=data_dir)
