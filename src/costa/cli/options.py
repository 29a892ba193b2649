"""Arguments and options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def graphs_named(incomplete: str) -> list[str]:
    """The names of graphs that begin so; a shell completes paths itself where there are none."""
    from costa.graphs.benchmarks import BENCHMARKS

    return [graph.name for graph in BENCHMARKS if graph.name.startswith(incomplete)]


def methods_named(incomplete: str) -> list[str]:
    """The names of methods that begin so."""
    from costa.methods import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


GRAPH_HELP = "A name from `costa datasets`, a folder, or a file that holds a graph."

Graph = Annotated[str, typer.Argument(metavar="GRAPH", help=GRAPH_HELP, autocompletion=graphs_named)]
OptionalGraph = Annotated[str | None, typer.Argument(metavar="GRAPH", help=GRAPH_HELP, autocompletion=graphs_named)]
Edges = Annotated[
    Path | None,
    typer.Option("--edges", help="Instead of GRAPH, a file of edges: .csv, .tsv, .parquet, .npz or .graphml."),
]
Features = Annotated[
    Path | None, typer.Option("--features", help="With --edges, the features: .npy, .npz, .csv, .tsv, .parquet.")
]
Nodes = Annotated[Path | None, typer.Option("--nodes", help="With --edges, the ids and labels: .csv, .tsv, .parquet.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `costa train` wrote.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Look for benchmark graphs here first (nothing is written); the variable COSTA_DATA does the same.",
    ),
]
MovedTo = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="GRAPH",
        help="Where the run's graph is now, if it was moved; its ids, features and edges must be the same.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=KIND,…",
        help="What columns of the tables are, if they would be taken for something else: id, label, number, flag,"
        " category, date, text or ignore.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What the run may take, such as 4GiB: the graph and its hops then stay on disk. Large files do so anyway.",
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda; auto uses CUDA if available.")]
Method = Annotated[str, typer.Option(help="A name from `costa methods`.", autocompletion=methods_named)]

# Options of `costa train`.
Out = Annotated[
    Path | None,
    typer.Option(help="The RUN folder [default: runs/GRAPH-METHOD-SEED]; with --seeds, the folder of the RUN folders."),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Random seed [default: 0].")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Train this many runs, with seeds 0, 1, 2 …")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Number of epochs; overrides the settings.")]
Preset = Annotated[
    str,
    typer.Option(
        help="none (the defaults and what is chosen from the graph) or, for a benchmark, tuned (chosen by validation),"
        " strict (chosen by validation inside one fixed fifth) or paper (as published)."
    ),
]
Config = Annotated[Path | None, typer.Option(help="A TOML file of settings, which override the preset.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as sketch.ratio=0.25; repeat it for several. With -v a run prints all its settings.",
    ),
]
Choose = Annotated[
    bool,
    typer.Option(
        "--choose", help="Choose the method by validation on the graph's labels: `costa compare`, then the best is run."
    ),
]
HoldOutEdges = Annotated[
    float | None,
    typer.Option(
        "--hold-out-edges",
        metavar="SHARE",
        help="Set this share of the edges aside before anything is computed, such as 0.1, for"
        " `costa probe RUN --task links`.",
    ),
]
NoProbe = Annotated[bool, typer.Option("--no-probe", help="Do not evaluate the vectors on the graph's labels.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was interrupted.")]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="Use deterministic CUDA kernels: slower, but bit-identical results.")
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Print all settings, also those that have their defaults.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print the result alone.")]
TensorBoard = Annotated[
    Path | None, typer.Option(help="Also write the loss, the vectors and their health here, for TensorBoard.")
]
