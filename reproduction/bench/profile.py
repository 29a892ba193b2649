"""Where one epoch of COSTA, one view, spends its time on a GPU, and the least that its arithmetic and bytes allow.

The floor of a part is the larger of two times: its operations over the rate of the unit that does them, and the bytes
that it has to move (every input once, every output once) over the memory's bandwidth. Both ceilings are measured on the
card in the same run: a large float16 product, a large copy.

- sketch: two products of 2·k·n·d operations each, and k·n entries of P drawn for each. A drawn entry takes about DRAW
  instructions (Philox: 60 for 8 entries; radius, angle, series: 26 for 2); a multiprocessor issues 128 lanes a clock.
- loss: three products of 2·k²·d operations (s, s again, the weighted sum) and 2·k² exponentials, 16 lanes a clock.
- sparse: Â twice and X once, forward and backward; each reads its non-zeros and reads and writes H's shape.
- dense: the second layer, and θ's two, each forward and twice backward.
- rest: activations, biases, centring, normalising, Adam: counted as eight reads and writes of n × d and of k × d, and
  seven of the parameters.
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from costa import training
from costa.errors import InputError
from costa.graphs import load_graph
from costa.nn import SparseMatrix
from costa.training.capture import WARM_UP
from reproduction.bench.contestants import SV, MethodTrainee
from reproduction.bench.measure import seconds

DRAW = 60 / 8 + 26 / 2
PARTS = {
    "sketch": r"_dense_product",
    "loss": r"_logsumexp|_weigh",
    "sparse": r"cusparse|csr|spmm",
    "dense": r"gemm|cutlass|cublas|splitK",
    "rest": r"",
}
"""Pattern of the names of each part's kernels; the first that matches."""


@dataclass(frozen=True)
class Ceilings:
    """What the card reaches: operations a second of float16 products, bytes a second of a copy, lanes a second."""

    products: float
    bytes: float
    lanes: float


def profile_epoch(device: torch.device, data_dir: Path | None, epochs: int = 10) -> dict[str, Any]:
    """Coauthor-Physics: microseconds of each part of an epoch, measured and least, and the milliseconds of a replay."""
    if device.type != "cuda":
        raise InputError("bench-profile needs a GPU, and this device is a CPU; run it with --device cuda on a GPU.")
    graph = load_graph("coauthor-physics", data_dir=data_dir)
    trainee = SV.build(graph, device)
    assert isinstance(trainee, MethodTrainee)
    trainee.run(2 * WARM_UP)
    replayed = [seconds(device, lambda: trainee.run(20)) / 20 for _ in range(5)]
    ceilings = measure_ceilings(device)
    floors = _floors(trainee, ceilings)
    spent = _spent(trainee, epochs)
    return {
        "graph": graph.name,
        "replay_ms": 1000 * statistics.median(replayed),
        "ceilings": {"tflops": ceilings.products / 1e12, "terabytes_a_second": ceilings.bytes / 1e12},
        "rows": [
            {"part": part, "us": us, "kernels": count, "floor_us": 1e6 * floors[part]}
            for part, (us, count) in spent.items()
        ],
    }


def measure_ceilings(device: torch.device) -> Ceilings:
    """A float16 product of 8192 × 8192 and a copy of 4 GiB, the better of ten each."""
    a, b = (torch.randn(8192, 8192, device=device, dtype=torch.float16) for _ in range(2))
    product = min(seconds(device, lambda: torch.mm(a, b)) for _ in range(10))
    source = torch.empty(2**30, device=device)
    target = torch.empty_like(source)
    copy = min(seconds(device, lambda: target.copy_(source)) for _ in range(10))
    card = torch.cuda.get_device_properties(device)
    return Ceilings(
        2 * 8192**3 / product, 2 * 4 * 2**30 / copy, card.multi_processor_count * 128 * card.clock_rate * 1e3
    )


def _floors(trainee: MethodTrainee, ceilings: Ceilings) -> dict[str, float]:
    """The floor of each part, in seconds."""
    method: Any = trainee.method
    inputs = method.inputs(trainee.graph)
    n, d = trainee.graph.num_nodes, method.encoder.out_features
    k = method.sketch.rows(n)
    parameters = sum(parameter.numel() for parameter in method.parameters())
    hidden = 4 * n * d

    def larger(operations: float, moved: float) -> float:
        return max(operations / ceilings.products, moved / ceilings.bytes)

    def nonzeros(matrix: Any) -> int:
        return int(matrix.a.values().numel()) if isinstance(matrix, SparseMatrix) else matrix.numel()

    layers = 2 * (n + 2 * k) * d * d
    return {
        "sketch": max(larger(2 * 2 * k * n * d, 2 * (hidden + 4 * k * d)), 2 * k * n * DRAW / ceilings.lanes),
        "loss": max(3 * 2 * k * k * d / ceilings.products, 2 * k * k / (ceilings.lanes / 8)),
        "sparse": (2 * (nonzeros(inputs.x) + 2 * nonzeros(inputs.adjacency)) * 8 + 6 * 2 * hidden) / ceilings.bytes,
        "dense": larger(3 * layers, 3 * 2 * 4 * (n + 2 * k) * d),
        "rest": (8 * 2 * 4 * (n + k) * d + 7 * 4 * parameters) / ceilings.bytes,
    }


def _spent(trainee: MethodTrainee, epochs: int) -> dict[str, tuple[float, float]]:
    """Microseconds and kernels of each part in one epoch; not captured, so that the profiler can name them."""
    from torch.profiler import ProfilerActivity, profile

    with training.tensor_float(), profile(activities=[ProfilerActivity.CUDA]) as profiled:
        training.Steps.run(trainee.steps, epochs)
    spent = dict.fromkeys(PARTS, (0.0, 0.0))
    for event in profiled.key_averages():
        part = next(part for part, form in PARTS.items() if re.search(form, event.key))
        us, count = spent[part]
        spent[part] = (us + event.self_device_time_total / epochs, count + event.count / epochs)
    return spent
