"""The figures, drawn from the store of results: each is an SVG, a PNG, and a CSV of the numbers that it shows."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costa.errors import InputError
from costa.evaluate.scores import Score
from costa.insight.drawing import COLOURS, MARKERS, plain
from costa.wording import counted
from reproduction import grid, paper
from reproduction.grid import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROTOCOL = "random-10-10-80"
"""Protocol of the accuracies."""

EPOCHS = 1000
"""Number of epochs in the paper's runtime figure."""

STYLES = {
    "plain COSTA two views (P from the CPU)": ("#CC79A7", "D"),
    "plain GRACE": ("#D55E00", "o"),
    "plain GCA": ("#E69F00", "s"),
    "plain COSTA two views": ("#009E73", "v"),
    "plain COSTA one view": ("#56B4E9", "^"),
    "costa-mv": ("#000000", "X"),
    "costa-sv": ("#0072B2", "P"),
}
"""Contestants of the runtime figure. The colours are Okabe and Ito's, which colour-blind people can tell apart."""

BARS = {"fresh in each epoch": ("#0072B2", ""), "fixed": ("#E69F00", "///"), "none": ("#FFFFFF", "...")}
"""Colour and hatch for each of :data:`reproduction.paper.PROJECTIONS`."""

Table = list[dict[str, Any]]


def fig_runtime(results: Path, out: Path) -> list[Path]:
    """Seconds for 1,000 epochs against nodes: a panel for each device that ``bench-runtime`` ran on."""
    table = [row for path in sorted((results / "bench").glob("runtime-*.json")) for row in _runtimes(path)]
    if not table:
        raise InputError(
            f"there are no runtimes in {results / 'bench'}; measure them with `python -m reproduction bench-runtime`."
        )
    return publish(table, _draw_runtimes, out / "fig-runtime")


def fig_accuracy(name: str, results: Path, out: Path, datasets: Sequence[str], seeds: int) -> list[Path]:
    """The accuracies of one of :data:`FIGURES`."""
    experiment, column, draw = FIGURES[name]
    table = [
        {"dataset": dataset, column: key, **accuracy(paper.varied_cell(experiment, key, dataset), results, seeds)}
        for dataset in datasets
        for key in paper.VARIATIONS[experiment]
    ]
    if not any(row["runs"] for row in table):
        command = f"python -m reproduction fig-{name}"
        raise InputError(f"there are no runs for fig-{name} in {results}; make them with `{command}`.")
    return publish(table, draw, out / f"fig-{name}")


def accuracy(cell: Cell, results: Path, seeds: int) -> dict[str, Any]:
    """Mean and standard deviation, in percent, of the accuracy of seed s on split s, and the number of seeds."""
    scores = grid.pairs(cell, grid.find(cell, results, seeds), PROTOCOL, seeds)
    if not scores:
        return {"mean": None, "std": None, "runs": 0}
    score = Score.of(list(scores.values()), PROTOCOL)
    return {"mean": round(100 * score.mean, 4), "std": round(100 * score.std, 4), "runs": len(scores)}


def _runtimes(path: Path) -> Iterable[dict[str, Any]]:
    """The rows of the figure's data, from a file of ``bench-runtime``."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        for row in record["rows"]:
            if row["contestant"] in STYLES:
                ms = row["ms_per_epoch"]
                seconds = None if ms is None else round(EPOCHS * ms / 1000, 4)
                about = {key: row[key] for key in ("contestant", "nodes", "edges")}
                yield {"device": record["device"], **about, "seconds": seconds, "status": row["status"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} is damaged or of another version; measure again with `python -m reproduction bench-runtime`."
        ) from None


def _draw_runtimes(table: Table) -> Figure:
    """A panel for each device; a contestant that was not timed on a graph, such as out of memory, leaves a gap."""
    devices = list(dict.fromkeys(row["device"] for row in table))
    figure, panels = make_panels(1, len(devices), (3 + 4.5 * len(devices), 4.2))
    handles = {}
    for axes, device in zip(panels[0], devices, strict=True):
        for name, (colour, marker) in STYLES.items():
            if rows := where(table, device=device, contestant=name):
                # thin, dashed twins set the package's lines apart without colour
                width, dash = (1.2, "--") if name.startswith("plain") else (2.2, "-")
                nodes, seconds = floats(rows, "nodes"), floats(rows, "seconds")
                style: dict[str, Any] = {"color": colour, "marker": marker, "linewidth": width, "linestyle": dash}
                (handles[name],) = axes.plot(nodes, seconds, **style, label=name)
        axes.set(title=f"Amazon-Computers, {device}", xlabel="nodes", ylabel="seconds for 1,000 epochs", yscale="log")
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,g}")
    shown = [name for name in STYLES if name in handles]
    figure.legend([handles[name] for name in shown], shown, loc="outside right center", frameon=False)
    return figure


def _draw_ablation(table: Table) -> Figure:
    """A group of bars for each dataset that has runs.

    Differences are of a few points, so the axis does not start at 0: it starts at a tick, and its label says where.
    """
    from matplotlib.ticker import MaxNLocator

    table = [row for row in table if row["runs"]]
    datasets = list(dict.fromkeys(row["dataset"] for row in table))
    figure, axes = _canvas(table, 4 + len(datasets))
    width = 0.8 / len(BARS)
    for place, (name, (colour, hatch)) in enumerate(BARS.items()):
        if rows := where(table, projection=name):
            x = [datasets.index(row["dataset"]) + (place - (len(BARS) - 1) / 2) * width for row in rows]
            outline: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.8}
            errors: dict[str, Any] = {"yerr": floats(rows, "std"), "capsize": 3, "error_kw": {"linewidth": 1}}
            axes.bar(x, floats(rows, "mean"), width, **outline, **errors, label=name)
    low = min(row["mean"] - row["std"] for row in table)
    high = max(row["mean"] + row["std"] for row in table)
    margin = max(1.0, (high - low) / 10)
    locator = MaxNLocator(8, steps=[1, 2, 5, 10], integer=True)
    ticks = locator.tick_values(max(0.0, low - margin), min(100.0, high + margin))
    axes.set_yticks(ticks)
    axes.set_ylim(ticks[0], ticks[-1])
    axes.set_ylabel(f"accuracy, % (the axis starts at {ticks[0]:g})")
    axes.set_xticks(range(len(datasets)), map(paper.title_of, datasets))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    figure.legend(loc="outside right center", frameon=False, title="random projection", alignment="left")
    return figure


def _draw_ratios(table: Table) -> Figure:
    """A line for each dataset; up to k = n the rows of PH are fewer than the nodes, beyond it they are more."""
    figure, axes = _draw_lines(table, "ratio")
    axes.set_xlabel("k/n, rows of the sketch for each node")
    axes.set_xlim(left=0)
    # space for the two words below the lowest band
    axes.margins(y=0.1)
    axes.axvline(1, color="0.4", linewidth=1, linestyle=":")
    for text, side, shift in (("downsampling", "right", -4), ("upsampling", "left", 4)):
        place: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "ha": side}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axes.annotate(text, (1, 0), (shift, 4), color="0.4", fontsize="small", bbox=box, **place)
    return figure


def _draw_densities(table: Table) -> Figure:
    """A line for each dataset; a tick at each density, which doubles from one to the next."""
    figure, axes = _draw_lines(table, "density")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({row["density"] for row in table}))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("density of P, the share of its entries that are not zero")
    return figure


def _draw_lines(table: Table, x: str) -> tuple[Figure, Axes]:
    """Accuracy against a column, with a band of ± one standard deviation; a point without runs leaves a gap."""
    figure, axes = _canvas(table, 7.5)
    for place, dataset in enumerate(dict.fromkeys(row["dataset"] for row in table)):
        rows = where(table, dataset=dataset)
        if any(row["runs"] for row in rows):
            at, mean, std = (floats(rows, column) for column in (x, "mean", "std"))
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            axes.plot(at, mean, color=colour, marker=marker, linewidth=1.8, label=paper.title_of(dataset))
            lower, upper = zip(*((m - s, m + s) for m, s in zip(mean, std, strict=True)), strict=True)
            axes.fill_between(at, lower, upper, color=colour, alpha=0.15, linewidth=0)
    axes.set_ylabel("accuracy, %")
    figure.legend(loc="outside right center", frameon=False)
    return figure, axes


def count_of(counts: Sequence[int], what: str) -> str:
    """The range of the counts, with its noun.

    >>> count_of([3, 20], "seed"), count_of([1, 1], "run")
    ('3 to 20 seeds', '1 run')
    """
    low, high = min(counts), max(counts)
    return f"{low} to {high} {what}s" if low < high else counted(high, what)


def _canvas(table: Table, width: float) -> tuple[Figure, Axes]:
    """Axes under a title with the protocol and the number of seeds in the store."""
    figure, ((axes,),) = make_panels(1, 1, (width, 4.2))
    seeds = count_of([row["runs"] for row in table if row["runs"]], "seed")
    axes.set_title(f"COSTA with one view, {PROTOCOL}\nmean ± standard deviation over {seeds}", fontsize="medium")
    return figure, axes


def where(table: Table, **columns: Any) -> Table:
    """The rows that have these values in these columns."""
    return [row for row in table if all(row[column] == value for column, value in columns.items())]


def floats(rows: Table, column: str) -> list[float]:
    """A column to draw; missing values become NaN, which is not drawn."""
    return [math.nan if row[column] is None else row[column] for row in rows]


FIGURES: dict[str, tuple[str, str, Callable[[Table], Figure]]] = {
    "ablation": ("projections", "projection", _draw_ablation),
    "ratio": ("ratio", "ratio", _draw_ratios),
    "density": ("density", "density", _draw_densities),
}
"""The figures of accuracies: the experiment that each shows, the column of what that varies, and how it is drawn."""


def make_panels(rows: int, columns: int, size: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """A figure of this size in inches, and its axes in rows and columns."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        plain(axes)
    return figure, panels


def publish(table: Table, draw: Callable[[Table], Figure], stem: Path) -> list[Path]:
    """Write the figure and its data."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    data = stem.with_suffix(".csv")
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return [*_save(draw(table), stem), data]


def _save(figure: Figure, stem: Path) -> list[Path]:
    """SVG and PNG; the same data make the same bytes, so that a committed figure changes only with what it shows."""
    import matplotlib

    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    with matplotlib.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=150)
    return paths
