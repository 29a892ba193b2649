"""How one contestant is measured: milliseconds per epoch, peak memory, seconds to a trained and probed model.

One epoch is too short to time. A round has many, with the device synchronised before and after. The first round is not
counted; of ``REPEATS`` more (two if an epoch is as long as a round), the median and the range are reported.

Memory is the peak of PyTorch's CUDA allocator in training, minus what it held before the contestant was built: it
includes the inputs, but not what others left behind. On a CPU it is None: only a process has a peak there, and the
contestants share one.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch_geometric.data import Data

from costa import runs
from costa.errors import is_out_of_memory
from costa.graphs.synthetic import planted_partition
from costa.training.capture import WARM_UP
from reproduction.bench.contestants import Contestant

FIRST_EPOCHS = WARM_UP + 2
"""Epochs before anything is timed; by then an epoch has been captured, if it can be, and replayed once."""
REPEATS = 5
SECONDS_A_ROUND = 1.0
"""A slow contestant has fewer epochs in a round, at least one."""
PROBED_EPOCHS = 100
PATIENCE = 10.0
"""Seconds; a contestant whose ``PROBED_EPOCHS`` would take longer is not probed."""


@dataclass(frozen=True)
class Row:
    """The measurements of one contestant on one graph; None if not measured.

    ``status`` is ``ok``, ``out-of-memory``, or ``not-probed`` if the training would have taken too long. Edges are
    undirected.
    """

    graph: str
    nodes: int
    edges: int
    contestant: str
    ms_per_epoch: float | None = None
    ms_spread: float | None = None
    peak_memory_bytes: int | None = None
    seconds_to_probed: float | None = None
    status: str = "ok"


def measure(contestant: Contestant, graph: Data, device: torch.device, *, epochs: int, probe: bool = True) -> Row:
    """Measure a contestant on a graph; running out of memory is a result, not a failure.

    Args:
        contestant: The contestant.
        graph: On the CPU, with labels.
        device: Where to train.
        epochs: Largest number of epochs in a round.
        probe: Whether to measure the time to a probed model.
    """
    row = Row(graph.name, graph.num_nodes, count_edges(graph), contestant.name)
    _tidy(device)
    # The twins draw from the global generators, which start from one seed and are restored afterwards.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(0)
        try:
            row = _time_epochs(row, contestant, graph, device, epochs)
            _tidy(device)
            assert row.ms_per_epoch is not None
            if not probe:
                return row
            if PROBED_EPOCHS * row.ms_per_epoch / 1000 > PATIENCE:
                return replace(row, status="not-probed")
            probed = seconds(device, lambda: _train_and_probe(contestant, graph, device, PROBED_EPOCHS))
            return replace(row, seconds_to_probed=probed)
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
            return replace(row, status="out-of-memory")


def warm_up(contestants: Iterable[Contestant], device: torch.device) -> None:
    """Train and probe each contestant on a tiny graph, so that none pays for what a process loads only once."""
    graph = planted_partition(200, 2, 16, seed=0)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        for contestant in contestants:
            _train_and_probe(contestant, graph, device, FIRST_EPOCHS)


def _time_epochs(row: Row, contestant: Contestant, graph: Data, device: torch.device, epochs: int) -> Row:
    """The row with the times of an epoch and the memory."""
    before = 0
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    trainee = contestant.build(graph, device)
    slow = seconds(device, lambda: trainee.run(1)) > SECONDS_A_ROUND
    trainee.run(1 if slow else FIRST_EPOCHS - 1)
    one = seconds(device, lambda: trainee.run(1))
    count = max(1, min(epochs, int(SECONDS_A_ROUND / one)))
    repeats = REPEATS if one < SECONDS_A_ROUND else 2
    rounds = [1000 / count * seconds(device, lambda: trainee.run(count)) for _ in range(1 + repeats)][1:]
    return replace(
        row,
        ms_per_epoch=statistics.median(rounds),
        ms_spread=max(rounds) - min(rounds),
        peak_memory_bytes=torch.cuda.max_memory_allocated(device) - before if device.type == "cuda" else None,
    )


def _train_and_probe(contestant: Contestant, graph: Data, device: torch.device, epochs: int) -> None:
    trainee = contestant.build(graph, device)
    trainee.run(epochs)
    runs.probe_graph(trainee.embed(), graph, runs.DEFAULT_PROTOCOLS[0], device=device)


def count_edges(graph: Data) -> int:
    """Undirected edges, self-loops included."""
    return int((graph.edge_index[0] <= graph.edge_index[1]).sum())


def seconds(device: torch.device, work: Callable[[], object]) -> float:
    """How long the work takes, including what it left for the device to do."""
    _wait(device)
    began = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _tidy(device: torch.device) -> None:
    """Free the memory of the previous contestant: models and their optimisers may reference each other."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
