"""How long the default takes to its vectors, against the defaults before hops, which read the graph in every epoch.

    python benchmarks/defaults.py [GRAPH …]

The default is trained and embedded in full. Of the others a step is timed and multiplied by their steps: a full
training takes many minutes, and what they prepare is not counted. Ratios are of one run; the machine should do nothing
else. A small graph comes first, so that what is loaded once counts for neither.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch

from costa import training
from costa.graphs import load_graph
from costa.methods import get_method
from costa.settings.presets import resolve
from costa.training.expected import expected_seconds

CPU = torch.device("cpu")
GRAPHS = ("cora", "pubmed", "facebook")
FORMER = {"two views, GCN": "costa-mv", "one view, GCN": "costa-sv"}


def load(name: str):
    """A benchmark by its name, or one of the development graphs beside them."""
    file = Path(os.environ.get("COSTA_DATA", ".")) / "development" / f"{name}.npz"
    return load_graph(str(file) if file.exists() else name)


def main(names: list[str]) -> None:
    """Print a row for each graph."""
    print(f"{'graph':<12}{'default, s':>12}" + "".join(f"{title + ', s':>20}{'ratio':>8}" for title in FORMER))
    method, small = get_method("costa-mv"), load_graph("digits")
    training.train_and_embed(method, resolve(method, small, epochs=1, epochs_by="warm-up").values, small, device=CPU)
    for name in names:
        graph = load(name)
        began = time.perf_counter()
        resolved = resolve(method, graph)
        training.train_and_embed(method, resolved.values, graph, device=CPU)
        ours = time.perf_counter() - began
        row = f"{name:<12}{ours:>12.1f}"
        for other in FORMER.values():
            values = resolve(get_method(other), graph, given={"encoder.kind": "gcn"}).values
            seconds = expected_seconds(get_method(other), values, graph, CPU)
            row += f"{seconds:>20.1f}{seconds / ours:>8.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(GRAPHS))
