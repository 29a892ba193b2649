"""What is measured together: a suite's graphs and contestants, and the file ``SUITE-DEVICE.json`` they end in."""

from __future__ import annotations

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
from costa.bench import contestants
from costa.bench.contestants import Contestant
from costa.bench.measure import Row, measure, warm_up
from costa.bench.profile import profile_epoch
from costa.bench.seeds import one_against_twenty
from costa.errors import InputError
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition

SCHEMA = 1
SIZES = range(1000, 9000, 1000)
"""Nodes of the subgraphs in the paper's runtime figure."""
NODES = (20_000, 40_000, 80_000, 160_000)
"""Of the graphs whose memory is compared."""


@dataclass(frozen=True)
class Job:
    """How a suite is run: on what device, with how many epochs in a timed round, and who hears of the progress."""

    device: torch.device
    epochs: int
    data_dir: Path | None = None
    announce: Callable[[str], None] = lambda text: None


Suite = Callable[[Job], Iterator[list[Row]]]
"""From how to run it to the rows of each graph, one graph after the other."""


def race(graphs: Callable[[Path | None], Iterator[Data]], *extra: Contestant) -> Suite:
    """The standard contestants, and ``extra``, on each of the graphs; ``graphs`` takes the data folder."""

    def rows(job: Job) -> Iterator[list[Row]]:
        field = [*contestants.standard(job.device), *extra]
        warm_up(field, job.device)
        for graph in graphs(job.data_dir):
            found = []
            for contestant in field:
                job.announce(f"{graph.name}: {contestant.name}")
                found.append(measure(contestant, graph, job.device, epochs=job.epochs))
            yield found

    return rows


def growing(job: Job) -> Iterator[list[Row]]:
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
    part = graph.subgraph(order[:size].sort().values)
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


def default_suites(device: torch.device) -> list[str]:
    """What is measured where nothing is asked for.

    >>> default_suites(torch.device("cpu"))
    ['digits']
    """
    return ["runtime", "physics"] if device.type == "cuda" else ["digits"]


def check_suites(names: Sequence[str]) -> None:
    """Refuse an unknown name before anything is measured."""
    for name in names:
        if name not in (*SUITES, PROFILE):
            raise InputError(f"unknown suite {name!r}; there are: {', '.join([*SUITES, PROFILE])}.")


def run_suite(name: str, job: Job, out: Path, report: Callable[[list[Row]], None] = lambda rows: None) -> Path:
    """Measure a suite and write ``OUT/SUITE-DEVICE.json``.

    Until its last graph is done the rows are in ``SUITE-DEVICE.partial``: a suite that is interrupted leaves what it
    measured there, and an earlier whole file as it was.

    Args:
        name: One of ``SUITES``, or ``PROFILE``, whose rows are the parts of one epoch.
        job: How to run it.
        out: The folder; made where it does not exist.
        report: Hears the rows of each graph.
    """
    check_suites([name])
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
    """For each contestant on one graph, how many times as fast as each twin it is; who was not timed is left out.

    >>> rows = [Row("g", 9, 9, "plain GRACE", 6.0), Row("g", 9, 9, "plain GCA", None), Row("g", 9, 9, "costa-sv", 2.0)]
    >>> speedups(rows)
    {'plain GRACE': {'plain GRACE': 1.0}, 'costa-sv': {'plain GRACE': 3.0}}
    """
    timed = {row.contestant: row.ms_per_epoch for row in rows if row.ms_per_epoch is not None}
    twins = [twin.name for twin in contestants.TWINS if twin.name in timed]
    return {name: {twin: timed[twin] / ms for twin in twins} for name, ms in timed.items()}
