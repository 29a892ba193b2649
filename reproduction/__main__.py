"""``python -m reproduction TARGET…``: train what the store of results lacks, then write tables, figures and pages."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from costa.cli import options
from costa.cli.console import console, fail, number, print_table, run_app, say
from costa.runs.jobs import cores
from costa.training import resolve_device
from costa.wording import counted, duration
from reproduction import grid, targets
from reproduction.bench import suites
from reproduction.bench.measure import Row
from reproduction.grid import Done
from reproduction.requests import Request, Setup
from reproduction.targets import TARGETS

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
LISTED = "\n".join(f"{name:<21} {target.description}" for name, target in TARGETS.items())
BENCHES = "\n".join(f"{suites.TARGET + name:<21} {what}" for name, what in suites.DESCRIPTIONS.items())


@app.command(
    help="Reproduce the paper: train the runs that the store of results lacks, then write tables and figures from it."
    " If it is interrupted, the same command continues.\n\n\b\n"
    f"{LISTED}\n{'pages':<21} all of these, from the store alone\n\n"
    "Speed and memory against plain PyTorch, measured again each time, into results/bench:\n\n\b\n"
    f"{BENCHES}\n{'bench':<21} bench-runtime and bench-physics on a GPU, bench-digits on a CPU",
)
def main(
    target: Annotated[list[str], typer.Argument(metavar="TARGET", help="From the lists above.")],
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Number of seeds behind each number.")] = 20,
    datasets: Annotated[
        str, typer.Option(metavar="A,B", help="Only these [default: the paper's, without WikiCS].")
    ] = "",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Only these.")] = "",
    device: options.Device = "auto",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time [default: as many as cores; one on a GPU].")
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Train nothing; write only what the store has.")] = False,
    epochs: Annotated[
        int,
        typer.Option(min=1, max=1000, help="Epochs in a timed round of a bench; fewer if that takes over a second."),
    ] = 50,
    results: Annotated[Path, typer.Option(help="The store of results.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder of the figures; the pages are next to it.")] = Path("docs/figures"),
    data_dir: options.DataDir = None,
) -> None:
    """Run what is missing, and write the targets from the store of results."""
    benches, names = suites.split_targets(target, lambda: resolve_device(device))
    if "pages" in names:
        names, no_run = [name for name in TARGETS if name not in names] + names, True
        names.remove("pages")
    request = Request(
        results, out, seeds, *([name for name in text.split(",") if name] for text in (datasets, methods))
    )
    targets.check(names, request)
    for name in benches:
        with console.status(name) as status:
            job = suites.Bench(resolve_device(device), epochs, data_dir, status.update)
            path = suites.run_suite(name, job, results / "bench", print_race)
        say(f"{path}\n")
    failed = 0
    if not no_run:
        failed = fill(names, request, device, jobs, data_dir)
        targets.measure(names, request, lambda: Setup(resolve_device(device), jobs, data_dir, say))
    for path in targets.reproduce(names, request):
        say(str(path))
    if failed:
        fail(f"{counted(failed, 'run')} could not be made; the lines above say why.")


def fill(names: Sequence[str], request: Request, device: str, jobs: int | None, data_dir: Path | None) -> int:
    """Train the missing runs of the targets; print a line for each finished task, with the time left.

    Returns:
        The number of runs that could not be made.
    """
    wanted = targets.cells(names, request)
    if not wanted:
        return 0
    work = grid.missing(wanted, request.results, request.seeds)
    total = sum(len(seeds) for _, seeds in work)
    to_make = f"{counted(len(wanted), 'cell')}, {counted(total, 'run')} to make"
    say(to_make if work else f"{to_make}: all are in the store")
    if not work:
        return 0
    torch_device = resolve_device(device)
    began, done, failed = time.perf_counter(), 0, 0

    def report(ended: Done) -> None:
        nonlocal done, failed
        done += len(ended.seeds)
        spent = time.perf_counter() - began
        left = duration(spent / done * (total - done))
        if ended.why is None:
            say(f"{done}/{total}  {ended.cell.label}: {ending(ended.metrics)}; {left} left")
        else:
            failed += len(ended.seeds)
            say(f"{done}/{total}  {ended.cell.label} could not be run: {ended.why} {left} left")

    try:
        jobs = jobs or (1 if torch_device.type == "cuda" else cores())
        grid.fill(work, request.results, torch_device, data_dir=data_dir, jobs=jobs, report=report)
    except KeyboardInterrupt:
        say(f"Stopped after {done} of {total} runs. They are in {request.results}; run the same command to continue.")
        raise typer.Exit(130) from None
    if done > failed:
        say(f"{counted(done - failed, 'run')} in {duration(time.perf_counter() - began)}")
    return failed


def ending(collected: Sequence[dict[str, Any]]) -> str:
    """How the runs of one cell ended, in a few words."""
    scores = [metrics["probes"][0]["accuracy"]["mean"] for metrics in collected if metrics["probes"]]
    seeds = ", ".join(str(metrics["seed"]) for metrics in collected)
    named = f"seed {seeds}" if len(collected) == 1 else f"{len(collected)} seeds"
    lost = {metrics["status"] for metrics in collected} - {"ok"}
    parts = [f"{100 * statistics.mean(scores):.1f}"] if scores else []
    return f"{named}, {', '.join([*parts, *sorted(lost)])}"


def print_race(rows: list[Row]) -> None:
    """Print one graph's table, and the speed of each of the package's methods against each twin."""
    say(f"{rows[0].graph}: {rows[0].nodes:,} nodes, {rows[0].edges:,} edges")
    numbers = ("ms/epoch", "spread", "× fastest twin", "peak MiB", "probed s")
    times = suites.speedups(rows)
    lines = []
    for row in rows:
        over, mebibytes = times.get(row.contestant), row.peak_memory_bytes and row.peak_memory_bytes / 2**20
        speeds = (row.ms_per_epoch, row.ms_spread, min(over.values()) if over else None)
        sizes = (number(mebibytes, ",.0f"), number(row.seconds_to_probed, ".1f"))
        lines.append([row.contestant, *(number(speed, ".2f") for speed in speeds), *sizes, row.status])
    print_table(("contestant", *numbers, "status"), lines, right=numbers)
    for name, over in times.items():
        if over and name not in over:
            say(f"{name}, speed: " + ", ".join(f"{ratio:.2f} × {twin}" for twin, ratio in over.items()))
    say()


def run() -> None:
    """Run ``python -m reproduction``."""
    run_app(app, "python -m reproduction", "take a larger machine")


if __name__ == "__main__":
    run()
