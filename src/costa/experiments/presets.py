"""Settings per method and dataset: one TOML a method, with its published (``paper``) and its tuned settings.

[paper.all]         what holds for every dataset
[paper.cora]        what is published for Cora, over ``all``
[tuned.cora]        what validation chose
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from costa.errors import InputError
from costa.settings import nested_to_flat

PRESETS = ("tuned", "paper", "none")


def load_preset(name: str, method: str, dataset: str) -> dict[str, Any] | None:
    """The preset's values by dotted key; None where there are none for this method and dataset.

    >>> load_preset("paper", "costa-mv", "cora")["train.epochs"]
    700
    """
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}.")
    tables = _tables(method).get(name, {})
    if dataset not in tables:
        return None
    return nested_to_flat(tables.get("all", {})) | nested_to_flat(tables[dataset])


def published(name: str, method: str) -> list[str]:
    """The datasets for which the method has that preset."""
    return [dataset for dataset in _tables(method).get(name, {}) if dataset != "all"]


def load_config(path: Path) -> dict[str, Any]:
    """A user's ``--config`` file, by dotted key."""
    try:
        return nested_to_flat(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError(f"there is no settings file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} is not a TOML file: {problem}.") from None


def _tables(method: str) -> dict[str, Any]:
    file = resources.files(__package__) / f"{method}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
