"""Evaluate the vectors of runs and write the scores into metrics.json."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate.baselines import baseline_scores
from costa.evaluate.clustering import cluster
from costa.evaluate.links import LinkProbe, link_probe
from costa.evaluate.probe import linear_probe, linear_probes
from costa.evaluate.samples import Sample, labels_of, rows_at, sample_of, sampled_nodes
from costa.evaluate.scores import ProbeResult
from costa.graphs import graph_words
from costa.graphs.describe import is_labelled
from costa.methods import get_method
from costa.runs.files import read_config
from costa.runs.folder import load_run_edges, recorded_held_out
from costa.runs.jobs import DEFAULT_PROTOCOLS, Job
from costa.runs.metrics import Metrics, read_metrics, write_metrics
from costa.runs.vectors import load_embeddings
from costa.writing import locked

REPEATS = 20
"""Number of splits of each protocol."""


def evaluate_all(job: Job, folders: Sequence[Path], collected: Sequence[Metrics]) -> list[Metrics]:
    """Evaluate the runs that ended well and were not evaluated yet, all at once, and write the scores.

    If the job does not evaluate, or the graph has no labels, they stay as they are.
    """
    evaluated = list(collected)
    if not job.probe or not is_labelled(job.graph):
        return evaluated
    waiting = [i for i, metrics in enumerate(evaluated) if metrics.status == "ok" and not metrics.probes]
    if not waiting:
        return evaluated
    vectors = [load_embeddings(folders[index]) for index in waiting]
    if job.paired:
        results = evaluate_pairs(vectors, [evaluated[index].seed for index in waiting], job)
    else:
        results = evaluate(vectors, job.graph, job.device, job.protocols, job.announce)
    for index, scores in zip(waiting, results, strict=True):
        evaluated[index] = replace(collected[index], **scores)
        write_metrics(folders[index], evaluated[index])
    return evaluated


def evaluate(
    vectors: Sequence[torch.Tensor],
    graph: Data,
    device: torch.device,
    protocols: Sequence[str] = DEFAULT_PROTOCOLS,
    announce: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Probes, clustering and baselines of each; a protocol that needs more labels is announced and skipped.

    A graph with very many labels is evaluated on a sample.
    """
    nodes = sampled_nodes(graph.y)
    labels = labels_of(graph, nodes)
    probes: list[list[ProbeResult]] = [[] for _ in vectors]
    announce(f"Evaluating the vectors by {' and '.join(protocols)} …")
    baselines = None
    for protocol in protocols:
        try:
            results = _probes(vectors, labels, device, protocol, nodes=nodes)
        except InputError as problem:
            announce(f"Not evaluated: {problem}")
            continue
        for collected, result in zip(probes, results, strict=True):
            collected.append(result)
        if protocol == DEFAULT_PROTOCOLS[0]:
            baselines = baseline_scores(graph, protocol, REPEATS, device, announce)
    shared = {"baselines": baselines, "sample": sample_of(graph.y)}
    return [
        {"probes": collected, "clustering": cluster(rows_at([z], nodes), labels.y), **shared}
        for collected, z in zip(probes, vectors, strict=True)
    ]


def evaluate_pairs(vectors: Sequence[torch.Tensor], seeds: Sequence[int], job: Job) -> list[dict[str, Any]]:
    """``probes`` of each on one split: seed s on split s.

    A method without randomness gives the same run for all seeds, which is evaluated on every split.
    """
    random = get_method(job.method).random
    every = [_probes(vectors, job.graph, job.device, protocol, seeds if random else None) for protocol in job.protocols]
    return [
        {"probes": [replace(probe, split=seed) if random else probe for probe in probes]}
        for seed, probes in zip(seeds, zip(*every, strict=True), strict=True)
    ]


def _probes(
    vectors: Sequence[torch.Tensor],
    graph: Data,
    device: torch.device,
    protocol: str,
    own_splits: Sequence[int] | None = None,
    nodes: torch.Tensor | None = None,
) -> list[ProbeResult]:
    """The linear probe of each set of vectors; ``graph`` has the labels of these nodes, or of all."""
    # a CPU gains nothing from a batch, and would hold all of it in float64
    at_once = len(vectors) if device.type == "cuda" else 1
    results = []
    for start in range(0, len(vectors), at_once):
        part = slice(start, start + at_once)
        results += linear_probes(
            [rows_at([z], nodes) for z in vectors[part]],
            graph.y,
            protocol,
            repeats=REPEATS,
            own_splits=None if own_splits is None else own_splits[part],
            masks=graph,
            device=device,
        )
    return results


def probe_graph(
    z: torch.Tensor, graph: Data, protocol: str, repeats: int = REPEATS, device: torch.device | None = None
) -> ProbeResult:
    """The linear probe with the graph's labels, a sample if they are very many, and, for ``public``, its masks."""
    nodes = sampled_nodes(graph.y)
    labels = labels_of(graph, nodes)
    return linear_probe(rows_at([z], nodes), labels.y, protocol, repeats=repeats, masks=labels, device=device)


def probe_links(
    folder: Path, data_dir: Path | None = None, memory: str | None = None, moved_to: str | None = None
) -> LinkProbe:
    """Score a run on the edges that it held out, and write the scores into ``metrics.json``.

    Args:
        folder: A RUN folder.
        data_dir: Folder that is searched first for benchmark graphs.
        memory: As for :func:`costa.runs.load_run_graph`.
        moved_to: Where the graph is now, as for :func:`costa.runs.load_run_graph`.
    """
    if recorded_held_out(folder) is None:
        raise InputError(
            f"the run in {folder} was trained on all edges, so no edge is left to score it on; train one that holds"
            f" some out: {_with_held_out_edges(folder)}"
        )
    edges, z = load_run_edges(folder, data_dir, memory, moved_to), load_embeddings(folder)
    assert edges.held is not None
    result = link_probe(z, edges.whole, edges.training, edges.held)
    with locked(folder):
        write_metrics(folder, replace(read_metrics(folder), links=result))
    return result


def _with_held_out_edges(folder: Path) -> str:
    """The command that trains a run's method on the same graph with held-out edges."""
    config = read_config(folder)
    out = folder.with_name(f"{folder.name}-links")
    more = ["--method", config["method"], "--hold-out-edges", "0.1", "--out", str(out)]
    return shlex.join(["costa", "train", *graph_words(config["graph"]), *more])


def add_probe(folder: Path, result: ProbeResult, sample: Sample | None = None) -> None:
    """Write a probe, and on which sample, into ``metrics.json``, replacing an earlier one of the same protocol."""
    with locked(folder):
        metrics = read_metrics(folder)
        probes = {probe.protocol: probe for probe in metrics.probes} | {result.protocol: result}
        write_metrics(folder, replace(metrics, probes=list(probes.values()), sample=sample))
