"""The numbers of the paper's tables, and the cells that reproduce them.

The ablations are of one view and change one of its tuned settings, as the paper changes one of its own.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from costa import settings
from costa.methods import get_method
from costa.settings import presets
from reproduction.grid import Cell, Settings
from reproduction.requests import UNMEASURED

if TYPE_CHECKING:
    from costa.graphs.benchmarks import Benchmark

MAIN = ("wikics", "amazon-computers", "amazon-photo", "coauthor-cs", "coauthor-physics")
CITATION = ("cora", "citeseer", "pubmed", "dblp")
ABLATED = ("cora", "citeseer", "wikics")
MEASURED = tuple(dataset for dataset in (*CITATION, *MAIN) if dataset not in UNMEASURED)

TABLE_METHODS = (
    *("raw", "diffused", "hops", "untrained", "node2vec", "deepwalk", "deepwalk-x"),
    *("gae", "vgae", "dgi", "gmi", "mvgrl", "gbt", "grace", "gca", "bgrl", "cca-ssg", "costa-sv", "costa-mv"),
)
"""The methods of the two main tables, in their order."""
FAMILIES = {
    "floors": ("raw", "diffused", "hops", "untrained"),
    "random walks": ("node2vec", "deepwalk", "deepwalk-x"),
    "auto-encoders": ("gae", "vgae"),
    "contrastive": ("dgi", "gmi", "mvgrl", "grace", "gca"),
    "without negatives": ("gbt", "bgrl", "cca-ssg"),
    "COSTA": ("costa-sv", "costa-mv"),
}
"""The methods by kind, as ``fig-time.csv`` names them."""
TIMED = ("amazon-photo", "cora")
"""Graphs on which every method is timed."""

RATE = 0.2
"""Rate of dropped edges and masked attributes if the ablation augments the graph."""
_GRAPH, _WHOLE_GRAPH = ((("augment.edge_rate", rate), ("augment.mask_rate", rate)) for rate in (RATE, 0.0))
_SKETCH, _NO_SKETCH = ((("sketch.kind", kind),) for kind in ("gaussian", "none"))
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5)
DENSITIES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)

Key = float | str

VARIATIONS: dict[str, Mapping[Key, Settings]] = {
    "sketches": {
        "noise": (("sketch.kind", "noise"), ("sketch.noise_std", 1.0)),
        "svd": (("sketch.kind", "svd"),),
        "selection": (("sketch.kind", "selection"),),
        "gaussian": _SKETCH,
    },
    "ablation": {
        "neither": _WHOLE_GRAPH + _NO_SKETCH,
        "graph": _GRAPH + _NO_SKETCH,
        "features": _WHOLE_GRAPH + _SKETCH,
        "both": _GRAPH + _SKETCH,
    },
    "projections": {
        "fresh in each epoch": _SKETCH,
        "fixed": (*_SKETCH, ("sketch.fixed", True)),
        "none": _NO_SKETCH,
    },
    "ratio": {ratio: (*_SKETCH, ("sketch.ratio", ratio)) for ratio in RATIOS},
    "density": {density: (("sketch.kind", "sparse"), ("sketch.density", density)) for density in DENSITIES},
}
"""The ablations by experiment: what each varies in one view, by a key, with the settings of each."""

COMPARED: dict[str, tuple[str, Key, Key]] = {
    "random projection, minus Gaussian noise": ("sketches", "gaussian", "noise"),
    "random projection, minus SVD": ("sketches", "gaussian", "svd"),
    "random projection, minus random selection": ("sketches", "gaussian", "selection"),
    "the graph augmented, minus nothing": ("ablation", "graph", "neither"),
    "the features augmented, minus nothing": ("ablation", "features", "neither"),
    "the features augmented, minus the graph": ("ablation", "features", "graph"),
    "both augmented, minus the features alone": ("ablation", "both", "features"),
    "a fresh Gaussian P, minus a fixed one": ("projections", "fresh in each epoch", "fixed"),
    "a fresh Gaussian P, minus none": ("projections", "fresh in each epoch", "none"),
    "the tuned sketch, minus none": ("projections", "tuned", "none"),
    "k = n, minus k = 0.1 n": ("ratio", 1.0, 0.1),
    "k = 0.5 n, minus k = n": ("ratio", 0.5, 1.0),
    "k = 1.5 n, minus k = n": ("ratio", 1.5, 1.0),
    "density 0.064, minus 0.001": ("density", 0.064, 0.001),
}
"""What the ablations compare, by title: the experiment and two of its keys, the first minus the second."""


def tuned_cells(datasets: Sequence[str]) -> list[Cell]:
    """Each method with its tuned settings."""
    return [Cell(method, dataset) for dataset in datasets for method in TABLE_METHODS]


def main_cells(datasets: Sequence[str]) -> list[Cell]:
    """Each method with its tuned settings and, if there are any, with its strictly chosen and its published ones.

    Each tuned method also has its encoder without training, and COSTA its defaults, which the graph chooses.
    """
    cells: list[Cell | None] = []
    for tuned in tuned_cells(datasets):
        others = [name for name in ("strict", "paper") if tuned.dataset in presets.published(name, tuned.method)]
        cells += [tuned, *(replace(tuned, preset=name) for name in others)]
        cells.append(untrained_cell(tuned.method, tuned.dataset))
        if tuned.method in FAMILIES["COSTA"]:
            cells.append(replace(tuned, preset="none"))
    return [cell for cell in dict.fromkeys(cells) if cell is not None]


def untrained_cell(method: str, dataset: str) -> Cell | None:
    """The baseline of a tuned method: the encoder and the scaling that were chosen for it, never trained.

    A wide encoder is a better baseline than a narrow one: part of what tuning gains needs no training. Its last layer
    has an activation and a normalisation, whether the method's has or not. None if nothing was tuned, or if the encoder
    is not the baseline's GCN.
    """
    layers = presets.preset_layers("tuned", method, dataset)
    defaults = get_method(method).Settings()
    if not layers or not isinstance(getattr(defaults, "encoder", None), settings.Encoder):
        return None
    merged, _ = settings.merge(type(defaults), layers)
    chosen, unused = settings.flatten(merged), get_method(method).unused(merged)
    shared = [key for key in settings.flatten(get_method("untrained").Settings()) if key not in unused]
    return Cell("untrained", dataset, given=tuple((key, chosen[key]) for key in shared if chosen[key] != "auto"))


def repeated_cells(datasets: Sequence[str]) -> list[Cell]:
    """The cells that are run twice: both variants of COSTA in the main tables, but for their defaults."""
    return [cell for cell in main_cells(datasets) if cell.method in FAMILIES["COSTA"] and cell.preset != "none"]


def again(cell: Cell) -> Cell:
    """The same cell run a second time, in its own store."""
    return replace(cell, experiment="again")


def timed_cell(method: str, dataset: str) -> Cell:
    """The method as in its main table, run alone: the table's runs share a device and its time."""
    return Cell(method, dataset, experiment="time", alone=True)


def varied_cell(experiment: str, key: Key, dataset: str) -> Cell:
    """One view with one of :data:`VARIATIONS`, or as it was tuned."""
    if key == "tuned":
        return Cell("costa-sv", dataset)
    given = VARIATIONS[experiment][key] + (_svd_rows(dataset) if key == "svd" else ())
    return Cell("costa-sv", dataset, given=given, experiment=experiment)


def varied_cells(experiment: str, datasets: Sequence[str]) -> list[Cell]:
    """All variations of an experiment."""
    return [varied_cell(experiment, key, dataset) for dataset in datasets for key in VARIATIONS[experiment]]


def _svd_rows(dataset: str) -> Settings:
    """An SVD has at most d rows: if one view's k is larger, take d."""
    tuned: Any = settings.merge(get_method("costa-sv").Settings, presets.preset_layers("tuned", "costa-sv", dataset))[0]
    width = tuned.encoder.width
    rows = tuned.sketch.k or tuned.sketch.ratio * _benchmark(dataset).nodes
    return (("sketch.k", width),) if rows > width else ()


def comparisons(dataset: str) -> dict[str, tuple[Cell, Cell]]:
    """The cells of :data:`COMPARED` that the dataset has.

    Two runs with the same seed have the same initial weights and the same split.
    """
    return {
        title: (varied_cell(experiment, first, dataset), varied_cell(experiment, second, dataset))
        for title, (experiment, first, second) in COMPARED.items()
        if experiment == "projections" or dataset in ABLATED
    }


def reported(table: str, row: str, dataset: str) -> str:
    """The paper's number; empty if it has none.

    >>> reported("sketches", "svd", "cora"), reported("main", "raw", "cora")
    ('82.69', '')
    """
    number: str = _tables()[table].get(row, {}).get(dataset, "")
    return number


def reported_for(method: str, dataset: str) -> str:
    """The number of a method in the paper's main table that has the dataset.

    >>> reported_for("dgi", "cora"), reported_for("gmi", "coauthor-cs")
    ('82.6 ± 0.4', 'out of memory')
    """
    return reported("citation" if dataset in CITATION else "main", method, dataset)


def title_of(dataset: str) -> str:
    """A dataset as people write it.

    >>> title_of("dblp")
    'DBLP'
    """
    return _benchmark(dataset).title


def _benchmark(name: str) -> Benchmark:
    from costa.graphs.benchmarks import BENCHMARKS

    return next(benchmark for benchmark in BENCHMARKS if benchmark.name == name)


@functools.cache
def _tables() -> dict[str, Any]:
    file = resources.files(__package__) / "paper.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))
