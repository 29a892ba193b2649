"""A model in a folder: ``model.safetensors`` and ``config.json``, the same two files as in a RUN folder.

So ``COSTA.load`` reads a run of ``costa train``, and ``costa embed`` a model that ``COSTA.save`` wrote. Nothing is
pickled, so loading a model does not run code from it. ``config.json`` has ``schema``, ``method``, ``graph`` and
``dataset`` (the graph's name), ``seed``, ``in_features``, ``settings`` and ``origins``; ``COSTA.save`` adds the
estimator's ``parameters``, the ``choices`` made from the graph and the package ``versions``. A method that labels chose
(:mod:`costa.tuning.portfolio`) has ``chosen``.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.graphs.columns import Columns
from costa.methods.base import Method
from costa.runs.columns import save_columns
from costa.runs.files import COLUMNS, CONFIG, MODEL, SCHEMA, refuse_newer
from costa.runs.models import load_model, read_settings, save_state
from costa.runs.provenance import versions
from costa.settings.presets import Resolved

About = dict[str, Any]
"""The content of ``config.json``."""

FIELDS: dict[str, type] = {"method": str, "dataset": str, "seed": int, "in_features": int, "settings": dict}
OPTIONAL: dict[str, type] = {"origins": dict, "choices": list, "parameters": dict, "chosen": dict}


def describe(method: Method, resolved: Resolved, graph: Data, seed: int) -> About:
    """The ``config.json`` of a method that was trained on ``graph``."""
    name = graph.get("name") or "a graph in memory"
    return {
        "schema": SCHEMA,
        "method": method.name,
        "graph": name,
        "dataset": name,
        "seed": int(seed),
        "in_features": graph.num_features,
        "settings": settings.flatten(resolved.values),
        "origins": resolved.origins,
        "versions": versions(),
    }


def save(
    folder: Path, method: Method, about: About, columns: Columns | None = None, *, overwrite: bool = False
) -> None:
    """Write a new folder, which appears only when it is complete.

    Args:
        folder: A folder that does not exist, or is empty.
        method: The trained method.
        about: From :func:`describe`, with any further fields.
        columns: How a table becomes the features that it was trained on, if it was one.
        overwrite: Whether it may take the place of a model that was saved; never of a RUN folder or anything else.
    """
    folder = folder.expanduser().absolute()
    taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken and not overwrite:
        offer = " or give overwrite=True" if _is_model(folder) else ""
        raise InputError(f"{folder} already exists and is not overwritten; choose another folder{offer}.")
    if taken and not _is_model(folder):
        raise InputError(f"{folder} is not a model that `COSTA.save` wrote, so it is kept; choose another folder.")
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.partial")
    try:
        temporary.mkdir(parents=True)
        about = about | save_columns(temporary, columns)
        text = json.dumps(about, indent=2, ensure_ascii=False, default=_plain)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")
        save_state(temporary, method.state_dict())
        before = temporary.with_suffix(".before")
        if folder.exists():
            os.replace(folder, before)  # not every system renames onto a folder
        os.replace(temporary, folder)
        shutil.rmtree(before, ignore_errors=True)
    except OSError as problem:
        raise InputError(f"{folder} cannot be written ({problem.strerror}); choose another folder.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model and nothing else."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return {CONFIG, MODEL} <= names <= {CONFIG, MODEL, COLUMNS}


def load(folder: Path, device: torch.device) -> tuple[Method, About]:
    """The trained method of a model or RUN folder, and its ``config.json``."""
    folder = folder.expanduser()
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(f"there is no model in {folder}: it has no {CONFIG}; `COSTA.save` writes one.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = None
    if not isinstance(about, dict):
        raise InputError(f"{path} is damaged: it is not a JSON object; save or train the model again.")
    refuse_newer(path, about)
    for name, kind in (FIELDS | OPTIONAL).items():
        if (name in FIELDS or name in about) and not isinstance(about.get(name), kind):
            raise damaged(folder, name)
    return load_model(folder, device), about


def damaged(folder: Path, field: str) -> InputError:
    """The error for a field of ``config.json`` that is missing or of the wrong type."""
    path = folder / CONFIG
    return InputError(f"{path} is damaged: its {field!r} is missing or wrong; save or train the model again.")


def repeating(method: type[Method], about: About) -> dict[str, Any]:
    """The estimator's parameters that would train a run's model again: all settings except unused ones."""
    unused = method.unused(read_settings(method, about))
    given = {key: value for key, value in about["settings"].items() if key not in unused and key != "train.epochs"}
    return {"epochs": about["settings"]["train.epochs"], "settings": given}


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number, which JSON can hold."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
