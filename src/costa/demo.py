"""``costa demo``: train on the embedded graph of words; make a table, a picture and a page in half a minute."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from costa import runs
from costa.errors import InputError
from costa.evaluate.baselines import BASELINES, Baseline
from costa.evaluate.clustering import Clustering, cluster
from costa.evaluate.scores import ProbeResult, Score
from costa.graphs import load_graph
from costa.methods import get_method
from costa.report import PAGE, write_report
from costa.report.layout import lay_out, unit_rows
from costa.runs.metrics import read_metrics, write_metrics
from costa.settings.presets import resolve

GRAPH = "words"
ABOUT = (
    "4,731 common nouns of WordNet, linked by its pointers (a dog is a canine, a bumper is part of a car). A node's"
    " features are the words of its gloss; its label is its kind: animal, food, person …"
)
METHOD = "costa-mv"
"""The method that the demo shows, with its defaults."""
SHOWN = (*BASELINES, METHOD)
MAPPED = ("raw", "diffused", METHOD)
"""The methods whose vectors the picture shows."""
SPLITS = 5
RESULTS, PICTURE = "demo.json", f"{GRAPH}.png"
REPORTED = f"{GRAPH}-{METHOD}-0"
"""The run that the page shows."""
REPORT = f"{REPORTED}/{PAGE}"
MARKED = ("dog", "ship", "heart", "joy", "bread", "village", "river", "soldier", "rain", "oak", "gold")
"""Words that the picture names where there is space, one of each kind."""
COLOURS = (
    *("tab:blue", "tab:gray", "tab:red", "tab:pink", "tab:orange", "tab:cyan"),
    *("tab:brown", "tab:purple", "black", "tab:green", "tab:olive"),
)
DRAWN = 1000
"""Number of nodes in each map of the picture, the same at random in all."""

Place = NDArray[np.float32]


@dataclass(frozen=True)
class Row:
    """One method: mean and standard deviation of the accuracies over the splits, and NMI."""

    method: str
    title: str
    low_label: tuple[float, float]
    ten_percent: tuple[float, float]
    nmi: float


@dataclass(frozen=True)
class Scores:
    """What the vectors of one method reach."""

    probes: list[ProbeResult]
    clustering: Clustering

    def row(self, method: str) -> Row:
        """As the table shows it."""

        def pair(score: Score) -> tuple[float, float]:
            return score.mean, score.std

        ten_percent, low_label = (pair(probe.accuracy) for probe in self.probes)
        return Row(method, get_method(method).title, low_label, ten_percent, self.clustering.nmi)


def run(out: Path, report: Callable[[str], None]) -> list[Row]:
    """Train and evaluate COSTA and the baselines; write numbers, a picture, RUN folders and a page into ``out``."""
    if out.exists() and not (out / RESULTS).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an earlier demo; choose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    (out / RESULTS).write_text("[]\n")  # marks the folder as the demo's, in case it is interrupted
    graph = load_graph(GRAPH)
    vectors, scores = {}, {}
    for name in SHOWN:
        report(get_method(name).title)
        vectors[name] = _train(name, graph, out)
        scores[name] = _evaluate(vectors[name], graph)
    _add_scores(out / REPORTED, scores)
    report("drawing the maps")
    draw_maps({get_method(name).title: vectors[name] for name in MAPPED}, graph, out / PICTURE)
    report(f"writing the page of {REPORTED}")
    write_report(out / REPORTED)
    rows = [scores[name].row(name) for name in SHOWN]
    (out / RESULTS).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return rows


def _train(name: str, graph: Data, out: Path) -> Tensor:
    folder = out / f"{GRAPH}-{name}-0"
    job = runs.Job(graph, GRAPH, name, resolve(get_method(name), graph), torch.device("cpu"), probe=False)
    runs.execute(job, folder, seed=0)
    return runs.load_embeddings(folder)


def _evaluate(z: Tensor, graph: Data) -> Scores:
    probes = [runs.probe_graph(z, graph, protocol, SPLITS) for protocol in runs.DEFAULT_PROTOCOLS]
    return Scores(probes, cluster(z, graph.y))


def _add_scores(folder: Path, scores: Mapping[str, Scores]) -> None:
    """Write the scores into the run's metrics, as ``costa train`` would have, but with the demo's number of splits."""
    baselines = {
        name: Baseline(scores[name].probes[0].accuracy.mean, scores[name].clustering.nmi) for name in BASELINES
    }
    shown = scores[METHOD]
    metrics = replace(read_metrics(folder), probes=shown.probes, clustering=shown.clustering, baselines=baselines)
    write_metrics(folder, metrics)


def draw_maps(pictures: Mapping[str, Tensor], graph: Data, path: Path) -> None:
    """One t-SNE map of the same nodes for each set of vectors, coloured by label, with the words in ``MARKED``."""
    from matplotlib import patheffects
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 4.6), layout="constrained")
    marked = [graph.node_ids.index(word) for word in MARKED]
    others = np.setdiff1d(np.arange(graph.num_nodes), marked)
    drawn = np.concatenate([marked, np.random.default_rng(0).choice(others, DRAWN - len(marked), replace=False)])
    colour = [COLOURS[label] for label in graph.y[drawn].tolist()]
    halo = [patheffects.withStroke(linewidth=2.5, foreground="white")]
    for axes, (title, z) in zip(figure.subplots(1, len(pictures)), pictures.items(), strict=True):
        points = lay_out(unit_rows(z[drawn].numpy())).points
        axes.scatter(*points.T, c=colour, s=14, linewidths=0)
        for word, place in _spaced(list(zip(MARKED, points, strict=False)), np.ptp(points, axis=0).max()):
            axes.text(*place, word, ha="center", va="center", fontsize=12, weight="bold", path_effects=halo)
        axes.set_title(title, fontsize=15)
        axes.set(xticks=[], yticks=[])
        axes.set_aspect("equal", adjustable="datalim")
        axes.spines[:].set_visible(False)
    handles = [
        axes.scatter([], [], c=code, s=45, label=name) for name, code in zip(graph.label_names, COLOURS, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=13)
    figure.savefig(path, dpi=100)


def _spaced(marks: Sequence[tuple[str, Place]], side: float) -> list[tuple[str, Place]]:
    """The words whose text does not cover an earlier one's, on a map with sides of this length."""
    kept: list[tuple[str, Place]] = []
    for word, place in marks:
        if all((abs(place - other) > np.array([0.16, 0.06]) * side).any() for _, other in kept):
            kept.append((word, place))
    return kept
