"""How long the default takes, in ratios to the defaults before hops and in seconds for a whole command.

    python benchmarks/defaults.py          # into results/bench/defaults-cpu.json; the machine should do nothing else

*Ratios*, in one process: the default is trained and embedded in full, the others read the graph in every epoch and take
many minutes, so a step of theirs is timed and multiplied by their steps, and what they prepare is not counted. The
demo's graph comes first, so that what is loaded once counts for neither.

*Commands*, from the start of the process to vectors on disk: ``costa train GRAPH --no-probe``, with its peak resident
memory, and the same with the probe and the baselines of the first graphs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from costa import training
from costa.graphs import load_graph
from costa.methods import get_method
from costa.runs.provenance import commit, versions
from costa.settings.presets import resolve
from costa.training.expected import expected_seconds

STORE = Path("results/bench/defaults-cpu.json")
CPU = torch.device("cpu")
GRAPHS = ("cora", "pubmed", "facebook")
FORMER = {"two views, GCN": "costa-mv", "one view, GCN": "costa-sv"}
COMMANDS = {"cora": True, "pubmed": True, "coauthor-physics": False, "wordnet": False}
"""Whether the probe and the baselines are timed too: on the last two they take many minutes."""


def place(name: str) -> str:
    """The name of a benchmark, or the file of one of the development graphs beside them."""
    file = Path(os.environ.get("COSTA_DATA", ".")) / "development" / f"{name}.npz"
    return str(file) if file.exists() else name


def ratios(name: str) -> dict[str, Any]:
    """Seconds to trained vectors: the default's, and what each of the former defaults would take."""
    graph, method = load_graph(place(name)), get_method("costa-mv")
    began = time.perf_counter()
    training.train_and_embed(method, resolve(method, graph).values, graph, device=CPU)
    row: dict[str, Any] = {"graph": name, "default": time.perf_counter() - began}
    for title, other in FORMER.items():
        values = resolve(get_method(other), graph, given={"encoder.kind": "gcn"}).values
        row[title] = expected_seconds(get_method(other), values, graph, CPU)
    return row


def command(name: str, *, probe: bool) -> dict[str, Any]:
    """Seconds and peak memory of ``costa train``."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        words = [sys.executable, "-m", "costa", "train", place(name), "--out", f"{folder}/run"]
        fresh = os.environ | {"XDG_CACHE_HOME": folder}  # the baselines' scores are cached
        process = subprocess.Popen([*words, *([] if probe else ["--no-probe"])], env=fresh, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"costa train {name} failed")
    return {"graph": name, "probe": probe, "seconds": seconds, "peak_memory_bytes": usage.ru_maxrss * 1024}


def main() -> None:
    """Measure, print and store."""
    record: dict[str, Any] = {"threads": torch.get_num_threads(), "commit": commit(), "versions": versions()}
    record["commands"] = []  # first: Linux counts the memory of this process as its children's
    for name, probed in COMMANDS.items():
        for probe in (False, True)[: 1 + probed]:
            record["commands"].append(command(name, probe=probe))
            print(record["commands"][-1], flush=True)
    method, small = get_method("costa-mv"), load_graph("words")
    training.train_and_embed(method, resolve(method, small, epochs=1, epochs_by="warm-up").values, small, device=CPU)
    record["ratios"] = []
    for name in GRAPHS:
        record["ratios"].append(ratios(name))
        print(record["ratios"][-1], flush=True)
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
