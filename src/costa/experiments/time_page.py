"""What a user gets for a second: the figure of accuracy against the time it takes, and its section of ``results.md``.

The accuracy is the main tables'. The seconds are those of ``metrics.json``, from the graph in memory to its vectors, of
runs that were warmed up and had the device to themselves (:mod:`costa.experiments.grid`): their median, and from the
fastest to the slowest.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costa.errors import InputError
from costa.experiments import grid, labels, paper
from costa.experiments.figures import PROTOCOL, Table, accuracy, count_of, plain, publish
from costa.experiments.grid import Cell
from costa.experiments.tables import fill, markdown
from costa.methods import get_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

NAME = "fig-time"
LOOKS = {
    "floors": ("#000000", "X"),
    "random walks": ("#E69F00", "s"),
    "auto-encoders": ("#56B4E9", "v"),
    "contrastive": ("#D55E00", "o"),
    "without negatives": ("#009E73", "D"),
    "COSTA": ("#0072B2", "P"),
}
"""Colour and marker for each of :data:`costa.experiments.paper.FAMILIES`."""
SHORT = {
    "raw": "raw",
    "diffused": "diffused",
    "untrained": "untrained",
    "deepwalk-x": "DeepWalk+X",
    "gbt": "GBT",
    "costa-sv": "COSTA-SV",
    "costa-mv": "COSTA-MV",
}
"""Methods whose title is too long beside a point."""
QUICKEST = 0.01
"""Seconds; what takes less is drawn here, and its name says so.

Raw features whose scaling learns nothing take microseconds, which would be decades of empty axis.
"""


def write(results: Path, out: Path, datasets: Sequence[str], seeds: int, *, page: bool = True) -> list[Path]:
    """Draw the figure from what the store has, and put it into ``results.md`` where that ``page`` has been begun."""
    table = [
        _row(family, method, dataset, results, seeds)
        for dataset in datasets
        for family, methods in paper.FAMILIES.items()
        for method in methods
    ]
    if not any(map(_is_shown, table)):
        raise InputError(
            f"no method has both an accuracy and a time in {results}; make them with `costa reproduce {NAME}`."
        )
    _one_device((row["device"] for row in table if row["device"] not in ("", "cpu")), results)
    for row in table:
        rivals = [other for other in table if other["dataset"] == row["dataset"] and _is_shown(other)]
        row["front"] = _is_shown(row) and not any(_beats(other, row) for other in rivals)
    files = publish(table, draw, out / NAME)
    return files + _write_section(table, out) if page else files


def _row(family: str, method: str, dataset: str, results: Path, seeds: int) -> dict[str, Any]:
    """A method's accuracy, its time, and what the timed runs reach, which should be the same but for fewer seeds."""
    cell = paper.timed_cell(method, dataset)
    alone = [run for run in grid.find(cell, results, seeds).values() if run["status"] == "ok"]
    # an older line has not what its vectors took, milliseconds beside its training
    times = sorted(run["seconds"] + run.get("embed_seconds", 0.0) for run in alone)
    return {
        "dataset": dataset,
        "family": family,
        "method": method,
        **accuracy(Cell(method, dataset), results, seeds),
        "device": _one_device((run["device"] for run in alone), results),
        "seconds": _rounded(statistics.median(times)) if times else None,
        "fastest": _rounded(times[0]) if times else None,
        "slowest": _rounded(times[-1]) if times else None,
        "timings": len(times),
        "mean_of_timed": accuracy(cell, results, seeds)["mean"],
    }


def _rounded(seconds: float) -> float:
    """Four digits, from microseconds to hours."""
    return float(f"{seconds:.4g}")


def _one_device(names: Iterable[str], results: Path) -> str:
    """The device that all of them are, or nothing where there are none."""
    devices = sorted(set(names))
    if len(devices) > 1:
        raise InputError(
            f"the times in {results / 'experiments' / 'time'} are of several devices ({', '.join(devices)}), which"
            " cannot share an axis; keep the lines of one."
        )
    return "".join(devices)


def _is_shown(row: dict[str, Any]) -> bool:
    return bool(row["runs"] and row["timings"])


def _beats(other: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether it is at least as good and at least as quick, and not the same in both."""
    better, quicker = other["mean"] - row["mean"], row["seconds"] - other["seconds"]
    return bool(min(better, quicker) >= 0 and max(better, quicker) > 0)


def _write_section(table: Table, out: Path) -> list[Path]:
    """The figure, what it shows, and its front; a page that lacks the section gets it at its end."""
    page = out.parent / "results.md"
    if not page.exists():
        return []
    text = page.read_text(encoding="utf-8")
    if f"<!-- {NAME} -->" not in text:
        section = f"## What a second buys\n<!-- {NAME} -->\n<!-- end of {NAME} -->"
        page.write_text(f"{text.rstrip()}\n\n{section}\n", encoding="utf-8")
    stem = f"{out.name}/{NAME}"
    order = list(dict.fromkeys(row["dataset"] for row in table))
    front = sorted(
        (row for row in table if row["front"]), key=lambda row: (order.index(row["dataset"]), row["seconds"])
    )
    rows = [
        [
            paper.title_of(row["dataset"]),
            get_method(row["method"]).title,
            f"{row['seconds']:.2g}" if row["seconds"] >= QUICKEST else f"< {QUICKEST:g}",
            "CPU" if row["device"] == "cpu" else row["device"],
            f"{row['mean']:.2f} ± {row['std']:.2f}",
        ]
        for row in front
    ]
    words = (
        "The accuracy is that of *ours* in the tables above. The seconds are those of one model that has the device to"
        " itself, from the graph in memory to its vectors; starting the device and compiling its kernels come before"
        " and are not counted. What has no weights needs no GPU: its seconds are a CPU's. All numbers are in"
        f" [{stem}.csv]({stem}.csv); no other method is both quicker and better than these:"
    )
    image = f"![Accuracy against the seconds that one model takes]({stem}.png)"
    front_table = markdown(["graph", "method", "seconds", "on", "accuracy"], rows)
    return [fill(page, NAME, f"{image}\n\n{words}\n\n{front_table}")]


def draw(table: Table) -> Figure:
    """A panel for each dataset, a labelled point for each method; a hollow one is of a CPU."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(row["dataset"] for row in table))
    shown = [row for row in table if _is_shown(row)]
    figure = Figure(figsize=(6 * len(datasets), 6.4), layout="constrained")
    panels = figure.subplots(1, len(datasets), squeeze=False)[0]
    named = [
        _draw_panel(axes, [row for row in table if row["dataset"] == dataset])
        for axes, dataset in zip(panels, datasets, strict=True)
    ]
    panels[0].set_ylabel("test accuracy, %")
    seeds, timings = (
        count_of([row[key] for row in shown], what) for key, what in (("runs", "seed"), ("timings", "run"))
    )
    device = next((f"one {row['device']}" for row in shown if row["device"] != "cpu"), "a CPU")
    figure.suptitle(
        f"Accuracy: {PROTOCOL}, mean ± standard deviation over {seeds}\n"
        f"Seconds: one model, alone on {device}, median of {timings}",
        fontsize="medium",
    )
    _add_legend(figure, shown)
    # only the layout says where the points are on the page, and so where there is room for their names
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes, own in zip(panels, named, strict=True):
        labels.keep_apart(axes, own, canvas.get_renderer())
    return figure


def _draw_panel(axes: Axes, rows: Table) -> list[Annotation]:
    """The points and the front of one dataset; returns the labels, each still on its point."""
    from matplotlib.patheffects import withStroke

    shown = [row for row in rows if _is_shown(row)]
    named = []
    for row in shown:
        colour, marker = LOOKS[row["family"]]
        fastest, x, slowest = (max(QUICKEST, row[key]) for key in ("fastest", "seconds", "slowest"))
        y = row["mean"]
        axes.errorbar(
            x,
            y,
            xerr=[[x - fastest], [slowest - x]],
            yerr=row["std"],
            color=colour,
            marker=marker,
            markersize=7,
            markerfacecolor="white" if row["device"] == "cpu" else colour,
            elinewidth=0.8,
            zorder=3,
            label=row["method"],
        )
        named.append(
            axes.annotate(
                _short(row["method"]) + (f"\n(< {1000 * QUICKEST:g} ms)" if row["seconds"] < QUICKEST else ""),
                (x, y),
                xytext=(0, 0),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize="small",
                arrowprops={"arrowstyle": "-", "color": "0.3", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4},
                # legible where it has to cross a line
                path_effects=[withStroke(linewidth=2, foreground="white")],
                in_layout=False,
                zorder=4,
            )
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.margins(0.08)
    axes.autoscale_view()
    axes.set_autoscale_on(False)
    front = sorted((max(QUICKEST, row["seconds"]), row["mean"]) for row in shown if row["front"])
    # a step for each: what was reached stays reached
    ends = [*(seconds for seconds, _ in front[1:]), axes.get_xlim()[1]]
    corners = [corner for (x, y), end in zip(front, ends, strict=False) for corner in ((x, y), (end, y))]
    axes.plot([x for x, _ in corners], [y for _, y in corners], color="0.5", linewidth=1, zorder=2, label="front")
    axes.set_title(paper.title_of(rows[0]["dataset"]), fontsize="medium")
    axes.set_xlabel("\n".join(["seconds to the vectors", *_lacking(rows)]))
    plain(axes)
    return named


def _add_legend(figure: Figure, shown: Table) -> None:
    from matplotlib.lines import Line2D

    points: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    handles = [
        Line2D([], [], color=colour, marker=marker, label=family, **points)
        for family, (colour, marker) in LOOKS.items()
        if any(row["family"] == family for row in shown)
    ]
    if any(row["device"] == "cpu" for row in shown):
        handles.append(
            Line2D([], [], color="0.4", marker="o", markerfacecolor="white", label="hollow: timed on a CPU", **points)
        )
    handles.append(Line2D([], [], color="0.5", linewidth=1, label="none is both quicker and better"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def _lacking(rows: Table) -> list[str]:
    """What the panel cannot show, and why, in lines that fit below it."""
    said = []
    for column, what in (("runs", "no accuracy"), ("timings", "not timed alone")):
        names = [_short(row["method"]) for row in rows if not row[column]]
        if names:
            said += textwrap.wrap(f"{what}: {', '.join(names)}", 80)
    return said


def _short(method: str) -> str:
    return SHORT.get(method) or get_method(method).title
