"""Train, embed and evaluate one seed, and write its RUN folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from costa import settings, training
from costa.evaluate import health
from costa.graphs import is_name
from costa.graphs.stages import begin, silent
from costa.graphs.storage import StoredGraph, open_array
from costa.methods import get_method
from costa.methods.base import Method
from costa.runs.columns import save_columns
from costa.runs.evaluation import evaluate_all
from costa.runs.files import COLUMNS, CONFIG, EMBEDDINGS, SCHEMA, write_json
from costa.runs.folder import (
    check_same_content,
    check_same_held_out,
    check_same_nodes,
    check_same_settings,
    content_digest,
    has_ended,
    nodes_digest,
)
from costa.runs.jobs import Job
from costa.runs.metrics import Metrics, read_metrics, write_metrics
from costa.runs.models import save_state
from costa.runs.provenance import commit, peak_memory, reset_peak_memory, versions
from costa.runs.vectors import table_name, write_rows, write_vectors


def execute(
    job: Job,
    folder: Path,
    seed: int,
    *,
    interruptible: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    report: training.Report | None = None,
) -> Metrics:
    """Train, embed and evaluate one seed; write the RUN folder; return its metrics.

    The model and the vectors are on disk before they are evaluated, and the checkpoint is removed last, so ``resume``
    works after any interruption.

    Args:
        job: What to train.
        folder: The RUN folder, accepted by :func:`costa.runs.folder.claim`.
        seed: Random seed.
        interruptible: Whether the first Ctrl-C ends training after the current epoch and keeps the results.
        should_stop: Another condition that ends training in the same way.
        report: Called with the progress.
    """
    ended = start_run(job, folder, seed)
    job.ranks.agree(ended is not None)
    if ended is not None:
        return evaluate_all(job, [folder], [ended])[0]
    reset_peak_memory(job.device)
    with empty_on_failure(job, [folder]):
        method, outcome = _train(job, folder, seed, interruptible, should_stop, report)
    metrics = write_run(job, folder, seed, outcome, method)
    return evaluate_all(job, [folder], [metrics])[0]


def assist(job: Job, folder: Path, seed: int) -> None:
    """Train and embed the rows of a process that is not the first; the first one runs :func:`execute`."""
    if job.ranks.agree(False) == (True,):
        return
    method, _ = _train(job, folder, seed, interruptible=True)
    for _ in method.embed_rows(job.graph):
        pass  # sent to the first


def _train(
    job: Job,
    folder: Path,
    seed: int,
    interruptible: bool,
    should_stop: Callable[[], bool] = lambda: False,
    report: training.Report | None = None,
) -> tuple[Method, training.Outcome]:
    method = training.build(get_method(job.method), job.resolved.values, job.graph, seed, job.device)
    method.join(job.ranks)
    # a method without epochs is interrupted at once
    waits = interruptible and job.train is not None
    stopping = training.stop_on_interrupt(patient=job.ranks.size > 1)
    with stopping if waits else contextlib.nullcontext(lambda: False) as interrupted:
        outcome = training.train(
            method,
            job.graph,
            job.train,
            folder=folder,
            resume=job.resume,
            report=report,
            should_stop=lambda: interrupted() or should_stop(),
        )
    return method, outcome


def start_run(job: Job, folder: Path, seed: int) -> Metrics | None:
    """Write ``config.json``; if a resumed run has already ended, return its metrics instead."""
    flat = settings.flatten(job.resolved.values)
    if job.resume and (folder / CONFIG).exists():
        check_same_nodes(folder, job.graph)
        check_same_held_out(folder, job.held_out)  # with other edges held out, training would see others
        check_same_content(folder, job.graph)
        check_same_settings(folder, flat)
        if has_ended(folder):
            return read_metrics(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # a graph that was read from files has ids, and is found again from any folder
    from_files = job.graph.get("node_ids") is not None and not is_name(job.spec)
    where = str(Path(job.spec).resolve()) if from_files else job.spec
    config = {
        "schema": SCHEMA,
        "method": job.method,
        "graph": where,
        "dataset": job.graph.name,
        "seed": seed,
        "in_features": job.graph.num_features,
        "nodes": nodes_digest(job.graph),
        "content": content_digest(job.graph),
        "memory": job.memory,
        "settings": flat,
        "origins": job.resolved.origins,
    }
    config |= save_columns(folder, job.graph.get("columns"))
    if job.chosen is not None:
        config["chosen"] = job.chosen
    if job.held_out is not None:
        config["held_out_edges"] = job.held_out.to_dict()
    write_json(folder / CONFIG, config)
    return None


@contextlib.contextmanager
def empty_on_failure(job: Job, folders: Sequence[Path]) -> Iterator[None]:
    """Remove the folders of runs that fail before they have trained, so that they do not block the next try."""
    try:
        yield
    except Exception:
        for folder in folders if not job.resume else []:
            begun = {CONFIG, COLUMNS, training.LOG}
            if not {file.name for file in folder.iterdir()} - begun:
                for name in begun:
                    (folder / name).unlink(missing_ok=True)
                folder.rmdir()
        raise


def write_run(
    job: Job,
    folder: Path,
    seed: int,
    outcome: training.Outcome,
    method: Method,
    *,
    together: int = 1,
) -> Metrics:
    """Write the model, the vectors and the metrics of a run; return the metrics, which have no scores yet.

    Args:
        job: What was trained.
        folder: The RUN folder, from :func:`start_run`.
        seed: The run's random seed.
        outcome: How training ended.
        method: The trained method.
        together: Number of runs that share the seconds and the memory.
    """
    save_state(folder, method.state_dict())
    began = time.perf_counter()
    report = job.graph.report if isinstance(job.graph, StoredGraph) else silent
    done = begin(report, f"Writing {folder / EMBEDDINGS} …")
    written = write_rows(folder / EMBEDDINGS, method.embed_rows(job.graph), job.graph.num_nodes, done)
    embed_seconds = time.perf_counter() - began
    method.forget()  # what was prepared may be large, and nothing below needs it
    if isinstance(job.graph, StoredGraph):
        job.graph.drop_pages()
    if job.graph.get("node_ids") is not None:
        table = folder / table_name()
        done = begin(report, f"Writing {table} …")
        write_vectors(table, open_array(folder / EMBEDDINGS), job.graph.node_ids, done)
    status = health.status(written.some, job.graph.x, method.code_columns) if written.finite else "diverged"
    metrics = Metrics(
        method=job.method,
        dataset=job.graph.name,
        seed=seed,
        status=status if status == "diverged" or outcome.status == "ok" else outcome.status,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        embed_seconds=embed_seconds,
        trained_together=together,
        processes=job.ranks.size,
        peak_memory_bytes=peak_memory(job.device),
        device=torch.cuda.get_device_name(job.device) if job.device.type == "cuda" else "cpu",
        commit=commit(),
        versions=versions(),
        loss_fell=training.loss_fell(outcome.losses),
        health=health.measure(written.some, job.device) if written.finite else None,
        watch=outcome.watched,
    )
    write_metrics(folder, metrics)
    if outcome.status != "interrupted":
        (folder / training.CHECKPOINT).unlink(missing_ok=True)
    return metrics
