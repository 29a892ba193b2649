"""Several seeds of one job: as one program on a GPU, in processes on a CPU; judged in one solve.

A small graph leaves most of a GPU idle, so all initialisations are stacked into one program
(:func:`costa.training.stacked`). Where they do not fit into memory, fewer are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from costa import runs, training
from costa.errors import is_out_of_memory
from costa.experiments.presets import Resolved
from costa.floors import FLOORS
from costa.graphs import load_graph
from costa.methods import get_method
from costa.methods.base import state_of


def execute(
    job: runs.Job, folders: Mapping[int, Path], data_dir: Path | None, *, report: training.Report | None = None
) -> Iterator[dict[str, Any]]:
    """Train, embed and probe all seeds; yield the metrics of each.

    Those that are trained together come together, resumed ones with those that were as far.

    The first Ctrl-C ends the training after the epoch it is in, and keeps what there is; of seeds that had not begun
    nothing comes.

    Args:
        job: What to do.
        folders: The RUN folder of each seed, accepted by :func:`costa.runs.claim`.
        data_dir: Where the processes find benchmark graphs.
        report: Hears of the epochs, where they are trained together.
    """
    if in_processes(job, folders):
        yield from _in_processes(job, folders, data_dir)
    elif job.device.type == "cuda" and len(folders) > 1:
        yield from _stacked(job, dict(folders), report)
    else:
        yield from _one_by_one(job, folders, report)


def in_processes(job: runs.Job, folders: Mapping[int, Path]) -> bool:
    """Whether the seeds are trained in processes of their own, from which no epoch is heard.

    A floor is there sooner than a process has started.
    """
    return job.device.type == "cpu" and job.method not in FLOORS and len(folders) > 1 and cores() > 1


def _one_by_one(job: runs.Job, folders: Mapping[int, Path], report: training.Report | None) -> Iterator[dict[str, Any]]:
    for seed, folder in folders.items():
        metrics = runs.execute(job, folder, seed, interruptible=True, report=report)
        yield metrics
        if metrics["status"] == "interrupted":
            return


def _stacked(job: runs.Job, folders: dict[int, Path], report: training.Report | None) -> Iterator[dict[str, Any]]:
    """In groups of seeds that are equally far and fit into memory together."""
    at_once = len(folders)
    while folders:
        first = _progress(job, next(iter(folders.values())))
        group = {seed: folder for seed, folder in folders.items() if _progress(job, folder) == first}
        group = dict(list(group.items())[:at_once])
        try:
            trained = _together(job, group, report)
        except RuntimeError as problem:
            if len(group) == 1 or not is_out_of_memory(problem):
                raise
            trained = []
        if trained is None:
            yield from _one_by_one(job, folders, report)
            return
        if not trained:
            # out here, where nothing holds what was allocated any more
            torch.cuda.empty_cache()
            at_once = len(group) // 2
            continue
        yield from _judged(job, group, trained)
        if any(metrics["status"] == "interrupted" for metrics in trained):
            return
        folders = {seed: folder for seed, folder in folders.items() if seed not in group}


def _progress(job: runs.Job, folder: Path) -> int:
    """The epochs that a run has behind it; −1 for one that has ended and at most waits to be judged."""
    if not job.resume:
        return 0
    return -1 if runs.has_ended(folder) else training.read_progress(folder) or 0


def _together(job: runs.Job, folders: dict[int, Path], report: training.Report | None) -> list[dict[str, Any]] | None:
    """Train these seeds as one program, unless they have ended; None where the method cannot be stacked."""
    places = list(folders.values())
    ended = [runs.begin(job, folder, seed) for seed, folder in folders.items()]
    if all(metrics is not None for metrics in ended):
        return [metrics for metrics in ended if metrics is not None]
    runs.reset_peak_memory(job.device)
    with runs.leaving_nothing(job, places):
        method = training.stacked(get_method(job.method), job.resolved.values, job.graph, list(folders), job.device)
        if method is None or job.train is None:
            return None
        with training.stop_on_interrupt() as should_stop:
            outcomes = training.train_stacked(
                method, job.graph, job.train, folders=places, resume=job.resume, report=report, should_stop=should_stop
            )
    vectors, took = runs.embedded(method, job.graph)
    own = zip(outcomes, vectors, (state_of(method, i) for i in range(len(places))), strict=True)
    return [
        runs.finish(job, folder, seed, outcome, z, state, embed_seconds=took, together=len(places))
        for (seed, folder), (outcome, z, state) in zip(folders.items(), own, strict=True)
    ]


def _judged(job: runs.Job, folders: Mapping[int, Path], trained: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return runs.judge_all(job, [folders[metrics["seed"]] for metrics in trained], trained)


def _in_processes(job: runs.Job, folders: Mapping[int, Path], data_dir: Path | None) -> Sequence[dict[str, Any]]:
    """Trained by as many processes as there are cores, then judged by this one.

    With as few threads each as there are cores for them: on one small graph two threads are far from twice as fast.
    """
    import joblib

    workers = min(len(folders), cores())
    trained = []
    with tempfile.TemporaryDirectory() as room:
        stop = Path(room) / "stop"
        # each process reads the graph again, which is quicker than sending it
        work = (job.spec, data_dir, job.method, job.resolved, job.resume, stop)
        tasks = [joblib.delayed(_train_here)(*work, seed, folder) for seed, folder in folders.items()]
        threads = max(1, cores() // workers)
        with (
            training.stop_on_interrupt(then=stop.touch) as asked,
            joblib.parallel_config(backend="loky", inner_max_num_threads=threads),
        ):
            try:
                for metrics in joblib.Parallel(n_jobs=workers, return_as="generator")(tasks):
                    if metrics is not None:
                        trained.append(metrics)
                        # a method without a loss has no epochs
                        done = f"{metrics['epochs']} epochs" if metrics["epochs"] else "done"
                        took = f"{done} in {metrics['seconds']:.1f} s"
                        job.announce(f"seed {metrics['seed']}: {took}")
            except Exception:
                # A terminal sends Ctrl-C to every process; one that was still setting itself up breaks the pool.
                if asked():
                    raise KeyboardInterrupt from None
                raise
    return _judged(job, folders, trained)


def _train_here(
    spec: str,
    data_dir: Path | None,
    method: str,
    resolved: Resolved,
    resume: bool,
    stop: Path,
    seed: int,
    folder: Path,
) -> dict[str, Any] | None:
    """One seed, in a process of its own; None where the stop file was there before."""
    if stop.exists():
        return None
    graph = load_graph(spec, data_dir=data_dir)
    job = runs.Job(graph, spec, method, resolved, torch.device("cpu"), probe=False, resume=resume)
    return runs.execute(job, folder, seed, interruptible=True, should_stop=stop.exists)


def cores() -> int:
    """Cores that this process may use, a container's quota considered."""
    import joblib

    return int(joblib.cpu_count())
