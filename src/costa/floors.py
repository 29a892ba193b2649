"""How far one gets without training, by the methods of :mod:`costa.methods.floors`: once for each graph and protocol,
then from the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import torch
from torch_geometric.data import Data

from costa import settings, training
from costa.methods import get_method
from costa.probe import cluster, linear_probe
from costa.writing import replacing

FLOORS = {"raw": "raw features", "diffused": "diffused features", "untrained": "the untrained network"}
"""What they are called in a sentence."""
MADE = 5
"""Raised whenever the floors come out otherwise: by a change of their settings, of the probe or of the clustering."""


def floor_scores(
    graph: Data,
    protocol: str,
    repeats: int,
    device: torch.device | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> dict[str, dict[str, float]]:
    """``{"raw": {"accuracy", "nmi"}, "diffused": {…}, …}``: mean accuracy over the splits, k-means NMI; seed 0.

    The floors take the settings chosen from the graph, never a preset: they are the same for every method beside them.

    Args:
        graph: With labels.
        protocol: A name in :data:`costa.probe.PROTOCOLS`.
        repeats: How many splits.
        device: Where the probe computes.
        announce: Told when they have to be computed: raw features can be wide, and minutes long on a CPU.
    """
    path = Path(platformdirs.user_cache_dir("costa")) / "floors" / f"{_key(graph, protocol, repeats)}.json"
    # A cache that cannot be read or written is no cache, and no reason to stop.
    with contextlib.suppress(OSError, ValueError):
        cached: dict[str, dict[str, float]] = json.loads(path.read_text())
        return cached
    announce(f"Judging {', '.join(FLOORS.values())} on {graph.name} ({protocol}); kept for the next time …")
    scores = {name: _score(name, graph, protocol, repeats, device) for name in FLOORS}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            beside.write_text(json.dumps(scores))
    return scores


def highest(scores: Mapping[str, Mapping[str, float]], measure: str = "accuracy") -> tuple[str, float]:
    """The best floor by a measure: what it is called, and what it has.

    >>> highest({"raw": {"accuracy": 0.6}, "untrained": {"accuracy": 0.8}})
    ('the untrained network', 0.8)
    """
    name = max(scores, key=lambda name: scores[name][measure])
    return FLOORS[name], scores[name][measure]


def _score(name: str, graph: Data, protocol: str, repeats: int, device: torch.device | None) -> dict[str, float]:
    method = get_method(name)
    merged: Any = settings.merge(method.Settings, [("graph", method.choose(graph))])[0]
    floor = training.build(method, merged, graph, seed=0, device=torch.device("cpu"))
    training.train(floor, graph)
    z = floor.embed(graph)
    result = linear_probe(z, graph.y, protocol, repeats=repeats, masks=graph, device=device)
    return {"accuracy": result.accuracy.mean, "nmi": cluster(z, graph.y, device=device).nmi}


def _key(graph: Data, protocol: str, repeats: int) -> str:
    digest = hashlib.blake2b(f"{MADE} {protocol} {repeats}".encode(), digest_size=16)
    for name in ("x", "edge_index", "edge_weight", "y"):
        value = graph.get(name)
        if value is not None:
            array = np.ascontiguousarray(value.numpy())
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.data)
    return digest.hexdigest()
