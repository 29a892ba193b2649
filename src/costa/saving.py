"""A model in a folder: ``model.safetensors`` and ``config.json``, the same two files that a RUN folder has.

So ``COSTA.load`` reads a run of ``costa train``, and ``costa embed`` a model that ``COSTA.save`` wrote. Nothing is
pickled: reading a model runs no code of whoever wrote it. ``config.json`` has ``schema``, ``method``, ``graph`` and
``dataset`` (the graph's name), ``seed``, ``in_features``, ``settings`` and ``origins``; ``COSTA.save`` adds the
estimator's ``parameters``, the ``choices`` made from the graph and the ``versions`` at work.
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

from costa import runs, settings
from costa.errors import InputError
from costa.experiments.presets import Resolved
from costa.methods.base import Method

About = dict[str, Any]
"""What ``config.json`` holds."""

FIELDS: dict[str, type] = {"method": str, "dataset": str, "seed": int, "in_features": int, "settings": dict}
OPTIONAL: dict[str, type] = {"origins": dict, "choices": list, "parameters": dict}


def describe(method: Method, resolved: Resolved, graph: Data, seed: int) -> About:
    """What there is to say about a method that was trained on ``graph``."""
    name = graph.get("name") or "a graph in memory"
    return {
        "schema": runs.SCHEMA,
        "method": method.name,
        "graph": name,
        "dataset": name,
        "seed": int(seed),
        "in_features": graph.num_features,
        "settings": settings.flatten(resolved.values),
        "origins": resolved.origins,
        "versions": runs.versions(),
    }


def save(folder: Path, method: Method, about: About) -> None:
    """Write a new folder; it appears under its name only when it is whole, and nothing is written over.

    Args:
        folder: Not there yet, or empty.
        method: Trained.
        about: From :func:`describe`, and whatever else shall be kept.
    """
    folder = folder.expanduser().absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already, and nothing is written over; choose another folder.")
    beside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.partial")
    try:
        beside.mkdir(parents=True)
        text = json.dumps(about, indent=2, ensure_ascii=False, default=_plain)
        (beside / runs.CONFIG).write_text(text + "\n", encoding="utf-8")
        runs.save_state(beside, method.state_dict())
        if folder.exists():
            folder.rmdir()  # it is empty; not every system renames onto a folder
        os.replace(beside, folder)
    except OSError as problem:
        raise InputError(f"{folder} cannot be written ({problem.strerror}); choose another folder.") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def load(folder: Path, device: torch.device) -> tuple[Method, About]:
    """The trained method of a model's or a RUN folder, and what its ``config.json`` says."""
    folder = folder.expanduser()
    path = folder / runs.CONFIG
    if not path.is_file():
        raise InputError(f"there is no model in {folder}: it has no {runs.CONFIG}; `COSTA.save` writes one.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged: it is no JSON object; save or train the model again.")
    runs.refuse_newer(path, found)
    for name, kind in (FIELDS | OPTIONAL).items():
        if (name in FIELDS or name in found) and not isinstance(found.get(name), kind):
            raise damaged(folder, name)
    return runs.load_model(folder, device), found


def damaged(folder: Path, field: str) -> InputError:
    """The sentence for a field of ``config.json`` that is not what it must be."""
    path = folder / runs.CONFIG
    return InputError(f"{path} is damaged: its {field!r} is missing or wrong; save or train the model again.")


def repeating(method: type[Method], about: About) -> dict[str, Any]:
    """The estimator's parameters that would train a run's model again: all settings but those that others make idle."""
    idle = method.unused(runs.read_settings(method, about))
    given = {key: value for key, value in about["settings"].items() if key not in idle and key != "train.epochs"}
    return {"epochs": about["settings"]["train.epochs"], "settings": given}


def _plain(value: Any) -> Any:
    """NumPy's numbers, which JSON does not know, as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
