"""The figure of accuracy against time, and its section of ``results.md``.

The accuracy is that of the main tables. The seconds are those of ``metrics.json``, from the graph in memory to its
vectors, of runs that were warmed up and had the device to themselves (:mod:`reproduction.grid`): their median, and
from the fastest to the slowest.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costa.errors import InputError
from costa.methods import get_method
from reproduction import grid, labels, paper
from reproduction.figures import PROTOCOL, Table, accuracy, count_of, make_panels, publish, where
from reproduction.grid import Cell
from reproduction.tables import fill, markdown

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
"""Colour and marker for each of :data:`reproduction.paper.FAMILIES`."""
SHORT = {
    "raw": "raw",
    "diffused": "diffused",
    "hops": "hops",
    "untrained": "untrained",
    "deepwalk-x": "DeepWalk+X",
    "gbt": "GBT",
    "costa-sv": "COSTA-SV",
    "costa-mv": "COSTA-MV",
}
"""Short names of methods whose title is too long for a label."""
LABEL: dict[str, Any] = {
    **{"ha": "center", "va": "center", "fontsize": "small", "in_layout": False, "zorder": 4},
    "arrowprops": {"arrowstyle": "-", "color": "0.3", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4},
}
"""The look of a label, and of the line that leads to it."""
OF_TIMES: dict[str, Callable[[list[float]], float]] = {"seconds": statistics.median, "fastest": min, "slowest": max}
QUICKEST = 0.01
"""Seconds; a faster method is drawn here, and its label says so.

Raw features whose scaling learns nothing take microseconds, which would leave decades of the axis empty.
"""


def write(results: Path, out: Path, datasets: Sequence[str], seeds: int, *, page: bool = True) -> list[Path]:
    """Draw the figure from the store and, if ``page``, put it into ``results.md`` if that exists."""
    table = [
        _row(family, method, dataset, results, seeds)
        for dataset in datasets
        for family, methods in paper.FAMILIES.items()
        for method in methods
    ]
    if not any(map(_is_shown, table)):
        raise InputError(
            f"no method has both an accuracy and a time in {results}; make them with `python -m reproduction {NAME}`."
        )
    _one_device((row["device"] for row in table if row["device"] not in ("", "cpu")), results)
    for row in table:
        rivals = filter(_is_shown, where(table, dataset=row["dataset"]))
        row["front"] = _is_shown(row) and not any(_beats(other, row) for other in rivals)
    files = publish(table, draw, out / NAME)
    return files + _write_section(table, out) if page else files


def _row(family: str, method: str, dataset: str, results: Path, seeds: int) -> dict[str, Any]:
    """A method's accuracy, its time, and the accuracy of the timed runs: the same models, but fewer seeds."""
    cell = paper.timed_cell(method, dataset)
    alone = [run for run in grid.find(cell, results, seeds).values() if run["status"] == "ok"]
    # older lines lack the time that the vectors took, which is milliseconds
    times = [run["seconds"] + run.get("embed_seconds", 0.0) for run in alone]
    return {
        "dataset": dataset,
        "family": family,
        "method": method,
        **accuracy(Cell(method, dataset), results, seeds),
        "device": _one_device((run["device"] for run in alone), results),
        **{name: _rounded(of(times)) if times else None for name, of in OF_TIMES.items()},
        "timings": len(times),
        "mean_of_timed": accuracy(cell, results, seeds)["mean"],
    }


def _rounded(seconds: float) -> float:
    """Four digits, from microseconds to hours."""
    return float(f"{seconds:.4g}")


def _one_device(names: Iterable[str], results: Path) -> str:
    """The one device of these names; empty if there are none."""
    devices = sorted(set(names))
    if len(devices) > 1:
        raise InputError(
            f"the times in {results / 'experiments' / 'time'} are from several devices ({', '.join(devices)}), which"
            " cannot share an axis; keep the lines of one device."
        )
    return "".join(devices)


def _is_shown(row: dict[str, Any]) -> bool:
    return bool(row["runs"] and row["timings"])


def _beats(other: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether ``other`` is at least as good and as quick as ``row``, and better in one of the two."""
    better, quicker = other["mean"] - row["mean"], row["seconds"] - other["seconds"]
    return bool(min(better, quicker) >= 0 and max(better, quicker) > 0)


def _write_section(table: Table, out: Path) -> list[Path]:
    """Write the figure, an explanation and the front; a page that lacks the section gets it at its end."""
    page = out.parent / "results.md"
    if not page.exists():
        return []
    text = page.read_text(encoding="utf-8")
    if f"<!-- {NAME} -->" not in text:
        section = f"## Accuracy against time\n<!-- {NAME} -->\n<!-- end of {NAME} -->"
        page.write_text(f"{text.rstrip()}\n\n{section}\n", encoding="utf-8")
    stem = f"{out.name}/{NAME}"
    rows = [
        [
            paper.title_of(row["dataset"]),
            get_method(row["method"]).title,
            f"{row['seconds']:.2g}" if row["seconds"] >= QUICKEST else f"< {QUICKEST:g}",
            "CPU" if row["device"] == "cpu" else row["device"],
            f"{row['mean']:.2f} ± {row['std']:.2f}",
        ]
        for dataset in dict.fromkeys(row["dataset"] for row in table)
        for row in sorted(where(table, dataset=dataset, front=True), key=lambda row: row["seconds"])
    ]
    words = (
        "The accuracy is that of *ours* in the tables above. The seconds are those of one model that has the device to"
        " itself, from the graph in memory to its vectors; starting the device and compiling its kernels are not"
        " counted. Methods without weights are timed on a CPU. All numbers are in"
        f" [{stem}.csv]({stem}.csv); no other method is both quicker and better than these:"
    )
    image = f"![Accuracy against the seconds that one model takes]({stem}.png)"
    front_table = markdown(["graph", "method", "seconds", "device", "accuracy"], rows)
    return [fill(page, NAME, f"{image}\n\n{words}\n\n{front_table}")]


def draw(table: Table) -> Figure:
    """A panel for each dataset, a labelled point for each method; a hollow point was timed on a CPU."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    datasets = list(dict.fromkeys(row["dataset"] for row in table))
    shown = [row for row in table if _is_shown(row)]
    figure, (panels,) = make_panels(1, len(datasets), (6 * len(datasets), 6.4))
    names = [_draw_panel(axes, where(table, dataset=name)) for axes, name in zip(panels, datasets, strict=True)]
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
    # the layout decides where the points are on the page, and so where their labels fit
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes, of_panel in zip(panels, names, strict=True):
        labels.keep_apart(axes, of_panel, canvas.get_renderer())
    return figure


def _draw_panel(axes: Axes, rows: Table) -> list[Annotation]:
    """Draw the points and the front of one dataset; return the labels, each still on its point."""
    from matplotlib.patheffects import withStroke

    shown = [row for row in rows if _is_shown(row)]
    named = []
    outline = [withStroke(linewidth=2, foreground="white")]  # legible even across a line
    for row in shown:
        colour, marker = LOOKS[row["family"]]
        fastest, x, slowest = (max(QUICKEST, row[key]) for key in ("fastest", "seconds", "slowest"))
        y = row["mean"]
        spans: dict[str, Any] = {"xerr": [[x - fastest], [slowest - x]], "yerr": row["std"], "elinewidth": 0.8}
        face = "white" if row["device"] == "cpu" else colour
        style: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": 7,
            "markerfacecolor": face,
            "zorder": 3,
        }
        axes.errorbar(x, y, **spans, **style, label=row["method"])
        name = _short(row["method"]) + (f"\n(< {1000 * QUICKEST:g} ms)" if row["seconds"] < QUICKEST else "")
        named.append(axes.annotate(name, (x, y), (0, 0), textcoords="offset points", path_effects=outline, **LABEL))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.margins(0.08)
    axes.autoscale_view()
    axes.set_autoscale_on(False)
    front = sorted((max(QUICKEST, row["seconds"]), row["mean"]) for row in shown if row["front"])
    # a step for each point: what was reached stays reached
    ends = [*(seconds for seconds, _ in front[1:]), axes.get_xlim()[1]]
    corners = [corner for (x, y), end in zip(front, ends, strict=False) for corner in ((x, y), (end, y))]
    axes.plot([x for x, _ in corners], [y for _, y in corners], color="0.5", linewidth=1, zorder=2, label="front")
    axes.set_title(paper.title_of(rows[0]["dataset"]), fontsize="medium")
    axes.set_xlabel("\n".join(["seconds to the vectors", *_lacking(rows)]))
    return named


def _add_legend(figure: Figure, shown: Table) -> None:
    from matplotlib.lines import Line2D

    points: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    handles = [
        Line2D([], [], color=colour, marker=marker, label=family.replace("floors", "baselines"), **points)
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
    """Lines below the panel on the methods that it cannot show, and why."""
    lines = []
    for column, what in (("runs", "no accuracy"), ("timings", "not timed alone")):
        names = [_short(row["method"]) for row in rows if not row[column]]
        if names:
            lines += textwrap.wrap(f"{what}: {', '.join(names)}", 80)
    return lines


def _short(method: str) -> str:
    return SHORT.get(method) or get_method(method).title
