"""What ``costa train`` prints: the settings, each run as it ends, and a summary."""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from costa.cli.console import kept_on_interrupt, note, percent, progress_bar, say, tell, tell_table
from costa.graphs import graph_words
from costa.graphs.describe import describe, is_labelled
from costa.wording import counted

if TYPE_CHECKING:
    from costa.runs import Job, Metrics


def print_settings(job: Job, *, verbose: bool = False) -> None:
    """Print the graph, what was chosen from it and why, and the settings that are not the defaults, with their origin.

    Args:
        job: What is trained.
        verbose: Whether to print every setting.
    """
    from costa.methods import get_method
    from costa.settings import explain, flatten

    method, resolved = get_method(job.method), job.resolved
    together = f", {job.ranks.size} processes" if job.ranks.size > 1 else ""
    tell(f"{method.title} on {describe(job.graph)}, on {job.device}{together}")
    if resolved.note:
        tell(f"Note: {resolved.note}.")
    for line in explain.from_graph(resolved, job.graph):
        tell(f"Chosen: {line}.")
    values, unused = flatten(resolved.values), method.unused(resolved.values)
    shown = list(values) if verbose else explain.not_default(method, resolved)
    rows = []
    for key in shown:
        value = ", ".join(map(str, values[key])) if isinstance(values[key], tuple) else str(values[key])
        rows.append([key, value, resolved.origins[key] + (" (unused)" if key in unused else "")])
    if rows:
        tell_table(("setting", "value", "from"), rows)
    if not verbose:
        others = "The other settings have" if rows or "graph" in resolved.origins.values() else "All settings have"
        tell(f"{others} their defaults; --verbose lists them.")
    tell()


def execute(
    job: Job,
    folders: Mapping[int, Path],
    out: Path | None,
    data_dir: Path | None,
    after: Callable[[Path], None],
) -> None:
    """Train all seeds, print each run as it ends, and exit with 130 (interrupted) or 1 (failed) if not all are ok.

    Args:
        job: What to train.
        folders: The RUN folder of each seed.
        out: The user's --out, if any.
        data_dir: The folder of benchmark graphs.
        after: Called with each finished RUN folder.
    """
    from costa.runs import several

    seeds = list(folders)
    single = folders[seeds[0]] if len(folders) == 1 else None
    label = f"seed {seeds[0]}" if single else f"{len(folders)} seeds"
    epochs = None if several.in_processes(job, folders) or job.train is None else job.train.epochs
    unscored = _why_unscored(job)
    again = [] if data_dir is None else ["--data-dir", str(data_dir)]
    choose = None if job.chosen else shlex.join(["costa", "train", *graph_words(job.spec), "--choose", *again])
    collected = []
    with progress_bar(label, epochs) as report, kept_on_interrupt(single or out or Path("runs")):
        for metrics in several.execute(job, folders, data_dir, report=report):
            collected.append(metrics)
            print_run(metrics, folders[metrics.seed], unscored, choose)
            after(folders[metrics.seed])
    _print_summary([metrics for metrics in collected if metrics.probes])
    statuses = {metrics.status for metrics in collected}
    left = len(folders) - len(collected)
    if left:
        say(f"Stopped before the last {left} of {len(folders)} seeds; run the same command with --resume to continue.")
    if left or statuses != {"ok"}:
        raise typer.Exit(130 if left or "interrupted" in statuses else 1)
    tell(f"Next: {shlex.join(['costa', 'report', str(single or out or folders[seeds[0]]), *again])}")


def _why_unscored(job: Job) -> str | None:
    """Why the vectors are not evaluated; None if they are."""
    from costa.tuning.portfolio import STRICT

    if job.chosen is not None and job.chosen["by"] != STRICT:
        return "all labels took part in the choice, so none are left for a test"
    return "--no-probe" if not job.probe else None if is_labelled(job.graph) else "no labels of two classes"


def _print_summary(scored: Sequence[Metrics]) -> None:
    """Print the mean over the seeds, for each protocol."""
    if len(scored) < 2:
        return
    from costa import runs

    for protocol, (mean, pairs) in runs.pair_scores(scored).items():
        line = f"{protocol:<16} mean over {len(scored)} seeds × all splits {100 * mean:.1f}"
        if len(pairs) > 1:
            line += f"; seed s on split s {percent((statistics.mean(pairs), statistics.stdev(pairs)))}"
        say(line)


def print_run(metrics: Metrics, folder: Path, unscored: str | None, choose: str | None = None) -> None:
    """Print how one run ended, its scores and its folder.

    Args:
        metrics: What was measured.
        folder: The RUN folder.
        unscored: Why the vectors were not evaluated.
        choose: The command that lets the labels choose; None if they did.
    """
    from costa.evaluate.health import COLLAPSED, remedy
    from costa.methods import get_method
    from costa.runs import DEFAULT_PROTOCOLS
    from costa.settings import flatten
    from costa.training import FLAT

    known = flatten(get_method(metrics.method).Settings())
    after = counted(metrics.epochs, "epoch")
    others = metrics.trained_together - 1
    company = f", together with {counted(others, 'other')}" if others else ""
    ending = {
        # a method without a loss has no epochs
        "ok": f"{after if metrics.epochs else 'done'} in {metrics.seconds:.1f} s{company}",
        "interrupted": f"stopped after {after}; run the same command with --resume to continue.",
        "diverged": f"diverged after {after} and is not evaluated; {remedy('diverged', known)}.",
        "collapsed": f"collapsed{f' after {after}' if metrics.epochs else ''}: {COLLAPSED}, and are not evaluated;"
        f" {remedy('collapsed', known)}.",
    }
    say(f"{metrics.method} on {metrics.dataset}, seed {metrics.seed}: {ending[metrics.status]}")
    for probe in metrics.probes:
        accuracy = probe.accuracy
        say(
            f"  {probe.protocol:<16} accuracy {percent((accuracy.mean, accuracy.std))}"
            f"   macro-F1 {100 * probe.macro_f1.mean:.1f}   ({len(accuracy.per_split)} splits)"
        )
        note(probe.too_few())
    if health := metrics.health:
        say(f"  vectors          effective rank {health.effective_rank:.1f}   mean cosine {health.mean_cosine:.3f}")
    note(None if metrics.watch is None else str(metrics.watch))
    if metrics.loss_fell is False and metrics.status != "diverged":
        note(FLAT)
    if metrics.clustering:
        say(f"  k-means          NMI {metrics.clustering.nmi:.3f}   ARI {metrics.clustering.ari:.3f}")
    if metrics.status == "ok" and not metrics.probes and unscored:
        say(f"  not evaluated: {unscored}")
    if metrics.baselines:
        shown = (
            f"{name} {100 * score.accuracy:.1f} (NMI {score.nmi:.3f})" for name, score in metrics.baselines.items()
        )
        say(f"  baselines        {'   '.join(shown)}   ({DEFAULT_PROTOCOLS[0]})")
    if metrics.sample and metrics.probes:
        say(f"  on {metrics.sample}, drawn at random")
    if below := metrics.not_above():
        name, baseline, ours = below
        numbers = f"{100 * ours:.1f} against {100 * baseline:.1f}"
        note(f"not above {name} ({numbers})" + (f": try `{choose}`" if choose else ""))
    say(f"  {folder}{os.sep}")
