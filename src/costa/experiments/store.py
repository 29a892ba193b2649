"""The store of results, ``results/METHOD/DATASET.jsonl``: one line a run, its ``metrics.json`` and its settings."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any


def append(root: Path, metrics: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Add a run, in one write to a file opened for appending: several writers do not cut into each other's lines.

    A line that a killed writer left half written is closed first, so that it spoils no other.
    """
    path = root / metrics["method"] / f"{metrics['dataset']}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = (json.dumps({**metrics, "settings": settings}, sort_keys=True) + "\n").encode()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if size := os.fstat(descriptor).st_size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, "the run was written by half", str(path))
    finally:
        os.close(descriptor)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """The runs of a file, none where it does not exist; what was written by half is left out."""
    runs: list[dict[str, Any]] = []
    if not path.exists():
        return runs
    for line in path.read_bytes().split(b"\n"):
        try:
            run = json.loads(line)
        except ValueError:
            continue
        if isinstance(run, dict):
            runs.append(run)
    return runs
