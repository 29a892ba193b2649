"""Settings: frozen dataclasses, merged from layers, each value remembering where it came from.

A method's settings are groups of values (``encoder.width``, ``sketch.ratio``, ``train.lr``…). They are merged from
layers of rising precedence: the method's defaults < what is chosen from the graph < a preset < a file < ``--set``.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from costa.errors import InputError

S = TypeVar("S")

Layer = tuple[str, Mapping[str, Any]]
"""Where the values come from (shown to the user), and the values by dotted key."""


def _require(ok: bool, key: str, value: object, rule: str) -> None:
    if not ok:
        raise InputError(f"{key} = {value!r} is out of range: {rule}.")


@dataclass(frozen=True)
class Features:
    """What is done to the node features before the encoder sees them."""

    scaling: Literal["auto", "none", "rows", "standard"] = "auto"


@dataclass(frozen=True)
class Encoder:
    """The GCN, of two layers in the paper. ``hidden`` is the width of those before the last; 0 is ``width`` again.

    ``steps`` of personalised PageRank follow, each of which goes back to its start by ``teleport``; none in the paper.
    ``kind = "appnp"`` leaves the edges to them: its layers look at each node alone.
    """

    kind: Literal["gcn", "appnp"] = "gcn"
    width: int = 256
    hidden: int = 0
    layers: int = 2
    activation: Literal["relu", "elu", "prelu", "rrelu"] = "relu"
    norm: Literal["none", "batch"] = "none"
    steps: int = 0
    teleport: float = 0.1

    def __post_init__(self) -> None:
        _require(self.width >= 1, "encoder.width", self.width, "at least 1")
        _require(self.steps >= 0, "encoder.steps", self.steps, "at least 0")
        rule = "at least 1 where encoder.kind = 'appnp', whose layers see no edge"
        _require(self.kind == "gcn" or self.steps >= 1, "encoder.steps", self.steps, rule)
        _require(0 < self.teleport < 1, "encoder.teleport", self.teleport, "above 0 and below 1")
        _require(self.hidden >= 0, "encoder.hidden", self.hidden, "at least 1, or 0 for the same as encoder.width")
        _require(self.layers >= 1, "encoder.layers", self.layers, "at least 1")

    @property
    def widths(self) -> tuple[int, ...]:
        """Of each layer.

        >>> Encoder(width=64, hidden=128, layers=3).widths
        (128, 128, 64)
        """
        return (*[self.hidden or self.width] * (self.layers - 1), self.width)


@dataclass(frozen=True)
class StepsAlone:
    """No layers, and the published K and α (Gasteiger et al., 2019)."""

    steps: int = 10
    teleport: float = 0.1

    def __post_init__(self) -> None:
        Encoder(steps=self.steps, teleport=self.teleport)  # which knows their ranges


@dataclass(frozen=True)
class OneLayer:
    """A GCN of one layer."""

    width: int = 512
    activation: Literal["relu", "elu", "prelu", "rrelu"] = "prelu"
    norm: Literal["none", "batch"] = "none"

    def __post_init__(self) -> None:
        Encoder(width=self.width)  # which knows the range of a width


@dataclass(frozen=True)
class EqualLayers(OneLayer):
    """A GCN of so many ``layers``, all of one width."""

    layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.layers >= 1, "encoder.layers", self.layers, "at least 1")


@dataclass(frozen=True)
class Head:
    """The projection head θ, one hidden layer. ``width`` 0 means no head: Z = H̃."""

    width: int = 256
    activation: Literal["relu", "elu", "prelu"] = "elu"

    def __post_init__(self) -> None:
        _require(self.width >= 0, "head.width", self.width, "at least 1, or 0 for no head")


@dataclass(frozen=True)
class Sketch:
    """H̃ = PH + E. ``k`` is a number of rows, or 0 for ``ratio`` · n; ``density`` serves ``sparse`` alone.

    ``kind = "none"`` takes the sketch away: every node is its own row (an ablation of the paper).
    """

    kind: Literal["gaussian", "rademacher", "sparse", "countsketch", "selection", "svd", "noise", "none"] = "gaussian"
    ratio: float = 0.5
    k: int = 0
    density: float = 0.01
    noise_std: float = 0.0
    fixed: bool = False
    center: bool = True
    scaling: Literal["unbiased", "printed"] = "unbiased"

    def __post_init__(self) -> None:
        _require(0 < self.ratio <= 100, "sketch.ratio", self.ratio, "above 0 (above 1 samples up), at most 100")
        _require(self.k >= 0, "sketch.k", self.k, "at least 1 row, or 0 to go by sketch.ratio")
        _require(0 < self.density <= 1, "sketch.density", self.density, "above 0 and at most 1")
        _require(self.noise_std >= 0, "sketch.noise_std", self.noise_std, "0 or more")


@dataclass(frozen=True)
class Augment:
    """Graph augmentation; one rate for all views, or one for each (``0.2,0.4``).

    By a centrality, what is central is dropped less often, and the rates are the mean probabilities.
    """

    edges: Literal["drop", "permute"] = "drop"
    edge_rate: tuple[float, ...] = (0.0,)
    mask_rate: tuple[float, ...] = (0.0,)
    centrality: Literal["none", "degree", "pagerank", "eigenvector"] = "none"

    def __post_init__(self) -> None:
        for name in ("edge_rate", "mask_rate"):
            rates = getattr(self, name)
            _require(len(rates) in (1, 2), f"augment.{name}", rates, "one rate, or one for each of two views")
            for rate in rates:
                _require(0 <= rate < 1, f"augment.{name}", rate, "at least 0 and below 1")
        if self.centrality != "none" and self.edges == "permute":
            raise InputError(
                "augment.centrality says which edges are dropped; with augment.edges = permute leave it out."
            )

    @property
    def rewires(self) -> bool:
        """Whether edges are replaced, so that Â has another layout in every epoch."""
        return self.edges == "permute" and any(self.edge_rate)


@dataclass(frozen=True)
class AdaptiveAugment(Augment):
    """Edges dropped and attributes masked by a centrality, whichever."""

    edges: Literal["drop"] = "drop"
    centrality: Literal["degree", "pagerank", "eigenvector"] = "degree"


@dataclass(frozen=True)
class Loss:
    """The contrast of the sketched rows, at temperature τ."""

    kind: Literal["cross", "both", "self"] = "cross"
    tau: float = 0.5
    include_self: bool = False

    def __post_init__(self) -> None:
        _require(self.tau >= 0.01, "loss.tau", self.tau, "at least 0.01")
        if self.include_self and self.kind != "both":
            raise InputError("loss.include_self belongs to loss.kind = both; leave it out or choose that loss.")


@dataclass(frozen=True)
class Contrast:
    """The temperature τ of a contrast whose form the method fixes."""

    tau: float = 0.5

    def __post_init__(self) -> None:
        Loss(tau=self.tau)  # which knows the range of τ


@dataclass(frozen=True)
class Decorrelation:
    """``weight`` is λ, what correlated columns cost beside views that differ."""

    weight: float = 1e-3

    def __post_init__(self) -> None:
        _require(self.weight >= 0, "loss.weight", self.weight, "0 or more")


@dataclass(frozen=True)
class Information:
    """α, β and γ weigh what vectors tell of features, of the neighbours' and of edges; ``negatives`` is k."""

    alpha: float = 0.8
    beta: float = 1.0
    gamma: float = 1.0
    negatives: int = 5

    def __post_init__(self) -> None:
        weights = {name: getattr(self, name) for name in ("alpha", "beta", "gamma")}
        for name, weight in weights.items():
            _require(weight >= 0, f"loss.{name}", weight, "0 or more")
        _require(any(weights.values()), "loss.alpha", self.alpha, "one of alpha, beta and gamma must be above 0")
        _require(self.negatives >= 1, "loss.negatives", self.negatives, "at least 1")


@dataclass(frozen=True)
class Predictor:
    """The predictor of a bootstrapped method, one hidden layer of ``width``; without one, equal vectors would do."""

    width: int = 512
    activation: Literal["relu", "elu", "prelu"] = "prelu"

    def __post_init__(self) -> None:
        _require(self.width >= 1, "predictor.width", self.width, "at least 1")


@dataclass(frozen=True)
class Target:
    """The target network, a moving average of the encoder: ``decay`` is how much of it stays in the first epoch."""

    decay: float = 0.99

    def __post_init__(self) -> None:
        _require(0 <= self.decay <= 1, "target.decay", self.decay, "from 0 to 1")


@dataclass(frozen=True)
class Diffusion:
    """Personalised PageRank: ``alpha`` is how likely a walk restarts, ``k`` how many entries each row keeps."""

    alpha: float = 0.2
    k: int = 32

    def __post_init__(self) -> None:
        _require(0 < self.alpha < 1, "diffusion.alpha", self.alpha, "above 0 and below 1")
        _require(self.k >= 1, "diffusion.k", self.k, "at least 1")


@dataclass(frozen=True)
class Walks:
    """Random walks, and the skip-gram that reads them.

    ``number`` walks of ``length`` nodes start at every node; nodes at most ``window`` steps apart shall have vectors
    that know each other, of that ``dimension``; all walks are read ``epochs`` times.
    """

    number: int = 10
    length: int = 80
    window: int = 10
    dimension: int = 128
    epochs: int = 1

    def __post_init__(self) -> None:
        for name in ("number", "window", "dimension", "epochs"):
            _require(getattr(self, name) >= 1, f"walks.{name}", getattr(self, name), "at least 1")
        _require(2 <= self.length <= 10_000, "walks.length", self.length, "from 2 to 10000")


@dataclass(frozen=True)
class BiasedWalks(Walks):
    """Walks by the return parameter p and the in-out parameter q; both 1 would be uniform ones."""

    p: float = 1.0
    q: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        # a step is tried max(1, 1/p, 1/q) / min(1, 1/p, 1/q) times at the worst
        for name in ("p", "q"):
            _require(0.01 <= getattr(self, name) <= 100, f"walks.{name}", getattr(self, name), "from 0.01 to 100")


@dataclass(frozen=True)
class Train:
    """Adam, full batch.

    ``kernels = "plain"`` writes P and all similarities out and captures nothing: the same draws, losses and gradients
    up to rounding, more slowly and in more memory. Adam makes steps of rounding where a gradient vanishes, so trainings
    drift apart; their scores do not.
    """

    epochs: int = 200
    lr: float = 1e-3
    weight_decay: float = 0.0
    kernels: Literal["fast", "plain"] = "fast"

    def __post_init__(self) -> None:
        _require(self.epochs >= 1, "train.epochs", self.epochs, "at least 1")
        _require(0 < self.lr <= 100, "train.lr", self.lr, "above 0, at most 100")
        _require(self.weight_decay >= 0, "train.weight_decay", self.weight_decay, "0 or more")


def flatten(settings: Any) -> dict[str, Any]:
    """The values by dotted key.

    >>> from costa.methods.floors import RawSettings
    >>> flatten(RawSettings())
    {'features.scaling': 'auto'}
    """
    return {
        f"{group.name}.{item.name}": getattr(getattr(settings, group.name), item.name)
        for group in dataclasses.fields(settings)
        for item in dataclasses.fields(getattr(settings, group.name))
    }


def nested_to_flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables, as TOML has them, to dotted keys.

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
    """``["sketch.ratio=0.5"]`` to ``{"sketch.ratio": "0.5"}``; the values are read by :func:`merge`."""
    parsed = {}
    for text in assignments:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise InputError(f"--set {text!r} is not of the form KEY=VALUE, such as --set sketch.ratio=0.5.")
        parsed[key.strip()] = value.strip()
    return parsed


def merge(cls: type[S], layers: Iterable[Layer]) -> tuple[S, dict[str, str]]:
    """Merge layers over the defaults of ``cls``, the later winning.

    Args:
        cls: A frozen dataclass of groups.
        layers: (source, values) in rising precedence. Values may be strings, as ``--set`` gives them.

    Returns:
        The settings, and for each dotted key the source that decided it (``default`` where none did).

    >>> from costa.methods.floors import RawSettings
    >>> merge(RawSettings, [("--set", {"features.scaling": "rows"})])
    (RawSettings(features=Features(scaling='rows')), {'features.scaling': '--set'})
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
                close = difflib.get_close_matches(key, kinds, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(kinds)}."
                raise InputError(f"unknown setting {key!r} ({source}); {hint}")
            name, _, item = key.partition(".")
            chosen[name][item] = _read(value, kinds[key], key)
            origins[key] = source
    return cls(**{name: dataclasses.replace(group, **chosen[name]) for name, group in groups.items()}), origins


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
        items = value.split(",") if isinstance(value, str) else value
        return tuple(_convert(item, float) for item in (items if isinstance(items, list | tuple) else [items]))
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
        return "a number, or two separated by a comma"
    return {bool: "true or false", int: "a whole number", float: "a number"}[kind]
