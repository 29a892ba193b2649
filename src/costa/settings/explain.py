"""Why each setting that was chosen from a graph, or tuned on it, has its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_geometric.data import Data

from costa.settings.groups import Train
from costa.settings.layers import flatten
from costa.settings.presets import Configurable, Resolved

SCALINGS = {
    "none": "every feature lies within 0 and 1",
    "rows": "the features are counts: never negative, some above 1, mostly 0",
    "standard": "the features are measurements, each on its own scale",
}

REACHES = {
    ((0,), False): "features that were held out are predicted best by a node's other features; its neighbours mislead",
    ((0, 2, 4), False): "the edges do not help to predict features that were held out, so they may say something else",
    ((0, 2), True): "features that were held out are predicted better by nearby nodes than by a wider region",
    ((4,), True): "features that were held out are predicted as well without a node's own features and its neighbours'",
    ((0, 4), True): "features that were held out are predicted better without the average over one edge",
    ((0, 1, 4), True): "without any of these hops, features that were held out are not predicted better",
}
"""Why these powers were chosen, with PageRank's steps or without."""


def explain(resolved: Resolved, graph: Data) -> list[str]:
    """One line for each choice, with its reason; no choice uses labels.

    >>> from dataclasses import make_dataclass
    >>> from costa.settings import Features, merge
    >>> Raw = make_dataclass("Raw", [("features", Features, Features())], frozen=True)
    >>> explain(Resolved(*merge(Raw, [("graph", {"features.scaling": "none"})])), Data())
    ['features.scaling = none: every feature lies within 0 and 1']
    """
    values = flatten(resolved.values)
    tuned = [f"{key} = {_show(values[key])}" for key, origin in resolved.origins.items() if origin == "preset tuned"]
    return from_graph(resolved, graph) + ([f"{', '.join(tuned)}: tuned on {graph.name}"] if tuned else [])


def from_graph(resolved: Resolved, graph: Data) -> list[str]:
    """The lines for settings chosen from the graph, without those for a tuned preset."""
    values = flatten(resolved.values)
    return [
        f"{key} = {_show(values[key])}: {_why(key, values, graph)}"
        for key, origin in resolved.origins.items()
        if origin == "graph"
    ]


def not_default(method: Configurable, resolved: Resolved) -> list[str]:
    """The keys of the settings that a person set, or that have another value than the method's default.

    Those chosen from the graph, which have lines of their own, and unused ones are left out.
    """
    values, defaults = flatten(resolved.values), flatten(method.Settings())
    unused = method.unused(resolved.values)

    def is_shown(key: str, origin: str) -> bool:
        by_a_person = origin not in ("default", "base") and not origin.startswith("preset ")
        return origin != "graph" and key not in unused and (by_a_person or values[key] != defaults[key])

    return [key for key, origin in resolved.origins.items() if is_shown(key, origin)]


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return " and ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _why(key: str, values: Mapping[str, Any], graph: Data) -> str:
    value = values[key]
    if key == "features.scaling":
        return SCALINGS[value]
    if key == "encoder.powers":
        if graph.num_edges == 0:
            return "there are no edges"
        return REACHES[value, values["encoder.steps"] > 0]
    if key == "encoder.steps":
        if value:
            return "the average over PageRank's walks is one of the hops"
        alone = values["encoder.powers"] == (0,)
        return "nothing comes along the edges" if alone else "PageRank's walks would repeat a node's own features"
    if key == "encoder.width":
        return "all codes and columns together make a vector of at most 512 numbers"
    if key == "features.rank":
        return f"all {graph.num_features:,} columns of {graph.num_nodes:,} nodes, filled in, would take too much memory"
    if key == "sketch.ratio":
        hops = values.get("encoder.kind") == "hops"
        nodes = Train.of(values).rows(graph.num_nodes, by_rows=hops)
        of = "" if nodes == graph.num_nodes else " in a batch" if hops else " in a group of parts"
        return f"{nodes:,} nodes{of}, and the sketch has at most {round(value * nodes):,} rows"
    if key == "train.epochs":
        return f"the graph has {graph.num_nodes:,} nodes, and the more there are, the fewer passes training needs"
    return "chosen from the graph"
