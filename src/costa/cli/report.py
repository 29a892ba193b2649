"""``costa report``."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from costa.cli import options
from costa.cli.console import say


def report(
    run: options.Run,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    graph: options.MovedTo = None,
) -> None:
    """Write RUN/report.html: scores, curves and a map of the nodes, in one file that works offline."""
    from costa.report import write_report

    page = write_report(run, data_dir, say, memory, graph)
    opened = open_ and webbrowser.open(page.resolve().as_uri())
    say(str(page) if opened else f"{page}: open it in a browser")
