"""``costa embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import note, say, say_stage


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
    """Make vectors with a trained model, for its own graph or another with the same feature columns.

    Without a graph it is the run's own, without the edges that the run held out.
    """
    from costa import runs, training
    from costa.graphs import load_graph, name_files

    model = runs.load_model(run, training.resolve_device(device))
    config = runs.read_config(run)
    # what COSTA.save wrote may be of a graph in memory, and says nothing of nodes
    if "nodes" in config and not any((graph, edges, features, nodes)):
        data = runs.load_run_graph(run, data_dir, memory)
    else:
        spec, limit = name_files(graph, edges, features, nodes), memory or config.get("memory")
        columns = runs.load_columns(run)
        data = load_graph(spec, columns=columns, data_dir=data_dir, memory=limit, report=say_stage)
        if "held_out_edges" in config and data.name == config["dataset"]:
            note(f"these vectors have seen all edges of {data.name}; those in {run} have not seen what it held out")
    runs.check_vector_path(out)
    n, d = runs.write_parts(out, runs.embed_rows(model, run, data), data.num_nodes, data.get("node_ids"))
    say(f"{out}: {n:,} nodes × {d}")
