"""Seconds, memory and disk of each stage from files to vectors, on a graph that stays on disk.

    python benchmarks/make_graph.py FOLDER --nodes 1_000_000 --edges 10_000_000
    python benchmarks/scale.py FOLDER --memory 1.5GiB     # adds a line to results/bench/scale-cpu.jsonl

The arrays go into a cache of their own, which is deleted at the end. Anonymous memory is what the limit is for;
resident memory also has the pages of mapped files, which the system drops when others need the space. The machine
should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa import training
from costa.evaluate.baselines import baseline_scores
from costa.evaluate.probe import linear_probe
from costa.evaluate.samples import labels_of, rows_at, sampled_nodes
from costa.graphs import graph_sizes, load_graph
from costa.graphs.storage import open_array
from costa.memory import parse_size, size
from costa.methods import get_method
from costa.runs.estimate import estimate, settings_before_reading
from costa.runs.provenance import commit, versions
from costa.runs.vectors import load_embeddings, write_rows, write_vectors
from costa.settings.presets import resolve

STORE = Path("results/bench/scale-cpu.jsonl")
CPU = torch.device("cpu")
PROTOCOL, SPLITS = "random-10-10-80", 3


def resident(pid: int) -> tuple[int, int]:
    """Bytes of a process in memory: anonymous ones, and those of mapped files; none of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith("Rss")}
    return found.get("RssAnon", 0), found.get("RssFile", 0)


class Peaks(threading.Thread):
    """The largest anonymous and resident memory of this process, seen ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.anonymous = self.resident = 0

    def run(self) -> None:
        """Look until the process ends."""
        while True:
            anonymous, file = resident(os.getpid())
            self.anonymous = max(self.anonymous, anonymous)
            self.resident = max(self.resident, anonymous + file)
            time.sleep(0.1)


def measure(folder: Path, memory: str, out: Path, *, table: bool, probe: bool) -> dict[str, Any]:
    """The stages of one run."""
    peaks, stages = Peaks(), dict[str, float]()
    peaks.start()

    def timed(stage: str, began: float) -> float:
        stages[stage] = round(time.perf_counter() - began, 2)
        print(f"{stage:10} {stages[stage]:8.1f} s   {size(peaks.anonymous)} anonymous", flush=True)
        return time.perf_counter()

    method = get_method("costa-mv")
    told = estimated(folder, memory)
    began = time.perf_counter()
    graph = load_graph(folder, memory=memory)
    began = timed("read", began)
    values = resolve(method, graph).values
    began = timed("choose", began)
    built = training.build(method, values, graph, 0, CPU)
    prepare = built.prepare

    def prepared(graph: Data) -> None:
        nonlocal began
        prepare(graph)
        began = timed("propagate", began)

    vars(built)["prepare"] = prepared  # training begins with it
    outcome = training.train(built, graph, values.train)
    began = timed("train", began)
    write_rows(out / "embeddings.npy", built.embed_rows(graph), graph.num_nodes)
    began = timed("embed", began)
    built.forget()
    graph.drop_pages()
    if table:
        write_vectors(out / "embeddings.parquet", open_array(out / "embeddings.npy"), graph.node_ids)
        timed("parquet", began)
    cache = Path(graph.folder)
    line = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges // 2,
        "columns": graph.num_features,
        "memory": parse_size(memory),
        "threads": torch.get_num_threads(),
        "hops": [list(values.encoder.powers), values.encoder.steps],
        "epochs": outcome.epochs,
        "stages": stages,
        "disk": {"graph": _bytes_in(cache), "vectors": _bytes_in(out, "embeddings.*")},
        "peak_anonymous_bytes": peaks.anonymous,
        "peak_resident_bytes": peaks.resident,
        "estimate": told,
    }
    if probe:
        nodes = sampled_nodes(graph.y)
        labels = labels_of(graph, nodes)
        line["accuracy"] = linear_probe(rows_at([load_embeddings(out)], nodes), labels.y, repeats=SPLITS).accuracy.mean
        # half of the machine's memory: the untrained GCN is one of them
        scores = baseline_scores(load_graph(folder), PROTOCOL, SPLITS)
        line["baselines"] = {name: score.accuracy for name, score in scores.items()}
    return line | {"commit": commit(), "versions": versions()}


def estimated(folder: Path, memory: str) -> dict[str, Any]:
    """What ``costa estimate`` tells before anything is read."""
    began, sizes = time.perf_counter(), graph_sizes(folder, memory=memory)
    assert sizes is not None
    resolved = settings_before_reading(get_method("costa-mv"), sizes, folder.name)
    found = estimate("costa-mv", resolved, sizes, memory=parse_size(memory))
    took = time.perf_counter() - began
    print(f"{'estimate':10} {took:8.1f} s   {found.total:.1f} s in all", flush=True)
    return {
        "seconds": round(took, 2),
        "stages": {stage: round(seconds, 2) for stage, seconds in found.seconds.items()},
        **{"memory": found.memory, "cache": found.cache, "vectors": found.vectors},
    }


def _bytes_in(folder: Path, pattern: str = "*") -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file())


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="1.5GiB")
    parser.add_argument("--no-table", action="store_true", help="do not write Parquet")
    parser.add_argument("--probe", action="store_true", help="evaluate a sample of the vectors, and the baselines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder.parent) as place:
        os.environ["XDG_CACHE_HOME"] = place
        line = measure(given.folder, given.memory, Path(place), table=not given.no_table, probe=given.probe)
    print(json.dumps(line))
    with STORE.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
