"""``costa similar``."""

from __future__ import annotations

from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import busy, print_table, say


def similar(
    run: options.Run,
    node: Annotated[str, typer.Argument(metavar="ID", help="A node's id; its row number if the graph has no ids.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many nodes to list.")] = 10,
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    graph: options.MovedTo = None,
) -> None:
    """List the nodes whose vectors are nearest to a node's, by cosine, exactly."""
    from costa import runs
    from costa.graphs.labels import classes_of, label_text
    from costa.insight.similar import find_node, ids_of, most_similar

    with busy("Reading the graph"):
        data = runs.load_run_graph(run, data_dir, memory, graph)
    ids, y, notes = ids_of(data), data.get("y"), data.get("node_notes")
    row = find_node(ids, node)
    nearest = dict(most_similar(runs.load_embeddings(run), row, k))
    columns = {"id": lambda each: str(ids[each])}
    if y is not None and len(classes_of(y)):
        columns["label"] = lambda each: label_text(data, int(y[each]))
    about = [cell(row) for cell in columns.values()]
    columns["cosine"] = lambda each: f"{nearest[each]:.3f}"
    if notes is not None:
        about.append(str(notes[row]))
        columns["note"] = lambda each: str(notes[each])
    say(f"Nearest to {', '.join(filter(None, about))}:")
    print_table(list(columns), [[cell(each) for cell in columns.values()] for each in nearest], right=("cosine",))
