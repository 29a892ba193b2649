"""The figure and the tables of ``theory.md``, from the measurements of :mod:`reproduction.bounds`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest

from costa.augment.bounds import gaussian_failure
from costa.errors import InputError
from reproduction import bounds, paper
from reproduction.figures import Table, floats, make_panels, publish, where
from reproduction.tables import markdown, write_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduction.requests import Request

SHOWN = {"svd": 16, "noise": 0}
SHOWN_ROWS = 256
"""The k of the table, except for the sketches in ``SHOWN``."""
TITLES = {"rank-one": "rank one", "flat": "flat spectrum", "dominant-row": "one dominant row"}
STYLES = {
    "gaussian": ("#0072B2", "o"),
    "rademacher": ("#56B4E9", "s"),
    "countsketch": ("#009E73", "^"),
    "sparse, density 0.1": ("#E69F00", "v"),
    "sparse, density 0.01": ("#D55E00", "D"),
    "selection": ("#CC79A7", "P"),
    "selection as printed": ("#000000", "X"),
    "svd": ("0.55", "*"),
}
"""Okabe and Ito's colours, as in the other figures."""
WITH_BOUND = ("gaussian", "sparse, density 0.01", "selection")
"""Sketches whose proved ε the figure shows; those of the others lie between the first two."""
COMPARED = ("gaussian", "rademacher", "countsketch", "sparse, density 0.1", "sparse, density 0.01", "selection")
"""Sketches whose failures are compared with a stated probability: that of selection's lemma, or the Gaussian one."""

ROUNDING = 1e-6
"""A relative error below this is float32 rounding."""


def write(request: Request) -> list[Path]:
    """Write the figure with its data, and the tables in ``theory.md``, next to the folder of figures."""
    lines = bounds.load(request.datasets or bounds.DATASETS, request.results)
    if not lines:
        where = request.results / "experiments" / bounds.EXPERIMENT
        raise InputError(f"there are no measurements in {where}; make them with `python -m reproduction fig-bounds`.")
    files = publish(points(lines), draw, request.out / "fig-bounds")
    # a page of some of the graphs would lose the others
    return files if request.datasets else [*files, write_page(request.out.parent / "theory.md", TABLES, lines)]


def points(lines: Sequence[dict[str, Any]]) -> Table:
    """The figure's data: each line at each ε, with the exact (Clopper-Pearson) 95% interval of its failure rate.

    ``stated`` is the probability of the sketch's lemma; a P without one gets the Gaussian lemma's, as if it held.
    """
    table = []
    for line in lines:
        about = {"source": line["dataset"], "sketch": line["sketch"], "k": line["rows"], "draws": line["draws"]}
        about |= {key: _digits(line[key]) for key in ("median", "q95", "stated_eps", "proved_eps")}
        about["error_of_zero"] = _digits(line["largest"])
        for failed in line["failures"]:
            low, high = map(_digits, interval(failed["count"], line["draws"]))
            stated, proved = _digits(_stated(line, failed)), _digits(failed["proved"])
            counted = {"eps": failed["eps"], "failures": failed["count"], "low": low, "high": high}
            table.append(about | counted | {"stated": stated, "proved": proved})
    return table


def interval(failures: int, draws: int) -> tuple[float, float]:
    """The exact 95% interval of a failure probability.

    >>> [round(end, 4) for end in interval(0, 100)]
    [0.0, 0.0362]
    """
    ends = binomtest(failures, draws).proportion_ci(0.95, method="exact")
    return float(ends.low), float(ends.high)


def _stated(line: dict[str, Any], failed: dict[str, Any]) -> float | None:
    if line["sketch"] in COMPARED and failed["stated"] is None:
        return gaussian_failure(failed["eps"], line["rows"])
    stated: float | None = failed["stated"]
    return stated


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def errors(lines: Sequence[dict[str, Any]]) -> str:
    """The errors at one k, with the lemma's ε, the proved ε and the second moment."""
    rows = [
        [
            *(_title(line["dataset"]), line["sketch"], f"{line['rows']:,}"),
            *(_number(line[key]) for key in ("median", "q95", "stated_eps", "proved_eps", "second_moment")),
            f"{_number(line['measured_moment'])} ± {line['measured_moment_error']:.1g}",
        ]
        for line in lines
        if line["k"] == SHOWN.get(line["sketch"], SHOWN_ROWS)
    ]
    moments = ["E‖·‖²_F/Tr², exact", "measured"]
    return markdown(["H", "sketch", "k", "median", "95% below", "lemma's ε", "proved ε", *moments], rows)


def features(lines: Sequence[dict[str, Any]]) -> str:
    """Shape and spectrum of each H."""
    first = {line["dataset"]: line for line in reversed(lines)}
    rows = [
        [
            _title(source),
            f"{line['nodes']:,} × {line['columns']}",
            _number(line["largest"]),
            f"{1 / line['largest']:.1f}",
            _number(line["concentration"]),
            _number(line["dominance"]),
        ]
        for source, line in reversed(first.items())
    ]
    return markdown(["H", "n × d", "error of H̃ = 0", "stable rank r", "ρ", "κ"], rows)


def failures(lines: Sequence[dict[str, Any]]) -> str:
    """Over every measured k and ε: how often failures significantly exceed what is stated, and the worst case."""
    table = points(lines)
    rows = []
    for sketch in COMPARED:
        of_sketch = where(table, sketch=sketch)
        comparable = [point for point in of_sketch if point["stated"] < 1]
        above = [point for point in comparable if point["low"] > point["stated"]]
        worst = max(above, key=lambda point: point["low"] - point["stated"], default=None)
        rows.append(
            [
                sketch,
                "its own" if sketch in ("gaussian", "selection") else "the Gaussian",
                f"{len(above)} of {len(comparable)}",
                "–" if worst is None else _worst(worst),
                f"{sum(point['low'] > point['proved'] for point in of_sketch)}",
            ]
        )
    return markdown(["sketch", "lemma", "more failures than stated", "the worst of them", "than proved"], rows)


def _worst(point: dict[str, Any]) -> str:
    where = f"{_title(point['source'])}, k = {point['k']}, ε = {point['eps']}"
    rate = f"{100 * point['failures'] / point['draws']:.1f}% failed"
    return (
        f"{where}: {rate} ({100 * point['low']:.1f} to {100 * point['high']:.1f}), stated {100 * point['stated']:.1f}%"
    )


TABLES = {"table-bounds-features": features, "table-bounds": errors, "table-bounds-failures": failures}
"""The tables by the name of their place in ``theory.md``."""


def _title(source: str) -> str:
    if source in TITLES:
        return TITLES[source]
    dataset, _, form = source.rpartition("-")
    return f"{paper.title_of(dataset)}, {'centred' if form == 'centred' else 'not centred'}"


def _number(value: float | None) -> str:
    """Three digits; 0 for what is only float32 rounding, and a dash for what there is not.

    >>> _number(0.12345), _number(3e-7), _number(0.00004), _number(25.738), _number(None)
    ('0.123', '0', '4e-05', '25.7', '–')
    """
    return "–" if value is None else "0" if abs(value) < ROUNDING else f"{value:.3g}"


def draw(table: Table) -> Figure:
    """A column for each H: on top the error against k, below it the failures against the stated probability."""
    sources = list(dict.fromkeys(point["source"] for point in table))
    figure, panels = make_panels(2, len(sources), (3.1 * len(sources), 7.6))
    for source, above, below in zip(sources, *panels, strict=True):
        _draw_errors(above, where(table, source=source))
        _draw_failures(below, where(table, source=source))
        above.set_title(_title(source), fontsize="medium")
    panels[0][0].set_ylabel("‖HᵀH − H̃ᵀH̃‖₂ / Tr(HᵀH)\nmedian, and up to the 95% quantile")
    panels[1][0].set_ylabel("failures, with their exact 95% interval")
    handles: dict[str, Any] = {}
    for axes in panels.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    order = [*(name for name in STYLES if name in handles), *(label for label in handles if label not in STYLES)]
    figure.legend([handles[label] for label in order], order, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _draw_errors(axes: Axes, table: Table) -> None:
    """Medians joined by a line, whiskers up to the 95% quantile; lines for the ε stated and proved for 95%."""
    # of the points of a sketch, one for each k
    curves = {name: list({row["k"]: row for row in where(table, sketch=name)}.values()) for name in STYLES}
    for place, (name, (colour, marker)) in enumerate(STYLES.items()):
        rows = curves[name]
        # side by side, or the whiskers would hide each other
        k = [row["k"] * 2 ** (0.11 * (place - (len(STYLES) - 1) / 2)) for row in rows]
        # a logarithmic axis cannot show zero
        median = [row["median"] if row["median"] > ROUNDING else math.nan for row in rows]
        whiskers = [[0] * len(rows), [row["q95"] - row["median"] for row in rows]]
        axes.errorbar(
            k, median, whiskers, color=colour, marker=marker, markersize=5, linewidth=1, elinewidth=1, label=name
        )
    for name in WITH_BOUND:
        k, proved = (floats(curves[name], column) for column in ("k", "proved_eps"))
        axes.plot(k, proved, color=STYLES[name][0], linestyle="--", linewidth=1.4, label=f"proved for 95%, {name}")
    k, stated = (floats(curves["gaussian"], column) for column in ("k", "stated_eps"))
    axes.plot(k, stated, color="black", linestyle=":", linewidth=1.8, label="stated for 95%, Gaussian lemma")
    axes.axhline(table[0]["error_of_zero"], color="0.4", linewidth=1, label="the error of H̃ = 0")
    axes.set(xscale="log", yscale="log", xlabel="k")
    axes.set_xticks(k, [f"{rows:,}" for rows in k])
    axes.minorticks_off()
    axes.set_ylim(2e-3, 4)


def _draw_failures(axes: Axes, table: Table) -> None:
    """Every k and ε of the compared sketches; those above the diagonal fail more often than stated."""
    axes.fill_between([0, 1], [0, 1], [1, 1], color="#D55E00", alpha=0.08, linewidth=0, label="fails more than stated")
    axes.plot([0, 1], [0, 1], color="0.4", linewidth=1)
    for name in COMPARED:
        colour, marker = STYLES[name]
        rows = [row for row in where(table, sketch=name) if row["stated"] < 1]
        columns = ("stated", "failures", "draws", "low", "high")
        stated, count, draws, low, high = (np.array(floats(rows, column)) for column in columns)
        ends = [count / draws - low, high - count / draws]
        style: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": 4,
            "linestyle": "none",
            "elinewidth": 0.8,
        }
        axes.errorbar(stated, count / draws, ends, **style)
    axes.set(xlabel="stated probability", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
