"""The tables of ``docs/scaling.md``: what was measured by ``benchmarks/scale.py``, and what follows for larger graphs.

What float16 costs is from ``benchmarks/half.py``, what all processes take together under a limit from
``benchmarks/limits.py``, and what a step takes in two processes from ``benchmarks/processes.py``.

A stage takes t = c·W seconds for W units of work, which are counted, not measured (:mod:`costa.runs.costs`); c is that
of the largest graph that was measured. The slope of a stage, log t against log n at the same columns, memory
and edges for each node, says whether that can be relied on: it is 1 if c is the same for all.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costa.evaluate.baselines import BASELINES
from costa.memory import size
from costa.runs.costs import WORK, Shape
from costa.wording import duration
from reproduction.tables import NOT_MEASURED, bench_lines, markdown, write_page

Line = Mapping[str, Any]


def _shape(line: Line) -> Shape:
    powers, steps = line["hops"]
    return Shape(line["nodes"], line["edges"], line["columns"], powers, steps, line["epochs"])


LARGER = (10**8, 10**9)
MACHINES = (1, 64)
NETWORK = 10**10 / 8
"""Bytes a second that a machine receives: ten gigabits, assumed."""
WIDTH = 512
"""Columns of a vector."""
SENT = 4 * ((128 + 1) * (2 * 256 + 1) + 2**17)
"""Bytes of a step's sums, about: a sketch of 128 rows, two views of 256 columns of codes, and so many weights."""
BATCH = 512
"""Rows of a batch, for each machine."""
ALONE = ("read", "choose", "parquet")
"""What the first machine does for all."""
LEAST = 10**5
"""Smaller graphs say little about larger ones: their arrays fit into a cache."""


def write(results: Path, out: Path) -> list[Path]:
    """Fill the tables of ``scaling.md``, next to the folder of figures."""
    tables = {"scale": scale, "slopes": slopes, "larger": larger, "half": half, "limits": limits}
    tables |= {"accuracy": accuracy, "processes": processes}
    return [write_page(out.parent / "scaling.md", tables, results)]


def measured(results: Path) -> list[Line]:
    """The last measurement of each graph and limit of memory, the smallest graph first."""
    lines = bench_lines(results, "scale-cpu")
    latest = {(line["nodes"], line["edges"], line["columns"], line["memory"]): line for line in lines}
    return [latest[key] for key in sorted(latest)]


def scale(results: Path) -> str:
    """A row for each measurement: seconds of each stage, and memory."""
    lines = measured(results)
    rows = []
    for line in lines:
        shape = [f"{line['nodes']:,}", f"{line['edges']:,}", str(line["columns"]), size(line["memory"])]
        seconds = [f"{line['stages'][stage]:.0f}" if stage in line["stages"] else "–" for stage in WORK]
        sizes = [size(line[f"peak_{kind}_bytes"]) for kind in ("anonymous", "resident")]
        rows.append([*shape, *seconds, f"{sum(line['stages'].values()):.0f}", _estimated(line), *sizes])
    header = ["nodes", "edges", "columns", "--memory", *(f"{stage}, s" for stage in WORK), "in all"]
    return markdown([*header, "estimated / measured", "anonymous", "resident"], rows) if rows else NOT_MEASURED


def accuracy(results: Path) -> str:
    """A row for each measurement that was evaluated: the baselines and the vectors, in percent."""
    lines = [line for line in measured(results) if "baselines" in line]
    if not lines:
        return NOT_MEASURED
    names = list(lines[0]["baselines"])
    rows = [
        [f"{line['nodes']:,}", str(line["columns"])]
        + [f"{100 * score:.1f}" for score in (*(line["baselines"][name] for name in names), line["accuracy"])]
        for line in lines
    ]
    return markdown(["nodes", "columns", *(BASELINES[name] for name in names), "COSTA, the default"], rows)


def processes(results: Path) -> str:
    """A row for each case: seconds of one process and of two, their ratio, and bytes by count and on the wire."""
    lines = {line["case"]: line for line in bench_lines(results, "processes-cpu")}
    rows = []
    for line in lines.values():
        one, two = (line["seconds"][kind] for kind in ("1 × 2", "2 × 1"))
        seconds = [f"{each:.0f} s" if each > 1 else f"{1000 * each:.1f} ms" for each in (one, two)]
        sent = [f"{line[key]:,}" if key in line else "–" for key in ("bytes", "wire")]
        rows.append([line["case"], *seconds, f"{two / one:.2f}", *sent])
    header = ["", "one process, two threads", "two processes, one thread each", "ratio"]
    return markdown([*header, "bytes a step, counted", "on the wire"], rows) if rows else NOT_MEASURED


def slopes(results: Path) -> str:
    """A row for each stage: the slope over graphs of one shape, and c and t/W of the smallest of them over it."""
    lines = _one_shape(measured(results))
    if len(lines) < 2:
        return NOT_MEASURED
    first, last = lines[0], lines[-1]
    rows = []
    for stage, work in WORK.items():
        seconds = [line["stages"][stage] for line in lines]
        slope = np.polyfit(np.log([line["nodes"] for line in lines]), np.log(seconds), 1)[0]
        cost = [line["stages"][stage] / work(_shape(line)) for line in (first, last)]
        rows.append([stage, f"{slope:.2f}", f"{1e9 * cost[1]:.3g} ns", f"{cost[0] / cost[1]:.2f}"])
    return markdown(["stage", "slope", "c", "t/W of the smallest graph, over c"], rows)


def larger(results: Path) -> str:
    """What the stages would take on larger graphs of the largest measured one's shape, on one such machine or more.

    What N machines share takes 1/N of the time, and what they send comes on top:

        propagate    4·K·n·d·(1 − 1/N) bytes into each: the others' rows before each product
        train        the sums of n/(512·N) steps, twice: there and back
        embed        4·n·512·(1 − 1/N) bytes into the first, which writes all vectors
    """
    lines = _one_shape(measured(results))
    if not lines:
        return NOT_MEASURED
    known, rows = lines[-1], []
    for nodes in LARGER:
        shape = _shape(dict(known) | {"nodes": nodes, "edges": round(known["edges"] * nodes / known["nodes"])})
        disk = [size(known["disk"][place] * nodes / known["nodes"]) for place in ("graph", "vectors")]
        for machines in MACHINES:
            seconds = {
                stage: known["stages"][stage] * work(shape) / work(_shape(known)) / (1 if stage in ALONE else machines)
                + _received(stage, shape, machines) / NETWORK
                for stage, work in WORK.items()
            }
            most = max(seconds, key=lambda stage: seconds[stage])
            cells = map(duration, [*seconds.values(), sum(seconds.values())])
            rows.append([f"10{_raised(round(math.log10(nodes)))}", str(machines), *cells, most, *disk])
    header = ["nodes", "machines", *WORK, "in all", "most of it", "disk for the graph", "for the vectors"]
    return markdown(header, rows)


def _received(stage: str, shape: Shape, machines: int) -> float:
    """Bytes that the machine that gets most of them receives in a stage."""
    others = 1 - 1 / machines
    if stage == "propagate":
        return 4 * shape.products * shape.nodes * shape.columns * others
    if stage == "train":
        return 2 * SENT * shape.nodes / (BATCH * machines) * (machines > 1)
    return 4 * shape.nodes * WIDTH * others if stage == "embed" else 0


def limits(results: Path) -> str:
    """A row for each limit and kind of run: the peak of anonymous memory of all processes together."""
    lines = {(*_graph(line), line["memory"], line["kind"]): line for line in bench_lines(results, "limits-cpu")}
    rows = []
    for line in sorted(lines.values(), key=lambda line: (*_graph(line), line["memory"], line["kind"])):
        graph = [f"{line['nodes']:,}", f"{line['edges']:,}", str(line["columns"])]
        peak = line["peak_anonymous_bytes"]
        told = ["refused", "–"] if line["refused"] else [size(peak), f"{peak / line['memory']:.0%}"]
        rows.append([*graph, line["kind"], size(line["memory"]), *told])
    header = ["nodes", "edges", "columns", "run", "--memory", "anonymous, all processes", "of the limit"]
    return markdown(header, rows) if rows else NOT_MEASURED


def _graph(line: Line) -> tuple[int, int, int]:
    return line["nodes"], line["edges"], line["columns"]


def half(results: Path) -> str:
    """What float16 costs in all, in a sentence, and a row for each graph; accuracies in points, over the seeds."""
    lines = list({(line["graph"], line["views"]): line for line in bench_lines(results, "half-cpu")}.values())
    if not lines:
        return NOT_MEASURED
    rows, every = [], dict[str, list[float]]()
    for line in lines:
        powers, steps = line["hops"]
        hops = ", ".join([*map(str, powers), *(["PageRank"] if steps else [])])
        row = [line["graph"], f"{line['nodes']:,}", str(line["views"]), hops]
        for labels, full in line["accuracy"]["float32"].items():
            pairs = zip(line["accuracy"]["float16"][labels], full, strict=True)
            changes = [100 * (statistics.fmean(new) - statistics.fmean(old)) for new, old in pairs]
            every.setdefault(labels, []).extend(changes)
            row += [f"{100 * statistics.fmean(map(statistics.fmean, full)):.2f}", _mean(changes)]
        rows.append([*row, *(size(line["disk"][kind]) for kind in ("x", "float32", "float16"))])
    changed = " and ".join(f"{_mean(changes)} points with {labels} of the labels" for labels, changes in every.items())
    kinds = [sum(line["disk"][kind] for line in lines) for kind in ("float16", "float32")]
    said = (
        f"Accuracy changes by {changed} (mean ± standard error), and the hops but X take {kinds[0] / kinds[1]:.0%} of"
    )
    header = [part for labels in every for part in (f"float32, {labels}", f"float16 − float32, {labels}")]
    columns = ["graph", "nodes", "views", "hops", *header, "X", "hops, float32", "hops, float16"]
    return f"{said} the space.\n\n{markdown(columns, rows)}"


def _mean(changes: Sequence[float]) -> str:
    error = statistics.stdev(changes) / math.sqrt(len(changes))
    mean = round(statistics.fmean(changes), 2) + 0.0  # no −0.00
    return f"{mean:+.2f} ± {error:.2f}".replace("-", "−")


def _one_shape(lines: Sequence[Line]) -> list[Line]:
    """Those measured with all stages, the columns and the edges for each node of the largest graph; one for each n."""
    whole = [line for line in lines if line["nodes"] >= LEAST and set(WORK) <= set(line["stages"]) and "disk" in line]
    if not whole:
        return []
    last = whole[-1]

    def alike(line: Line) -> bool:
        density = line["edges"] / line["nodes"] / (last["edges"] / last["nodes"])
        return line["columns"] == last["columns"] and line["memory"] == last["memory"] and 0.8 < density < 1.25

    return list({line["nodes"]: line for line in whole if alike(line)}.values())


def _estimated(line: Line) -> str:
    """The seconds that ``costa estimate`` told before, over those that the same stages took."""
    told = line.get("estimate", {}).get("stages", {})
    both = told.keys() & line["stages"].keys()
    return f"{sum(told[s] for s in both) / sum(line['stages'][s] for s in both):.2f}" if both else "–"


def _raised(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
