"""``costa predict``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costa.cli import options
from costa.cli.console import busy, note, print_table, say
from costa.graphs import graph_words
from costa.wording import counted

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from costa.insight.predictions import Expectation


def predict(
    run: options.Run,
    out: Annotated[Path | None, typer.Option(help="File for the predictions [default: RUN/predictions.csv].")] = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    graph: options.MovedTo = None,
) -> None:
    """Predict the missing labels from a run's vectors, and say what accuracy to expect."""
    from costa import runs, training
    from costa.insight import predictions
    from costa.writing import check_place

    out = run / "predictions.csv" if out is None else out
    check_place(out)
    where = training.resolve_device(device)
    with busy("Reading the graph"):
        data = runs.load_run_graph(run, data_dir, memory, graph)
    predictions.check(data)
    z = runs.load_embeddings(run)
    with busy("Cross-validating the vectors and the raw features"):
        classifier, expected = predictions.learn(z, data, where)
    with busy("Predicting"):
        predictions.write_predictions(out, z, data, classifier)
    print_summary(data, len(classifier.codes), expected)
    note(_few(predictions.rarely_labelled(data)))
    note(_not_above(expected, runs.read_config(run)))
    say(str(out))


def print_summary(data: Data, classes: int, expected: Expectation) -> None:
    """Print what is predicted and how far to trust it."""
    from costa.insight.predictions import SURE

    labelled, n = int((data.y >= 0).sum()), data.num_nodes
    say(
        f"{data.name}: {labelled:,} of {counted(n, 'node')} have a label, of {classes} classes; {n - labelled:,} are"
        " predicted."
    )
    scores = [expected.accuracy.percent, expected.raw.percent, f"{100 * expected.most_common:.1f} %"]
    names = ("the vectors", "raw features", "the most common class")
    print_table(("predicted from", "accuracy to expect"), list(map(list, zip(names, scores, strict=True))))
    some = "" if expected.nodes == labelled else f" on {expected.nodes:,} labelled nodes, drawn at random,"
    say(f"By {expected.accuracy.protocol}{some} with C chosen inside: mean ± standard deviation over the folds.")
    say(
        f"Probabilities are off by {100 * expected.calibration:.1f} points on average (expected calibration error, out"
        f" of fold); if all were exact, it would be {100 * expected.by_chance:.1f} by chance."
    )
    if expected.sure_right is not None:
        say(f"{expected.sure:.0%} have a probability of at least {SURE}; {expected.sure_right:.0%} of these are right.")


def _not_above(expected: Expectation, config: Mapping[str, Any]) -> str | None:
    """A sentence about a run that is not above what needs no vectors, with the command to try, if it is not."""
    baselines = {"raw features": expected.raw.mean, "the most common class": expected.most_common}
    name = max(baselines, key=lambda name: baselines[name])
    ours = expected.accuracy.mean
    if ours > baselines[name]:
        return None
    sentence = f"the vectors are not above {name} ({100 * ours:.1f} against {100 * baselines[name]:.1f})"
    if "chosen" in config:
        return sentence
    return f"{sentence}: try `{shlex.join(['costa', 'train', *graph_words(config['graph']), '--choose'])}`"


def _few(rare: list[str]) -> str | None:
    """A sentence about classes with very few labels, if there are any."""
    if not rare:
        return None
    named = ", ".join(map(repr, rare[:5])) + (" …" if len(rare) > 5 else "")
    return f"fewer than five nodes are labelled {named}, so what is predicted of these classes says little"
