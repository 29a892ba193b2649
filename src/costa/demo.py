"""``costa demo``: train on the embedded digits graph; make a table, a picture and a page in about a minute."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import runs
from costa.errors import InputError
from costa.evaluate.clustering import cluster
from costa.graphs import load_graph
from costa.methods import get_method
from costa.report import PAGE, write_report
from costa.settings.presets import resolve

SHOWN = ("raw", "diffused", "hops", "untrained", "costa-mv")
SEEDS, SPLITS = 3, 20
RESULTS, PICTURE = "demo.json", "digits.png"
REPORTED = "digits-costa-mv-0"
"""The run that the page shows."""
REPORT = f"{REPORTED}/{PAGE}"


@dataclass(frozen=True)
class Row:
    """One method: mean and standard deviation over seeds × splits (accuracies) or seeds (NMI)."""

    method: str
    title: str
    low_label: tuple[float, float]
    ten_percent: tuple[float, float]
    nmi: tuple[float, float]


def run(out: Path, report: Callable[[str], None]) -> list[Row]:
    """Train and evaluate COSTA and baselines on digits; write numbers, picture, RUN folders and a page into ``out``."""
    if out.exists() and not (out / RESULTS).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an earlier demo; choose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    (out / RESULTS).write_text("[]\n")  # marks the folder as the demo's, in case it is interrupted
    graph = load_graph("digits")
    rows, pictures = [], {}
    for name in SHOWN:
        report(f"{get_method(name).title}: {SEEDS} seeds × {SPLITS} splits")
        vectors = [_train(name, graph, seed, out) for seed in range(SEEDS)]
        rows.append(_evaluate(name, graph, vectors))
        pictures[rows[-1].title] = vectors[0]
    report("drawing the maps")
    draw_maps(pictures, graph.y, out / PICTURE)
    report(f"writing the page of {REPORTED}")
    write_report(out / REPORTED)
    (out / RESULTS).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return rows


def _train(name: str, graph: Data, seed: int, out: Path) -> Tensor:
    folder = out / f"digits-{name}-{seed}"
    resolved = resolve(get_method(name), graph, preset="tuned")
    job = runs.Job(graph, "digits", name, resolved, torch.device("cpu"), probe=folder.name == REPORTED)
    runs.execute(job, folder, seed)
    return runs.load_embeddings(folder)


def _evaluate(name: str, graph: Data, vectors: list[Tensor]) -> Row:
    def accuracy(protocol: str) -> tuple[float, float]:
        scores = [score for z in vectors for score in runs.probe_graph(z, graph, protocol, SPLITS).accuracy.per_split]
        return _mean_std(scores)

    nmi = _mean_std([cluster(z, graph.y).nmi for z in vectors])
    return Row(name, get_method(name).title, accuracy("random-2-2-96"), accuracy("random-10-10-80"), nmi)


def _mean_std(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1))


def draw_maps(pictures: dict[str, Tensor], y: Tensor, path: Path) -> None:
    """One t-SNE map for each set of vectors, side by side, coloured by label."""
    from matplotlib.figure import Figure
    from sklearn.manifold import TSNE

    figure = Figure(figsize=(15, 4.5), layout="constrained")
    for axes, (title, z) in zip(figure.subplots(1, len(pictures)), pictures.items(), strict=True):
        unit = torch.nn.functional.normalize(z).numpy()
        points = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(unit)
        scatter = axes.scatter(*points.T, c=y.numpy(), cmap="tab10", s=5, linewidths=0)
        axes.set_title(title)
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.spines[:].set_visible(False)
    handles, labels = scatter.legend_elements()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), title="digit", frameon=False)
    figure.savefig(path, dpi=150)
