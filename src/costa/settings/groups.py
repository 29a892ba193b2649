"""Groups of settings: frozen dataclasses that check the ranges of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from costa.errors import InputError

MOST_RATIO = 100
"""The largest k/n, whether ``sketch.ratio`` or ``sketch.k`` says it."""


def _require(ok: bool, key: str, value: object, rule: str) -> None:
    if not ok:
        raise InputError(f"{key} = {value!r} is out of range: {rule}.")


@dataclass(frozen=True)
class Features:
    """What is done to the node features before the encoder sees them.

    After scaling, X is reduced to ``rank`` columns by a randomised SVD if it has more; 0 never reduces.
    """

    scaling: Literal["auto", "none", "rows", "standard"] = "auto"
    rank: int = 0

    def __post_init__(self) -> None:
        _require(self.rank >= 0, "features.rank", self.rank, "at least 1, or 0 to keep every column")


@dataclass(frozen=True)
class Encoder:
    """The GCN, with two layers in the paper. ``hidden`` is the width of all layers but the last; 0 means ``width``.

    ``steps`` of personalised PageRank with restart probability ``teleport`` follow; the paper has none. With
    ``kind = "appnp"`` only these steps use the edges: the layers see each node alone.

    With ``kind = "hops"`` the features are propagated once, before training: the hops are Âᵖ X for each of the
    ``powers`` and, if there are ``steps``, PageRank's. Each has one layer, whose ``width`` is that of one hop's code;
    ``columns`` of the features and the hops themselves join the vector, with ``weight`` relative to all codes. The hops
    of a graph on disk are ``stored`` there as float32, or as float16 in half the space.
    """

    kind: Literal["gcn", "appnp", "hops"] = "gcn"
    width: int = 256
    hidden: int = 0
    layers: int = 2
    activation: Literal["relu", "elu", "prelu", "rrelu"] = "relu"
    norm: Literal["none", "batch"] = "none"
    steps: int = 0
    teleport: float = 0.1
    powers: tuple[int, ...] = (1, 4)
    columns: int = 256
    weight: float = 1.0
    stored: Literal["float32", "float16"] = "float32"

    def __post_init__(self) -> None:
        _require(self.width >= 1, "encoder.width", self.width, "at least 1")
        _require(self.steps >= 0, "encoder.steps", self.steps, "at least 0")
        rule = "at least 1 if encoder.kind = 'appnp', whose layers see no edges"
        _require(self.kind != "appnp" or self.steps >= 1, "encoder.steps", self.steps, rule)
        rule = "different powers of the adjacency from 0 to 64, such as 1,4; none (encoder.powers=) only with steps"
        distinct = len(set(self.powers)) == len(self.powers) >= (self.steps == 0)
        _require(distinct and all(0 <= power <= 64 for power in self.powers), "encoder.powers", self.powers, rule)
        _require(self.columns >= 0, "encoder.columns", self.columns, "at least 1, or 0 for the codes alone")
        _require(self.weight > 0, "encoder.weight", self.weight, "above 0")
        _require(0 < self.teleport < 1, "encoder.teleport", self.teleport, "above 0 and below 1")
        _require(self.hidden >= 0, "encoder.hidden", self.hidden, "at least 1, or 0 for the same as encoder.width")
        _require(self.layers >= 1, "encoder.layers", self.layers, "at least 1")

    @property
    def widths(self) -> tuple[int, ...]:
        """Output width of each layer.

        >>> Encoder(width=64, hidden=128, layers=3).widths
        (128, 128, 64)
        """
        return (*[self.hidden or self.width] * (self.layers - 1), self.width)


@dataclass(frozen=True)
class StepsAlone:
    """Personalised PageRank without layers, with the published K and α (Gasteiger et al., 2019)."""

    steps: int = 10
    teleport: float = 0.1

    def __post_init__(self) -> None:
        Encoder(steps=self.steps, teleport=self.teleport)  # checks their ranges


@dataclass(frozen=True)
class HopsAlone(StepsAlone):
    """The features after so many steps along the edges (Âᵖ X for each of the powers), and PageRank's."""

    powers: tuple[int, ...] = (0, 1, 2, 4)

    def __post_init__(self) -> None:
        Encoder(kind="hops", steps=self.steps, teleport=self.teleport, powers=self.powers)  # checks their ranges


@dataclass(frozen=True)
class OneLayer:
    """A GCN of one layer."""

    width: int = 512
    activation: Literal["relu", "elu", "prelu", "rrelu"] = "prelu"
    norm: Literal["none", "batch"] = "none"

    def __post_init__(self) -> None:
        Encoder(width=self.width)  # checks the width's range


@dataclass(frozen=True)
class EqualLayers(OneLayer):
    """A GCN whose ``layers`` all have the same width."""

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
    """H̃ = PH + E. ``k`` is the number of rows, or 0 for ``ratio`` · n; only ``sparse`` uses ``density``.

    ``kind = "none"`` removes the sketch: every node is its own row (an ablation of the paper).
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
        rule = f"above 0 and at most {MOST_RATIO} (above 1 upsamples)"
        _require(0 < self.ratio <= MOST_RATIO, "sketch.ratio", self.ratio, rule)
        _require(self.k >= 0, "sketch.k", self.k, "at least 1 row, or 0 to use sketch.ratio")
        _require(0 < self.density <= 1, "sketch.density", self.density, "above 0 and at most 1")
        _require(self.noise_std >= 0, "sketch.noise_std", self.noise_std, "0 or more")


@dataclass(frozen=True)
class Augment:
    """Graph augmentation; one rate for all views, or one for each (``0.2,0.4``).

    ``edge_rate`` drops edges, ``mask_rate`` masks attributes, and ``hop_rate`` leaves out whole hops of
    ``encoder.kind = "hops"``, never all of them.
    With a centrality, central edges and features are dropped less often, and the rates are mean probabilities.
    """

    edges: Literal["drop", "permute"] = "drop"
    edge_rate: tuple[float, ...] = (0.0,)
    mask_rate: tuple[float, ...] = (0.0,)
    hop_rate: tuple[float, ...] = (0.0,)
    centrality: Literal["none", "degree", "pagerank", "eigenvector"] = "none"

    def __post_init__(self) -> None:
        for name in ("edge_rate", "mask_rate", "hop_rate"):
            rates = getattr(self, name)
            _require(len(rates) in (1, 2), f"augment.{name}", rates, "one rate, or one for each of two views")
            for rate in rates:
                _require(0 <= rate < 1, f"augment.{name}", rate, "at least 0 and below 1")
        if self.centrality != "none" and self.edges == "permute":
            raise InputError(
                "augment.centrality does not apply to augment.edges = permute; leave it out or set edges to drop."
            )

    @property
    def rewires(self) -> bool:
        """Whether edges are replaced, so that Â has a new sparsity pattern in every epoch."""
        return self.edges == "permute" and any(self.edge_rate)


@dataclass(frozen=True)
class AdaptiveAugment(Augment):
    """Augmentation that drops edges and masks features by a centrality."""

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
        Loss(tau=self.tau)  # checks the range of τ


@dataclass(frozen=True)
class Decorrelation:
    """``weight`` is λ, the weight of the decorrelation term relative to the agreement of the views."""

    weight: float = 1e-3

    def __post_init__(self) -> None:
        _require(self.weight >= 0, "loss.weight", self.weight, "0 or more")


@dataclass(frozen=True)
class Information:
    """α, β and γ weight the information on features, neighbours' features and edges; ``negatives`` is k."""

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
    """The predictor of a bootstrapped method, one hidden layer of ``width``; it prevents collapse."""

    width: int = 512
    activation: Literal["relu", "elu", "prelu"] = "prelu"

    def __post_init__(self) -> None:
        _require(self.width >= 1, "predictor.width", self.width, "at least 1")


@dataclass(frozen=True)
class Target:
    """The target network, a moving average of the encoder; ``decay`` is its decay rate in the first epoch."""

    decay: float = 0.99

    def __post_init__(self) -> None:
        _require(0 <= self.decay <= 1, "target.decay", self.decay, "from 0 to 1")


@dataclass(frozen=True)
class Diffusion:
    """Personalised PageRank: ``alpha`` is the restart probability, ``k`` the number of entries kept per row."""

    alpha: float = 0.2
    k: int = 32

    def __post_init__(self) -> None:
        _require(0 < self.alpha < 1, "diffusion.alpha", self.alpha, "above 0 and below 1")
        _require(self.k >= 1, "diffusion.k", self.k, "at least 1")


@dataclass(frozen=True)
class Walks:
    """Random walks and the skip-gram model trained on them.

    ``number`` walks of ``length`` nodes start at every node. Nodes at most ``window`` steps apart are positive pairs;
    the vectors have size ``dimension``, and training passes over all walks ``epochs`` times.
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
    """Walks with the return parameter p and the in-out parameter q; p = q = 1 makes them uniform."""

    p: float = 1.0
    q: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        # a step needs up to max(1, 1/p, 1/q) / min(1, 1/p, 1/q) tries on average
        for name in ("p", "q"):
            _require(0.01 <= getattr(self, name) <= 100, f"walks.{name}", getattr(self, name), "from 0.01 to 100")


@dataclass(frozen=True)
class Train:
    """Training with Adam, on the whole graph at once or, with ``encoder.kind = "hops"``, on ``batch`` rows at a time.

    Without hops, ``parts`` divides a graph that is too large for one step: the nodes are partitioned once, and a step
    reads the subgraph of a random ``group`` of parts, with all edges between its nodes (Chiang et al., Cluster-GCN,
    KDD 2019). An epoch visits each part once. The vectors of the trained encoder are those of the whole graph. Many
    small parts in a group are better than a few large ones, whose nodes are alike.

    ``kernels = "plain"`` stores P and all similarities and captures no CUDA graph: draws, losses and gradients are the
    same up to rounding, with more time and memory. Adam amplifies rounding errors where a gradient vanishes, so
    the trained weights drift apart; the scores do not.
    """

    epochs: int = 200
    lr: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 0
    parts: int = 0
    group: int = 16
    kernels: Literal["fast", "plain"] = "fast"

    def __post_init__(self) -> None:
        _require(self.epochs >= 1, "train.epochs", self.epochs, "at least 1")
        _require(self.batch == 0 or self.batch >= 2, "train.batch", self.batch, "at least 2 rows, or 0 for all")
        _require(self.parts >= 0, "train.parts", self.parts, "at least 1, or 0 for the whole graph")
        _require(self.group >= 1, "train.group", self.group, "at least 1 part a step")
        _require(0 < self.lr <= 100, "train.lr", self.lr, "above 0, at most 100")
        _require(self.weight_decay >= 0, "train.weight_decay", self.weight_decay, "0 or more")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Train:
        """What a step reads, from settings by dotted key; the rest, and what is missing, are the defaults.

        >>> Train.of({"train.parts": 64, "encoder.kind": "gcn"}).groups
        4
        """
        return cls(**{name: values[key] for name in ("batch", "parts", "group") if (key := f"train.{name}") in values})

    def batches(self, n: int) -> int:
        """Number of batches of n rows in an epoch: of at most ``batch`` rows each, all in one if ``batch`` is 0.

        A batch of one row has no moments to normalise by, so three rows are one batch even if ``batch`` is 2.

        >>> [Train(batch=batch).batches(10) for batch in (4, 16, 0)], Train(batch=2).batches(3)
        ([3, 1, 1], 1)
        """
        return min(-(-n // self.batch), max(1, n // 2)) if self.batch else 1

    @property
    def groups(self) -> int:
        """Number of groups of parts in an epoch: of at most ``group`` parts each; 1 if a step reads the whole graph.

        >>> [Train(parts=parts).groups for parts in (0, 3, 40)]
        [1, 1, 3]
        """
        return max(1, -(-self.parts // self.group))

    def rows(self, n: int, *, by_rows: bool) -> int:
        """About how many of n nodes a step reads: a batch if training goes ``by_rows``, or else a group of parts.

        >>> Train(batch=4).rows(10, by_rows=True), Train(parts=40).rows(600, by_rows=False)
        (4, 200)
        """
        return min(n, self.batch or n) if by_rows else n // self.groups
