"""Seconds a step of one process with several threads, and of several processes with one thread each.

    OMP_NUM_THREADS=2 python benchmarks/processes.py
    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 benchmarks/processes.py

Both print a line for each setting: the first decile over steps, which other work on the machine disturbs least, on
100,000 nodes with 128 features, and the bytes that a step gives to the sums.
"""

from __future__ import annotations

import statistics
import time

import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.costa import Costa
from costa.training.distributed import bytes_of_step

STEPS = 60
CASES = {
    "defaults": {},
    "defaults, one view": {"method": "costa-sv"},
    "batch norm": {"encoder.norm": "batch"},
    "2,048 rows": {"train.batch": 2048},
    "2,048 rows, gaussian": {"train.batch": 2048, "sketch.kind": "gaussian"},
}


def main() -> None:
    """Time each case."""
    graph = planted_partition(100_000, 10, 128, seed=0)
    with training.joined(torch.device("cpu")) as ranks:
        for case, values in CASES.items():
            method = get_method(values.get("method", "costa-mv"))
            given = {"encoder.powers": (0, 4), "encoder.steps": 10, "features.scaling": "standard"} | values
            given.pop("method", None)
            merged, _ = settings.merge(method.Settings, [("benchmark", given)])
            built = training.build(method, merged, graph, 0, ranks.device)
            assert isinstance(built, Costa)
            built.join(ranks)
            built.prepare(graph)
            steps = training.Steps([built], graph, merged.train)
            took = []
            for _ in range(STEPS):
                began = time.perf_counter()
                steps.run(1)
                took.append(time.perf_counter() - began)
            if ranks.first:
                threads, lowest = torch.get_num_threads(), statistics.quantiles(took[5:], n=10)[0]
                sent = bytes_of_step(built, merged.train.batch) if ranks.size > 1 else 0
                print(f"{ranks.size} × {threads}  {case:22} {1000 * lowest:8.2f} ms  {sent / 1e6:.2f} MB", flush=True)


main()
