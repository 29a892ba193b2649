"""Why a graph's settings are what they are: one line for each that was chosen from the graph, or tuned on it."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data

from costa.experiments.presets import Resolved
from costa.settings import flatten

SCALINGS = {
    "none": "every feature lies within 0 and 1",
    "rows": "the features are counts: 0 or more, beyond 1, most of them 0",
    "standard": "the features are measurements, each on a scale of its own",
}


def explain(resolved: Resolved, graph: Data) -> list[str]:
    """What was chosen and why, a line each; labels have no part in any of it.

    >>> from costa.experiments.presets import resolve
    >>> from costa.graphs.synthetic import planted_partition
    >>> from costa.methods import get_method
    >>> graph = planted_partition(30, 2, 4, degree=4, seed=0)
    >>> explain(resolve(get_method("costa-sv"), graph), graph)
    ['features.scaling = standard: the features are measurements, each on a scale of its own']
    """
    values = flatten(resolved.values)
    tuned = [f"{key} = {_show(values[key])}" for key, origin in resolved.origins.items() if origin == "preset tuned"]
    return from_graph(resolved, graph) + ([f"{', '.join(tuned)}: tuned on {graph.name}"] if tuned else [])


def from_graph(resolved: Resolved, graph: Data) -> list[str]:
    """Those of the lines that are about what was chosen from the graph."""
    values = flatten(resolved.values)
    return [
        f"{key} = {_show(values[key])}: {_why(key, values[key], graph)}"
        for key, origin in resolved.origins.items()
        if origin == "graph"
    ]


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return " and ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _why(key: str, value: Any, graph: Data) -> str:
    if key == "features.scaling":
        return SCALINGS[value]
    if key == "sketch.ratio":
        return f"{graph.num_nodes:,} nodes, and the sketch has at most {round(value * graph.num_nodes):,} rows"
    return "chosen from the graph"
