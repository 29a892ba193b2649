"""One seed against the twenty of the protocol, trained together on a GPU and probed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

from costa import runs, training
from costa.errors import InputError
from costa.evaluate.probe import linear_probes
from costa.evaluate.scores import ProbeResult
from costa.graphs import load_graph
from costa.methods import get_method
from costa.methods.base import GradientMethod
from costa.settings.presets import resolve
from costa.wording import counted
from reproduction.bench.measure import Row, count_edges, seconds

SEEDS = (1, 20)
REPEATS = 3


def one_against_twenty(device: torch.device, data_dir: Path | None) -> Iterator[list[Row]]:
    """Cora, one view with a GCN and its default settings: a row for each number of seeds."""
    if device.type != "cuda":
        raise InputError("bench-seeds needs a GPU, and this device is a CPU; run it with --device cuda on a GPU.")
    graph = load_graph("cora", data_dir=data_dir)
    rows = []
    for count in SEEDS:
        work = partial(train_and_probe, graph, count, device)
        work()
        times = [seconds(device, work) for _ in range(REPEATS)]
        name = f"costa-sv, {counted(count, 'seed')}"
        row = Row(graph.name, graph.num_nodes, count_edges(graph), name)
        rows.append(replace(row, seconds_to_probed=statistics.median(times)))
    yield rows


def train_and_probe(graph: Data, count: int, device: torch.device) -> list[ProbeResult]:
    """Seeds 0 … count − 1 from their initialisation to their scores, trained together."""
    chosen = get_method("costa-sv")
    settings = resolve(chosen, graph, given={"encoder.kind": "gcn"}).values
    built = (training.build(chosen, settings, graph, seed, device) for seed in range(count))
    methods = [method for method in built if isinstance(method, GradientMethod)]
    training.train_together(methods, graph, settings.train)
    vectors = [method.embed(graph) for method in methods]
    return linear_probes(vectors, graph.y, runs.DEFAULT_PROTOCOLS[0], repeats=runs.REPEATS, device=device)
