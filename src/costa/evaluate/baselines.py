"""What the baselines of :mod:`costa.methods.baselines` reach: computed once per graph and protocol, then cached."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import platformdirs
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings, training
from costa.evaluate.clustering import cluster
from costa.evaluate.probe import linear_probe
from costa.evaluate.samples import labels_of, rows_at, sampled_nodes
from costa.graphs.identity import digest
from costa.graphs.storage import StoredGraph
from costa.methods import get_method
from costa.methods.base import Method
from costa.nn.sparse import is_csr, select_csr_rows
from costa.writing import replacing

BASELINES = {
    "raw": "raw features",
    "diffused": "diffused features",
    "hops": "hops of the features",
    "untrained": "the untrained network",
}
"""The methods, and what each is called in a sentence."""
LAID_OUT = 160
"""Bytes for each direction of an edge, as Â and all that is made on the way to it, measured."""
VERSION = 7
"""Raised whenever the scores change: with the baselines' settings, the probe or the clustering."""


@dataclass(frozen=True)
class Baseline:
    """What a baseline reaches: mean accuracy over the splits, and NMI of k-means."""

    accuracy: float
    nmi: float


def baseline_scores(
    graph: Data,
    protocol: str,
    repeats: int,
    device: torch.device | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> dict[str, Baseline]:
    """The scores of each baseline, with seed 0.

    The baselines take the settings chosen from the graph, never a preset: they are the same for every method.

    Args:
        graph: A graph with labels.
        protocol: A name in :data:`costa.evaluate.protocols.PROTOCOLS`.
        repeats: Number of splits.
        device: Device of the probe.
        announce: Called with a line if the scores must be computed; wide features take minutes on a CPU.
    """
    nodes = sampled_nodes(graph.y)
    about = f"{VERSION} {protocol} {repeats}{'' if nodes is None else f' of {len(nodes)} nodes'}"
    path = Path(platformdirs.user_cache_dir("costa")) / "floors" / f"{digest(graph, about)}.json"
    # A cache that cannot be read or written must not stop a run.
    scores: dict[str, Baseline] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        scores = {name: Baseline(**score) for name, score in json.loads(path.read_text()).items()}
    shown = [name for name in BASELINES if name not in scores and (name != "untrained" or _fits(graph))]
    if not shown:
        return scores
    titles = ", ".join(BASELINES[name] for name in shown)
    announce(f"Evaluating {titles} on {graph.name} ({protocol}), once for this graph …")
    scores |= {name: _score(name, graph, nodes, protocol, repeats, device) for name in shown}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps({name: asdict(score) for name, score in scores.items()}))
    return scores


def _fits(graph: Data) -> bool:
    """Whether the untrained GCN, which needs two arrays of its width beside the edges, is a baseline here too."""
    width: int = get_method("untrained").Settings().encoder.width
    needed = 2 * 4 * width * graph.num_nodes + LAID_OUT * graph.num_edges
    return not isinstance(graph, StoredGraph) or needed <= graph.memory


def baseline_vectors(name: str, graph: Data) -> Tensor:
    """The vectors of a baseline, a row for each node."""
    return rows_at(_fitted(name, graph).embed_rows(graph), None)


def _score(
    name: str, graph: Data, nodes: Tensor | None, protocol: str, repeats: int, device: torch.device | None
) -> Baseline:
    built = _fitted(name, graph)
    z, labels = rows_at(built.embed_rows(graph), nodes), labels_of(graph, nodes)
    result = linear_probe(z, labels.y, protocol, repeats=repeats, masks=labels, device=device)
    return Baseline(result.accuracy.mean, cluster(z, labels.y).nmi)


def raw_rows(graph: Data, nodes: Tensor) -> Tensor:
    """The vectors of the baseline ``raw`` for these nodes alone: their features as a method would scale them."""
    if isinstance(graph, StoredGraph):
        x = graph.x_at(nodes)
    else:
        x = select_csr_rows(graph.x, nodes) if is_csr(graph.x) else graph.x[nodes]
    return _fitted("raw", graph).embed(Data(x=x))


def _fitted(name: str, graph: Data) -> Method:
    """A baseline with the settings chosen from the graph and seed 0."""
    method = get_method(name)
    merged: Any = settings.merge(method.Settings, [("graph", method.choose(graph))])[0]
    built = training.build(method, merged, graph, 0, torch.device("cpu"))
    built.prepare(graph)
    built.fit(graph)
    return built
