"""The bias targets of ``python -m reproduction``: how each is measured, and the files that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.bias import figures, page, study
from reproduction.requests import Request, Setup


@dataclass(frozen=True)
class Part:
    """``measure`` fills the store and ``draw`` makes the figure; ``tables`` are its tables in ``bias.md``."""

    measure: Callable[[Request, Setup], None]
    draw: Callable[[Request], list[Path]]
    tables: Sequence[str] = ()


def make(name: str, request: Request) -> list[Path]:
    """The files of a target, from the store.

    The page is about the paper's graphs; a figure of requested datasets leaves it unchanged.
    """
    part = PARTS[name]
    paths = part.draw(request)
    if part.tables and not request.datasets:
        paths += page.write(part.tables, request.results, request.out)
    return paths


def _one(request: Request) -> str:
    """The graph of a figure that shows only one."""
    return request.datasets[0] if request.datasets else "cora"


PARTS = {
    "fig-bias-2d": Part(study.measure_plane, lambda r: figures.fig_plane(r.results, r.out, _one(r))),
    "fig-bias-distribution": Part(
        study.measure_nodes,
        lambda r: figures.fig_distribution(r.results, r.out, _one(r)),
        ("table-bias", "table-bias-sketches"),
    ),
    "fig-bias-degree": Part(
        study.measure_nodes,
        lambda r: figures.fig_degree(r.results, r.out, _one(r)),
        ("table-bias-degree", "table-bias-length"),
    ),
    "fig-degrees": Part(
        study.measure_degrees,
        lambda r: figures.fig_degrees(r.results, r.out, study.degree_datasets(r.datasets)),
        ("table-degrees",),
    ),
    "fig-counterexample": Part(
        study.measure_counterexample,
        lambda r: figures.fig_counterexample(r.results, r.out),
        ("table-counterexample",),
    ),
}
