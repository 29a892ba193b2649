"""A RUN folder: what ``costa train`` writes, what ``costa probe`` and ``costa embed`` read.

- ``model.safetensors``: the weights, feature scaling included
- ``config.json``: method, graph, seed, every setting and where it came from
- ``columns.safetensors``: arrays of how a table of mixed columns becomes features, if there are any
- ``embeddings.npy``: the nodes' vectors; for nodes with ids also ``embeddings.parquet`` (or ``.csv``), with ids
- ``metrics.json``: what was measured; its fields are a contract
- ``log.csv``: the loss of every epoch
- ``checkpoint.safetensors``: only during training and after an interruption
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costa.errors import InputError
from costa.writing import replacing

SCHEMA = 1

CONFIG, METRICS, MODEL, EMBEDDINGS = "config.json", "metrics.json", "model.safetensors", "embeddings.npy"
COLUMNS = "columns.safetensors"


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a run."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} is not a run: it has no {CONFIG}; `costa train` writes one.")
    return read_json(folder / CONFIG, ("method", "graph", "dataset", "seed", "in_features", "settings"))


def read_json(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """The object in a JSON file of a run, which must have these keys."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        value = None
    refuse_newer(path, value)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or any(key not in value for key in keys):
        raise InputError(f"{path} is missing, damaged or of another version; train the run again into another folder.")
    return value


def refuse_newer(path: Path, value: Any) -> None:
    """Refuse a file of a newer version; check this first, because such a file may look damaged."""
    schema = value.get("schema") if isinstance(value, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(
            f"{path} was written by a newer version of costa (schema {schema}; this version reads {SCHEMA}); update"
            " costa."
        )


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON; if that fails, the older file stays intact."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
