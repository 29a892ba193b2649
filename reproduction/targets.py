"""The targets by name: the runs that each needs, and how its files are made from the store of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from costa.errors import InputError
from costa.graphs.benchmarks import BENCHMARKS
from costa.methods import METHODS
from costa.wording import did_you_mean
from reproduction import bounds, bounds_page, figures, pages, paper, tables, time_page
from reproduction.bias import targets as bias_targets
from reproduction.grid import Cell
from reproduction.requests import Request, Setup


@dataclass(frozen=True)
class Target:
    """A one-line description, a function that makes the files from the store, and the cells whose runs it needs.

    ``measure`` adds measurements that are not runs of a method, if the store lacks them. If something is missing,
    ``make`` raises an :class:`InputError` that names the command to measure it.
    """

    description: str
    make: Callable[[Request], list[Path]]
    cells: Callable[[Request], list[Cell]] = lambda request: []
    measure: Callable[[Request, Setup], None] | None = None


def check(names: Sequence[str], request: Request) -> None:
    """Refuse unknown names before anything is run or drawn."""
    known = {"target": TARGETS, "dataset": [graph.name for graph in BENCHMARKS], "method": METHODS}
    for kind, given in (("target", names), ("dataset", request.datasets), ("method", request.methods)):
        for name in given:
            if name not in known[kind]:
                hint = did_you_mean(name, list(known[kind]))
                raise InputError(f"unknown {kind} {name!r}{hint}; there are: {', '.join(known[kind])}.")


def cells(names: Sequence[str], request: Request) -> list[Cell]:
    """The cells of the targets, restricted to what is requested and grouped by dataset.

    Raises:
        InputError: A name is unknown, or the targets have cells, but none for the requested datasets and methods.
    """
    check(names, request)
    of_datasets = [cell for name in names for cell in TARGETS[name].cells(request)]
    chosen = [cell for cell in of_datasets if not request.methods or cell.method in request.methods]
    possible = of_datasets or [cell for name in names for cell in TARGETS[name].cells(Request())]
    if possible and not chosen:
        has = ", ".join(dict.fromkeys(cell.method if of_datasets else cell.dataset for cell in possible))
        lacks = ", ".join(request.methods if of_datasets else request.datasets)
        raise InputError(f"{', '.join(names)}: no runs are needed for {lacks}; choose from: {has}.")
    order = list(dict.fromkeys(cell.dataset for cell in chosen))
    return sorted(dict.fromkeys(chosen), key=lambda cell: order.index(cell.dataset))


def measure(names: Sequence[str], request: Request, setup: Callable[[], Setup]) -> None:
    """Make the targets' measurements that are not runs, if the store lacks them; ``setup`` is called only for these."""
    check(names, request)
    for name in names:
        if (measure_target := TARGETS[name].measure) is not None:
            measure_target(request, setup())


def reproduce(names: Sequence[str], request: Request) -> list[Path]:
    """Make the targets of these names from the store; none is made if a name is unknown."""
    check(names, request)
    return [path for name in names for path in TARGETS[name].make(request)]


def _datasets(request: Request, default: Sequence[str]) -> list[str]:
    """The requested datasets, or else the target's without those whose files were not available."""
    return list(request.datasets) or [dataset for dataset in default if dataset not in paper.UNMEASURED]


def _columns(request: Request, columns: Sequence[str]) -> list[str]:
    """Those of them that a table has a column for."""
    return [dataset for dataset in _datasets(request, columns) if dataset in columns]


def _performance(request: Request) -> list[Path]:
    return tables.performance(request.results, request.out)


def _runtime(request: Request) -> list[Path]:
    return figures.fig_runtime(request.results, request.out)


def _page(name: str) -> Callable[[Request], list[Path]]:
    return lambda request: pages.write(name, request.results, request.out, request.seeds)


def _main_cells(columns: Sequence[str]) -> Callable[[Request], list[Cell]]:
    return lambda request: paper.main_cells(_columns(request, columns))


def _overview_cells(request: Request) -> list[Cell]:
    return [Cell(method, dataset) for dataset in _columns(request, paper.MEASURED) for method in paper.METHODS]


def _again_cells(request: Request) -> list[Cell]:
    repeated = paper.repeated_cells(_columns(request, paper.MEASURED))
    return [*repeated, *map(paper.again, repeated)]


def _sketch_cells(request: Request) -> list[Cell]:
    return [
        paper.sketch_cell(dataset, sketch) for dataset in _columns(request, paper.ABLATED) for sketch in paper.SKETCHES
    ]


def _ablation_cells(request: Request) -> list[Cell]:
    return [
        paper.ablation_cell(dataset, which) for dataset in _columns(request, paper.ABLATED) for which in paper.ABLATION
    ]


def _difference_cells(request: Request) -> list[Cell]:
    return [
        cell
        for dataset in _columns(request, paper.CITATION)
        for pair in paper.comparisons(dataset).values()
        for cell in pair
    ]


def _time(request: Request) -> list[Path]:
    datasets = _datasets(request, paper.TIMED)
    # a page of some of the graphs would lose the others
    return time_page.write(request.results, request.out, datasets, request.seeds, page=not request.datasets)


def _time_cells(request: Request) -> list[Cell]:
    """For each method the table's runs, which give the accuracy, and the runs alone, which give the seconds."""
    return [
        cell
        for dataset in _datasets(request, paper.TIMED)
        for method in paper.METHODS
        for cell in (Cell(method, dataset), paper.timed_cell(method, dataset))
    ]


def _figure(name: str, description: str) -> Target:
    """A figure of points: ``figures.fig_NAME`` draws what ``paper.POINTS`` lists."""

    def datasets(request: Request) -> list[str]:
        return _datasets(request, paper.CITATION if name == "ablation" else paper.ABLATED)

    def make(request: Request) -> list[Path]:
        return figures.FIGURES[name](request.results, request.out, datasets(request), request.seeds)

    def points_cells(request: Request) -> list[Cell]:
        return [point.cell for point in paper.POINTS[name](datasets(request))]

    return Target(description, make, points_cells)


def _bias(name: str, description: str) -> Target:
    """A figure of :mod:`reproduction.bias`."""
    return Target(description, partial(bias_targets.make, name), measure=bias_targets.PARTS[name].measure)


TARGETS = {
    "table-main": Target(
        "WikiCS, Amazon and Coauthor graphs, into docs/results.md", _page("table-main"), _main_cells(paper.MAIN)
    ),
    "table-citation": Target(
        "Cora, CiteSeer, PubMed and DBLP, into docs/results.md", _page("table-citation"), _main_cells(paper.CITATION)
    ),
    "table-overview": Target(
        "every method on eight graphs, with the paper's numbers, into docs/results.md",
        _page("table-overview"),
        _overview_cells,
    ),
    "table-rivals": Target(
        "every method minus COSTA with two views, split by split, into docs/results.md",
        _page("table-rivals"),
        _overview_cells,
    ),
    "table-again": Target(
        "COSTA in both main tables, the second run minus the first, into docs/results.md",
        _page("table-again"),
        _again_cells,
    ),
    "table-sketches": Target(
        "noise, SVD, selection and projection in one view, into docs/results.md", _page("table-sketches"), _sketch_cells
    ),
    "table-ablation": Target(
        "graph against feature augmentation in one view, into docs/results.md", _page("table-ablation"), _ablation_cells
    ),
    "table-differences": Target(
        "the ablations' differences, seed by seed, into docs/results.md", _page("table-differences"), _difference_cells
    ),
    "fig-ablation": _figure("ablation", "a fresh, a fixed and no random projection"),
    "fig-ratio": _figure("ratio", "accuracy against k/n"),
    "fig-density": _figure("density", "accuracy against the density of a very sparse projection"),
    "fig-runtime": Target("seconds for 1,000 epochs against nodes, from `bench-runtime`", _runtime),
    "fig-time": Target("accuracy against the seconds that one model takes alone, every method", _time, _time_cells),
    "fig-bounds": Target(
        "how well each sketch keeps the covariance; also into docs/theory.md", bounds_page.write, measure=bounds.measure
    ),
    "fig-bias-2d": _bias("fig-bias-2d", "one node of Cora in two dimensions, 500 augmentations"),
    "fig-bias-distribution": _bias("fig-bias-distribution", "bias of every node and of noise; also into docs/bias.md"),
    "fig-bias-degree": _bias("fig-bias-degree", "bias against degree; also into docs/bias.md"),
    "fig-degrees": _bias("fig-degrees", "degrees of the graphs and their power laws; also into docs/bias.md"),
    "fig-counterexample": _bias("fig-counterexample", "contrast with and without bias; also into docs/bias.md"),
    "performance": Target("the tables of docs/performance.md, from the benches", _performance),
}
