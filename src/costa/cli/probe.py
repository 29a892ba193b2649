"""``costa probe``."""

from __future__ import annotations

from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import note, say


def probe(
    run: options.Run,
    protocol: Annotated[str, typer.Option(help="One of the protocols above.")] = "random-10-10-80",
    repeats: Annotated[int, typer.Option(min=1, help="Number of splits.")] = 20,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
) -> None:
    """Evaluate a run's vectors by logistic regression on splits of the labels; write the result to RUN/metrics.json.

    \b
    random-10-10-80  10% train, 10% choose C, 80% test (the default)
    random-10-90-cv  10% train and choose C by 5-fold cross-validation, 90% test (GRACE's)
    random-20-80     10% train, 10% choose C, then both train again, 80% test (BGRL's)
    random-10-80-10  10% train, 80% choose C, 10% test (what the released COSTA code does)
    random-2-2-96    2% train, 2% choose C, 96% test (few labels)
    strict-10-10-80  10% train, 10% choose C, both inside one fixed fifth; the other 80% test
    public           the graph's own masks: Planetoid's one split, WikiCS' twenty
    """
    from costa import runs, training
    from costa.evaluate.samples import sample_of
    from costa.tuning.portfolio import not_held_out

    where = training.resolve_device(device)
    data = runs.load_run_graph(run, data_dir, memory)
    result = runs.probe_graph(runs.load_embeddings(run), data, protocol, repeats, where)
    sample = sample_of(data.y)
    runs.add_probe(run, result, sample)
    say(f"{run}: accuracy {result.accuracy}\n{' ' * len(str(run))}  macro-F1 {result.macro_f1}")
    if sample:
        say(f"{' ' * len(str(run))}  on {sample}, drawn at random")
    note(result.too_few())
    note(not_held_out(runs.read_config(run).get("chosen"), protocol))
