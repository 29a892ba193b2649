"""What the paper shows, drawn from what is measured: each target reads the store of results and writes its files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costa.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPOCHS = 1000
"""Of the paper's runtime figure."""
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


@dataclass(frozen=True)
class Target:
    """One line for a person, and what makes it: (store of results, folder to write to) → the files written.

    Where the store lacks what is needed, ``make`` raises an :class:`InputError` that names the command to measure it.
    """

    description: str
    make: Callable[[Path, Path], list[Path]]


def reproduce(names: Sequence[str], results: Path, out: Path) -> list[Path]:
    """Make the targets of these names; none is made where one is unknown.

    Args:
        names: Of :data:`TARGETS`.
        results: The store of results.
        out: Where the files go; made where it does not exist.
    """
    for name in names:
        if name not in TARGETS:
            raise InputError(f"unknown target {name!r}; there are: {', '.join(TARGETS)}.")
    return [path for name in names for path in TARGETS[name].make(results, out)]


def fig_runtime(results: Path, out: Path) -> list[Path]:
    """Seconds for 1,000 epochs against nodes: a panel for each device that ``costa bench runtime`` ran on."""
    table = [row for path in sorted((results / "bench").glob("runtime-*.json")) for row in _runtimes(path)]
    if not table:
        raise InputError(f"there are no runtimes in {results / 'bench'}; measure them with `costa bench runtime`.")
    out.mkdir(parents=True, exist_ok=True)
    data = out / "fig-runtime.csv"
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return [*_save(_draw_runtimes(table), out / "fig-runtime"), data]


def _runtimes(path: Path) -> Iterable[dict[str, Any]]:
    """The rows of the figure's data, from a file of ``costa bench runtime``."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        for row in record["rows"]:
            if row["contestant"] in STYLES:
                ms = row["ms_per_epoch"]
                yield {
                    "device": record["device"],
                    "contestant": row["contestant"],
                    "nodes": row["nodes"],
                    "edges": row["edges"],
                    "seconds": None if ms is None else round(EPOCHS * ms / 1000, 4),
                    "status": row["status"],
                }
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} is damaged or of another version; measure again with `costa bench runtime`."
        ) from None


def _draw_runtimes(table: list[dict[str, Any]]) -> Figure:
    """A panel for each device; a contestant that was not timed on a graph, for want of memory say, leaves a gap."""
    from matplotlib.figure import Figure

    devices = list(dict.fromkeys(row["device"] for row in table))
    figure = Figure(figsize=(3 + 4.5 * len(devices), 4.2), layout="constrained")
    handles = {}
    for axes, device in zip(figure.subplots(1, len(devices), squeeze=False)[0], devices, strict=True):
        for name, (colour, marker) in STYLES.items():
            rows = [row for row in table if (row["device"], row["contestant"]) == (device, name)]
            if rows:
                nodes = [row["nodes"] for row in rows]
                seconds = [math.nan if row["seconds"] is None else row["seconds"] for row in rows]
                # The twins are thin and dashed: the package's own lines are told apart without colour too.
                width, dash = (1.2, "--") if name.startswith("plain") else (2.2, "-")
                (handles[name],) = axes.plot(
                    nodes, seconds, color=colour, marker=marker, linewidth=width, linestyle=dash, label=name
                )
        axes.set(title=f"Amazon-Computers, {device}", xlabel="nodes", ylabel="seconds for 1,000 epochs", yscale="log")
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.grid(color="0.9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    shown = [name for name in STYLES if name in handles]
    figure.legend([handles[name] for name in shown], shown, loc="outside right center", frameon=False)
    return figure


def _save(figure: Figure, stem: Path) -> list[Path]:
    """SVG and PNG; the same data make the same bytes, so that a committed figure changes only with what it shows."""
    import matplotlib

    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    with matplotlib.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=150)
    return paths


def performance(results: Path, out: Path) -> list[Path]:
    """The tables of ``docs/performance.md``."""
    from costa.experiments import tables

    return tables.performance(results, out)


TARGETS = {
    "performance": Target("the tables of docs/performance.md, from `costa bench`", performance),
    "fig-runtime": Target("seconds for 1,000 epochs against nodes, from `costa bench runtime`", fig_runtime),
}
