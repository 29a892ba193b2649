"""A suite: graphs and contestants that are measured together, and their file ``SUITE-DEVICE.json``."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa import runs
from costa.errors import InputError
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition
from reproduction.bench import contestants
from reproduction.bench.contestants import Contestant
from reproduction.bench.measure import Row, measure, warm_up
from reproduction.bench.profile import profile_epoch
from reproduction.bench.seeds import one_against_twenty

SCHEMA = 1
SIZES = range(1000, 9000, 1000)
"""Nodes of the subgraphs in the paper's runtime figure."""
NODES = (20_000, 40_000, 80_000, 160_000)
"""Numbers of nodes of the graphs on which memory is compared."""


@dataclass(frozen=True)
class Bench:
    """How a suite is run: its device, the epochs of a timed round, and a function to call with the progress."""

    device: torch.device
    epochs: int
    data_dir: Path | None = None
    announce: Callable[[str], None] = lambda text: None


Suite = Callable[[Bench], Iterator[list[Row]]]
"""Takes a :class:`Bench` and yields the rows of each graph."""


def race(graphs: Callable[[Path | None], Iterator[Data]], *extra: Contestant) -> Suite:
    """The standard contestants, and ``extra``, on each of the graphs; ``graphs`` takes the data folder."""

    def rows(job: Bench) -> Iterator[list[Row]]:
        field = [*contestants.standard(job.device), *extra]
        warm_up(field, job.device)
        for graph in graphs(job.data_dir):
            measured = []
            for contestant in field:
                job.announce(f"{graph.name}: {contestant.name}")
                measured.append(measure(contestant, graph, job.device, epochs=job.epochs))
            yield measured

    return rows


def growing(job: Bench) -> Iterator[list[Row]]:
    """Memory against n at a fixed k, on graphs of known communities; the plain path stores P, which is k × n."""
    for nodes in NODES:
        graph = planted_partition(nodes, 8, 64, degree=10.0, seed=0)
        graph.name = f"communities-{nodes}"
        job.announce(graph.name)
        yield [
            measure(contestant, graph, job.device, epochs=job.epochs, probe=False)
            for contestant in (contestants.SV_FIXED, contestants.SV_FIXED_PLAIN_PATH)
        ]


def named(name: str) -> Callable[[Path | None], Iterator[Data]]:
    """One graph, by its name."""
    return lambda data_dir: iter([load_graph(name, data_dir=data_dir)])


def computers(data_dir: Path | None) -> Iterator[Data]:
    """Amazon-Computers: its subgraphs, then all of it."""
    graph = load_graph("amazon-computers", data_dir=data_dir)
    for size in SIZES:
        yield subgraph(graph, size)
    yield graph


def subgraph(graph: Data, size: int) -> Data:
    """The subgraph induced by ``size`` nodes, drawn uniformly: always the same ones, the smaller within the larger.

    >>> part = subgraph(load_graph("digits"), 100)
    >>> part.name, part.num_nodes
    ('digits-100', 100)
    """
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    dense = copy.copy(graph)
    dense.x = graph.x.to_dense()  # rows of a CSR tensor cannot be selected
    part = dense.subgraph(order[:size].sort().values)
    part.name = f"{graph.name}-{size}"
    return part


SUITES: dict[str, Suite] = {
    "runtime": race(computers),
    "physics": race(named("coauthor-physics")),
    "cora": race(named("cora"), contestants.SV_COUNTSKETCH),
    "digits": race(named("digits")),
    "memory": growing,
    "seeds": lambda job: one_against_twenty(job.device, job.data_dir),
}


PROFILE = "profile"
DESCRIPTIONS = {
    "runtime": "Amazon-Computers, 1,000 … 8,000 nodes and the whole graph (the paper's figure)",
    "physics": "Coauthor-Physics",
    "cora": "Cora, with a sparse sketch too",
    "digits": "the digits graph, no download",
    "memory": "graphs of 20,000 to 160,000 nodes at one k (GPU only: a CPU's memory cannot be attributed)",
    "seeds": "Cora, 1 seed against 20 at once (GPU only)",
    PROFILE: "one epoch on Coauthor-Physics, part by part (GPU only)",
}
TARGET = "bench-"
"""Prefix of a suite's name among the targets."""


def split_targets(names: Sequence[str], device: Callable[[], torch.device]) -> tuple[list[str], list[str]]:
    """The suites among the names of targets, and the other names; ``bench`` stands for what suits the device.

    >>> split_targets(["bench-cora", "table-main", "bench"], lambda: torch.device("cpu"))
    (['cora', 'digits'], ['table-main'])
    """
    benches, others = [], []
    for name in names:
        if name == TARGET.removesuffix("-"):
            benches += ["runtime", "physics"] if device().type == "cuda" else ["digits"]
        elif name.startswith(TARGET):
            benches.append(name.removeprefix(TARGET))
            if benches[-1] not in DESCRIPTIONS:
                known = ", ".join(TARGET + suite for suite in DESCRIPTIONS)
                raise InputError(f"unknown bench {name!r}; there are: {known}.")
        else:
            others.append(name)
    return benches, others


def run_suite(name: str, job: Bench, out: Path, report: Callable[[list[Row]], None] = lambda rows: None) -> Path:
    """Measure a suite and write ``OUT/SUITE-DEVICE.json``.

    Until the last graph is done, the rows are in ``SUITE-DEVICE.partial``: an interrupted suite leaves its measurements
    there, and an earlier complete file unchanged.

    Args:
        name: One of ``SUITES``, or ``PROFILE``, whose rows are the parts of one epoch.
        job: How to run it.
        out: The folder; created if it does not exist.
        report: Called with the rows of each graph.
    """
    device = torch.cuda.get_device_name(job.device) if job.device.type == "cuda" else "cpu"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}-{slug(device)}.json"
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "suite": name,
        "device": device,
        "versions": runs.versions(),
        "commit": runs.commit(),
        "threads": torch.get_num_threads(),
        "rows": [],
    }
    partial = path.with_suffix(".partial")
    if name == PROFILE:
        record |= profile_epoch(job.device, job.data_dir)
        partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    else:
        for rows in SUITES[name](job):
            record["rows"] += map(asdict, rows)
            partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            report(rows)
    os.replace(partial, path)
    return path


def slug(name: str) -> str:
    """A name for a file.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def speedups(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """For each contestant on one graph, how many times as fast as each twin it is, without those that were not timed.

    >>> rows = [Row("g", 9, 9, "plain GRACE", 6.0), Row("g", 9, 9, "plain GCA", None), Row("g", 9, 9, "costa-sv", 2.0)]
    >>> speedups(rows)
    {'plain GRACE': {'plain GRACE': 1.0}, 'costa-sv': {'plain GRACE': 3.0}}
    """
    timed = {row.contestant: row.ms_per_epoch for row in rows if row.ms_per_epoch is not None}
    twins = [twin.name for twin in contestants.TWINS if twin.name in timed]
    return {name: {twin: timed[twin] / ms for twin in twins} for name, ms in timed.items()}
