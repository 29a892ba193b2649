"""The ``costa`` command: each command parses its arguments, calls the package and prints the result."""

from __future__ import annotations

from typing import Annotated

import typer

from costa.cli import (
    choose,
    clusters,
    demo,
    embed,
    estimate,
    insight,
    links,
    lists,
    predict,
    probe,
    report,
    similar,
    train,
    tune,
)
from costa.cli.console import run_app
from costa.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Node embeddings without labels: COSTA contrasts sketches of a graph neural network's features.",
    epilog="Start with `costa demo`, then `costa train cora --method costa-mv`. GRAPH is a name from"
    " `costa datasets`, or a folder with edges.csv and features.npy|csv (./cora if it is named like a dataset); or name"
    " the files with --edges, --features and --nodes.",
)
app.command(short_help="Try COSTA on a graph of words, no download.")(demo.demo)
app.command(short_help="Learn vectors for a graph's nodes.")(train.train)
app.command(short_help="Say what `costa train` will take, before it runs.")(estimate.estimate)
app.command(short_help="Evaluate vectors on the graph's labels.")(probe.probe)
app.command(short_help="Make vectors with a trained model.")(embed.embed)
app.command(short_help="Predict the labels that are missing.")(predict.predict)
app.command(short_help="List the nodes nearest to a node.")(similar.similar)
app.command(short_help="Cluster the nodes and describe the clusters.")(clusters.clusters)
app.command(short_help="Write the most likely missing edges.")(links.links)
app.command(short_help="Write a run as one HTML page.")(report.report)
app.command(short_help="List the graphs known by name.")(lists.datasets)
app.command(short_help="List the available methods.")(lists.methods)
app.command(short_help="Compare methods on the graph's labels.")(choose.compare)
app.command(short_help="Search settings by validation accuracy.")(tune.tune)
app.command(short_help="How much augmentation distorts a graph.")(insight.bias)
app.command(short_help="How many sketch rows a graph needs.")(insight.bounds)


def main() -> None:
    """Run the ``costa`` command."""
    run_app(app, "costa", "lower encoder.width (or sketch.ratio, if the method sketches) or use a larger machine")


def _version(show: bool) -> None:
    if show:
        print(f"costa {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...
