"""What it costs to store hops on disk as float16: test accuracy of the same training with either type, and the disk.

    python benchmarks/half.py          # adds lines to results/bench/half-cpu.jsonl
    python -m reproduction scaling     # the table

A line is one graph, one view or two, and holds the accuracy of every seed and split for both types, with the defaults.
The graphs are small ones that are read as a large one is, with a limit of memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from costa import training
from costa.evaluate.probe import linear_probe
from costa.graphs import load_graph
from costa.graphs.storage import StoredGraph
from costa.methods import get_method
from costa.runs.provenance import commit, versions
from costa.settings.presets import resolve
from reproduction.defaults import PROTOCOLS, REAL

STORE = Path("results/bench/half-cpu.jsonl")
GRAPHS = ("cora", "pubmed", "facebook", "amazon-photo")
VIEWS = {1: "costa-sv", 2: "costa-mv"}
KINDS = ("float32", "float16")
SPLITS = 5


def measure(name: str, views: int, seeds: int) -> dict[str, Any]:
    """Both types on one graph."""
    real = Path(os.environ.get("COSTA_DATA", "")) / "development" / f"{name}.npz"
    graph = load_graph(str(real) if name in REAL else name, memory="1GiB")
    assert isinstance(graph, StoredGraph)
    method = get_method(VIEWS[views])
    chosen = resolve(method, graph).values
    accuracy, disk, before = {}, {}, 0
    for kind in KINDS:
        values = dataclasses.replace(chosen, encoder=dataclasses.replace(chosen.encoder, stored=kind))
        accuracy[kind] = {protocol: [] for protocol in PROTOCOLS}
        for seed in range(seeds):
            _, _, z = training.train_and_embed(method, values, graph, seed=seed, device=torch.device("cpu"))
            for protocol, full in PROTOCOLS.items():
                found = linear_probe(z, graph.y, full, repeats=SPLITS).accuracy.per_split
                accuracy[kind][protocol].append([round(each, 6) for each in found])
        x = next(Path(graph.folder).glob("hops/*/0.npy")).stat().st_size
        after = sum(path.stat().st_size for path in Path(graph.folder).glob("hops/*/*.npy")) - x
        disk[kind], before = after - before, after
    return {
        "graph": name,
        "nodes": graph.num_nodes,
        "views": views,
        "hops": [list(chosen.encoder.powers), chosen.encoder.steps],
        "accuracy": accuracy,
        "disk": disk | {"x": x},
        "commit": commit(),
        "versions": versions(),
    }


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    for name in given.graphs:
        for views in VIEWS:
            with tempfile.TemporaryDirectory() as place:
                os.environ["XDG_CACHE_HOME"] = place
                line = measure(name, views, given.seeds)
            print(json.dumps(line), flush=True)
            with STORE.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
