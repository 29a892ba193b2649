"""Seconds, memory and accuracy of methods that read edges in every step, trained on groups of parts of WordNet.

    python benchmarks/parts.py [--runs NAME …]    # adds lines to results/bench/parts-cpu.jsonl
    python -m reproduction parts                  # the table

A run is ``costa train … --set train.parts=1024 --no-probe`` in a process of its own, from its start to the vectors on
disk, with nothing in the cache, so that the partition counts too. Resident memory is the kernel's peak, anonymous
memory the largest of ten looks a second. The vectors are probed afterwards, in this process, and so are the features
averaged along the edges, which need no training. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import training
from costa.evaluate.probe import linear_probe
from costa.evaluate.samples import labels_of, rows_at, sampled_nodes
from costa.graphs import load_graph
from costa.methods import get_method
from costa.runs.files import METRICS
from costa.runs.provenance import commit, versions
from costa.runs.vectors import load_embeddings
from costa.settings.presets import resolve

STORE = Path("results/bench/parts-cpu.jsonl")
GRAPH = "wordnet"
PARTS = 1024
GCN = ("--set", "encoder.kind=gcn")
RUNS: dict[str, tuple[str, int, int, tuple[str, ...]]] = {
    "GRACE": ("grace", 16, 16, ()),
    "two views, GCN": ("costa-mv", 40, 16, GCN),
    "two views, GCN, large groups": ("costa-mv", 40, 128, GCN),
    "one view, GCN": ("costa-sv", 40, 16, GCN),
}
"""The method, its epochs, the parts of a group, and what is set."""
BASELINES = {"diffused features": "diffused", "untrained GCN": "untrained"}
PROTOCOL = "random-10-10-80"
SPLITS = 3


def path_of(name: str) -> str:
    """A graph beside the benchmarks' data, or a benchmark."""
    file = Path(os.environ.get("COSTA_DATA", "")) / "development" / f"{name}.npz"
    return str(file) if file.exists() else name


def trained(graph: Data, title: str, parts: int, epochs: int | None = None) -> dict[str, Any]:
    """One run of ``costa train``, and the accuracy of its vectors."""
    method, of_run, group, values = RUNS[title]
    with tempfile.TemporaryDirectory() as place:
        folder, began = Path(place) / "run", time.perf_counter()
        words = ["train", path_of(GRAPH), "--method", method, *values, "--set", f"train.parts={parts}"]
        words += ["--set", f"train.group={group}", "--epochs", str(epochs or of_run)]
        words += ["--no-probe", "--out", str(folder)]
        process = subprocess.Popen(
            [sys.executable, "-m", "costa", *words],
            env=os.environ | {"XDG_CACHE_HOME": place},
            stdout=subprocess.DEVNULL,
        )
        anonymous = resident = 0
        while process.poll() is None:
            memory = memory_of(process.pid)
            anonymous, resident = max(anonymous, memory.get("RssAnon", 0)), max(resident, memory.get("VmHWM", 0))
            time.sleep(0.1)
        seconds = time.perf_counter() - began
        if process.returncode:
            raise SystemExit(f"costa {' '.join(words)} failed")
        metrics = json.loads((folder / METRICS).read_text())
        return {
            "seconds": round(seconds, 1),
            "train_seconds": round(metrics["seconds"], 1),
            "embed_seconds": round(metrics["embed_seconds"], 2),
            "peak_anonymous_bytes": anonymous,
            "peak_resident_bytes": resident,
            "epochs": metrics["epochs"],
            "parts": parts,
            "group": group,
            "partition": "METIS" if importlib.util.find_spec("pymetis") else "streams",
            "status": metrics["status"],
            "accuracy": accuracy(graph, load_embeddings(folder)),
        }


def memory_of(pid: int) -> dict[str, int]:
    """Bytes by the names that the kernel has for them; none of a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.endswith(" kB")}


def baseline(graph: Data, name: str) -> dict[str, Any]:
    """What needs no training."""
    method = get_method(name)
    _, _, z = training.train_and_embed(method, resolve(method, graph).values, graph, device=torch.device("cpu"))
    return {"accuracy": accuracy(graph, z)}


def accuracy(graph: Data, z: Tensor) -> list[float]:
    """On a sample of the labels, as ``costa probe`` draws it; of each split."""
    nodes = sampled_nodes(graph.y)
    labels = labels_of(graph, nodes)
    found = linear_probe(rows_at([z], nodes), labels.y, PROTOCOL, repeats=SPLITS).accuracy.per_split
    return [round(each, 5) for each in found]


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="+", default=[*RUNS, *BASELINES], choices=[*RUNS, *BASELINES])
    given = parser.parse_args()
    graph = load_graph(path_of(GRAPH))
    about = {"graph": GRAPH, "nodes": graph.num_nodes, "edges": graph.num_edges // 2, "columns": graph.num_features}
    about |= {"threads": torch.get_num_threads(), "commit": commit(), "versions": versions()}
    for title in given.runs:
        found = trained(graph, title, PARTS) if title in RUNS else baseline(graph, BASELINES[title])
        line = {"run": title, **found, **about}
        print(json.dumps(line), flush=True)
        with STORE.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
