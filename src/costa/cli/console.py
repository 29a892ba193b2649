"""What the command line prints: lines, tables, numbers, a progress bar."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.table import Table

from costa.errors import InputError, is_connection_lost, is_out_of_memory
from costa.wording import duration

if TYPE_CHECKING:
    from types import FrameType

    from torch_geometric.data import Data

    from costa.training import Report

console = Console(highlight=False, markup=False)

REWRITTEN_EVERY, SAID_EVERY = 0.2, 30.0
"""Seconds between two lines about a stage: on a terminal, which shows the last of them, and elsewhere."""
LONG = 2.0
"""Seconds after which work is said to go on."""


_quiet = False
"""Whether only results are printed."""


@contextmanager
def results_only(quiet: bool = True) -> Iterator[None]:
    """Print results and nothing of the way to them; with ``quiet=False`` it changes nothing."""
    global _quiet
    before, _quiet = _quiet, quiet
    try:
        yield
    finally:
        _quiet = before


def say(text: str = "") -> None:
    """Print a line of a result: wrapped at words on a terminal, whole in a file or a pipe."""
    _stage.clear()
    console.print(text, soft_wrap=not console.is_terminal)


def tell(text: str = "") -> None:
    """Print a line about the way to a result, which ``--quiet`` leaves out."""
    if not _quiet:
        say(text)


class ShareLine:
    """A line with what is done of something long and the time left.

    On a terminal it is rewritten and vanishes at the end; in a file or a pipe, which keep every line, it comes twice a
    minute.
    """

    def __init__(self) -> None:
        self._began = self._said = self._first = 0.0
        self._shown = False
        self.beside: Callable[[str], None] | None = None
        """Shows the line instead, while a bar has the last line of the terminal."""

    def begin(self, share: float = 0.0) -> None:
        """Something begins, of which so much was done before."""
        self._began = self._said = time.monotonic()
        self._first = share

    def show(self, share: float, more: str = "") -> None:
        """So much is done; ``more`` is said with it."""
        now = time.monotonic()
        if share >= 1:
            self.clear()
        elif now - self._said >= (REWRITTEN_EVERY if console.is_terminal else SAID_EVERY):
            self._said = now
            left = (now - self._began) * (1 - share) / max(share - self._first, 1e-9)
            line = f"  {share:.0%} done{more}, {duration(left)} left"
            if not console.is_terminal:
                say(line)
            elif self.beside is not None:
                self.beside(line)
            else:
                self.clear()
                console.print(line, end="")
                self._shown = True

    def clear(self) -> None:
        """Remove the line that is rewritten, if there is one."""
        if self.beside is not None:
            self.beside("")
        if self._shown:
            console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
            self._shown = False


_stage = ShareLine()


def say_stage(stage: str, share: float = 0.0, /) -> None:
    """A stage of work on a large graph begins, or so much of it is done: a :class:`costa.graphs.stages.Report`."""
    if _quiet:
        return
    if share:
        _stage.show(share)
    else:
        say(stage)
        _stage.begin()


@contextmanager
def busy(work: str) -> Iterator[None]:
    """Say what is going on: beside a spinner on a terminal; elsewhere, if it takes long, in a line on standard error.

    Only results are on standard output then, for whoever reads them.
    """
    if console.is_terminal:
        with console.status(f"{work} …"):
            yield
        return
    late = threading.Timer(LONG, print, [f"{work} …"], {"file": sys.stderr, "flush": True})
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def note(sentence: str | None) -> None:
    """Print a note, if there is one."""
    if sentence:
        say(f"  Note: {sentence}.")


def fail(sentence: str) -> NoReturn:
    """Print the sentence about a user's mistake and exit with code 2."""
    _stage.clear()
    print(f"costa: {sentence}", file=sys.stderr)
    sys.exit(2)


def run_app(app: typer.Typer, prog_name: str, memory_hint: str) -> None:
    """Run a command line: SIGTERM acts as Ctrl-C, and a user's mistake becomes one sentence and exit code 2.

    Args:
        app: The commands.
        prog_name: Name of the program in its help.
        memory_hint: What to do if memory runs out.
    """
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        app(prog_name=prog_name)
    except InputError as problem:
        fail(str(problem))
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        fail(f"{where}{problem.strerror or problem}; check the path, its permissions and the space on the disk.")
    except (MemoryError, RuntimeError) as problem:
        if is_connection_lost(problem):
            fail("another process of this training has ended, so this one does; --resume goes on from the checkpoint.")
        if not is_out_of_memory(problem):
            raise
        fail(f"there is not enough memory for this; {memory_hint}.")


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Treat SIGTERM, which a scheduler sends when time is up, as Ctrl-C, even if a shell ignores Ctrl-C."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(number, frame)


def given_of(context: typer.Context, flags: Mapping[str, str]) -> str | None:
    """The first of these options that the command line has; ``flags`` is how each parameter is written there."""
    for name, flag in flags.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return flag
    return None


def said_of(columns: str | None) -> dict[str, str] | None:
    """What --columns says."""
    from costa.graphs.kinds import parse_columns

    return None if columns is None else parse_columns(columns)


def say_columns(graph: Data) -> None:
    """Say what the columns of the features' table were taken for."""
    columns = graph.get("columns")
    if columns is not None:
        tell("\n".join(["Columns:", *(f"  {line}" for line in columns.lines())]))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table without a frame; the columns named in ``right`` are numbers."""
    _stage.clear()
    table = Table(box=None)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def tell_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table about the way to a result, which ``--quiet`` leaves out."""
    if not _quiet:
        print_table(columns, rows)


def percent(score: tuple[float, float]) -> str:
    """A mean and its standard deviation, in percent.

    >>> percent((0.8123, 0.01))
    '81.2 ± 1.0'
    """
    return f"{100 * score[0]:.1f} ± {100 * score[1]:.1f}"


def number(value: float | None, form: str) -> str:
    """A number in this format, or a dash.

    >>> number(0.5, ".2f"), number(None, ".2f")
    ('0.50', '–')
    """
    return "–" if value is None else format(value, form)


@contextmanager
def kept_on_interrupt(folder: Path) -> Iterator[None]:
    """Say where the results are if Ctrl-C arrives outside the training loop, for example during evaluation."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped. The results so far are in {folder}{os.sep}; run the same command with --resume to continue.")
        raise typer.Exit(130) from None


@contextmanager
def progress_bar(label: str, epochs: int | None) -> Iterator[Report | None]:
    """A bar with the loss, epochs per second and the time left; in a file or a pipe, a line twice a minute."""
    if epochs is None or _quiet:
        yield None
        return
    if not console.is_terminal:
        yield _training_lines(label, epochs)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(label, total=epochs, pace="")
        began = time.perf_counter()
        first: float | None = None

        def report(done: float, loss: float) -> None:
            nonlocal began, first
            if first is None or done < first:
                began, first = time.perf_counter(), done
            rate = (done - first) / max(time.perf_counter() - began, 1e-9)
            progress.update(task, completed=done, pace=f"loss {loss:.4f}  {_pace(rate)}")

        _stage.beside = lambda line: progress.update(task, description=line.strip() or label)
        try:
            yield report
        finally:
            _stage.beside = None


def _training_lines(label: str, epochs: int) -> Report:
    """Report how far training is, in lines."""
    line, first = ShareLine(), float("inf")

    def report(done: float, loss: float) -> None:
        nonlocal first
        if done < first:
            first = done
            line.begin(done / epochs)
        line.show(done / epochs, f" of {label}, loss {loss:.4f}")

    return report


def _pace(rate: float) -> str:
    """Epochs per second, or what an epoch takes if that is longer.

    >>> _pace(25), _pace(1 / 200), _pace(0)
    ('25.0 epochs/s', '3 min/epoch', '')
    """
    if rate >= 1 or not rate:
        return f"{rate:.1f} epochs/s" if rate else ""
    return f"{duration(1 / rate)}/epoch"
