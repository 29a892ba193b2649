"""The contestants: plain twins and the package's methods, under one interface and with the same settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import training
from costa.methods import get_method
from costa.methods.base import GradientMethod
from costa.settings.presets import resolve
from reproduction.bench import twins


class Trainee(Protocol):
    """A model on its device, ready to train."""

    def run(self, epochs: int) -> None:
        """Train for this many more epochs; the device may still be busy when it returns."""

    def embed(self) -> Tensor:
        """The nodes' vectors, n × d."""


@dataclass(frozen=True)
class Contestant:
    """A name for tables and files, and a function from a graph on the CPU to a model on the device."""

    name: str
    build: Callable[[Data, torch.device], Trainee]


class MethodTrainee:
    """A method of the package, trained as ``costa train`` trains it, with the twins' sizes, rates and temperature.

    It centres H before the sketch, as it does by default; the twins, like the paper, do not.
    """

    def __init__(self, name: str, given: dict[str, Any], graph: Data, device: torch.device) -> None:
        chosen = get_method(name)
        shared = {key: value for key, value in SHARED.items() if not ("sketch.k" in given and key == "sketch.ratio")}
        settings = resolve(chosen, graph, preset="none", given=shared | given).values
        method = training.build(chosen, settings, graph, 0, device)
        assert isinstance(method, GradientMethod)
        method.prepare(graph)
        self.graph, self.method = graph, method
        self.steps = training.make_steps([method], graph, settings.train)

    def run(self, epochs: int) -> None:
        """Train as the training loop does."""
        self.steps.run(epochs)

    def embed(self) -> Tensor:
        """H."""
        return self.method.embed(self.graph)


SHARED: dict[str, Any] = {
    "features.scaling": "none",
    "encoder.kind": "gcn",
    "encoder.width": twins.WIDTH,
    "encoder.activation": "relu",
    "encoder.norm": "none",
    "head.width": twins.WIDTH,
    "head.activation": "elu",
    "sketch.kind": "gaussian",
    "sketch.ratio": twins.RATIO,
    "loss.tau": twins.TAU,
    "train.lr": twins.LEARNING_RATE,
    "train.weight_decay": 0.0,
}
TWO_VIEWS: dict[str, Any] = {"augment.edge_rate": twins.EDGE_RATE, "augment.mask_rate": twins.MASK_RATE}


def _method(name: str, method: str, **given: Any) -> Contestant:
    return Contestant(name, partial(MethodTrainee, method, given))


GRACE = Contestant("plain GRACE", twins.PlainGRACE)
GCA = Contestant("plain GCA", twins.PlainGCA)
PLAIN_SV = Contestant("plain COSTA one view", partial(twins.PlainCOSTA, views=1))
PLAIN_MV = Contestant("plain COSTA two views", partial(twins.PlainCOSTA, views=2))
RELEASED_MV = Contestant("plain COSTA two views (P from the CPU)", partial(twins.PlainCOSTA, views=2, draw_on="cpu"))
SV = _method("costa-sv", "costa-sv")
SV_PLAIN_PATH = _method("costa-sv (plain path)", "costa-sv", **{"train.kernels": "plain"})
FRUGAL: dict[str, Any] = {
    "sketch.kind": "countsketch",
    "sketch.ratio": 0.25,
    "encoder.activation": "elu",
    "loss.tau": 3.0,
    "train.weight_decay": 4e-3,
}
"""For a CPU: half the rows, and other settings that keep Cora's accuracy with them (docs/performance.md)."""
SV_COUNTSKETCH = _method("costa-sv (countsketch 0.25)", "costa-sv", **FRUGAL)
MV = _method("costa-mv", "costa-mv", **TWO_VIEWS)
ROWS = 4096
SV_FIXED = _method(f"costa-sv (k = {ROWS})", "costa-sv", **{"sketch.k": ROWS})
SV_FIXED_PLAIN_PATH = _method(
    f"costa-sv (k = {ROWS}, plain path)", "costa-sv", **{"sketch.k": ROWS} | {"train.kernels": "plain"}
)
TWINS = (GRACE, GCA, PLAIN_SV, PLAIN_MV, RELEASED_MV)


def standard(device: torch.device) -> list[Contestant]:
    """The contestants of every suite; on a CPU, P comes from the CPU anyway, and one twin of two views is enough.

    >>> len(standard(torch.device("cpu")))
    7
    """
    twins = TWINS if device.type == "cuda" else TWINS[:-1]
    return [*twins, SV, SV_PLAIN_PATH, MV]
