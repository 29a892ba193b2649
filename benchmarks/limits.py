"""What a limit is worth: the most anonymous memory of all processes of ``costa train --memory L`` together.

    python benchmarks/make_graph.py FOLDER --nodes 1_000_000 --edges 10_000_000 --columns 64
    python benchmarks/limits.py FOLDER --memory 1GiB --memory 2GiB     # adds lines to results/bench/limits-cpu.jsonl
    python -m reproduction scaling                                     # the table

Each limit is given to one process, to two seeds and to two processes of torchrun, which begin with an empty cache and
read the graph. Memory is looked at ten times a second, that of torchrun's own process included. Pages that processes
share since a fork would count for each. A run that is refused has its sentence instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from scale import resident

from costa.graphs import graph_sizes
from costa.memory import parse_size, size
from costa.runs.provenance import commit, versions

STORE = Path("results/bench/limits-cpu.jsonl")
COSTA = ("-m", "costa")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "one process": (COSTA, ()),
    "two seeds": (COSTA, ("--seeds", "2")),
    "torchrun, two processes": ((*TORCHRUN, *COSTA), ()),
}
"""What starts it, and the options that it has."""
SENTENCE = "costa: "


def measure(folder: Path, memory: str, kind: str, place: Path) -> dict[str, Any]:
    """One run, with its cache and its RUN folders in ``place``."""
    start, options = KINDS[kind]
    train = ["train", str(folder), "--no-probe", "--memory", memory, "--device", "cpu", "--out", str(place / "run")]
    environment = os.environ | {"XDG_CACHE_HOME": str(place)}
    began, peak = time.perf_counter(), 0
    with (place / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, *start, *train, *options], stdout=subprocess.DEVNULL, stderr=errors, env=environment
        )
        while process.poll() is None:
            peak = max(peak, sum(resident(each)[0] for each in tree(process.pid)))
            time.sleep(0.1)
        errors.seek(0)
        said = [line.removeprefix(SENTENCE).strip() for line in errors if line.startswith(SENTENCE)]
    if process.returncode and not said:
        raise SystemExit(f"{kind} with {memory} failed:\n{(place / 'errors').read_text()}")
    sizes = graph_sizes(folder)
    assert sizes is not None
    return {
        **{"nodes": sizes.nodes, "edges": sizes.edges, "columns": sizes.columns},
        **{"kind": kind, "memory": parse_size(memory), "seconds": round(time.perf_counter() - began, 1)},
        **{"peak_anonymous_bytes": peak, "refused": said[0] if process.returncode else None},
        **{"commit": commit(), "versions": versions()},
    }


def tree(pid: int) -> list[int]:
    """A process and all that it has started, and they."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def main() -> None:
    """Measure, print and store each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", action="append", required=True, help="A limit; repeat it for several.")
    parser.add_argument("--kind", action="append", choices=tuple(KINDS), help="One of these only; repeatable.")
    parser.add_argument("--store", type=Path, default=STORE)
    given = parser.parse_args()
    for memory in given.memory:
        for kind in given.kind or KINDS:
            with tempfile.TemporaryDirectory(dir=given.folder.resolve().parent) as place:
                line = measure(given.folder, memory, kind, Path(place))
            told = line["refused"] or f"{size(line['peak_anonymous_bytes'])} in {line['seconds']} s"
            print(f"{memory:>8}  {kind:24}  {told}", flush=True)
            with given.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
