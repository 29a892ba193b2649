"""``costa probe``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from costa.cli import options
from costa.cli.console import busy, given_of, note, number, print_table, say
from costa.errors import InputError
from costa.wording import counted

if TYPE_CHECKING:
    from costa.evaluate.links import LinkScore

OF_LABELS = {"protocol": "--protocol", "repeats": "--repeats", "device": "--device"}
"""The options that go with --task labels."""


def probe(
    context: typer.Context,
    run: options.Run,
    task: Annotated[Literal["labels", "links"], typer.Option(help="What is predicted: labels, or links.")] = "labels",
    protocol: Annotated[str, typer.Option(help="One of the protocols above.")] = "random-10-10-80",
    repeats: Annotated[int, typer.Option(min=1, help="Number of splits.")] = 20,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    graph: options.MovedTo = None,
) -> None:
    """Evaluate a run's vectors by logistic regression on splits of the labels; write the result to RUN/metrics.json.

    With --task links, evaluate them on the edges that `costa train --hold-out-edges` held out instead.

    \b
    random-10-10-80  10% train, 10% choose C, 80% test (the default)
    random-10-90-cv  10% train and choose C by 5-fold cross-validation, 90% test (GRACE's)
    random-20-80     10% train, 10% choose C, then both train again, 80% test (BGRL's)
    random-10-80-10  10% train, 80% choose C, 10% test (what the released COSTA code does)
    random-2-2-96    2% train, 2% choose C, 96% test (few labels)
    strict-10-10-80  10% train, 10% choose C, both inside one fixed fifth; the other 80% test
    public           the graph's own masks: Planetoid's one split, WikiCS' twenty
    """
    if task == "links":
        if flag := given_of(context, OF_LABELS):
            raise InputError(f"{flag} goes with --task labels; leave it out, or --task links.")
        _probe_links(run, data_dir, memory, graph)
        return
    from costa import runs, training
    from costa.evaluate.samples import sample_of
    from costa.tuning.portfolio import not_held_out

    where = training.resolve_device(device)
    with busy(f"Evaluating the vectors by {protocol}"):
        data = runs.load_run_graph(run, data_dir, memory, graph)
        result = runs.probe_graph(runs.load_embeddings(run), data, protocol, repeats, where)
    sample = sample_of(data.y)
    runs.add_probe(run, result, sample)
    say(f"{run}: accuracy {result.accuracy}\n{' ' * len(str(run))}  macro-F1 {result.macro_f1}")
    if sample:
        say(f"{' ' * len(str(run))}  on {sample}, drawn at random")
    note(result.too_few())
    note(not_held_out(runs.read_config(run).get("chosen"), protocol))


def _probe_links(run: Path, data_dir: Path | None, memory: str | None, graph: str | None) -> None:
    """Score the run on held-out edges, and print the table with the baselines."""
    from costa import runs
    from costa.evaluate.links import HITS, LINK_BASELINES
    from costa.evaluate.pair_scores import VECTOR_SCORES

    with busy("Scoring the held-out edges"):
        result = runs.probe_links(run, data_dir, memory, graph)

    def row(name: str, validation: float | None, score: LinkScore) -> list[str]:
        numbers = [validation, score.auc, score.ap, *score.hits.values()]
        return [name, *(number(None if value is None else 100 * value, ".1f") for value in numbers)]

    rows = [row(VECTOR_SCORES[name], result.validation[name], score) for name, score in result.scores.items()]
    rows += [row(LINK_BASELINES[name], None, score) for name, score in result.baselines.items()]
    columns = ("validation", "AUC", "AP", *(f"hits@{k}" for k in HITS))
    print_table(("score", *columns), [*rows, row("chance", None, result.chance)], right=columns)
    test, others = counted(result.edges[1], "held-out edge"), counted(result.non_edges[1], "non-edge")
    say(
        f"\nPercent, of {test} against {others}, drawn uniformly from all pairs of nodes without an edge;"
        f" {result.edges[0]:,} other held-out edges chose the {VECTOR_SCORES[result.chosen]} by AUC (validation)."
        " Neither the model nor a score has seen them; features are compared by their cosine."
    )
    note(result.too_few())
    below = [
        f"{name} by {measure} ({100 * ours:.1f} against {100 * best:.1f})"
        for measure, name, best, ours in result.not_above()
    ]
    note(f"not above {', '.join(below)}" if below else None)
