"""Tables in Markdown from the store of results, and the pages that carry them.

A page marks the place of a table with ``<!-- NAME -->`` and ``<!-- end of NAME -->``; :func:`fill` puts the table
there, so that no number in it is typed by hand.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from costa.errors import InputError
from costa.experiments import store
from costa.wording import signed

KERNELS = ("cora", "citeseer", "amazon-photo")
SEEDS = 5


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- ", "|---").replace("--- |", "---|") for line in lines)


def fill(page: Path, name: str, table: str) -> Path:
    """Put a table in its place on a page."""
    text = page.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if start not in text or end not in text:
        raise InputError(f"{page} has no place for {name}: put {start} and {end} on lines of their own.")
    before, after = text.partition(start)[0], text.partition(end)[2]
    page.write_text(f"{before}{start}\n{table}\n{end}{after}", encoding="utf-8")
    return page


def read_bench(results: Path, suite: str, device: str = "nvidia-h200") -> dict[str, Any]:
    """What ``costa bench`` wrote about a suite."""
    path = results / "bench" / f"{suite}-{device}.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record
    except (OSError, ValueError):
        raise InputError(f"{path} is missing or damaged; measure it with `costa bench {suite}`.") from None


def speed(results: Path) -> str:
    """What the fast path was made to reach, and what it reaches; each line is of one run."""
    runtime, physics, cora = (_by_graph(results, suite) for suite in ("runtime", "physics", "cora"))
    on_cpu = _by_graph(results, "cora", "cpu")
    rows = []
    for graph, race in {**runtime, **physics, **cora}.items():
        for own, twin in (("costa-sv", "plain COSTA one view"), ("costa-mv", "plain COSTA two views")):
            rows.append([graph, "H200", own, *_against(race, own, [twin, "plain GRACE", "plain GCA"])])
    own, twins = "costa-sv (countsketch 0.25)", ["plain COSTA two views", "plain GRACE", "plain GCA"]
    cores = f"{read_bench(results, 'cora', 'cpu')['threads']} CPU cores"
    for graph, race in on_cpu.items():
        rows.append([graph, cores, own, *_against(race, own, twins)])
    header = ["graph", "device", "ours", "ms an epoch", "peak memory", "times as fast as plain COSTA", "GRACE", "GCA"]
    return markdown(header, rows)


def _by_graph(results: Path, suite: str, device: str = "nvidia-h200") -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in read_bench(results, suite, device)["rows"]:
        found.setdefault(row["graph"], {})[row["contestant"]] = row
    return found


def _against(race: dict[str, Any], own: str, twins: Sequence[str]) -> list[str]:
    ours = race[own]
    memory = ours["peak_memory_bytes"]
    times = [race[twin]["ms_per_epoch"] for twin in twins]
    ratios = ["out of memory" if ms is None else f"{ms / ours['ms_per_epoch']:.1f}" for ms in times]
    return [f"{ours['ms_per_epoch']:.2f}", "" if memory is None else f"{memory / 2**30:.2f} GiB", *ratios]


def memory(results: Path) -> str:
    """Peak memory against n at a fixed k."""
    rows = []
    for race in _by_graph(results, "memory").values():
        fast, plain = race.values()
        cells = [f"{row['peak_memory_bytes'] / 2**20:,.0f} MiB" for row in (fast, plain)]
        rows.append([f"{fast['nodes']:,}", *cells])
    return markdown(["nodes", "P drawn in tiles", "P stored"], rows)


def seeds(results: Path) -> str:
    """One seed against twenty."""
    rows = read_bench(results, "seeds")["rows"]
    first = rows[0]["seconds_to_probed"]
    return markdown(
        ["", "seconds, trained and probed", "times one seed"],
        [
            [row["contestant"], f"{row['seconds_to_probed']:.2f}", f"{row['seconds_to_probed'] / first:.2f}"]
            for row in rows
        ],
    )


def profile(results: Path) -> str:
    """The parts of one epoch."""
    record = read_bench(results, "profile")
    rows = [
        [row["part"], f"{row['us']:,.0f}", f"{row['floor_us']:,.0f}", f"{row['kernels']:.0f}"] for row in record["rows"]
    ]
    us, floor, kernels = (sum(row[key] for row in record["rows"]) for key in ("us", "floor_us", "kernels"))
    rows.append(["all", f"{us:,.0f}", f"{floor:,.0f}", f"{kernels:.0f}"])
    return markdown(["part", "µs", "floor, µs", "kernels"], rows)


def kernels(results: Path) -> str:
    """The probe's accuracy after the fast path and after the plain one, the same five seeds."""
    rows = []
    for dataset in KERNELS:
        for method in ("costa-sv", "costa-mv"):
            forms = _accuracies(results, "kernels", method, dataset, "train.kernels", ("plain", "fast"))
            difference = statistics.mean(forms["fast"]) - statistics.mean(forms["plain"])
            rows.append([dataset, method, *map(_spread, forms.values()), signed(difference)])
    return markdown(["dataset", "method", "plain path", "fast path", "difference"], rows)


def frugal(results: Path) -> str:
    """The probe's accuracy after the sketch that the CPU's line of :func:`speed` has, beside the paper's."""
    kinds = _accuracies(results, "frugal", "costa-sv", "cora", "sketch.kind", ("gaussian", "countsketch"))
    names = ("Gaussian 0.5, width 256", "CountSketch 0.25, width 128")
    return markdown(["sketch", "accuracy"], zip(names, map(_spread, kinds.values()), strict=True))


def _accuracies(
    results: Path, experiment: str, method: str, dataset: str, key: str, values: Sequence[str]
) -> dict[str, list[float]]:
    """For each value of the setting ``key``, the mean accuracy of each run under the first protocol, in percent."""
    path = results / "experiments" / experiment / method / f"{dataset}.jsonl"
    runs = [run for run in store.read(path) if run["probes"]]
    found = {
        value: [100 * run["probes"][0]["accuracy"]["mean"] for run in runs if run["settings"][key] == value]
        for value in values
    }
    # a spread takes two
    if any(len(accuracies) < 2 for accuracies in found.values()):
        raise InputError(
            f"{path} is missing, or lacks runs; make them with `costa train {dataset} --method {method} --preset none"
            f" --seeds {SEEDS} --results {path.parents[1]}`, once for each {key} of {', '.join(values)}"
            f" (--set {key}=…)."
        )
    return found


def _spread(scores: Sequence[float]) -> str:
    return f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"


TABLES = {
    "table-speed": speed,
    "table-memory": memory,
    "table-seeds": seeds,
    "table-profile": profile,
    "table-kernels": kernels,
    "table-frugal": frugal,
}
"""By the name of their place in ``performance.md``."""


def performance(results: Path, out: Path) -> list[Path]:
    """Fill the tables of ``performance.md``, which lies beside the folder of figures."""
    page = out.parent / "performance.md"
    filled = {name: table(results) for name, table in TABLES.items()}
    for name, table in filled.items():
        fill(page, name, table)
    return [page]
