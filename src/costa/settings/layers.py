"""Merge layers of settings; every value remembers which layer it came from."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar

from costa.errors import InputError

S = TypeVar("S")

SYNONYMS = {
    **dict.fromkeys(("dim", "dims", "embedding_dim", "out_dim", "size", "n_components"), "encoder.width"),
    **dict.fromkeys(("hidden", "hidden_dim", "hidden_size"), "encoder.hidden"),
    **dict.fromkeys(("layers", "num_layers", "n_layers", "depth"), "encoder.layers"),
    **dict.fromkeys(("alpha", "teleport_probability", "restart"), "encoder.teleport"),
    **dict.fromkeys(("lr", "learning_rate"), "train.lr"),
    **dict.fromkeys(("wd", "weight_decay", "l2"), "train.weight_decay"),
    **dict.fromkeys(("epochs", "n_epochs", "num_epochs", "max_iter"), "train.epochs"),
    **dict.fromkeys(("batch", "batch_size"), "train.batch"),
    **dict.fromkeys(("tau", "temperature"), "loss.tau"),
    **dict.fromkeys(("dropout", "mask", "drop_feature_rate", "feature_mask"), "augment.mask_rate"),
    **dict.fromkeys(("drop_edge", "dropedge", "edge_drop", "drop_edge_rate"), "augment.edge_rate"),
}
"""What other packages call settings, and what they are called here."""

Layer = tuple[str, Mapping[str, Any]]
"""The source of the values (shown to the user), and the values by dotted key."""


def flatten(settings: Any) -> dict[str, Any]:
    """The values by dotted key.

    >>> from costa.settings import Features
    >>> flatten(dataclasses.make_dataclass("Raw", [("features", Features, Features())], frozen=True)())
    {'features.scaling': 'auto', 'features.rank': 0}
    """
    return {
        f"{group.name}.{item.name}": getattr(getattr(settings, group.name), item.name)
        for group in dataclasses.fields(settings)
        for item in dataclasses.fields(getattr(settings, group.name))
    }


def nested_to_flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turn nested tables, as in TOML, into dotted keys.

    >>> nested_to_flat({"train": {"lr": 0.1}, "loss.tau": 0.4})
    {'train.lr': 0.1, 'loss.tau': 0.4}
    """
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= nested_to_flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Turn ``["sketch.ratio=0.5"]`` into ``{"sketch.ratio": "0.5"}``; :func:`merge` reads the values."""
    parsed = {}
    for text in assignments:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise InputError(f"--set {text!r} is not of the form KEY=VALUE, such as --set sketch.ratio=0.5.")
        parsed[key.strip()] = value.strip()
    return parsed


def merge(cls: type[S], layers: Iterable[Layer]) -> tuple[S, dict[str, str]]:
    """Merge layers over the defaults of ``cls``; later layers win.

    Args:
        cls: A frozen dataclass of groups.
        layers: (source, values) in rising precedence. Values may be strings, as ``--set`` gives them.

    Returns:
        The settings, and for each dotted key the source that decided it (``default`` if none did).

    >>> from costa.settings import Features
    >>> Raw = dataclasses.make_dataclass("Raw", [("features", Features, Features())], frozen=True)
    >>> merge(Raw, [("--set", {"features.scaling": "rows"})])
    (Raw(features=Features(scaling='rows', rank=0)), {'features.scaling': '--set', 'features.rank': 'default'})
    """
    defaults: Any = cls()
    groups = {item.name: getattr(defaults, item.name) for item in dataclasses.fields(defaults)}
    kinds = {
        f"{name}.{key}": kind
        for name, group in groups.items()
        for key, kind in typing.get_type_hints(type(group)).items()
    }
    chosen: dict[str, dict[str, Any]] = {name: {} for name in groups}
    origins = dict.fromkeys(kinds, "default")
    for source, values in layers:
        for key, value in values.items():
            if key not in kinds:
                meant = _meant(key, kinds)
                hint = f"did you mean {meant}?" if meant else f"there are: {', '.join(kinds)}."
                raise InputError(f"unknown setting {key!r} ({source}); {hint}")
            name, _, item = key.partition(".")
            chosen[name][item] = _read(value, kinds[key], key)
            origins[key] = source
    return cls(**{name: dataclasses.replace(group, **chosen[name]) for name, group in groups.items()}), origins


def _meant(key: str, kinds: Collection[str]) -> str | None:
    """The setting that somebody who typed this key most likely meant."""
    name = key.rpartition(".")[2].lower().replace("-", "_")
    if SYNONYMS.get(name) in kinds:
        return SYNONYMS[name]
    close = difflib.get_close_matches(key, kinds, n=1, cutoff=0.5)
    if close:
        return close[0]
    same = [kind for kind in kinds if kind.partition(".")[2] == name]
    return same[0] if len(same) == 1 else None


def _read(value: Any, kind: Any, key: str) -> Any:
    """Read ``value``, a TOML value or the text of ``--set``, as ``kind``."""
    try:
        return _convert(value, kind)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise InputError(f"{key} = {value!r} is not {_describe(kind)}.") from None


def _convert(value: Any, kind: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is Literal:
        if value not in typing.get_args(kind):
            raise ValueError
        return value
    if origin is tuple:
        items = (value.split(",") if value else ()) if isinstance(value, str) else value
        each = typing.get_args(kind)[0]
        return tuple(_convert(item, each) for item in (items if isinstance(items, list | tuple) else [items]))
    if kind is bool:
        if isinstance(value, bool):
            return value
        return {"true": True, "false": False}[str(value).lower()]
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    if kind is int:
        if number != int(number):
            raise ValueError
        return int(number)
    return number


def _describe(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(typing.get_args(kind))
    if isinstance(kind, types.GenericAlias):
        return f"{_describe(typing.get_args(kind)[0])}, or several separated by commas"
    return {bool: "true or false", int: "a whole number", float: "a number"}[kind]
