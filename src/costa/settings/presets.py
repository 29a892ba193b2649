"""Settings per method and dataset, in TOML files next to this module.

``METHOD.toml`` holds the published settings: ``[paper.all]`` for every dataset, and ``[paper.cora]`` for Cora, which
overrides ``all``. ``tuned/METHOD/DATASET.toml`` and ``strict/METHOD/DATASET.toml`` hold what validation chose, as
written by ``costa tune``: ``tuned`` on random splits with tuning seeds, ``strict`` inside the fixed fifth of the
protocol ``strict-10-10-80``, whose other 80% play no part in the choice.

Every preset pins every setting: what its own table or file leaves out is in ``[base]`` of ``METHOD.toml``, which holds
the method's defaults as they were when the presets were chosen. Another default, or another graph, changes no preset.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Protocol

from torch_geometric.data import Data

from costa.errors import InputError
from costa.settings.layers import Layer, merge, nested_to_flat
from costa.wording import did_you_mean

PRESETS = ("tuned", "strict", "paper", "none")
FROM_GRAPH = ("features.scaling", "features.rank", "sketch.ratio")
"""Settings that a method may choose from the graph when no preset, file or user sets them."""
FROM_GRAPH_HOPS = ("encoder.powers", "encoder.steps", "encoder.width", "train.epochs")
"""Those that it may also choose if its encoder is one of hops."""
CHOSEN = ("tuned", "strict")
"""Presets with one file per method and dataset."""
ROOT = resources.files(__package__)


class Configurable(Protocol):
    """What this module needs from a method: its name, its groups and what it chooses from a graph."""

    name: str
    Settings: type

    def choose(self, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """Settings chosen from the graph, by dotted key; ``given`` are the keys that others decide."""
        ...

    def unused(self, settings: Any) -> dict[str, str]:
        """Settings that the others make unused, each with the reason."""
        ...


@dataclass(frozen=True)
class Resolved:
    """Merged settings, the origin of each value, and perhaps a note for the user."""

    values: Any
    origins: dict[str, str]
    note: str | None = None

    @property
    def from_preset(self) -> bool:
        """Whether a preset decided any value."""
        return any(origin.startswith("preset ") for origin in self.origins.values())

    @property
    def set_by_hand(self) -> list[str]:
        """What a graph might choose and a preset, a file or the user decided; ``set`` in the result store."""
        mine = (*FROM_GRAPH, *FROM_GRAPH_HOPS)
        return [key for key in mine if self.origins.get(key, "default") not in ("default", "graph")]


def resolve(
    method: Configurable,
    graph: Data,
    *,
    preset: str = "none",
    config: Path | None = None,
    given: Mapping[str, Any] | None = None,
    given_by: str = "given",
    epochs: int | None = None,
    epochs_by: str = "epochs",
) -> Resolved:
    """Merge defaults < chosen from the graph < preset < a settings file < ``given`` < the number of epochs."""
    name = graph.get("name", "this graph")
    trained = hasattr(method.Settings(), "train")
    layers: list[Layer] = []
    overrides: list[Layer] = [] if config is None else [(str(config), load_config(config))]
    overrides.append((given_by, given or {}))
    note = None
    chosen = preset_layers(preset, method.name, name)
    if chosen:
        layers += chosen
    elif preset in ("paper", "strict"):
        datasets = ", ".join(published(preset, method.name))
        problem = "no settings are published" if preset == "paper" else "there are no strict settings"
        raise InputError(
            f"{problem} for {method.name} on {name}"
            + (f" (available for: {datasets})" if datasets else "")
            + "; use the preset tuned or none."
        )
    elif preset == "tuned" and trained:
        note = f"no tuned settings for {method.name} on {name}; using the defaults and what the graph suggests"
    if epochs is not None:
        if not trained:
            raise InputError(
                f"a number of epochs does not apply to {method.name}, which is not trained in epochs; leave it out."
            )
        overrides.append((epochs_by, {"train.epochs": epochs}))
    # Beneath what the graph decides: a large graph needs fewer rows of a sketch than the base has.
    beneath: list[Layer] = [("base", load_base(method.name))] if _another_encoder(method, overrides) else []
    # "auto" is what the graph's layer decides.
    layers += [
        (source, {key: value for key, value in values.items() if (key, value) != ("features.scaling", "auto")})
        for source, values in overrides
    ]
    merged: Any = merge(method.Settings, [*beneath, *layers])[0]
    from_graph = method.choose(graph, merged, {key for _, values in layers for key in values})
    merged, origins = merge(method.Settings, [*beneath, ("graph", from_graph), *layers])
    set_by_user = {source for source, _ in overrides}
    for key, reason in method.unused(merged).items():
        if origins[key] in set_by_user:
            raise InputError(f"{key} was set, but {reason}; leave it out.")
    return Resolved(merged, origins, note)


def _another_encoder(method: Configurable, overrides: Sequence[Layer]) -> bool:
    """Whether another kind of encoder than the default's is asked for: it starts from the settings made for it."""
    kind = getattr(getattr(method.Settings(), "encoder", None), "kind", None)
    return any(values.get("encoder.kind", kind) != kind for _, values in overrides)


def preset_layers(name: str, method: str, dataset: str) -> list[Layer]:
    """The method's base and the preset's own values, which together pin every setting; empty if there are none."""
    values = load_preset(name, method, dataset)
    return [] if values is None else [("base", load_base(method)), (f"preset {name}", values)]


def load_base(method: str) -> dict[str, Any]:
    """The values by dotted key that all presets of the method start from; empty if it has no presets.

    >>> load_base("costa-mv")["encoder.kind"]
    'gcn'
    """
    return nested_to_flat(_tables(method).get("base", {}))


def load_preset(name: str, method: str, dataset: str) -> dict[str, Any] | None:
    """The preset's own values by dotted key; None if it has none for this method and dataset.

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
    """The datasets for which the method has the preset."""
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
        raise InputError(f"there is no settings file {path}; check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} is not a TOML file ({problem}); correct it.") from None


def _tables(method: str) -> dict[str, Any]:
    file = ROOT / f"{method}.toml"
    return _read(file) if file.is_file() else {}


def _read(file: Traversable) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
