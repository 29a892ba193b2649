"""What the page tells of a run, gathered from its folder and its graph: numbers only, no text and no markup."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import health, runs, settings, training
from costa.analysis import bias, degrees
from costa.augment.bounds import Guarantee, Statistics, draw_errors
from costa.errors import InputError
from costa.methods import get_method
from costa.methods.base import EncoderMethod, Method
from costa.methods.costa import Costa, build_sketch
from costa.report.nodes import NodeMap, map_nodes

DELTA = 0.05
"""How often a sketch may do worse than the ε that the page shows."""
MOST_DRAWS, LEAST_DRAWS, DRAWN = 100, 5, 10**9
"""Draws of the sketch: as many as make so many entries of P, within these limits."""
BIAS_DRAWS, BIAS_WORK = 100, 4 * 10**9
"""Draws of the augmentation, each of which costs (e + n)·width; fewer than a fifth of them are not worth showing."""
BIAS_RATES = (0.3, 0.3)
"""Edges dropped and attributes masked, where the run itself did neither, or otherwise than evenly."""


@dataclass(frozen=True)
class Sketched:
    """How well the run's own sketch keeps the covariance of its vectors.

    Attributes:
        kind: The sketch's name.
        rows: k.
        nodes: n.
        errors: ‖HᵀH − H̃ᵀH̃‖₂/Tr(HᵀH) of each draw.
        stated: The paper's ε for the probability :data:`DELTA`; None where there is no lemma.
        proved: The ε of a theorem for this H and that probability.
        noise: Whether the run added noise E besides, which is left out here.
    """

    kind: str
    rows: int
    nodes: int
    errors: list[float]
    stated: float | None
    proved: float
    noise: bool


@dataclass(frozen=True)
class Distortion:
    """How far perturbing the graph moves the vectors on average, by degree.

    Attributes:
        edge_rate: The share of edges dropped.
        mask_rate: The share of attributes masked.
        own: Whether the run itself was trained so.
        draws: Of the augmentation.
        bins: As :func:`costa.analysis.degrees.by_degree` gives them, of √max(bias², 0)/‖x‖.
        correlation: Spearman's ρ with the degree.
    """

    edge_rate: float
    mask_rate: float
    own: bool
    draws: int
    bins: list[dict[str, Any]]
    correlation: float


@dataclass(frozen=True)
class Facts:
    """All that the page tells.

    Attributes:
        config: ``config.json``.
        metrics: ``metrics.json``.
        method: The method's class.
        graph: One line about the graph.
        edges: Of the graph, each counted once.
        features: Of each node.
        shape: n and d of the vectors.
        losses: Epoch and loss; none for a method that is not trained.
        degrees: The name of each bin of degrees, and how many nodes it has.
        median_degree: Over the nodes.
        spectrum: Singular values of the centred vectors, as shares of their sum, the largest first; none where the
            vectors are not finite.
        nodes: The map; None where the vectors are not alive.
        sketched: None where the run has no sketch.
        distortion: None where there is no encoder, or the graph is too large to try.
    """

    config: dict[str, Any]
    metrics: dict[str, Any]
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
    distortion: Distortion | None


def gather(folder: Path, data_dir: Path | None = None, announce: Callable[[str], None] = lambda text: None) -> Facts:
    """Read the run and its graph, and compute what the page adds to them.

    Args:
        folder: A RUN folder.
        data_dir: Where benchmark graphs are looked for first.
        announce: Told of the work that takes a while.
    """
    config, metrics = runs.read_config(folder), runs.read_metrics(folder)
    method = get_method(config["method"])
    graph, z = runs.load_run_graph(folder, data_dir), runs.load_embeddings(folder).float()
    if z.dim() != 2 or len(z) != graph.num_nodes:
        raise InputError(
            f"{folder / runs.EMBEDDINGS} has {len(z)} rows and {graph.name} has {graph.num_nodes} nodes: the graph has"
            " changed since; train the run again into another folder."
        )
    alive = health.status(z) == "ok"
    if alive:
        announce(f"Drawing the map of {graph.num_nodes:,} nodes …")
    degree = degrees.degrees(graph.edge_index, graph.num_nodes)
    nodes = map_nodes(z, graph) if alive else None
    if alive and issubclass(method, EncoderMethod):
        announce("Measuring what the sketch and the augmentation do to the vectors …")
    return Facts(
        config=config,
        metrics=metrics | ({} if metrics.get("health") else {"health": health.measure(z)}),
        method=method,
        graph=runs.describe(graph),
        edges=int((graph.edge_index[0] <= graph.edge_index[1]).sum()),
        features=graph.num_features,
        shape=(z.shape[0], z.shape[1]),
        losses=read_losses(folder / training.LOG),
        degrees=[(name, int(inside.sum())) for name, inside in degrees.bins(degree)],
        median_degree=float(np.median(degree.numpy())),
        spectrum=spectrum(z),
        nodes=nodes,
        sketched=sketch_errors(config, z) if alive else None,
        distortion=distortion(folder, graph, degree) if alive else None,
    )


def read_losses(path: Path) -> list[tuple[int, float]]:
    """Epoch and loss of each row of ``log.csv``; none where it is not there, and up to a row that was cut off."""
    if not path.is_file():
        return []
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                found.append((int(row["epoch"]), float(row["loss"])))
            except (KeyError, TypeError, ValueError):
                break
    return found


def spectrum(z: Tensor) -> list[float]:
    """σᵢ/Σσ of Z without its mean, the largest first: what the effective rank is the spread of."""
    rows = z[:: max(1, -(-len(z) // health.ROWS))].double()
    if not rows.isfinite().all():
        return []
    sigma = torch.linalg.svdvals(rows - rows.mean(0))
    return (sigma / sigma.sum()).tolist() if sigma.sum() > 1e-12 * rows.norm() else []


def sketch_errors(config: dict[str, Any], z: Tensor) -> Sketched | None:
    """Draws of the run's own sketch on its vectors, centred where it centres; seed 0."""
    method = get_method(config["method"])
    if not issubclass(method, Costa):
        return None
    merged: Any = settings.merge(method.Settings, [(runs.CONFIG, config["settings"])])[0]
    own: settings.Sketch = merged.sketch
    if own.kind == "none":
        return None
    noisy = own.kind != "noise" and own.noise_std > 0
    plain = dataclasses.replace(own, center=False, fixed=False, noise_std=0.0 if noisy else own.noise_std)
    sketch, h = build_sketch(plain), z - z.mean(0) if own.center else z
    known = Statistics(h)
    guarantee = Guarantee(known, sketch)
    # the SVD draws nothing: one is like the other
    affordable = min(max(DRAWN // (guarantee.rows * len(h)), LEAST_DRAWS), MOST_DRAWS)
    draws = 1 if own.kind == "svd" else affordable
    errors, _ = draw_errors(known, sketch, draws, torch.Generator().manual_seed(0))
    stated, proved = guarantee.stated_eps(DELTA), guarantee.proved_eps(DELTA)
    return Sketched(own.kind, guarantee.rows, len(h), errors.tolist(), stated, proved, noisy)


def distortion(folder: Path, graph: Data, degree: Tensor) -> Distortion | None:
    """How biased dropping edges and masking attributes is for the trained encoder; the first view's rates, or 0.3."""
    method = get_method(runs.read_config(folder)["method"])
    # where vectors are more than what one encoder gives, its bias is not theirs
    if not issubclass(method, EncoderMethod) or method.embed is not EncoderMethod.embed:
        return None
    model = runs.load_model(folder, torch.device("cpu"))
    assert isinstance(model, EncoderMethod)
    inputs = model.inputs(graph)
    model.eval()
    draws = min(BIAS_DRAWS, BIAS_WORK // ((graph.num_edges + graph.num_nodes) * model.encoder.out_features))
    if draws < BIAS_DRAWS // 5:
        return None
    augment = getattr(model, "augment", None)
    rates = (0.0, 0.0)
    if augment is not None and (augment.edges, augment.centrality) == ("drop", "none"):
        rates = (augment.edge_rate[0], augment.mask_rate[0])
    own = any(rates)
    edge_rate, mask_rate = rates if own else BIAS_RATES
    subject = bias.Subject(model.encoder, inputs.x, inputs.edge_index, inputs.edge_weight)
    draw = subject.draw(edge_rate=edge_rate, mask_rate=mask_rate)
    found = bias.measure(draw, subject.h, draws, torch.Generator().manual_seed(0)).relative
    correlation = degrees.rank_correlation(degree, found)
    bins = [entry for entry in degrees.by_degree(degree, found) if not math.isnan(entry["quartiles"][1])]
    return Distortion(edge_rate, mask_rate, own, draws, bins, correlation)
