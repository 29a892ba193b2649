"""What the page says about a run, gathered from its folder and its graph: numbers only, no text and no markup."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import runs, settings, training
from costa.augment.bounds import Guarantee, Statistics, draw_errors
from costa.errors import InputError
from costa.evaluate import health
from costa.graphs.describe import count_edges, describe
from costa.graphs.partition import partition
from costa.insight import bias, degrees
from costa.insight.clusters import CLUSTERS, number_in
from costa.insight.variants import subject
from costa.methods import get_method
from costa.methods.base import Method
from costa.methods.building import build_sketch
from costa.methods.costa import Costa
from costa.methods.encoding import EncoderMethod
from costa.nn import Hops
from costa.nn.spectrum import ROWS
from costa.report.nodes import NodeMap, map_nodes
from costa.runs.files import EMBEDDINGS
from costa.runs.vectors import SEEN
from costa.training.batches import Batches
from costa.training.groups import Groups

DELTA = 0.05
"""Probability with which a sketch may exceed the ε that the page shows."""
MOST_DRAWS, LEAST_DRAWS, DRAWN = 100, 5, 10**9
"""Largest and smallest number of draws of the sketch; in between, as many as need ``DRAWN`` entries of P in total."""
BIAS_DRAWS, BIAS_WORK = 100, 4 * 10**9
"""Draws of the augmentation, and the limit of their cost, (e + n)·width each; fewer than a fifth are not shown."""
BIAS_RATES = (0.3, 0.3)
"""Rates of dropped edges and masked attributes if the run used neither, or did not draw them uniformly."""


@dataclass(frozen=True)
class Sketched:
    """How well the run's sketch keeps the covariance of its vectors.

    Attributes:
        kind: The sketch's name.
        rows: k.
        nodes: n.
        errors: ‖HᵀH − H̃ᵀH̃‖₂/Tr(HᵀH) of each draw.
        stated: The paper's ε for the probability :data:`DELTA`; None if it has no lemma for this sketch.
        proved: The proved ε for this H and the same probability.
        noise: Whether the run also adds noise E, which is left out here.
    """

    kind: str
    rows: int
    nodes: int
    errors: list[float]
    stated: float | None
    proved: float
    noise: bool


@dataclass(frozen=True)
class BiasByDegree:
    """How far perturbing the graph moves the vectors on average, by degree.

    Attributes:
        edge_rate: The share of edges dropped.
        mask_rate: The share of attributes masked.
        as_trained: Whether the run was trained with these rates.
        draws: Number of draws of the augmentation.
        bins: √max(bias², 0)/‖x‖ by degree, from :func:`costa.insight.degrees.by_degree`.
        correlation: Spearman's ρ of bias and degree.
    """

    edge_rate: float
    mask_rate: float
    as_trained: bool
    draws: int
    bins: list[dict[str, Any]]
    correlation: float


@dataclass(frozen=True)
class Facts:
    """Everything that the page shows.

    Attributes:
        config: ``config.json``.
        metrics: ``metrics.json``.
        method: The method's class.
        graph: One line about the graph.
        edges: Number of edges, each counted once.
        features: Number of features of a node.
        shape: n and d of the vectors.
        losses: Epoch and loss; empty for a method that is not trained.
        degrees: The name of each bin of degrees, and its number of nodes.
        median_degree: Median degree of the nodes.
        spectrum: Singular values of the centred vectors as shares of their sum, largest first; empty if the vectors
            are not finite.
        nodes: The map; None if the vectors diverged or collapsed.
        sketched: None if the run has no sketch.
        distortion: None if there is no encoder, or the graph is too large.
    """

    config: dict[str, Any]
    metrics: runs.Metrics
    method: type[Method]
    graph: str
    edges: int
    features: int
    shape: tuple[int, int]
    losses: list[tuple[int, float]]
    degrees: list[tuple[str, int]]
    median_degree: float
    spectrum: list[float]
    nodes: NodeMap | None
    sketched: Sketched | None
    distortion: BiasByDegree | None


def gather(
    folder: Path,
    data_dir: Path | None = None,
    announce: Callable[[str], None] = lambda text: None,
    memory: str | None = None,
    moved_to: str | None = None,
) -> Facts:
    """Read the run and its graph, and compute what the page adds to them.

    Args:
        folder: A RUN folder.
        data_dir: Folder that is searched first for benchmark graphs.
        announce: Called with a line before slow work.
        memory: What the graph may take; by default what the run was given.
        moved_to: Where the graph is now, as for :func:`costa.runs.load_run_graph`.
    """
    config, metrics = runs.read_config(folder), runs.read_metrics(folder)
    method = get_method(config["method"])
    graph, z = runs.load_run_graph(folder, data_dir, memory, moved_to), runs.load_embeddings(folder).float()
    if z.dim() != 2 or len(z) != graph.num_nodes:
        raise InputError(
            f"{folder / EMBEDDINGS} has {len(z)} rows and {graph.name} has {graph.num_nodes} nodes: the graph has"
            " changed since the run; train again into another folder."
        )
    seen = z[:: -(-len(z) // SEEN)]
    healthy = metrics.status != "diverged" and health.status(seen, graph.x) == "ok"
    if healthy:
        announce(f"Drawing the map of {graph.num_nodes:,} nodes …")
    degree = degrees.degrees(graph)
    nodes = map_nodes(z, graph, number_in(folder / CLUSTERS)) if healthy else None
    if healthy and issubclass(method, EncoderMethod):
        announce("Measuring what the sketch and the augmentation do to the vectors …")
    return Facts(
        config=config,
        metrics=metrics if metrics.health else replace(metrics, health=health.measure(seen)),
        method=method,
        graph=describe(graph),
        edges=count_edges(graph),
        features=graph.num_features,
        shape=(z.shape[0], z.shape[1]),
        losses=read_losses(folder / training.LOG),
        degrees=[(name, int(inside.sum())) for name, inside in degrees.bins(degree)],
        median_degree=float(np.median(degree.numpy())),
        spectrum=spectrum(z),
        nodes=nodes,
        sketched=sketch_errors(config, sketched_rows(folder, config, graph, z)) if healthy else None,
        distortion=distortion(folder, graph, degree) if healthy else None,
    )


def read_losses(path: Path) -> list[tuple[int, float]]:
    """Epoch and loss of each row of ``log.csv``, up to a row that was cut off; empty if there is no file."""
    if not path.is_file():
        return []
    losses = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                losses.append((int(row["epoch"]), float(row["loss"])))
            except (KeyError, TypeError, ValueError):
                break
    return losses


def spectrum(z: Tensor) -> list[float]:
    """σᵢ/Σσ of the centred Z, largest first: the distribution behind the effective rank."""
    rows = z[:: max(1, -(-len(z) // ROWS))].double()
    if not rows.isfinite().all():
        return []
    sigma = torch.linalg.svdvals(rows - rows.mean(0))
    return (sigma / sigma.sum()).tolist() if sigma.sum() > 1e-12 * rows.norm() else []


def sketched_rows(folder: Path, config: dict[str, Any], graph: Data, z: Tensor) -> Tensor:
    """What a step of training sketches: all vectors, those of a group of parts or, of hops, the codes of a batch."""
    train = settings.Train.of(config["settings"])
    if config["settings"].get("encoder.kind") != "hops":
        if train.groups == 1:
            return z
        return z[Groups(partition(graph.edge_index, graph.num_nodes, train.parts), train.groups, seed=0).rows(0)]
    model = runs.load_model(folder, torch.device("cpu"))
    assert isinstance(model, EncoderMethod)
    return model.trained_hidden(graph, Batches(graph.num_nodes, train.batches(graph.num_nodes), seed=0).rows(0))


def sketch_errors(config: dict[str, Any], z: Tensor) -> Sketched | None:
    """Errors of the run's sketch on such rows, centred if the sketch centres; random seed 0."""
    method = get_method(config["method"])
    if not issubclass(method, Costa):
        return None
    merged: Any = settings.merge(method.Settings, [(runs.CONFIG, config["settings"])])[0]
    chosen: settings.Sketch = merged.sketch
    if chosen.kind == "none":
        return None
    noisy = chosen.kind != "noise" and chosen.noise_std > 0
    plain = dataclasses.replace(chosen, center=False, fixed=False, noise_std=0.0 if noisy else chosen.noise_std)
    sketch, h = build_sketch(plain), z - z.mean(0) if chosen.center else z
    statistics = Statistics(h)
    guarantee = Guarantee(statistics, sketch)
    affordable = min(max(DRAWN // (guarantee.rows * len(h)), LEAST_DRAWS), MOST_DRAWS)
    draws = 1 if chosen.kind == "svd" else affordable  # all draws of an SVD are equal
    errors, _ = draw_errors(statistics, sketch, draws, torch.Generator().manual_seed(0))
    stated, proved = guarantee.stated_eps(DELTA), guarantee.proved_eps(DELTA)
    return Sketched(chosen.kind, guarantee.rows, len(h), errors.tolist(), stated, proved, noisy)


def distortion(folder: Path, graph: Data, degree: Tensor) -> BiasByDegree | None:
    """How biased dropping edges and masking attributes is for the trained encoder; the first view's rates, or 0.3."""
    method = get_method(runs.read_config(folder)["method"])
    # if the vectors are more than one encoder's output, its bias is not theirs
    if not issubclass(method, EncoderMethod) or method.hidden is not EncoderMethod.hidden:
        return None
    model = runs.load_model(folder, torch.device("cpu"))
    assert isinstance(model, EncoderMethod)
    if isinstance(model.encoder, Hops):
        return None
    draws = min(BIAS_DRAWS, BIAS_WORK // ((graph.num_edges + graph.num_nodes) * model.encoder.out_features))
    if draws < BIAS_DRAWS // 5:
        return None
    augment = getattr(model, "augment", None)
    rates = (0.0, 0.0)
    if augment is not None and (augment.edges, augment.centrality) == ("drop", "none"):
        rates = (augment.edge_rate[0], augment.mask_rate[0])
    as_trained = any(rates)
    edge_rate, mask_rate = rates if as_trained else BIAS_RATES
    encoder = subject(model, graph)
    draw = encoder.draw(edge_rate=edge_rate, mask_rate=mask_rate)
    relative = bias.measure(draw, encoder.h, draws, torch.Generator().manual_seed(0)).relative
    correlation = degrees.rank_correlation(degree, relative)
    bins = [entry for entry in degrees.by_degree(degree, relative) if not math.isnan(entry["quartiles"][1])]
    return BiasByDegree(edge_rate, mask_rate, as_trained, draws, bins, correlation)
