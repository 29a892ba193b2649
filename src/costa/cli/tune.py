"""``costa tune``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costa.cli import options
from costa.cli.console import note, said_of, say, say_columns

if TYPE_CHECKING:
    from costa.tuning.study import Ended


def tune(
    graph: options.OptionalGraph = None,
    edges: options.Edges = None,
    features: options.Features = None,
    nodes: options.Nodes = None,
    columns: options.Columns = None,
    method: options.Method = "costa-mv",
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Number of seeds per trial.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="The most epochs of a trial; its best checkpoint counts.")] = 1000,
    splits: Annotated[int, typer.Option(min=1, max=100, help="Number of splits that evaluate each seed.")] = 10,
    finalists: Annotated[
        int, typer.Option(min=0, help="Number of best trials to train again and choose from; 0 only searches.")
    ] = 10,
    final_seeds: Annotated[int, typer.Option(min=1, help="Number of seeds per finalist.")] = 10,
    final_splits: Annotated[int, typer.Option(min=1, help="Number of splits that evaluate a finalist.")] = 20,
    try_: Annotated[
        list[Path] | None, typer.Option("--try", metavar="FILE", help="A TOML file of settings to try next.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Fix one setting, such as encoder.width=128, and search the others."
        ),
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="The file of the study [default: tuning/METHOD-GRAPH.log].")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for {tuned,strict}/METHOD/GRAPH.toml.")] = Path("tuning"),
    guide: Annotated[
        str,
        typer.Option(help="The score that the search maximises: strict, or tuned, which writes no strict settings."),
    ] = "strict",
    timeout: Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds.")] = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
) -> None:
    """Search a method's settings for a graph by validation accuracy alone; no test node is ever predicted.

    The study is a file: the same command continues it, and several processes may work on it at once. The result is two
    files of settings for --config: tuned, chosen by validation on random splits, and strict, chosen by validation
    inside the fixed fifth of strict-10-10-80.
    """
    from costa import settings, training
    from costa.graphs import load_graph, name_files
    from costa.graphs.describe import describe
    from costa.methods import get_method
    from costa.tuning.jobs import OutOfTime, TuningJob
    from costa.tuning.study import evaluate_finalists, finished, open_study, search, write_presets

    until = time.monotonic() + timeout if timeout is not None else float("inf")
    chosen, where = get_method(method), training.resolve_device(device)
    data = load_graph(name_files(graph, edges, features, nodes), columns=said_of(columns), data_dir=data_dir)
    say_columns(data)
    given = settings.parse_assignments(set_ or [])
    job = TuningJob(data, chosen, where, epochs, seeds, splits, final_splits, until, guide, given)
    path = study or Path("tuning") / f"{method}-{data.name}.log"
    opened = open_study(path, job, starts=try_ or [])
    say(f"{chosen.title} on {describe(data)}, on {where}")
    note(job.too_few())
    say(f"{path}: {len(finished(opened))} of {trials} trials")
    try:
        for ended in search(job, opened, trials):
            _print_trial(ended, job.guide)
        for final in evaluate_finalists(job, opened, finalists, final_seeds):
            result = f"{final.percent} after {final.epochs} epochs" if final.why is None else final.why
            say(f"finalist {final.number:<4} {final.preset:<6} {result}")
    except (OutOfTime, KeyboardInterrupt) as stop:
        say(f"Stopped. Finished trials are in {path}; run the same command to continue.")
        raise typer.Exit(130 if isinstance(stop, KeyboardInterrupt) else 0) from None
    if finalists:
        for written in write_presets(job, opened, finalists, final_seeds, out):
            say(str(written))


def _print_trial(ended: Ended, guide: str) -> None:
    result = f"given up: {ended.why}"
    if ended.accuracy is not None:
        result = f"{guide} validation {100 * ended.accuracy:.1f} after {ended.epochs} epochs"
    best = "" if ended.best is None else f", the best so far {100 * ended.best:.1f}"
    say(f"trial {ended.number:<4} {result}, {ended.seconds:.1f} s{best}")
