"""Settings per method and dataset, in TOML files beside this module.

``METHOD.toml`` holds what was published: ``[paper.all]`` what holds for every dataset, ``[paper.cora]`` what is
published for Cora, over ``all``. ``tuned/METHOD/DATASET.toml`` and ``strict/METHOD/DATASET.toml`` hold what validation
chose, each as ``costa tune`` writes it: ``tuned`` on random splits of tuning seeds, ``strict`` inside the fixed fifth
of the protocol ``strict-10-10-80``, whose other 80% helped to choose nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from costa.errors import InputError
from costa.methods.base import Method
from costa.settings import Layer, merge, nested_to_flat
from costa.wording import did_you_mean

PRESETS = ("tuned", "strict", "paper", "none")
FROM_GRAPH = ("features.scaling", "sketch.ratio")
"""What a method may choose from the graph: where nobody asks for a value, any that was chosen will do."""
CHOSEN = ("tuned", "strict")
"""Those that have a file for each method and dataset."""
ROOT = resources.files(__package__)


@dataclass(frozen=True)
class Resolved:
    """Merged settings, where each came from, and what the user should hear about it."""

    values: Any
    origins: dict[str, str]
    note: str | None = None

    @property
    def set_by_hand(self) -> list[str]:
        """Of what a graph may choose, what a preset, a file or a user decided; ``set`` in a line of the store."""
        return [key for key in FROM_GRAPH if self.origins.get(key, "default") not in ("default", "graph")]


def resolve(
    method: type[Method],
    graph: Data,
    *,
    preset: str = "tuned",
    config: Path | None = None,
    given: Mapping[str, Any] | None = None,
    given_by: str = "given",
    epochs: int | None = None,
    epochs_by: str = "epochs",
) -> Resolved:
    """Defaults < chosen from the graph < preset < a settings file < what is given one by one < the number of epochs."""
    name = graph.get("name", "this graph")
    trained = hasattr(method.Settings(), "train")
    layers: list[Layer] = [("graph", method.choose(graph))]
    own: list[Layer] = [] if config is None else [(str(config), load_config(config))]
    own.append((given_by, given or {}))
    note = None
    values = load_preset(preset, method.name, name)
    if values is not None:
        layers.append((f"preset {preset}", values))
    elif preset in ("paper", "strict"):
        there = ", ".join(published(preset, method.name))
        found = "no settings are published" if preset == "paper" else "no settings were chosen strictly"
        raise InputError(
            f"{found} for {method.name} on {name}"
            + (f" (there are for: {there})" if there else "")
            + "; use the preset tuned or none."
        )
    elif preset == "tuned" and trained:
        note = f"no tuned settings for {method.name} on {name}: defaults, and what the graph suggests"
    if epochs is not None:
        if not trained:
            raise InputError(
                f"a number of epochs does not apply to {method.name}, which is not trained in epochs; leave it out."
            )
        own.append((epochs_by, {"train.epochs": epochs}))
    # "auto" is what the graph's own layer says already.
    layers += [
        (source, {key: value for key, value in values.items() if (key, value) != ("features.scaling", "auto")})
        for source, values in own
    ]
    merged: Any
    merged, origins = merge(method.Settings, layers)
    asked = {source for source, _ in own}
    for key, reason in method.unused(merged).items():
        if origins[key] in asked:
            raise InputError(f"{key} was set, but {reason}; leave it out.")
    return Resolved(merged, origins, note)


def load_preset(name: str, method: str, dataset: str) -> dict[str, Any] | None:
    """The preset's values by dotted key; None where there are none for this method and dataset.

    >>> load_preset("paper", "costa-mv", "cora")["train.epochs"]
    700
    """
    if name not in PRESETS:
        hint = did_you_mean(name, PRESETS)
        raise InputError(f"unknown preset {name!r}{hint}; there are {', '.join(PRESETS)}.")
    if dataset not in published(name, method):
        return None
    if name in CHOSEN:
        return nested_to_flat(_read(ROOT / name / method / f"{dataset}.toml"))
    tables = _tables(method)[name]
    return nested_to_flat(tables.get("all", {})) | nested_to_flat(tables[dataset])


def published(name: str, method: str) -> list[str]:
    """The datasets for which the method has that preset."""
    if name in CHOSEN:
        folder = ROOT / name / method
        files = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        return [file.removesuffix(".toml") for file in files if file.endswith(".toml")]
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
    file = ROOT / f"{method}.toml"
    return _read(file) if file.is_file() else {}


def _read(file: Traversable) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
