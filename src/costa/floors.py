"""How far raw features and an untrained encoder get: once for each graph and protocol, then from the cache."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import torch
from torch_geometric.data import Data

from costa import __version__, settings, training
from costa.methods import get_method
from costa.probe import cluster, linear_probe

FLOORS = ("raw", "untrained")


def floor_scores(graph: Data, protocol: str, repeats: int) -> dict[str, dict[str, float]]:
    """``{"raw": {"accuracy", "nmi"}, "untrained": {…}}``: mean accuracy over the splits, k-means NMI; seed 0.

    The floors take the settings chosen from the graph, never a preset: they are the same for every method beside them.
    """
    path = Path(platformdirs.user_cache_dir("costa")) / "floors" / f"{_key(graph, protocol, repeats)}.json"
    if path.exists():
        cached: dict[str, dict[str, float]] = json.loads(path.read_text())
        return cached
    scores = {name: _score(name, graph, protocol, repeats) for name in FLOORS}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(scores))
    os.replace(beside, path)
    return scores


def _score(name: str, graph: Data, protocol: str, repeats: int) -> dict[str, float]:
    method = get_method(name)
    merged: Any = settings.merge(method.Settings, [("graph", method.choose(graph))])[0]
    floor = training.build(method, merged, graph, seed=0, device=torch.device("cpu"))
    training.train(floor, graph)
    z = floor.embed(graph)
    accuracy = linear_probe(z, graph.y, protocol, repeats=repeats, masks=split_masks(graph)).accuracy.mean
    return {"accuracy": accuracy, "nmi": cluster(z, graph.y).nmi}


def split_masks(graph: Data) -> Any:
    """The graph's own splits, where it has any, for the protocol ``public``."""
    masks = {name: graph.get(name) for name in ("train_mask", "val_mask", "test_mask")}
    return None if any(mask is None for mask in masks.values()) else masks


def _key(graph: Data, protocol: str, repeats: int) -> str:
    digest = hashlib.blake2b(f"{__version__} {protocol} {repeats}".encode(), digest_size=16)
    for name in ("x", "edge_index", "edge_weight", "y"):
        value = graph.get(name)
        if value is not None:
            array = np.ascontiguousarray(value.numpy())
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.data)
    return digest.hexdigest()
