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
    """Write RUN/report.html: scores, curves and a map of the nodes, in one file that works offline.

    A folder that `costa train --seeds` wrote gets a page with the scores of all seeds and their mean, beside the pages
    of its runs.
    """
    from costa.report import runs_in, write_report, write_seeds

    write = write_seeds if runs_in(run) else write_report
    page = write(run, data_dir, say, memory, graph)
    opened = open_ and webbrowser.open(page.resolve().as_uri())
    say(str(page) if opened else f"{page}: open it in a browser")
