"""What a search may draw: the settings of one trial."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from torch_geometric.data import Data

from costa.methods.base import Method
from costa.methods.costa import MOST_ROWS
from costa.settings.groups import Train
from costa.settings.layers import flatten, merge
from costa.tuning.jobs import TuningJob

if TYPE_CHECKING:
    from optuna import Trial

HOPS: dict[str, tuple[Any, ...]] = {
    "features.rank": (0, 256, 512),
    "encoder.width": (64, 128, 256),
    "encoder.powers": ("0", "0,1,4", "0,4", "0,2", "0,2,4", "4", "1,4"),
    "encoder.steps": (0, 5, 10, 20),
    "encoder.columns": (0, 128, 256, 512),
}
"""What is searched for hops. A study stores text, not tuples, so powers are written as for ``--set``."""


def sample(trial: Trial, method: type[Method], graph: Data, kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Draw the settings of a trial, by dotted key: those that the method has and that are not unused.

    Numbers are rounded to three digits before they are tried, so that the trained values are those written down. Fixed
    settings, ``kept``, are not drawn, and are left out of a trial in which they are unused. Hops are searched if
    ``encoder.kind`` is fixed to them, otherwise GCN and APPNP.
    """
    draw = _Draw(trial, method, kept or {})
    views = method.views
    draw.one_of("features.scaling", ("none", "rows", "standard"))
    draw.one_of("encoder.activation", draw.known("encoder.activation"))
    draw.one_of("encoder.norm", draw.known("encoder.norm"))
    hops = draw.values.get("encoder.kind") == "hops"
    if hops:
        _sample_hops(draw, views)
    else:
        _sample_layers(draw, views)
    draw.one_of("head.width", (0, 128, 256, 512))
    if draw.values.get("head.width"):
        draw.one_of("head.activation", draw.known("head.activation"))
    draw.one_of("sketch.kind", ("gaussian", "rademacher", "sparse", "countsketch"))
    if draw.values.get("sketch.kind") == "sparse":
        draw.between("sketch.density", 0.001, 0.064)
    draw.between("sketch.ratio", *_ratios(draw.rows(graph.num_nodes, by_rows=hops)))
    draw.one_of("sketch.center", (True, False))
    draw.between("diffusion.alpha", 0.05, 0.5)
    draw.one_of("predictor.width", (256, 512))
    draw.one_of("target.decay", (0.9, 0.97, 0.99, 0.997))
    draw.one_of("loss.kind", ("self",) if views == 1 else ("cross", "both"))
    if draw.values.get("loss.kind") == "both":
        draw.one_of("loss.include_self", (False, True))
    elif views > 1:
        # the only valid value; written down because a preset might have the other
        draw.one_of("loss.include_self", (False,))
    draw.between("loss.tau", 0.1, 5.0)
    draw.between("loss.weight", 1e-4, 1e-2)
    for part in ("alpha", "beta", "gamma"):
        draw.between(f"loss.{part}", 0.1, 2.0)
    draw.between("train.lr", 1e-4, 3e-2)
    draw.between("train.weight_decay", 1e-6, 5e-2)
    unused = method.unused(merge(method.Settings, [("search", draw.values)])[0])
    return {key: value for key, value in draw.values.items() if key not in unused}


def _sample_layers(draw: _Draw, views: int) -> None:
    """GCN or APPNP, edges and attributes dropped."""
    draw.one_of("encoder.width", (128, 256, 512, 1024, 2048))
    draw.one_of("encoder.layers", (1, 2, 3, 4))
    draw.one_of("encoder.steps", (0, 2, 4, 8, 16))
    if draw.values.get("encoder.steps"):
        draw.one_of("encoder.kind", ("gcn", "appnp"))
        draw.between("encoder.teleport", 0.01, 0.5)
    else:
        draw.one_of("encoder.kind", ("gcn",))  # without steps, appnp would not use the edges
    if draw.rates("augment.edge_rate", views) + draw.rates("augment.mask_rate", views):
        draw.one_of("augment.centrality", draw.known("augment.centrality"))


def _sample_hops(draw: _Draw, views: int) -> None:
    """Hops, with attributes masked and hops left out; every choice has the default too, to start from."""
    for key, choices in HOPS.items():
        draw.one_of(key, draw.with_default(key, choices))
    if draw.values.get("encoder.columns"):
        draw.between("encoder.weight", 0.25, 4.0)
    if draw.values.get("encoder.steps"):
        draw.between("encoder.teleport", 0.01, 0.5)
    draw.rates("augment.mask_rate", views)
    draw.rates("augment.hop_rate", views)


class _Draw:
    """Draws the settings of one trial; keys that the method does not have, or that are fixed, are skipped."""

    def __init__(self, trial: Trial, method: type[Method], kept: Mapping[str, Any]) -> None:
        self.trial = trial
        self.defaults = method.Settings()
        self.keys = flatten(self.defaults)
        self.values = dict(kept)

    def known(self, key: str) -> Sequence[Any]:
        """All values that the setting allows."""
        group, _, item = key.partition(".")
        if key not in self.keys:
            return ()
        kind = typing.get_type_hints(type(getattr(self.defaults, group)))[item]
        assert typing.get_origin(kind) is Literal
        return typing.get_args(kind)

    def with_default(self, key: str, choices: Sequence[Any]) -> Sequence[Any]:
        """The choices and, unless it is among them, the method's default."""
        default = _as_text(self.keys[key])
        return choices if default in choices else (*choices, default)

    def rows(self, n: int, *, by_rows: bool) -> int:
        """About how many of n nodes a training step reads."""
        return Train.of(self.keys | self.values).rows(n, by_rows=by_rows)

    def is_open(self, key: str) -> bool:
        """Whether the method has the key and its value is not set yet."""
        return key in self.keys and key not in self.values

    def one_of(self, key: str, choices: Sequence[Any]) -> None:
        """Draw one of the choices; a single choice needs no draw."""
        if self.is_open(key):
            self.values[key] = self.trial.suggest_categorical(key, choices) if len(choices) > 1 else choices[0]

    def between(self, key: str, low: float, high: float) -> None:
        """Draw a number whose logarithm is uniform."""
        if self.is_open(key):
            self.values[key] = _three_digits(self.trial.suggest_float(key, low, high, log=True))

    def rates(self, key: str, views: int) -> float:
        """Draw a rate for each view, 0 … 0.8 in steps of 0.1; return their sum."""
        if not self.is_open(key):
            return sum(self.values.get(key, ()))
        names = [f"{key}.{view + 1}" for view in range(views)]
        rates = [round(self.trial.suggest_float(name, 0.0, 0.8, step=0.1), 1) for name in names]
        self.values[key] = rates if views > 1 else rates[0]
        return sum(rates)


class _Wanted:
    """Stands in for a trial: keeps those wanted values that are searched, numbers clipped to the searched range."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self.wanted = wanted
        self.kept: dict[str, Any] = {}

    def suggest_categorical(self, key: str, choices: Sequence[Any]) -> Any:
        if self.wanted.get(key) in choices:
            self.kept[key] = self.wanted[key]
        return self.kept.get(key, choices[0])

    def suggest_float(self, key: str, low: float, high: float, *, step: float = 0, log: bool = False) -> float:
        value = min(max(self.wanted[key], low), high)
        self.kept[key] = low + step * round((value - low) / step) if step else value
        return float(self.kept[key])


def searched_part(job: TuningJob, values: Any) -> dict[str, Any]:
    """The part of merged settings that the search could draw, by the names that :func:`sample` uses."""
    wanted: dict[str, Any] = {}
    for key, value in flatten(values).items():
        rates = value if key.startswith("augment.") and isinstance(value, tuple) else ()
        wanted |= {f"{key}.{view + 1}": rates[min(view, len(rates) - 1)] for view in range(2) if rates} or {
            key: _as_text(value)
        }
    kept = _Wanted(wanted)
    sample(typing.cast("Trial", kept), job.method, job.graph, job.kept)
    return kept.kept


def _as_text(value: Any) -> Any:
    """Several values as one text; a single one as it is."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _ratios(nodes: int) -> tuple[float, float]:
    """The smallest and the largest sketch.ratio: 0.05 and 1.5, or less if that exceeds MOST_ROWS rows.

    >>> _ratios(2708), _ratios(34493)
    ((0.05, 1.5), (0.0295, 0.118))
    """
    high = min(1.5, MOST_ROWS / nodes)
    unit = 10.0 ** (math.floor(math.log10(high)) - 2)
    # cut to three digits, so that a value rounded to three digits never exceeds it
    high = _three_digits(math.floor(high / unit) * unit)
    return min(0.05, high / 4), high
