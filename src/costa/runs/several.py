"""Several seeds of one job: in parallel on a GPU, in processes on a CPU; evaluated together.

A small graph leaves most of a GPU unused, so all seeds are trained together (:func:`costa.training.train_together`).
If they do not fit into memory together, fewer are.

What a graph on disk may take is for all processes together. This one writes the hops while it has all memory to itself;
then each process that trains gets its share, and there are fewer of them, or none, if a share would be too small.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from costa import training
from costa.errors import is_out_of_memory
from costa.graphs import load_graph
from costa.graphs.again import read_again
from costa.graphs.columns import Columns
from costa.graphs.sizes import sizes_of
from costa.graphs.storage import StoredGraph
from costa.memory import IMPORTS, share
from costa.methods import get_method
from costa.methods.base import GradientMethod
from costa.methods.encoding import EncoderMethod
from costa.nn import Hops
from costa.runs.estimate import seeds_at_once
from costa.runs.evaluation import evaluate_all
from costa.runs.execution import empty_on_failure, start_run, write_run
from costa.runs.execution import execute as execute_one
from costa.runs.folder import has_ended
from costa.runs.jobs import Job, cores
from costa.runs.metrics import Metrics
from costa.runs.provenance import reset_peak_memory
from costa.settings.presets import Resolved


def execute(
    job: Job, folders: Mapping[int, Path], data_dir: Path | None, *, report: training.Report | None = None
) -> Iterator[Metrics]:
    """Train, embed and evaluate all seeds; yield the metrics of each.

    Seeds that are trained together are yielded together; resumed seeds are grouped by their progress. The first Ctrl-C
    ends training after the current epoch and keeps the results; seeds that had not started yield nothing.

    Args:
        job: What to train.
        folders: The RUN folder of each seed, from :func:`costa.runs.claim_folders`.
        data_dir: The folder of benchmark graphs, for the processes.
        report: Called with the progress, unless the seeds train in processes.
    """
    workers = _workers(job, folders)
    if workers > 1:
        yield from _in_processes(job, folders, data_dir, workers)
    elif job.device.type == "cuda" and len(folders) > 1:
        yield from _side_by_side(job, dict(folders), report)
    else:
        yield from _one_by_one(job, folders, report)


def in_processes(job: Job, folders: Mapping[int, Path]) -> bool:
    """Whether each seed is trained in its own process, which reports no progress."""
    return _workers(job, folders) > 1


def _workers(job: Job, folders: Mapping[int, Path]) -> int:
    """How many seeds are trained at the same time, each in its own process; 1 if they are trained in this one."""
    memory = job.graph.memory if isinstance(job.graph, StoredGraph) else None
    return seeds_at_once(job.method, job.resolved, sizes_of(job.graph), memory, job.device, len(folders))


def _one_by_one(job: Job, folders: Mapping[int, Path], report: training.Report | None) -> Iterator[Metrics]:
    for seed, folder in folders.items():
        metrics = execute_one(job, folder, seed, interruptible=True, report=report)
        yield metrics
        if metrics.status == "interrupted":
            return


def _side_by_side(job: Job, folders: dict[int, Path], report: training.Report | None) -> Iterator[Metrics]:
    """Train groups of seeds that have made the same progress and fit into memory together."""
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
            # here, because inside `except` the traceback still holds the memory
            torch.cuda.empty_cache()
            at_once = len(group) // 2
            continue
        yield from _evaluate(job, group, trained)
        if any(metrics.status == "interrupted" for metrics in trained):
            return
        folders = {seed: folder for seed, folder in folders.items() if seed not in group}


def _progress(job: Job, folder: Path) -> int:
    """Number of epochs that a run has trained; −1 if it has ended."""
    if not job.resume:
        return 0
    return -1 if has_ended(folder) else training.read_progress(folder) or 0


def _together(job: Job, folders: dict[int, Path], report: training.Report | None) -> list[Metrics] | None:
    """Train these seeds in parallel, unless they have ended; None if the method does not support that."""
    places = list(folders.values())
    ended = [start_run(job, folder, seed) for seed, folder in folders.items()]
    if all(metrics is not None for metrics in ended):
        return [metrics for metrics in ended if metrics is not None]
    reset_peak_memory(job.device)
    with empty_on_failure(job, places):
        chosen, values = get_method(job.method), job.resolved.values
        built = [training.build(chosen, values, job.graph, seed, job.device) for seed in folders]
        methods = [method for method in built if isinstance(method, GradientMethod) and method.capturable]
        if not methods or job.train is None:
            return None
        with training.stop_on_interrupt() as should_stop:
            outcomes = training.train_together(
                methods, job.graph, job.train, folders=places, resume=job.resume, report=report, should_stop=should_stop
            )
    metrics = []
    for (seed, folder), method, outcome in zip(folders.items(), methods, outcomes, strict=True):
        metrics.append(write_run(job, folder, seed, outcome, method, together=len(places)))
    return metrics


def _evaluate(job: Job, folders: Mapping[int, Path], trained: Sequence[Metrics]) -> Sequence[Metrics]:
    return evaluate_all(job, [folders[metrics.seed] for metrics in trained], trained)


def _in_processes(job: Job, folders: Mapping[int, Path], data_dir: Path | None, workers: int) -> Sequence[Metrics]:
    """Train in so many processes at a time, then evaluate in this one.

    The processes share the cores: on one small graph two threads are far from twice as fast as one.
    """
    import joblib
    from joblib.externals.loky import get_reusable_executor

    memory = None
    if isinstance(job.graph, StoredGraph):
        _write_hops(job)
        memory = f"{IMPORTS + share(job.graph.memory, workers + 1)}B"  # this process is one of them
    trained = []
    with tempfile.TemporaryDirectory() as folder_of_stop:
        stop = Path(folder_of_stop) / "stop"
        # each process reads the graph again, which is faster than sending it
        given = {"resume": job.resume, "chosen": job.chosen, "held_out": job.held_out, "memory": job.memory}
        work = (job.spec, job.graph.get("columns"), data_dir, memory, job.method, job.resolved, given, stop)
        tasks = [joblib.delayed(_train_here)(*work, seed, folder) for seed, folder in folders.items()]
        threads = max(1, cores() // workers)
        with (
            training.stop_on_interrupt(then=stop.touch) as interrupted,
            joblib.parallel_config(backend="loky", inner_max_num_threads=threads),
        ):
            try:
                for metrics in joblib.Parallel(n_jobs=workers, return_as="generator")(tasks):
                    if metrics is not None:
                        trained.append(metrics)
                        # a method without a loss has no epochs
                        done = f"{metrics.epochs} epochs" if metrics.epochs else "done"
                        took = f"{done} in {metrics.seconds:.1f} s"
                        job.announce(f"seed {metrics.seed}: {took}")
            except Exception:
                # A terminal sends Ctrl-C to every process; one that is still starting breaks the pool.
                if interrupted():
                    raise KeyboardInterrupt from None
                raise
    if memory is not None:
        get_reusable_executor().shutdown()  # what they keep for the next task is missing in the evaluation
    return _evaluate(job, folders, trained)


def _write_hops(job: Job) -> None:
    """Write what the processes will read, unless it is there."""
    method = training.build(get_method(job.method), job.resolved.values, job.graph, 0, job.device)
    if isinstance(method, EncoderMethod) and isinstance(method.encoder, Hops):
        method.prepare(job.graph)
        job.graph.drop_pages()


def _train_here(
    spec: str,
    columns: Columns | None,
    data_dir: Path | None,
    memory: str | None,
    method: str,
    resolved: Resolved,
    given: Mapping[str, Any],
    stop: Path,
    seed: int,
    folder: Path,
) -> Metrics | None:
    """Train one seed in this process, in its share of the memory; None if the stop file already exists."""
    if stop.exists():
        return None
    with read_again():
        graph = load_graph(spec, columns=columns, data_dir=data_dir, memory=memory)
    held_out = given["held_out"]
    if held_out is not None:
        graph, _ = held_out.again(graph)
    job = Job(graph, spec, method, resolved, torch.device("cpu"), probe=False, **given)
    return execute_one(job, folder, seed, interruptible=True, should_stop=stop.exists)
