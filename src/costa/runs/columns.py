"""How a table of mixed columns became features, kept beside the model that was trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from costa.errors import InputError
from costa.graphs.columns import Columns
from costa.runs.files import COLUMNS, CONFIG, read_config


def save_columns(folder: Path, columns: Columns | None) -> dict[str, Any]:
    """What ``config.json`` says of how the graph's table became features; its arrays are written beside it."""
    if columns is None:
        return {}
    columns.save_arrays(folder / COLUMNS)
    return {"columns": columns.to_dict()}


def load_columns(folder: Path) -> Columns | None:
    """How the table that a model was trained on became features; None if it was no table."""
    from safetensors import SafetensorError

    saved = read_config(folder).get("columns")
    if saved is None:
        return None
    try:
        return Columns.load(saved, folder / COLUMNS)
    except (OSError, SafetensorError, KeyError, TypeError, AttributeError):
        raise InputError(f"the 'columns' of {folder / CONFIG} are damaged; train it again.") from None
