"""What the paper shows, by name: the runs that a target needs, and how it is made from the store of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from costa.errors import InputError
from costa.wording import did_you_mean

if TYPE_CHECKING:
    import torch

    from costa.experiments.grid import Cell

# What is imported here is imported by `costa --help`: the targets fetch what they need when they are made.


@dataclass(frozen=True)
class Request:
    """Where results are and files go, and what of a target is asked for.

    Attributes:
        results: The store of results.
        out: Folder of the figures; the pages lie beside it.
        seeds: Initialisations of a number, 0 … seeds − 1.
        datasets: Only these, for runs and figures; the target's own where there are none given.
        methods: Only these, for runs.
    """

    results: Path = Path("results")
    out: Path = Path("docs/figures")
    seeds: int = 20
    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()


@dataclass(frozen=True)
class Setup:
    """What a measurement is made with.

    Attributes:
        device: Where it computes.
        jobs: Pieces at a time; as many as cores where it is not given, one on a GPU.
        data_dir: Where benchmark graphs are.
        announce: Hears of each piece that was measured.
    """

    device: torch.device
    jobs: int | None = None
    data_dir: Path | None = None
    announce: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class Target:
    """One line for a person, the cells whose runs it needs, and what makes its files from the store.

    What is no run of a method, ``measure`` puts into the store where it is not there yet. Where the store lacks what is
    needed, ``make`` raises an :class:`InputError` that names the command to measure it.
    """

    description: str
    make: Callable[[Request], list[Path]]
    cells: Callable[[Request], list[Cell]] = lambda request: []
    measure: Callable[[Request, Setup], None] | None = None


def check(names: Sequence[str], request: Request) -> None:
    """Refuse unknown names before anything is run or drawn."""
    from costa.graphs.benchmarks import BENCHMARKS
    from costa.methods import METHODS

    known = {"target": TARGETS, "dataset": [graph.name for graph in BENCHMARKS], "method": METHODS}
    for kind, given in (("target", names), ("dataset", request.datasets), ("method", request.methods)):
        for name in given:
            if name not in known[kind]:
                hint = did_you_mean(name, list(known[kind]))
                raise InputError(f"unknown {kind} {name!r}{hint}; there are: {', '.join(known[kind])}.")


def cells(names: Sequence[str], request: Request) -> list[Cell]:
    """The cells of the targets, restricted to what is asked for; those of one dataset follow each other.

    Raises:
        InputError: A name is unknown, or the targets have cells, but none of what is asked for.
    """
    check(names, request)
    asked = [cell for name in names for cell in TARGETS[name].cells(request)]
    found = [cell for cell in asked if not request.methods or cell.method in request.methods]
    own = asked or [cell for name in names for cell in TARGETS[name].cells(Request())]
    if own and not found:
        has = ", ".join(dict.fromkeys(cell.method if asked else cell.dataset for cell in own))
        lacks = ", ".join(request.methods if asked else request.datasets)
        raise InputError(f"{', '.join(names)}: there is nothing of {lacks}; there is of: {has}.")
    order = list(dict.fromkeys(cell.dataset for cell in found))
    return sorted(dict.fromkeys(found), key=lambda cell: order.index(cell.dataset))


def measure(names: Sequence[str], request: Request, setup: Callable[[], Setup]) -> None:
    """Measure what the targets need that is no run, where the store lacks it; ``setup`` is made for those alone."""
    check(names, request)
    for name in names:
        if (own := TARGETS[name].measure) is not None:
            own(request, setup())


def reproduce(names: Sequence[str], request: Request) -> list[Path]:
    """Make the targets of these names from what the store has; none is made where a name is unknown."""
    check(names, request)
    return [path for name in names for path in TARGETS[name].make(request)]


def _datasets(request: Request, own: Sequence[str]) -> list[str]:
    """Those that are asked for; a target's own, but for the graphs whose files were never at hand."""
    from costa.experiments import paper

    return list(request.datasets) or [dataset for dataset in own if dataset not in paper.UNMEASURED]


def _columns(request: Request, own: Sequence[str]) -> list[str]:
    """Of those, the ones that a table has a column for."""
    return [dataset for dataset in _datasets(request, own) if dataset in own]


def _performance(request: Request) -> list[Path]:
    from costa.experiments import tables

    return tables.performance(request.results, request.out)


def _runtime(request: Request) -> list[Path]:
    from costa.experiments import figures

    return figures.fig_runtime(request.results, request.out)


def _page(name: str) -> Callable[[Request], list[Path]]:
    def make(request: Request) -> list[Path]:
        from costa.experiments import pages

        return pages.write(name, request.results, request.out, request.seeds)

    return make


def _main_cells(table: str) -> Callable[[Request], list[Cell]]:
    def asked(request: Request) -> list[Cell]:
        from costa.experiments import paper

        own = paper.MAIN if table == "main" else paper.CITATION
        return paper.main_cells(_columns(request, own))

    return asked


def _overview_cells(request: Request) -> list[Cell]:
    from costa.experiments import paper
    from costa.experiments.grid import Cell

    return [Cell(method, dataset) for dataset in _columns(request, paper.MEASURED) for method in paper.METHODS]


def _again_cells(request: Request) -> list[Cell]:
    from costa.experiments import paper

    repeated = paper.repeated_cells(_columns(request, paper.MEASURED))
    return [*repeated, *map(paper.again, repeated)]


def _sketch_cells(request: Request) -> list[Cell]:
    from costa.experiments import paper

    return [
        paper.sketch_cell(dataset, sketch) for dataset in _columns(request, paper.ABLATED) for sketch in paper.SKETCHES
    ]


def _ablation_cells(request: Request) -> list[Cell]:
    from costa.experiments import paper

    return [
        paper.ablation_cell(dataset, which) for dataset in _columns(request, paper.ABLATED) for which in paper.ABLATION
    ]


def _difference_cells(request: Request) -> list[Cell]:
    from costa.experiments import paper

    return [
        cell
        for dataset in _columns(request, paper.CITATION)
        for pair in paper.comparisons(dataset).values()
        for cell in pair
    ]


def _time(request: Request) -> list[Path]:
    from costa.experiments import paper, time_page

    datasets = _datasets(request, paper.TIMED)
    # with some of the graphs alone the page would lose the others
    return time_page.write(request.results, request.out, datasets, request.seeds, page=not request.datasets)


def _time_cells(request: Request) -> list[Cell]:
    """For each method the table's runs, which give the accuracy, and those alone, which give the seconds."""
    from costa.experiments import paper
    from costa.experiments.grid import Cell

    return [
        cell
        for dataset in _datasets(request, paper.TIMED)
        for method in paper.METHODS
        for cell in (Cell(method, dataset), paper.timed_cell(method, dataset))
    ]


def _bounds(request: Request) -> list[Path]:
    from costa.experiments import bounds_page

    return bounds_page.write(request)


def _measure_bounds(request: Request, setup: Setup) -> None:
    from costa.experiments import bounds

    bounds.measure(request, setup)


def _figure(name: str, description: str) -> Target:
    """A figure of points: ``figures.fig_NAME`` draws what ``paper.POINTS`` lists."""

    def own(request: Request) -> list[str]:
        from costa.experiments import paper

        return _datasets(request, paper.CITATION if name == "ablation" else paper.ABLATED)

    def make(request: Request) -> list[Path]:
        from costa.experiments import figures

        return figures.FIGURES[name](request.results, request.out, own(request), request.seeds)

    def asked(request: Request) -> list[Cell]:
        from costa.experiments import paper

        return [point.cell for point in paper.POINTS[name](own(request))]

    return Target(description, make, asked)


def _bias(name: str, description: str) -> Target:
    """A figure of :mod:`costa.analysis`."""

    def make(request: Request) -> list[Path]:
        from costa.analysis import targets

        return targets.make(name, request)

    def measured(request: Request, setup: Setup) -> None:
        from costa.analysis import targets

        targets.PARTS[name].measure(request, setup)

    return Target(description, make, measure=measured)


TARGETS = {
    "table-main": Target(
        "WikiCS, Amazon and Coauthor graphs, into docs/results.md", _page("table-main"), _main_cells("main")
    ),
    "table-citation": Target(
        "Cora, CiteSeer, PubMed and DBLP, into docs/results.md", _page("table-citation"), _main_cells("citation")
    ),
    "table-overview": Target(
        "every method on eight graphs, the paper's number beside ours, into docs/results.md",
        _page("table-overview"),
        _overview_cells,
    ),
    "table-rivals": Target(
        "every method less COSTA with two views, split by split, into docs/results.md",
        _page("table-rivals"),
        _overview_cells,
    ),
    "table-again": Target(
        "COSTA in both main tables, a second time less the first, into docs/results.md",
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
        "what the ablations compare, seed by seed, into docs/results.md", _page("table-differences"), _difference_cells
    ),
    "fig-ablation": _figure("ablation", "a fresh, a fixed and no random projection"),
    "fig-ratio": _figure("ratio", "accuracy against k/n"),
    "fig-density": _figure("density", "accuracy against the density of a very sparse projection"),
    "fig-runtime": Target("seconds for 1,000 epochs against nodes, from `costa bench runtime`", _runtime),
    "fig-time": Target("accuracy against the seconds that one model takes alone, every method", _time, _time_cells),
    "fig-bounds": Target(
        "how well each sketch keeps the covariance, into docs/theory.md too", _bounds, measure=_measure_bounds
    ),
    "fig-bias-2d": _bias("fig-bias-2d", "one node of Cora in two dimensions, 500 augmentations"),
    "fig-bias-distribution": _bias("fig-bias-distribution", "bias of every node, beside noise; and into docs/bias.md"),
    "fig-bias-degree": _bias("fig-bias-degree", "bias against degree; and into docs/bias.md"),
    "fig-degrees": _bias("fig-degrees", "degrees of the graphs and their power laws; and into docs/bias.md"),
    "fig-counterexample": _bias("fig-counterexample", "contrast with and without bias; and into docs/bias.md"),
    "performance": Target("the tables of docs/performance.md, from `costa bench`", _performance),
}
