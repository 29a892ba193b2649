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
from reproduction import (
    bounds,
    bounds_page,
    defaults_page,
    figures,
    pages,
    paper,
    parts_page,
    scale_page,
    tables,
    time_page,
)
from reproduction.bias import figures as bias
from reproduction.bias import page as bias_page
from reproduction.bias import study
from reproduction.grid import Cell
from reproduction.requests import Request, Setup

Draw = Callable[[Request], list[Path]]
Measure = Callable[[Request, Setup], None]


@dataclass(frozen=True)
class Target:
    """A name, a description in one line, a function that makes the files, and the cells whose runs it needs.

    ``measure`` adds measurements that are not runs of a method, if the store lacks them. If something is missing,
    ``make`` raises an :class:`InputError` that names the command to measure it.
    """

    name: str
    description: str
    make: Draw
    cells: Callable[[Request], list[Cell]] = lambda request: []
    measure: Measure | None = None


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


def _table(name: str, what: str, columns: Sequence[str], cells_of: Callable[[Sequence[str]], list[Cell]]) -> Target:
    """A table of ``results.md``; only datasets that it has a column for need runs."""
    return Target(
        name,
        f"{what}, into docs/results.md",
        lambda r: pages.write(name, r.results, r.out, r.seeds),
        lambda r: cells_of([dataset for dataset in r.graphs(columns) if dataset in columns]),
    )


def _accuracy(figure: str, what: str, datasets: Sequence[str]) -> Target:
    """A figure of the accuracies of an experiment's variations."""
    return Target(
        f"fig-{figure}",
        what,
        lambda r: figures.fig_accuracy(figure, r.results, r.out, r.graphs(datasets), r.seeds),
        lambda r: paper.varied_cells(figures.FIGURES[figure][0], r.graphs(datasets)),
    )


def _bias(name: str, what: str, draw: Draw, measure: Measure) -> Target:
    """A figure of bias, and its tables in ``bias.md``.

    The page is about the paper's graphs; a figure of requested datasets leaves it unchanged.
    """
    of_figure = bias_page.OF_FIGURE[name]

    def make(request: Request) -> list[Path]:
        paths = draw(request)
        if of_figure and not request.datasets:
            paths.append(
                tables.write_page(request.out.parent / "bias.md", bias_page.TABLES, request.results, only=of_figure)
            )
        return paths

    return Target(name, f"{what}; also into docs/bias.md" if of_figure else what, make, measure=measure)


_TARGETS = (
    _table("table-main", "WikiCS, Amazon and Coauthor graphs", paper.MAIN, paper.main_cells),
    _table("table-citation", "Cora, CiteSeer, PubMed and DBLP", paper.CITATION, paper.main_cells),
    _table(
        "table-overview", "every method on eight graphs, with the paper's numbers", paper.MEASURED, paper.tuned_cells
    ),
    _table(
        "table-rivals", "every method minus COSTA with two views, split by split", paper.MEASURED, paper.tuned_cells
    ),
    _table(
        "table-again",
        "COSTA in both main tables, the second run minus the first",
        paper.MEASURED,
        lambda datasets: [cell for first in paper.repeated_cells(datasets) for cell in (first, paper.again(first))],
    ),
    _table(
        "table-sketches",
        "noise, SVD, selection and projection in one view",
        paper.ABLATED,
        partial(paper.varied_cells, "sketches"),
    ),
    _table(
        "table-ablation",
        "graph against feature augmentation in one view",
        paper.ABLATED,
        partial(paper.varied_cells, "ablation"),
    ),
    _table(
        "table-differences",
        "the ablations' differences, seed by seed",
        paper.CITATION,
        lambda datasets: [cell for name in datasets for pair in paper.comparisons(name).values() for cell in pair],
    ),
    _accuracy("ablation", "a fresh, a fixed and no random projection", paper.CITATION),
    _accuracy("ratio", "accuracy against k/n", paper.ABLATED),
    _accuracy("density", "accuracy against the density of a very sparse projection", paper.ABLATED),
    Target(
        "fig-runtime",
        "seconds for 1,000 epochs against nodes, from `bench-runtime`",
        lambda r: figures.fig_runtime(r.results, r.out),
    ),
    Target(
        "fig-time",
        "accuracy against the seconds that one model takes alone, every method",
        # a page of some of the graphs would lose the others
        lambda r: time_page.write(r.results, r.out, r.graphs(paper.TIMED), r.seeds, page=not r.datasets),
        # the table's runs give the accuracy, those alone the seconds
        lambda r: [
            cell
            for tuned in paper.tuned_cells(r.graphs(paper.TIMED))
            for cell in (tuned, paper.timed_cell(tuned.method, tuned.dataset))
        ],
    ),
    Target(
        "fig-bounds",
        "how well each sketch keeps the covariance; also into docs/theory.md",
        bounds_page.write,
        measure=bounds.measure,
    ),
    _bias("fig-bias-2d", "one node of Cora in two dimensions, 500 augmentations", bias.fig_plane, study.measure_plane),
    _bias("fig-bias-distribution", "bias of every node and of noise", bias.fig_distribution, study.measure_nodes),
    _bias("fig-bias-degree", "bias against degree", bias.fig_degree, study.measure_nodes),
    _bias("fig-degrees", "degrees of the graphs and their power laws", bias.fig_degrees, study.measure_degrees),
    _bias(
        "fig-counterexample", "contrast with and without bias", bias.fig_counterexample, study.measure_counterexample
    ),
    Target(
        "performance",
        "the tables of docs/performance.md, from the benches",
        lambda r: tables.performance(r.results, r.out),
    ),
    Target(
        "parts",
        "what training on parts takes and means, into docs/performance.md, from benchmarks/parts.py",
        lambda r: parts_page.write(r.results, r.out),
    ),
    Target(
        "defaults",
        "the tables of docs/defaults.md, from `python -m reproduction.defaults` and `.choice`",
        lambda r: defaults_page.write(r.out),
    ),
    Target(
        "scaling",
        "the tables of docs/scaling.md, from benchmarks/scale.py",
        lambda r: scale_page.write(r.results, r.out),
    ),
)
TARGETS = {target.name: target for target in _TARGETS}
