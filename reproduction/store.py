"""The store of results, ``results/METHOD/DATASET.jsonl``: a line per run, with its ``metrics.json`` and settings."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from costa import runs
from costa.runs.files import METRICS
from costa.settings.presets import Resolved


def append(root: Path, metrics: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Add a run in one write to a file opened for appending, so that concurrent writers do not mix their lines.

    A half-written line that a killed writer left is closed first.
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
            raise OSError(errno.ENOSPC, "the run was only partly written", str(path))
    finally:
        os.close(descriptor)
    return path


def record(root: Path | str, folder: Path | str) -> list[Path]:
    """Add the runs that ``costa train --seeds N --out FOLDER`` left in ``folder``, except interrupted ones.

    A run that is recorded twice has two lines, and counts twice in a table that reads every line.

    Args:
        root: The store, for example ``results/experiments/EXPERIMENT``.
        folder: The folder of the RUN folders.

    Returns:
        The file of each run.
    """
    files = []
    for path in sorted(Path(folder).glob(f"*/{METRICS}")):
        metrics, config = runs.read_metrics(path.parent), runs.read_config(path.parent)
        if metrics.status != "interrupted":
            by_hand = {"set": Resolved(None, config.get("origins", {})).set_by_hand}
            files.append(append(Path(root), metrics.to_dict() | by_hand, config["settings"]))
    return files


def read(path: Path) -> list[dict[str, Any]]:
    """The runs in a file, without half-written lines; empty if it does not exist."""
    stored: list[dict[str, Any]] = []
    if not path.exists():
        return stored
    for line in path.read_bytes().split(b"\n"):
        try:
            run = json.loads(line)
        except ValueError:
            continue
        if isinstance(run, dict):
            stored.append(run)
    return stored
