"""``costa report``."""

from __future__ import annotations

from costa.cli import options
from costa.cli.console import say


def report(run: options.Run, data_dir: options.DataDir = None, memory: options.Memory = None) -> None:
    """Write RUN/report.html: scores, curves and a map of the nodes, in one file that works offline."""
    from costa.report import write_report

    say(f"{write_report(run, data_dir, say, memory)}: open it in a browser")
