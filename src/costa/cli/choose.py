"""``costa compare``, and what ``costa train --choose`` does before it trains."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from costa.cli import options
from costa.cli.console import given_of, percent, print_table, said_of, say, say_columns, tell
from costa.errors import InputError

if TYPE_CHECKING:
    from costa.runs import Job
    from costa.tuning.portfolio import Choice, Compared

CHOSEN = "chosen"
"""What stands for the method in the default name of a RUN folder: it is known before the method is."""

DECIDED = {"method": "--method", "preset": "--preset", "config": "--config", "set_": "--set"}
"""The options of ``costa train`` that ``--choose`` takes the place of."""


def compare(
    graph: options.OptionalGraph = None,
    edges: options.Edges = None,
    features: options.Features = None,
    nodes: options.Nodes = None,
    columns: options.Columns = None,
    seed: options.Seed = None,
    epochs: options.Epochs = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
) -> None:
    """Train the baselines and COSTA with several encoders, and compare them by validation on the graph's labels.

    `costa train GRAPH --choose` chooses by this table. With a thousand labelled nodes or more, only a fixed fifth of
    the labels is used.
    """
    from costa import training
    from costa.graphs import load_graph, name_files
    from costa.graphs.describe import describe
    from costa.tuning import portfolio

    where = training.resolve_device(device)
    spec = name_files(graph, edges, features, nodes)
    data = load_graph(spec, columns=said_of(columns), data_dir=data_dir)
    say_columns(data)
    portfolio.checked(data)
    say(f"{describe(data)}, on {where}")
    choice = portfolio.choose(data, seed=seed or 0, device=where, epochs=epochs, report=print_progress)
    print_choice(choice, mark=False)
    if graph is not None:
        say(f"\nNext: {shlex.join(['costa', 'train', graph, '--choose'])}")


def refuse_with_choose(context: typer.Context) -> None:
    """Refuse options that say what ``--choose`` is to find out."""
    if flag := given_of(context, DECIDED):
        raise InputError(f"--choose decides the method and its settings; leave out {flag}, or --choose.")


def choose_job(
    job: Job, seeds: Sequence[int], out: Path | None, *, several: bool, epochs: int | None
) -> tuple[Job, dict[int, Path]]:
    """Compare the candidates with the first seed; the job that trains the best one, and its RUN folders.

    The chosen candidate is trained again, which gives the same vectors, so that its run has all that a run has. A run
    that is resumed was chosen when it started.

    Args:
        job: What to train, except for the method and its settings.
        seeds: Random seeds of the runs.
        out: The user's --out.
        several: Whether ``out`` is the folder that holds the runs, not a run itself.
        epochs: The user's --epochs.
    """
    from costa import runs
    from costa.graphs.describe import describe
    from costa.tuning import portfolio

    folders = runs.run_folders(job.graph, CHOSEN, seeds, out, several=several)
    first = folders[seeds[0]]
    if job.resume and (first / runs.CONFIG).exists():
        recorded = runs.read_config(first).get("chosen")
        if recorded is None:
            raise InputError(f"the run in {first} was not started with --choose; resume it without.")
        choice = portfolio.Choice.from_dict(recorded)
    else:
        for number, folder in folders.items():
            # any run in a folder is another one than what is not chosen yet
            method = portfolio.PORTFOLIO[0].method
            runs.claim(folder, method, job.graph, number, resume=job.resume, fresh_is_fine=several)
        portfolio.checked(job.graph)
        tell(f"Choosing for {describe(job.graph)}, on {job.device}")
        choice = portfolio.choose(job.graph, seed=seeds[0], device=job.device, epochs=epochs, report=print_progress)
        print_choice(choice)
        say()
    chosen = replace(
        job,
        method=choice.chosen.method,
        resolved=choice.chosen.resolve(job.graph, epochs, "--epochs"),
        probe=job.probe and choice.by == portfolio.STRICT,
        protocols=(portfolio.STRICT,),
        chosen=choice.to_dict(),
    )
    return chosen, runs.claim_folders(chosen, seeds, out, several=several, called=CHOSEN)


def print_progress(row: Compared) -> None:
    """Print a line for a candidate that has ended."""
    tell(f"  {row.candidate.title}: {'' if row.status == 'ok' else f'{row.status}, '}{row.seconds:.1f} s")


def print_choice(choice: Choice, *, mark: bool = True) -> None:
    """Print the table of the candidates, whose labels it is made of and, if ``mark``, which one is chosen."""
    from costa.tuning.portfolio import STRICT

    rows = []
    for row in choice.table:
        score = row.status if row.validation is None else percent((row.validation.mean, row.validation.std))
        chosen = "chosen" if mark and row.candidate == choice.chosen else ""
        rows.append([row.candidate.title, score, f"{row.seconds:.1f}", chosen])
    say()
    print_table(("candidate", "validation accuracy", "seconds", ""), rows, right=("validation accuracy", "seconds"))
    (splits,) = {len(row.validation.per_split) for row in choice.table if row.validation is not None}
    if choice.by == STRICT:
        say(
            f"Percent, mean ± standard deviation over {splits} splits of a fixed fifth of the labelled nodes"
            f" ({STRICT}); the other labels are not looked at."
        )
    else:
        say(
            f"Percent, mean ± standard deviation over {splits} folds of all labelled nodes ({choice.by}, repeated):"
            " they are too few to keep some for a test."
        )
    means = {row.candidate.name: row.validation.mean for row in choice.table if row.validation is not None}
    if mark and max(means.values()) > means[choice.chosen.name] + 1e-12:
        say("The default is kept, because no other candidate is above it by more than a standard error.")
