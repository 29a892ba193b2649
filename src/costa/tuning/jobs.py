"""What is tuned, and with how much effort."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data

from costa.errors import InputError, is_out_of_memory
from costa.evaluate.protocols import splits
from costa.evaluate.scores import too_few
from costa.graphs.describe import is_labelled
from costa.graphs.labels import classes_of
from costa.methods.base import GradientMethod, Method
from costa.settings.layers import flatten, merge

FIRST_SEED = 1000
"""The first random seed of weights and splits; reported numbers use seeds 0 to 19."""

FINAL_SEED = FIRST_SEED + 100
"""The same for finalists: other seeds evaluate them than those that selected them."""

GUIDES = {"strict": "strict-10-10-80", "tuned": "random-10-10-80"}
"""The presets that a search can be guided by, and the protocol that validates each."""

OUT_OF_MEMORY = "out of memory"

T = TypeVar("T")


class OutOfTime(Exception):
    """The job's time is up; the trials that ended before are in the study."""


class TrainingFailed(Exception):
    """Training gave vectors that cannot be evaluated; the message says why."""


@dataclass(frozen=True)
class TuningJob:
    """What is tuned, and with how much effort.

    Attributes:
        graph: A graph with labels, loaded and checked.
        method: A method that is trained by a loss.
        device: Device of training and evaluation; on CUDA the seeds of a trial run in parallel.
        epochs: The most epochs of a trial.
        seeds: Number of seeds per trial.
        splits: Number of splits per protocol that evaluate each seed.
        final_splits: The same for a finalist. On a small graph, few splits rank by luck: with 271 validation nodes, a
            single split has a standard error of two points.
        until: When to stop, on the clock of ``time.monotonic``.
        guide: The preset whose validation accuracy the sampler and the pruner see.
        given: Settings that are fixed, not searched; values may be text, as from ``--set``.
    """

    graph: Data
    method: type[Method]
    device: torch.device
    epochs: int = 1000
    seeds: int = 2
    splits: int = 10
    final_splits: int = 20
    until: float = math.inf
    guide: str = "strict"
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def presets(self) -> tuple[str, ...]:
        """The presets that the search may choose; settings that all labels have guided are not strict."""
        return tuple(GUIDES) if self.guide == "strict" else (self.guide,)

    @property
    def kept(self) -> dict[str, Any]:
        """The fixed settings, with values of their proper types."""
        merged = flatten(merge(self.method.Settings, [("--set", self.given)])[0])
        # one rate per view is a list, as the search draws it and the study stores it
        return {key: list(value) if isinstance(value := merged[key], tuple) else value for key in self.given}

    @property
    def encoder(self) -> dict[str, str]:
        """The kind of encoder that is searched, by its key; empty if the method has no kinds."""
        key = "encoder.kind"
        return {key: self.kept.get(key, "gcn")} if key in flatten(self.method.Settings()) else {}

    def check(self) -> None:
        """Refuse a job whose trials could not be evaluated, before anything is trained."""
        if self.guide not in GUIDES:
            raise InputError(f"--guide must be {' or '.join(GUIDES)}, not {self.guide!r}.")
        if not issubclass(self.method, GradientMethod):
            raise InputError(f"{self.method.name} has no loss, so there is nothing to tune; choose another --method.")
        if not is_labelled(self.graph):
            raise InputError(
                f"{self.graph.name} has no labels of two classes, so settings cannot be validated; label some nodes."
            )
        for protocol in GUIDES.values():
            splits(protocol, self.graph.y, repeats=1)
        # reading `kept` refuses settings that the method does not have
        if "train.epochs" in self.kept:
            raise InputError("train.epochs cannot be fixed, because the search chooses it; limit it with --epochs.")

    def too_few(self) -> str | None:
        """A warning if a trial's classifiers learn from too few nodes; else None."""
        protocol = GUIDES["strict"]
        (split,) = splits(protocol, self.graph.y, repeats=1)
        return too_few(protocol, len(split.train), len(classes_of(self.graph.y)))


def attempt(job: TuningJob, work: Callable[[], T]) -> T | str:
    """The result of ``work``, or the reason why these settings have none."""
    try:
        return work()
    except import_optuna().TrialPruned:
        return "below the median"
    except (TrainingFailed, InputError) as problem:
        return str(problem)
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
    # here, because inside `except` the traceback still holds the memory
    if job.device.type == "cuda":
        torch.cuda.empty_cache()
    return OUT_OF_MEMORY


def import_optuna() -> Any:
    """The optional package optuna, with its log messages silenced."""
    try:
        import optuna
    except ImportError:
        raise InputError("a search needs optuna; pip install 'costa-gcl[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
