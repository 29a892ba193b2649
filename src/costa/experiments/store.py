"""The store of results, ``results/METHOD/DATASET.jsonl``: one line a run, its ``metrics.json`` and its settings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def append(root: Path, metrics: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Add a run, in one write to a file opened for appending: several writers do not cut into each other's lines."""
    path = root / metrics["method"] / f"{metrics['dataset']}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = (json.dumps({**metrics, "settings": settings}, sort_keys=True) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """The runs of a file; a half-written last line is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]
