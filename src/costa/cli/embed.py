"""``costa embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import say, say_stage


def embed(
    run: options.Run,
    out: Annotated[Path, typer.Option(help="File for the vectors; its name ends in .npy, .csv or .parquet.")],
    graph: options.OptionalGraph = None,
    edges: options.Edges = None,
    features: options.Features = None,
    nodes: options.Nodes = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
) -> None:
    """Make vectors with a trained model, for its own graph or another with the same feature columns."""
    from costa import runs, training
    from costa.graphs import load_graph, name_files

    model = runs.load_model(run, training.resolve_device(device))
    limit = memory or runs.read_config(run).get("memory")
    data = load_graph(name_files(graph, edges, features, nodes), data_dir=data_dir, memory=limit, report=say_stage)
    runs.check_vector_path(out)
    n, d = runs.write_parts(out, runs.embed_rows(model, run, data), data.num_nodes, data.get("node_ids"))
    say(f"{out}: {n:,} nodes × {d}")
