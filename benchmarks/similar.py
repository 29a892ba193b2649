"""How long the exact search for the nearest nodes takes, before and after the vectors are in the cache of files.

    python benchmarks/similar.py --place FOLDER     # adds a line to results/bench/similar-cpu.jsonl

Random vectors are written to a file in the folder, which is removed at the end, and mapped as those of a run are. The
first search reads the file; the others find it in memory. ``check_seconds`` is the time of a search that a plain matrix
product in float64 does, on the same machine, and both must name the same nodes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costa.graphs.storage import Growing, mapped, open_array
from costa.insight.similar import most_similar
from costa.runs.provenance import commit, versions

STORE = Path("results/bench/similar-cpu.jsonl")
BLOCK, K = 2**16, 10


def measure(nodes: int, columns: int, searches: int, place: Path) -> dict[str, Any]:
    """The seconds of the first search and the median of the others."""
    path, rng = place / "embeddings.npy", np.random.default_rng(0)
    with Growing(path, np.dtype(np.float32), columns) as file:
        for start in range(0, nodes, BLOCK):
            file.append(rng.standard_normal((min(BLOCK, nodes - start), columns), dtype=np.float32))
    z = mapped(open_array(path))
    seconds, found = [], []
    for node in rng.choice(nodes, searches + 1, replace=False).tolist():
        began = time.perf_counter()
        found.append((node, most_similar(z, node, K)))
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    if [row for row, _ in found[-1][1]] != in_float64(z, found[-1][0]):
        raise SystemExit("the nearest nodes are not those of float64")
    return {
        **{"nodes": nodes, "columns": columns, "k": K, "threads": torch.get_num_threads(), "searches": searches},
        **{"first_seconds": round(seconds[0], 6), "median_seconds": round(statistics.median(seconds[1:]), 6)},
        **{"slowest_seconds": round(max(seconds[1:]), 6), "check_seconds": round(time.perf_counter() - began, 6)},
        **{"commit": commit(), "versions": versions()},
    }


def in_float64(z: torch.Tensor, node: int) -> list[int]:
    """The same nodes from products in float64, some rows at a time."""
    query = z[node].double()
    cosines = torch.cat([rows.double() @ query / rows.double().norm(dim=1) for rows in z.split(BLOCK)])
    cosines[node] = -torch.inf
    return cosines.topk(K).indices.tolist()


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--searches", type=int, default=10, help="Searches after the first.")
    parser.add_argument("--place", type=Path, required=True, help="A folder with room for the vectors.")
    parser.add_argument("--store", type=Path, default=STORE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.place) as place:
        line = measure(given.nodes, given.columns, given.searches, Path(place))
    print(f"{line['median_seconds']} s, the slowest {line['slowest_seconds']} s, the first {line['first_seconds']} s")
    with given.store.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
