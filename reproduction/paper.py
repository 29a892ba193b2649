"""The numbers of the paper's tables, and the cells that reproduce them.

The ablations are of one view and change one of its tuned settings, as the paper changes one of its own.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from costa import settings
from costa.methods import get_method
from costa.settings import presets
from reproduction.grid import Cell, Settings

if TYPE_CHECKING:
    from costa.graphs.benchmarks import Benchmark

MAIN = ("wikics", "amazon-computers", "amazon-photo", "coauthor-cs", "coauthor-physics")
CITATION = ("cora", "citeseer", "pubmed", "dblp")
ABLATED = ("cora", "citeseer", "wikics")
UNMEASURED = ("wikics",)
"""Graphs whose file was not available."""
MEASURED = tuple(dataset for dataset in (*CITATION, *MAIN) if dataset not in UNMEASURED)

METHODS = (
    *("raw", "diffused", "untrained", "node2vec", "deepwalk", "deepwalk-x"),
    *("gae", "vgae", "dgi", "gmi", "mvgrl", "gbt", "grace", "gca", "bgrl", "cca-ssg", "costa-sv", "costa-mv"),
)
"""The methods of the two main tables, in their order."""
FAMILIES = {
    "floors": ("raw", "diffused", "untrained"),
    "random walks": ("node2vec", "deepwalk", "deepwalk-x"),
    "auto-encoders": ("gae", "vgae"),
    "contrastive": ("dgi", "gmi", "mvgrl", "grace", "gca"),
    "without negatives": ("gbt", "bgrl", "cca-ssg"),
    "COSTA": ("costa-sv", "costa-mv"),
}
"""The methods by kind, as ``fig-time.csv`` names them."""
TIMED = ("amazon-photo", "cora")
"""Graphs on which every method is timed."""

SKETCHES: dict[str, tuple[str, Settings]] = {
    "noise": ("Gaussian noise", (("sketch.kind", "noise"), ("sketch.noise_std", 1.0))),
    "svd": ("SVD", (("sketch.kind", "svd"),)),
    "selection": ("random selection", (("sketch.kind", "selection"),)),
    "gaussian": ("random projection", (("sketch.kind", "gaussian"),)),
}
"""Ways to augment features: their name in the table, and their settings."""

RATE = 0.2
"""Rate of dropped edges and masked attributes if the ablation augments the graph."""
_GRAPH: dict[bool, Settings] = {
    on: (("augment.edge_rate", on * RATE), ("augment.mask_rate", on * RATE)) for on in (False, True)
}
_FEATURES: dict[bool, Settings] = {False: (("sketch.kind", "none"),), True: (("sketch.kind", "gaussian"),)}
ABLATION: dict[str, tuple[bool, bool]] = {
    "neither": (False, False),
    "graph": (True, False),
    "features": (False, True),
    "both": (True, True),
}
"""Whether the graph and whether its features are augmented."""

PROJECTIONS: dict[str, Settings] = {
    "fresh in each epoch": (("sketch.kind", "gaussian"),),
    "fixed": (("sketch.kind", "gaussian"), ("sketch.fixed", True)),
    "none": (("sketch.kind", "none"),),
}
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5)
DENSITIES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)


@dataclass(frozen=True)
class Point:
    """A point of a figure: its curve or bar, its x, and the cell that it is the mean of."""

    series: str
    x: float | str
    cell: Cell


def main_cells(datasets: Sequence[str]) -> list[Cell]:
    """Each method with its tuned settings and, if there are any, with its strictly chosen and its published ones.

    Each tuned method also has its encoder without training.
    """
    cells = [
        cell
        for dataset in datasets
        for method in METHODS
        for cell in (
            *(
                Cell(method, dataset, preset)
                for preset in ("tuned", "strict", "paper")
                if preset == "tuned" or dataset in presets.published(preset, method)
            ),
            untrained_cell(method, dataset),
        )
    ]
    return [cell for cell in dict.fromkeys(cells) if cell is not None]


def untrained_cell(method: str, dataset: str) -> Cell | None:
    """The baseline of a tuned method: the encoder and the scaling that were chosen for it, never trained.

    A wide encoder is a better baseline than a narrow one: part of what tuning gains needs no training. Its last layer
    has an activation and a normalisation, whether the method's has or not. None if nothing was tuned, or if the encoder
    is not the baseline's GCN.
    """
    preset = presets.load_preset("tuned", method, dataset)
    defaults = get_method(method).Settings()
    if preset is None or not isinstance(getattr(defaults, "encoder", None), settings.Encoder):
        return None
    merged, _ = settings.merge(type(defaults), [("tuned", preset)])
    chosen, unused = settings.flatten(merged), get_method(method).unused(merged)
    shared = [key for key in settings.flatten(get_method("untrained").Settings()) if key not in unused]
    return Cell("untrained", dataset, given=tuple((key, chosen[key]) for key in shared if chosen[key] != "auto"))


def repeated_cells(datasets: Sequence[str]) -> list[Cell]:
    """The cells that are run twice: both variants of COSTA in the main tables."""
    return [cell for cell in main_cells(datasets) if cell.method in FAMILIES["COSTA"]]


def again(cell: Cell) -> Cell:
    """The same cell run a second time, in its own store."""
    return replace(cell, experiment="again")


def timed_cell(method: str, dataset: str) -> Cell:
    """The method as in its main table, run alone: the table's runs share a device and its time."""
    return Cell(method, dataset, experiment="time", alone=True)


def sketch_cell(dataset: str, sketch: str) -> Cell:
    """One view with one of :data:`SKETCHES`."""
    rows = _svd_rows(dataset) if sketch == "svd" else ()
    return Cell("costa-sv", dataset, given=SKETCHES[sketch][1] + rows, experiment="sketches")


def _svd_rows(dataset: str) -> Settings:
    """An SVD has at most d rows: if one view's k is larger, take d."""
    tuned = presets.load_preset("tuned", "costa-sv", dataset) or {}
    chosen = settings.flatten(get_method("costa-sv").Settings()) | tuned
    width = chosen["encoder.width"]
    rows = chosen["sketch.k"] or chosen["sketch.ratio"] * _benchmark(dataset).nodes
    return (("sketch.k", width),) if rows > width else ()


def ablation_cell(dataset: str, which: str) -> Cell:
    """One view, with or without augmentation of the graph and of its features."""
    graph, features = ABLATION[which]
    return Cell("costa-sv", dataset, given=_GRAPH[graph] + _FEATURES[features], experiment="ablation")


def projection_points(datasets: Sequence[str]) -> list[Point]:
    """A new random projection in each epoch, one for all epochs, and none."""
    return [
        Point(name, dataset, Cell("costa-sv", dataset, given=given, experiment="projections"))
        for dataset in datasets
        for name, given in PROJECTIONS.items()
    ]


def ratio_points(datasets: Sequence[str]) -> list[Point]:
    """k/n from 0.1 to 1.5."""
    return _curve(datasets, "gaussian", "ratio", RATIOS)


def density_points(datasets: Sequence[str]) -> list[Point]:
    """A very sparse P of increasing density."""
    return _curve(datasets, "sparse", "density", DENSITIES)


def _curve(datasets: Sequence[str], kind: str, name: str, values: Sequence[float]) -> list[Point]:
    """One view with ``sketch.NAME`` at each of the values."""
    return [
        Point(dataset, value, Cell("costa-sv", dataset, given=given, experiment=name))
        for dataset in datasets
        for value in values
        for given in [(("sketch.kind", kind), (f"sketch.{name}", value))]
    ]


def comparisons(dataset: str) -> dict[str, tuple[Cell, Cell]]:
    """What the ablations compare, by title: two cells, the first minus the second.

    Two runs with the same seed have the same initial weights and the same split.
    """
    fresh, fixed, none = (point.cell for point in projection_points([dataset]))
    projections = {
        "a fresh Gaussian P, minus a fixed one": (fresh, fixed),
        "a fresh Gaussian P, minus none": (fresh, none),
        "the tuned sketch, minus none": (Cell("costa-sv", dataset), none),
    }
    if dataset not in ABLATED:
        return projections
    sketch = {name: sketch_cell(dataset, name) for name in SKETCHES}
    augmented = {name: ablation_cell(dataset, name) for name in ABLATION}
    ratio = {point.x: point.cell for point in ratio_points([dataset])}
    density = {point.x: point.cell for point in density_points([dataset])}
    return {
        "random projection, minus Gaussian noise": (sketch["gaussian"], sketch["noise"]),
        "random projection, minus SVD": (sketch["gaussian"], sketch["svd"]),
        "random projection, minus random selection": (sketch["gaussian"], sketch["selection"]),
        "the graph augmented, minus nothing": (augmented["graph"], augmented["neither"]),
        "the features augmented, minus nothing": (augmented["features"], augmented["neither"]),
        "the features augmented, minus the graph": (augmented["features"], augmented["graph"]),
        "both augmented, minus the features alone": (augmented["both"], augmented["features"]),
        **projections,
        "k = n, minus k = 0.1 n": (ratio[1.0], ratio[0.1]),
        "k = 0.5 n, minus k = n": (ratio[0.5], ratio[1.0]),
        "k = 1.5 n, minus k = n": (ratio[1.5], ratio[1.0]),
        "density 0.064, minus 0.001": (density[0.064], density[0.001]),
    }


POINTS = {"ablation": projection_points, "ratio": ratio_points, "density": density_points}
"""The points of each figure."""


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
