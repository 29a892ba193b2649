"""A step of one process with two threads, and of two processes with one thread each; and a whole job of both.

    python benchmarks/processes.py                 # a step of each case
    python benchmarks/processes.py --job FOLDER    # costa train FOLDER, from its start to vectors in Parquet

Both add a line for each case to ``results/bench/processes-cpu.jsonl``. A step is the first decile over steps, which
other work on the machine disturbs least, on 100,000 nodes with 128 columns. What is sent is what
:func:`costa.training.distributed.bytes_of_step` says, and beside it what the machine's loopback device counts, for each
process and step. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.costa import Costa
from costa.runs.provenance import commit, versions
from costa.training.distributed import bytes_of_step

STORE = Path("results/bench/processes-cpu.jsonl")
STEPS, WARM_UP, ROUNDS = 60, 5, 4
JOBS = 2
HOPS = {"encoder.powers": (0, 4), "encoder.steps": 10, "features.scaling": "standard"}
CASES: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "one view": {"method": "costa-sv"},
    "BatchNorm": {"encoder.norm": "batch"},
    "2,048 rows": {"train.batch": 2048},
    "2,048 rows, Gaussian P": {"train.batch": 2048, "sketch.kind": "gaussian"},
    "2,048 rows, sketch of 128": {"train.batch": 2048, "sketch.k": 128},
    "8,192 rows, sketch of 128": {"train.batch": 8192, "sketch.k": 128},
}
KINDS = {"1 × 2": (1, 2), "2 × 1": (2, 1)}
"""Processes, and threads of each."""


def steps_of_cases() -> None:
    """In each process: time the cases; the first prints a line for each."""
    graph = planted_partition(100_000, 10, 128, seed=0)
    with training.joined(torch.device("cpu")) as ranks:
        for case, values in CASES.items():
            given = {key: value for key, value in values.items() if key != "method"}
            method = get_method(values.get("method", "costa-mv"))
            merged, _ = settings.merge(method.Settings, [("benchmark", HOPS | given)])
            built = training.build(method, merged, graph, 0, ranks.device)
            assert isinstance(built, Costa)
            built.join(ranks)
            built.prepare(graph)
            steps = training.Steps([built], graph, merged.train)
            steps.run(WARM_UP)
            ranks.wait()
            counted, taken = loopback(), []
            for _ in range(STEPS):
                began = time.perf_counter()
                steps.run(1)
                taken.append(time.perf_counter() - began)
            ranks.wait()
            if ranks.first:
                line = {"case": case, "seconds": statistics.quantiles(taken, n=10)[0]}
                if ranks.size > 1:
                    line |= {"bytes": bytes_of_step(built, merged.train.batch)}
                    line |= {"wire": round((loopback() - counted) / STEPS / ranks.size)}
                print(json.dumps(line), flush=True)


def loopback() -> int:
    """Bytes that the loopback device has sent; 0 where there is no such file."""
    path = Path("/proc/net/dev")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split(":")[1].split()[8]) for line in lines if line.strip().startswith("lo:")), 0)


def launched(kind: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Processes of a kind with these words."""
    processes, threads = KINDS[kind]
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes))
    environment |= {"OMP_NUM_THREADS": str(threads)}
    return subprocess.run(
        [*torchrun, *words], stdout=subprocess.PIPE, text=True, check=True, env=os.environ | environment
    )


def steps() -> list[dict[str, Any]]:
    """A line for each case: the seconds of each kind, the fastest of some rounds."""
    found: dict[str, dict[str, Any]] = {case: {"case": case, "seconds": {}} for case in CASES}
    for kind in [*KINDS] * ROUNDS:
        for text in launched(kind, __file__, "--worker").stdout.splitlines():
            line = json.loads(text)
            row = found[line.pop("case")]
            row["seconds"][kind] = min(line.pop("seconds"), row["seconds"].get(kind, 1e9))
            row |= line
    return list(found.values())


def job(folder: Path) -> dict[str, Any]:
    """Seconds of a whole job of each kind, the faster of two."""
    seconds = dict.fromkeys(KINDS, float("inf"))
    for kind in [*KINDS] * JOBS:
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            words = ("-m", "costa", "train", str(folder), "--no-probe", "--memory", "4GiB", "--out", f"{place}/run")
            began = time.perf_counter()
            launched(kind, *words, XDG_CACHE_HOME=place)
            seconds[kind] = min(seconds[kind], time.perf_counter() - began)
    return {"case": f"costa train, {folder.name}", "seconds": seconds}


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", type=Path, metavar="FOLDER")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        steps_of_cases()
        return
    for line in steps() if given.job is None else [job(given.job)]:
        slower = line["seconds"]["2 × 1"] / line["seconds"]["1 × 2"]
        print(f"{line['case']:28} {slower:.2f} times as long in two processes", flush=True)
        with STORE.open("a") as file:
            file.write(json.dumps(line | {"commit": commit(), "versions": versions()}) + "\n")


if __name__ == "__main__":
    main()
