"""``costa bias``: how much dropping edges and masking attributes would distort a graph's vectors, by degree."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import runs, settings, training
from costa.errors import InputError
from costa.insight import degrees
from costa.insight.bias import Bias, measure
from costa.insight.drawing import COLOURS, MARKERS, plain
from costa.insight.variants import VARIANTS, stream, subject
from costa.methods import get_method
from costa.methods.base import Method
from costa.methods.encoding import EncoderMethod
from costa.nn import GCN, Hops

COLUMNS = {"gnn_e": "edges dropped", "gnn_a": "attributes masked", "gnn_ea": "both"}
LITTLE, MUCH = 0.05, 0.2
"""Shares of a vector's length: a bias below the first is small, one above the second is large."""
STEEP = 0.3
"""The smallest rank correlation with the degree that is mentioned."""
PICTURE, NODES = "bias.png", "nodes.csv"


@dataclass(frozen=True)
class Distortion:
    """The bias of each measured augmentation, and the nodes' degrees."""

    degree: Tensor
    biases: dict[str, Bias]

    def table(self) -> list[list[str]]:
        """A row for each bin of degrees: its name, its nodes, and the median of bias/‖x‖ for each augmentation."""
        columns = [degrees.by_degree(self.degree, bias.relative) for bias in self.biases.values()]
        rows = [
            [cells[0]["degree"], f"{cells[0]['nodes']:,}", *(_percent(cell["quartiles"][1]) for cell in cells)]
            for cells in zip(*columns, strict=True)
        ]
        medians = [_percent(degrees.quartiles(bias.relative)[1]) for bias in self.biases.values()]
        return [*rows, ["all", f"{self.degree.numel():,}", *medians]]

    def conclusion(self) -> str:
        """One plain sentence: what dropping edges and masking attributes would do."""
        parts = [
            f"{what} would {_verdict(self.degree, self.biases[name])}"
            for name, what in (("gnn_e", "dropping edges"), ("gnn_a", "masking attributes"))
            if name in self.biases
        ]
        return f"At these rates {', and '.join(parts)}."


def _verdict(degree: Tensor, bias: Bias) -> str:
    median = degrees.quartiles(bias.relative)[1]
    if math.isnan(median):
        return "change nothing, because every vector of the encoder is zero"
    size = "hardly distort" if median < LITTLE else "distort" if median < MUCH else "strongly distort"
    rho = degrees.rank_correlation(degree, bias.relative)
    trend = "about equally at every degree"
    if abs(rho) >= STEEP:
        trend = f"{'less' if rho < 0 else 'more'} the more neighbours a node has (Spearman's ρ {rho:+.2f})"
    return f"{size} the vectors (a typical one by {_percent(median)} of its length), {trend}"


def distortion(
    model: EncoderMethod, graph: Data, *, edge_rate: float, mask_rate: float, draws: int, seed: int = 0
) -> Distortion:
    """Measure each augmentation whose rate is above 0, and both together.

    Args:
        model: The method whose encoder is measured.
        graph: The graph.
        edge_rate: The probability that an edge is dropped, 0 ≤ rate < 1.
        mask_rate: The probability that an attribute is masked, 0 ≤ rate < 1.
        draws: Number of draws, at least 2.
        seed: Random seed of the draws.
    """
    for option, rate in (("edge", edge_rate), ("mask", mask_rate)):
        if not 0 <= rate < 1:
            raise InputError(f"the {option} rate must be at least 0 and below 1, not {rate:g}.")
    chosen = {"gnn_e": edge_rate > 0, "gnn_a": mask_rate > 0, "gnn_ea": edge_rate > 0 and mask_rate > 0}
    if not any(chosen.values()):
        raise InputError("both rates are 0, so nothing would be augmented; raise one of them.")
    encoder = subject(model, graph)
    biases = {}
    for name in (name for name, wanted in chosen.items() if wanted):
        draw = encoder.draw(**VARIANTS[name].rates(edge_rate, mask_rate))
        biases[name] = measure(draw, encoder.h, draws, stream(seed, encoder.h.device))
    return Distortion(degrees.degrees(graph), biases)


def untrained(graph: Data, device: torch.device) -> EncoderMethod:
    """The encoder of the untrained baseline: random weights, seed 0."""
    method = get_method("untrained")
    merged: Any = settings.merge(method.Settings, [("graph", method.choose(graph))])[0]
    built = _encoder(training.build(method, merged, graph, 0, device), "untrained")
    built.prepare(graph)
    return built


def trained(run: Path, graph: Data, device: torch.device) -> EncoderMethod:
    """The encoder of a RUN folder."""
    in_features = runs.read_config(run)["in_features"]
    if in_features != graph.num_features:
        raise InputError(
            f"{graph.name} has {graph.num_features} features, but the model of {run} was trained on {in_features};"
            " choose a run on this graph."
        )
    return _encoder(runs.load_model(run, device), str(run))


def _encoder(model: Method, where: str) -> EncoderMethod:
    if isinstance(model, EncoderMethod) and isinstance(model.encoder, Hops):
        raise InputError(f"{where} was trained with encoder.kind = hops, which augments no graph; choose another run.")
    if not isinstance(model, EncoderMethod) or not isinstance(model.encoder, GCN):
        raise InputError(f"{where} holds {model.name}, which has no graph encoder to augment; choose another run.")
    return model


def write(measured: Distortion, graph: Data, out: Path) -> list[Path]:
    """Write the picture and each node's numbers."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / NODES
    ids = graph.get("node_ids")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["node", "degree", *(f"{COLUMNS[name]}: bias/length" for name in measured.biases)])
        columns = [measured.degree.tolist(), *(bias.relative.tolist() for bias in measured.biases.values())]
        for place, row in enumerate(zip(*columns, strict=True)):
            writer.writerow([place if ids is None else ids[place], row[0], *(f"{value:.6g}" for value in row[1:])])
    return [_draw(measured, graph.name, out / PICTURE), path]


def _draw(measured: Distortion, name: str, path: Path) -> Path:
    """Medians and quartiles of bias/‖x‖ against the degree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots()
    for place, (variant, bias) in enumerate(measured.biases.items()):
        bins = degrees.by_degree(measured.degree, bias.relative)
        low, median, high = (torch.tensor([row["quartiles"][i] for row in bins]) for i in range(3))
        # shift the bars of one bin so that they do not overlap
        x = [bin + 0.12 * (place - (len(measured.biases) - 1) / 2) for bin in range(len(bins))]
        axes.errorbar(
            x,
            100 * median,
            torch.stack([100 * (median - low), 100 * (high - median)]),
            color=COLOURS[place],
            marker=MARKERS[place],
            capsize=2,
            elinewidth=0.9,
            label=COLUMNS[variant],
        )
    axes.set(xlabel="degree", ylabel="bias, % of the vector's length", title=name)
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(bins)), [row["degree"] for row in bins], fontsize="small")
    plain(axes)
    figure.legend(loc="outside lower center", ncols=len(measured.biases), frameon=False)
    figure.savefig(path, dpi=150)
    return path


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f}%"
