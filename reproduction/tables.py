"""Tables in Markdown from the store of results, and the pages that contain them.

A page marks the place of a table with ``<!-- NAME -->`` and ``<!-- end of NAME -->``; :func:`fill` puts the table
there, so that no number in it is typed by hand.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from costa.errors import InputError
from costa.wording import signed
from reproduction import store

NOT_MEASURED = "not measured"
KERNELS = ("cora", "citeseer", "amazon-photo")
SEEDS = 5
FRUGAL = {
    "gaussian": {"sketch.ratio": 0.5, "encoder.width": 256, "head.width": 256},
    "countsketch": {"sketch.ratio": 0.25, "encoder.width": 128, "head.width": 128},
}
"""Kinds of sketch, each with the settings that the table of frugal sketches names."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

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


def write_page(page: Path, tables: Mapping[str, Callable[..., str]], *arguments: Any, only: Iterable[str] = ()) -> Path:
    """Make the tables, or ``only`` some, and put them in their places; create the page, with all places, if necessary.

    The page stays as it is if a table cannot be made.
    """
    made = {name: tables[name](*arguments) for name in only or tables}
    if not page.exists():
        places = "\n\n".join(f"<!-- {place} -->\n{NOT_MEASURED}\n<!-- end of {place} -->" for place in tables)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# {page.stem.capitalize()}\n\n{places}\n", encoding="utf-8")
    for name, table in made.items():
        fill(page, name, table)
    return page


def read_bench(results: Path, suite: str, device: str = "nvidia-h200") -> dict[str, Any]:
    """The record that a bench wrote for a suite."""
    path = results / "bench" / f"{suite}-{device}.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record
    except (OSError, ValueError):
        raise InputError(
            f"{path} is missing or damaged; measure it with `python -m reproduction bench-{suite}`."
        ) from None


def bench_lines(results: Path, name: str) -> list[dict[str, Any]]:
    """The measurements in a file that each one adds a line to; none if there is no file."""
    path = results / "bench" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def speed(results: Path) -> str:
    """Time and memory of the fast path against the plain twins; each line compares contestants of one run."""
    runtime, physics, cora = (_by_graph(results, suite) for suite in ("runtime", "physics", "cora"))
    on_cpu = _by_graph(results, "cora", "cpu")
    rows = []
    for graph, race in {**runtime, **physics, **cora}.items():
        for method, twin in (("costa-sv", "plain COSTA one view"), ("costa-mv", "plain COSTA two views")):
            rows.append([graph, "H200", method, *_against(race, method, [twin, "plain GRACE", "plain GCA"])])
    method, twins = "costa-sv (countsketch 0.25)", ["plain COSTA two views", "plain GRACE", "plain GCA"]
    cores = f"{read_bench(results, 'cora', 'cpu')['threads']} CPU cores"
    for graph, race in on_cpu.items():
        rows.append([graph, cores, method, *_against(race, method, twins)])
    header = ["graph", "device", "ours", "ms per epoch", "peak memory", "times as fast as plain COSTA", "GRACE", "GCA"]
    return markdown(header, rows)


def _by_graph(results: Path, suite: str, device: str = "nvidia-h200") -> dict[str, dict[str, Any]]:
    races: dict[str, dict[str, Any]] = {}
    for row in read_bench(results, suite, device)["rows"]:
        races.setdefault(row["graph"], {})[row["contestant"]] = row
    return races


def _against(race: dict[str, Any], method: str, twins: Sequence[str]) -> list[str]:
    ours = race[method]
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
    """Seconds for one seed and for twenty."""
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
    """Time and kernels of each part of one epoch."""
    record = read_bench(results, "profile")
    rows = [
        [row["part"], f"{row['us']:,.0f}", f"{row['floor_us']:,.0f}", f"{row['kernels']:.0f}"] for row in record["rows"]
    ]
    us, floor, kernels = (sum(row[key] for row in record["rows"]) for key in ("us", "floor_us", "kernels"))
    rows.append(["all", f"{us:,.0f}", f"{floor:,.0f}", f"{kernels:.0f}"])
    return markdown(["part", "µs", "floor, µs", "kernels"], rows)


def kernels(results: Path) -> str:
    """Accuracy with the fast and with the plain path, on the same five seeds."""
    rows = []
    for dataset in KERNELS:
        for method in ("costa-sv", "costa-mv"):
            forms = _accuracies(results, "kernels", method, dataset, "train.kernels", {"plain": {}, "fast": {}})
            difference = statistics.mean(forms["fast"]) - statistics.mean(forms["plain"])
            rows.append([dataset, method, *map(_spread, forms.values()), signed(difference)])
    return markdown(["dataset", "method", "plain path", "fast path", "difference"], rows)


def frugal(results: Path) -> str:
    """Accuracy with the sketch of the CPU line of :func:`speed`, and with the paper's."""
    kinds = _accuracies(results, "frugal", "costa-sv", "cora", "sketch.kind", FRUGAL)
    names = ("Gaussian 0.5, width 256", "CountSketch 0.25, width 128")
    return markdown(["sketch", "accuracy"], zip(names, map(_spread, kinds.values()), strict=True))


def _accuracies(
    results: Path, experiment: str, method: str, dataset: str, key: str, values: Mapping[str, Mapping[str, float]]
) -> dict[str, list[float]]:
    """For each value of the setting ``key``, the mean accuracy of each run under the first protocol, in percent.

    ``values`` maps each value to the other settings of its runs.
    """
    path = results / "experiments" / experiment / method / f"{dataset}.jsonl"
    runs = [run for run in store.read(path) if run["probes"]]
    by_value = {
        value: [100 * run["probes"][0]["accuracy"]["mean"] for run in runs if run["settings"][key] == value]
        for value in values
    }
    # a standard deviation needs two
    if any(len(accuracies) < 2 for accuracies in by_value.values()):
        forms = [{key: value, **others} for value, others in values.items()]
        given = [" ".join(f"--set {name}={value}" for name, value in form.items()) for form in forms]
        raise InputError(
            f"{path} is missing or lacks runs; make them with `costa train {dataset} --method {method}"
            f" --set encoder.kind=gcn --seeds {SEEDS} --out FOLDER`, once with {' and once with '.join(given)}, each"
            f" into its own FOLDER, and add each with `reproduction.store.record({str(path.parents[1])!r}, FOLDER)` in"
            " Python."
        )
    return by_value


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
"""The tables by the name of their place in ``performance.md``."""


def performance(results: Path, out: Path) -> list[Path]:
    """Fill the tables of ``performance.md``, next to the folder of figures."""
    return [write_page(out.parent / "performance.md", TABLES, results)]
