"""``costa links``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import busy, print_table, say
from costa.wording import counted

SHOWN = 5
"""How many links are printed."""


def links(
    run: options.Run,
    k: Annotated[int, typer.Option("-k", min=1, help="How many links.")] = 100,
    out: Annotated[Path | None, typer.Option(help="The CSV file to write [default: RUN/links.csv].")] = None,
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    graph: options.MovedTo = None,
) -> None:
    """Write the most likely missing edges of a run's graph, best first, as source, target and score.

    The score is the cosine of the vectors, or what `costa probe RUN --task links` chose.
    """
    from costa.insight.links import links_of_run, write_links

    with busy("Scoring pairs of nodes"):
        likely = links_of_run(run, k, data_dir, memory, graph)
    path = out or run / "links.csv"
    write_links(path, likely.rows)
    say(f"Scored by the {likely.scored_by}.\nLooked at {likely.looked_at}.\n")
    shown = [(source, target, f"{score:.3f}") for source, target, score in likely.rows[:SHOWN]]
    print_table(("source", "target", "score"), shown, right=("score",))
    say(f"\n{path}: {counted(len(likely.rows), 'link')}")
