"""What the command line prints: lines, tables, numbers, a progress bar."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from costa.errors import InputError, is_connection_lost, is_out_of_memory

if TYPE_CHECKING:
    from types import FrameType

    from costa.training import Report

console = Console(highlight=False, markup=False)


def say(text: str = "") -> None:
    """Print a line for a person: wrapped at words on a terminal, whole in a file or a pipe."""
    console.print(text, soft_wrap=not console.is_terminal)


def note(sentence: str | None) -> None:
    """Print a note, if there is one."""
    if sentence:
        say(f"  Note: {sentence}.")


def fail(sentence: str) -> NoReturn:
    """Print the sentence about a user's mistake and exit with code 2."""
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


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table without a frame; the columns named in ``right`` are numbers."""
    table = Table(box=None)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


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
    """A bar with the loss, epochs per second and the time left; silent if the output is not a terminal."""
    if epochs is None or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(label, total=epochs, pace="")
        began = time.perf_counter()
        first: int | None = None

        def report(done: int, loss: float) -> None:
            nonlocal began, first
            if first is None or done < first:
                began, first = time.perf_counter(), done
            rate = (done - first) / max(time.perf_counter() - began, 1e-9)
            progress.update(task, completed=done, pace=f"loss {loss:.4f}  {rate:.1f} epochs/s")

        yield report
