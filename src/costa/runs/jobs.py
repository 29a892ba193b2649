"""What is trained, on what, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from costa import settings
from costa.graphs.held_edges import HeldOut
from costa.nn.ranks import ALONE, Ranks
from costa.settings.presets import Resolved

DEFAULT_PROTOCOLS = ("random-10-10-80", "random-2-2-96")
"""The protocols that evaluate a run by default; the baselines are evaluated by the first."""


@dataclass(frozen=True)
class Job:
    """What is trained, on what, and how; the same for all seeds.

    Attributes:
        graph: The graph, loaded and checked, without the edges that are held out.
        spec: The graph as the user named it, so that ``costa probe`` finds it again.
        method: One of :data:`costa.methods.METHODS`.
        resolved: From :func:`costa.settings.presets.resolve`.
        device: Device to train on.
        probe: Whether to evaluate the vectors, if the graph has labels.
        resume: Continue from the folder's checkpoint; a run that has ended is only evaluated, if it was not.
        protocols: The protocols that evaluate the vectors; the first must be that of the baselines.
        paired: Whether the run of seed s is evaluated on split s only, and only by the linear probe. That is all a
            table needs, and a twentieth of the work.
        chosen: How the method was chosen, written to ``config.json``; None if the user named it.
        held_out: How edges were held out of the graph; None if none were.
        memory: The user's --memory, which commands on the run keep to as well; None if there was none.
        ranks: The processes that train it together.
        announce: Called with a line about work that takes a while or is skipped.
    """

    graph: Data
    spec: str
    method: str
    resolved: Resolved
    device: torch.device
    probe: bool = True
    resume: bool = False
    protocols: Sequence[str] = DEFAULT_PROTOCOLS
    paired: bool = False
    chosen: Mapping[str, Any] | None = None
    held_out: HeldOut | None = None
    memory: str | None = None
    ranks: Ranks = ALONE
    announce: Callable[[str], None] = lambda text: None

    @property
    def train(self) -> settings.Train | None:
        """The settings of the training loop; None for a method without one."""
        train: settings.Train | None = getattr(self.resolved.values, "train", None)
        return train


def cores() -> int:
    """Number of cores that this process may use, within a container's quota."""
    import joblib

    return int(joblib.cpu_count())
