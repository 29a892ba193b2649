"""One seed against the twenty of the protocol, each trained and probed: what a GPU makes of many initialisations."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

from costa import runs, training
from costa.bench.measure import Row, count_edges, seconds
from costa.errors import InputError
from costa.experiments.presets import resolve
from costa.graphs import load_graph
from costa.methods import get_method
from costa.probe import ProbeResult, linear_probes
from costa.wording import counted

SEEDS = (1, 20)
REPEATS = 3


def one_against_twenty(device: torch.device, data_dir: Path | None) -> Iterator[list[Row]]:
    """Cora, one view with its default settings: a row for each number of seeds."""
    if device.type != "cuda":
        raise InputError("the suite seeds measures what a GPU makes of many seeds; on a CPU they run in processes.")
    graph = load_graph("cora", data_dir=data_dir)
    found = []
    for count in SEEDS:
        work = partial(train_and_probe, graph, count, device)
        work()
        times = [seconds(device, work) for _ in range(REPEATS)]
        name = f"costa-sv, {counted(count, 'seed')}"
        row = Row(graph.name, graph.num_nodes, count_edges(graph), name)
        found.append(replace(row, seconds_to_probed=statistics.median(times)))
    yield found


def train_and_probe(graph: Data, count: int, device: torch.device) -> list[ProbeResult]:
    """Seeds 0 … count − 1 from their initialisation to their scores, as one program where there are several."""
    chosen = get_method("costa-sv")
    settings = resolve(chosen, graph, preset="none").values
    if count > 1:
        stack = training.stacked(chosen, settings, graph, range(count), device)
        assert stack is not None
        training.train_stacked(stack, graph, settings.train)
        vectors = list(stack.embed(graph))
    else:
        method = training.build(chosen, settings, graph, 0, device)
        training.train(method, graph, settings.train)
        vectors = [method.embed(graph)]
    return linear_probes(vectors, graph.y, runs.DEFAULT_PROTOCOLS[0], repeats=runs.REPEATS, device=device)
