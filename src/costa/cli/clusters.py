"""``costa clusters``."""

from __future__ import annotations

from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import busy, say
from costa.errors import InputError
from costa.wording import counted


def clusters(
    run: options.Run,
    number: Annotated[
        str, typer.Option("--clusters", help="How many, or auto: what separates the vectors best.")
    ] = "auto",
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    graph: options.MovedTo = None,
) -> None:
    """Cluster the nodes by a run's vectors into RUN/clusters.csv, and say what sets each cluster apart."""
    from costa import runs
    from costa.evaluate.profiles import profiles
    from costa.insight.clusters import CLUSTERS, cluster_nodes, write_clusters
    from costa.insight.similar import ids_of

    if number != "auto" and not number.isdecimal():
        raise InputError(f"--clusters {number} is not a number of clusters; give one, such as 8, or auto.")
    with busy("Clustering the nodes"):
        data = runs.load_run_graph(run, data_dir, memory, graph)
        found = cluster_nodes(runs.load_embeddings(run), None if number == "auto" else int(number))
    path, ids = run / CLUSTERS, ids_of(data)
    write_clusters(path, data, found)
    chosen = "" if found.silhouette is None else f", chosen by the mean silhouette ({found.silhouette:.2f})"
    say(f"{data.name}: {counted(data.num_nodes, 'node')} in {len(found.sizes)} clusters{chosen}")
    for place, traits in enumerate(profiles(data, found.of, len(found.sizes))):
        size = found.sizes[place]
        say(f"\ncluster {place + 1}: {counted(size, 'node')} ({size / data.num_nodes:.0%})")
        say(f"  typical  {', '.join(str(ids[row]) for row in found.typical[place])}")
        say(f"  apart    {'; '.join(map(str, traits)) or 'no column'}")
    say(f"\n{path}")
