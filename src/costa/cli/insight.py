"""``costa bias`` and ``costa bounds``: questions about a graph, answered by measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import busy, number, print_table, say
from costa.errors import InputError


def bias(
    graph: options.Graph,
    edge_rate: Annotated[float, typer.Option(help="The probability that an edge is dropped.")] = 0.3,
    mask_rate: Annotated[float, typer.Option(help="The probability that an attribute is masked.")] = 0.3,
    draws: Annotated[int, typer.Option(min=2, help="Number of augmented graphs to average over.")] = 500,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the picture and each node's numbers [default: bias-GRAPH].")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Use the encoder of this RUN folder [default: a GCN with random weights].")
    ] = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
) -> None:
    """Measure how much dropping edges and masking attributes would distort a graph's vectors, by degree.

    The bias of a node is the distance between the mean of its augmented vectors and its own vector, corrected for the
    randomness of the draws.
    """
    from costa import training
    from costa.graphs import load_graph
    from costa.graphs.describe import describe
    from costa.insight import distortion

    where = training.resolve_device(device)
    data = load_graph(graph, data_dir=data_dir)
    model = distortion.trained(run, data, where) if run else distortion.untrained(data, where)
    say(f"{describe(data)}; {model.title if run is None else run}, {draws} draws on {where}\n")
    with busy(f"Drawing each augmentation {draws} times"):
        measured = distortion.distortion(model, data, edge_rate=edge_rate, mask_rate=mask_rate, draws=draws)
    say("Median bias of the nodes of each degree, in percent of a vector's length")
    columns = ("degree", "nodes", *(distortion.COLUMNS[name] for name in measured.biases))
    print_table(columns, measured.table(), right=columns)
    say(f"\n{measured.conclusion()}\n")
    for path in distortion.write(measured, data, out or Path(f"bias-{data.name}")):
        say(str(path))


def bounds(
    graph: options.Graph,
    k: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Number of sketch rows; repeat it for several [default: 64, 256, 1024]."),
    ] = None,
    sketch: Annotated[
        list[str] | None, typer.Option(help="A sketch's name; repeat it for several [default: gaussian].")
    ] = None,
    eps: Annotated[
        float | None, typer.Option(help="The error to stay below [default: a quarter of the largest eigenvalue].")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Sketch the graph's features, not the vectors of an untrained encoder.")
    ] = False,
    run: Annotated[Path | None, typer.Option(help="Sketch the vectors of this RUN folder's model.")] = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
) -> None:
    """Measure how well a sketch of k rows keeps the covariance of a graph's features, and say which k to take.

    All errors are ‖HᵀH − H̃ᵀH̃‖₂ as a share of the trace of HᵀH, for the centred H.
    """
    if raw and run is not None:
        raise InputError("--raw and --run were both given; choose the graph's features or a model's vectors.")
    from costa import training
    from costa.graphs import load_graph
    from costa.insight.sketch_rows import features_of, survey

    data = load_graph(graph, data_dir=data_dir)
    h = features_of(data, training.resolve_device(device), raw=raw, run=run)
    with busy("Drawing sketches"):
        surveyed = survey(h, sketch or ["gaussian"], k or [64, 256, 1024], eps)
    whose = "its features" if raw else f"the vectors of {run}" if run else "the vectors of an untrained encoder"
    size = f"n = {surveyed.nodes:,}, d = {surveyed.columns:,}, effective rank {surveyed.effective_rank:.1f}"
    say(f"{data.name}, {whose}: {size}")
    say(f"largest eigenvalue: {surveyed.largest:.3f} of the trace, which is the error of an all-zero sketch\n")
    numbers = ("k", "draws", "median", "95% below", "lemma, 95%", "proved, 95%")
    rows = []
    for row in surveyed.rows:
        errors = (number(value, ".3f") for value in (row.median, row.q95, row.stated_eps, row.proved_eps))
        rows.append([row.sketch, f"{row.k:,}", str(row.draws), *errors])
    print_table(("sketch", *numbers), rows, right=numbers)
    say("\n" + "\n".join(surveyed.advice))
