"""How well each sketch keeps the covariance: measured, stated in the paper, and proved.

The measurements go into ``results/experiments/bounds/SOURCE.jsonl``, one line for each sketch and k. The sources are
the hidden features of a trained COSTA, centred and not, and three small H with extreme spectra.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from costa import runs, settings, training
from costa.augment.bounds import Guarantee, Statistics, draw_errors
from costa.augment.registry import make_sketch
from costa.augment.sketches import Sketch
from costa.graphs import load_graph
from costa.insight.sketch_rows import DELTA
from costa.methods import get_method
from costa.runs.jobs import cores
from costa.settings import presets
from reproduction import store

if TYPE_CHECKING:
    from reproduction.requests import Request, Setup

EXPERIMENT = "bounds"

STUDIED_SKETCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "gaussian": ("gaussian", {}),
    "rademacher": ("rademacher", {}),
    "sparse, density 0.1": ("sparse", {"density": 0.1}),
    "sparse, density 0.01": ("sparse", {"density": 0.01}),
    "countsketch": ("countsketch", {}),
    "selection": ("selection", {}),
    "selection as printed": ("selection", {"scaling": "printed"}),
    "svd": ("svd", {}),
    "noise": ("noise", {}),
}
"""The measured sketches, by their name in figures and tables: kind and options."""

DATASETS = ("cora",)
"""Graphs whose hidden features are sketched."""

ROWS, DRAWS = (16, 64, 256, 1024), 200
"""Values of k, and number of draws, for hidden features; all d eigenvalues of each draw are computed."""

SMALL_ROWS, SMALL_DRAWS = (4, 16, 64, 256), 1000
"""Values of k, and number of draws, for the small spectra."""

SVD_ROWS = (4, 16)
"""Values of k for the SVD, which has at most d rows."""

EPS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Values of ε at which failures are counted."""

SPECTRA_SHAPE = (200, 16)

SPECTRA_SEED = 1
"""Differs from the seed of the draws: otherwise E would start with the numbers that H was made of."""


def rank_one() -> Tensor:
    """A single singular value: the relative error of a Gaussian P is |χ²_k/k − 1|."""
    generator = torch.Generator().manual_seed(SPECTRA_SEED)
    return torch.outer(*(torch.randn(size, generator=generator) for size in SPECTRA_SHAPE))


def flat() -> Tensor:
    """d equal singular values: even H̃ = 0 has an error of only 1/d."""
    return torch.linalg.qr(torch.randn(SPECTRA_SHAPE, generator=torch.Generator().manual_seed(SPECTRA_SEED))).Q


def dominant_row() -> Tensor:
    """99% of the trace in one row, the bad case of a sparse P: a draw that misses the row misses nearly everything."""
    h = flat()
    h[0] *= math.sqrt(99 * float(h[1:].square().sum())) / float(h[0].norm())
    return h


SPECTRA: dict[str, Callable[[], Tensor]] = {"rank-one": rank_one, "flat": flat, "dominant-row": dominant_row}


def sources(datasets: Sequence[str]) -> list[str]:
    """The names of all H."""
    return [f"{dataset}-{form}" for dataset in datasets for form in ("centred", "uncentred")] + list(SPECTRA)


def load(datasets: Sequence[str], results: Path) -> list[dict[str, Any]]:
    """The store's last line of each source, sketch and k."""
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    for source in sources(datasets):
        path = results / "experiments" / EXPERIMENT / f"{source}.jsonl"
        last |= {(source, line["sketch"], line["k"]): line for line in store.read(path)}
    return [last[key] for key in _plan(datasets) if key in last]


def _plan(datasets: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """(source, sketch, k) of every line; `noise`, which keeps all rows, has only k = 0."""
    for source in sources(datasets):
        rows = SMALL_ROWS if source in SPECTRA else ROWS
        for name, (kind, _) in STUDIED_SKETCHES.items():
            yield from ((source, name, k) for k in {"noise": (0,), "svd": SVD_ROWS}.get(kind, rows))


def measure(request: Request, setup: Setup) -> None:
    """Measure what the store lacks."""
    import joblib

    datasets = request.datasets or DATASETS
    stored = {(line["dataset"], line["sketch"], line["k"]) for line in load(datasets, request.results)}
    lacking = [key for key in _plan(datasets) if key not in stored]
    features: dict[str, tuple[Tensor, dict[str, Any]]] = {}
    for source in dict.fromkeys(source for source, _, _ in lacking):
        if source not in features:
            features |= _features(source, setup)
    # the slowest first keeps all cores busy to the end
    lacking.sort(key=lambda key: -key[2])
    tasks = [joblib.delayed(measure_one)(*key, features[key[0]][0]) for key in lacking]
    parallel = joblib.Parallel(n_jobs=setup.jobs or cores(), return_as="generator")
    for done, line in enumerate(parallel(tasks), 1):
        made_of = features[line["dataset"]][1]
        metrics = line | {"method": EXPERIMENT, "commit": runs.commit(), "versions": runs.versions()}
        store.append(request.results / "experiments", metrics, made_of)
        setup.announce(f"{done}/{len(tasks)}  {line['dataset']}, {line['sketch']}, k = {line['rows']:,}")


def _features(source: str, setup: Setup) -> dict[str, tuple[Tensor, dict[str, Any]]]:
    """The H of a source and the settings of its training, which gives two sources at once."""
    if source in SPECTRA:
        return {source: (SPECTRA[source](), {})}
    dataset = source.rpartition("-")[0]
    graph = load_graph(dataset, data_dir=setup.data_dir)
    method = get_method("costa-sv")
    resolved = presets.resolve(method, graph, given={"encoder.kind": "gcn"})
    setup.announce(f"training {method.name} on {dataset}, whose hidden features are sketched")
    h = training.train_and_embed(method, resolved.values, graph, device=setup.device)[2].float().cpu()
    made_of = settings.flatten(resolved.values)
    return {f"{dataset}-centred": (h - h.mean(0), made_of), f"{dataset}-uncentred": (h, made_of)}


def measure_one(source: str, name: str, k: int, h: Tensor, draws: int | None = None) -> dict[str, Any]:
    """The line of one sketch of one H at one k; by default with the source's number of draws."""
    statistics = Statistics(h)
    sketch = _sketch(name, k, statistics)
    guarantee = Guarantee(statistics, sketch)
    draws = draws or (SMALL_DRAWS if source in SPECTRA else DRAWS)
    draws = 1 if sketch.name == "svd" else draws
    errors, squares = draw_errors(statistics, sketch, draws, torch.Generator().manual_seed(0))
    return {
        "dataset": source,
        "sketch": name,
        "k": k,
        "rows": guarantee.rows,
        "nodes": h.shape[0],
        "columns": h.shape[1],
        "draws": draws,
        "seed": 0,
        "largest": statistics.largest,
        "concentration": statistics.concentration,
        "dominance": statistics.dominance,
        "median": float(errors.quantile(0.5)),
        "q95": float(errors.quantile(0.95)),
        "second_moment": guarantee.moment,
        "measured_moment": float(squares.mean()),
        "measured_moment_error": float(squares.std() / math.sqrt(draws)) if draws > 1 else 0.0,
        "stated_eps": guarantee.stated_eps(DELTA),
        "proved_eps": guarantee.proved_eps(DELTA),
        "failures": [
            {
                "eps": eps,
                "count": int((errors > eps).sum()),
                "stated": guarantee.stated(eps),
                "proved": guarantee.proved(eps),
            }
            for eps in EPS
        ],
    }


def _sketch(name: str, k: int, statistics: Statistics) -> Sketch:
    """Make a sketch; `noise` has E‖E‖²_F = ‖H‖²_F, so that its error does not depend on the scale of H either."""
    kind, options = STUDIED_SKETCHES[name]
    if kind == "noise":
        return make_sketch(kind, noise_std=math.sqrt(statistics.trace / statistics.h.numel()), center=False)
    return make_sketch(kind, k=k, center=False, **options)
