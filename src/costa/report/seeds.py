"""The page of a folder of runs that differ in their seed: a table of all scores, with a link to each run's own page.

A row is one seed, and its ± the standard deviation over the splits of its run. The last row is the mean over the seeds
of these means, and its ± their standard deviation, which says how much the seed matters. A run that diverged,
collapsed or was interrupted has no score, is in no mean, and is named.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from costa import runs
from costa.errors import InputError
from costa.methods import get_method
from costa.report.page import PAGE, fill, save, write_report
from costa.runs import CONFIG, Metrics
from costa.wording import counted, duration


def runs_in(folder: Path) -> list[Path]:
    """The RUN folders in a folder that is none itself, by their seeds; none if there are not several."""
    if (folder / CONFIG).exists() or not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if (path / CONFIG).is_file()]
    if len(found) < 2:
        return []
    return sorted(found, key=lambda path: (runs.read_config(path)["seed"], path.name))


def write_seeds(
    folder: Path,
    data_dir: Path | None = None,
    announce: Callable[[str], None] = lambda text: None,
    memory: str | None = None,
    moved_to: str | None = None,
) -> Path:
    """Write the page of each run in a folder and ``report.html`` beside them; return its path.

    Args:
        folder: A folder that ``costa train --seeds`` wrote.
        data_dir, announce, memory, moved_to: As for :func:`costa.report.write_report`.
    """
    folders = runs_in(folder)
    configs = [runs.read_config(run) for run in folders]
    if len(kinds := {(config["dataset"], config["method"]) for config in configs}) != 1:
        named = " and ".join(sorted(f"{method} on {dataset}" for dataset, method in kinds))
        raise InputError(f"{folder} holds runs of {named}, whose scores have no mean; give one of its RUN folders.")
    for run in folders:
        announce(f"{run}:")
        write_report(run, data_dir, announce, memory, moved_to)
    collected = [runs.read_metrics(run) for run in folders]
    ((dataset, method),) = kinds
    title = f"{dataset}: {get_method(method).title}, {counted(len(folders), 'seed')}"
    return save(folder, fill(title=escape(title), header=_header(title, collected), content=_table(folders, collected)))


def _header(title: str, collected: Sequence[Metrics]) -> str:
    text = f"<h1>{escape(title)}</h1>"
    failed = [f"seed {metrics.seed} ({metrics.status})" for metrics in collected if metrics.status != "ok"]
    if failed:
        text += f'<p class="warning">Not in any mean: {escape(", ".join(failed))}.</p>'
    return text


def _table(folders: Sequence[Path], collected: Sequence[Metrics]) -> str:
    """A row for each seed and one for all."""
    protocols = list(dict.fromkeys(probe.protocol for metrics in collected for probe in metrics.probes))
    measured: dict[str, list[float]] = {name: [] for name in (*protocols, "NMI")}
    rows = []
    for folder, metrics in zip(folders, collected, strict=True):
        probes, scored = {probe.protocol: probe.accuracy for probe in metrics.probes}, metrics.status == "ok"
        cells = [f'<a href="{quote(folder.name)}/{PAGE}">seed {metrics.seed}</a>', metrics.status]
        for name in protocols:
            cells.append(probes[name].percent if name in probes else "–")
            measured[name] += [probes[name].mean] if scored and name in probes else []
        nmi = None if metrics.clustering is None else metrics.clustering.nmi
        cells += ["–" if nmi is None else f"{nmi:.3f}", duration(metrics.seconds)]
        measured["NMI"] += [nmi] if scored and nmi is not None else []
        rows.append(cells)
    means = [_spread(measured[name], 100, 1, " %") for name in protocols] + [_spread(measured["NMI"], 1, 3)]
    ended = sum(metrics.status == "ok" for metrics in collected)
    rows.append([f"mean over {counted(ended, 'seed')}", "", *means, ""])
    head = ["", "status", *(f"accuracy, {escape(name)}" for name in protocols), "NMI of k-means", "training"]
    lines = ["".join(f'<th scope="col">{cell}</th>' for cell in head)]
    lines += [f'<th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) for name, *cells in rows]
    return (
        f"<section><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
        "<p>In the row of a seed, ± is the standard deviation over the splits of the labels. In the last row it is the"
        " standard deviation over the seeds of each seed's mean: how much the seed matters.</p></section>"
    )


def _spread(values: Sequence[float], scale: float, digits: int, unit: str = "") -> str:
    """The mean and, of more than one, ± the standard deviation, which divides by n − 1.

    >>> _spread([0.8, 0.82], 100, 1, " %"), _spread([0.5], 1, 3), _spread([], 1, 3)
    ('81.0 ± 1.4 %', '0.500', '–')
    """
    if not values:
        return "–"
    mean = f"{scale * statistics.mean(values):.{digits}f}"
    return mean + (f" ± {scale * statistics.stdev(values):.{digits}f}" if len(values) > 1 else "") + unit
