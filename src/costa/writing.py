"""Write files that are complete or absent, even with several writers or after a kill."""

from __future__ import annotations

import contextlib
import csv
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from costa.errors import InputError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path``, which replaces it at the end.

    A full disk or a kill leaves the older file intact; of two concurrent writers, the last one wins.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(path: Path, head: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table as CSV, row by row."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def check_place(path: Path) -> None:
    """Refuse a path where no file can be written, before any work is done."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder or its folder does not exist; choose another.")


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the folder's lock, after waiting for other processes or, if not, unless one of them has it.

    Yields whether it is held: a system without ``fcntl`` does not lock. The lock ends with the process, however that
    ends, and goes with the folder when it is renamed.
    """
    try:
        import fcntl
    except ImportError:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)
