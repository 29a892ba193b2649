"""Choose with labels: a small portfolio of methods is trained without labels, and validation on the labels picks one.

The candidates are the baselines, hops in one view and in two, and GCN and APPNP in two views, each with its default
settings and one random seed. Each candidate's vectors are scored by the linear probe's validation accuracy. The default
is kept unless the best mean is above it by more than a standard error: among so many candidates luck alone puts some
above it. Of the others the earlier candidate, which is simpler, wins a tie. A candidate that diverges, collapses or
does not fit into memory is listed and never chosen.

The J splits share their nodes, so the mean of the differences d varies more than they do (Nadeau and Bengio, 2003):

    standard error² = (1/J + n_validation/n_train) · Var(d)

Which labels choose depends on how many there are:

- At least :data:`ENOUGH` labelled nodes, and :data:`PER_CLASS` per class: those of the fixed fifth of
  ``strict-10-10-80``, over 20 splits of it into halves. The labels of the other four fifths are never looked at, so
  testing on them with the same protocol gives an honest score of the chosen vectors.
- Fewer: all of them, by repeated cross-validation (:func:`costa.evaluate.probe.cross_validation_accuracies`). A fifth
  would be a few dozen nodes, on which luck chooses. No labels are left for a test.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import training
from costa.errors import InputError, is_out_of_memory
from costa.evaluate import health
from costa.evaluate.baselines import BASELINES
from costa.evaluate.inputs import checked_labels
from costa.evaluate.probe import CROSS_VALIDATION, cross_validation_accuracies, validation_accuracies
from costa.evaluate.protocols import FOLDS, splits
from costa.evaluate.scores import Score
from costa.graphs.describe import is_labelled
from costa.graphs.labels import classes_of
from costa.methods import get_method
from costa.methods.base import Method
from costa.settings.presets import Resolved, resolve

DEFAULT = "costa-mv-hops"
"""The candidate that is kept unless another is clearly better: what ``costa train`` does without a choice."""
STRICT = "strict-10-10-80"
"""The protocol whose fifth chooses, and whose other four fifths test."""

ENOUGH, PER_CLASS = 1000, 50
"""Labelled nodes, in all and on average per class of the fifth, from which a fifth of them is enough to choose."""


@dataclass(frozen=True)
class Candidate:
    """A method with settings; ``given`` is what it needs beyond its defaults."""

    name: str
    title: str
    method: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def resolve(self, graph: Data, epochs: int | None = None, epochs_by: str = "epochs") -> Resolved:
        """Its settings on a graph; ``epochs`` counts only if it is trained."""
        method = get_method(self.method)
        trained = hasattr(method.Settings(), "train")
        return resolve(
            method,
            graph,
            given=self.given,
            given_by="choice",
            epochs=epochs if trained else None,
            epochs_by=epochs_by,
        )


PORTFOLIO: tuple[Candidate, ...] = (
    *(Candidate(name, title, name) for name, title in BASELINES.items()),
    Candidate("costa-sv-hops", "COSTA, one view, hops", "costa-sv", {"encoder.kind": "hops"}),
    Candidate("costa-mv-hops", "COSTA, two views, hops", "costa-mv", {"encoder.kind": "hops"}),
    Candidate("costa-mv-gcn", "COSTA, two views, GCN", "costa-mv", {"encoder.kind": "gcn"}),
    Candidate("costa-mv-appnp", "COSTA, two views, APPNP", "costa-mv", {"encoder.kind": "appnp", "encoder.steps": 10}),
)
"""The candidates, the simpler ones first."""


@dataclass(frozen=True)
class Compared:
    """How a candidate did: ``validation`` is None unless its status is ``ok``; seconds are of training and scoring."""

    candidate: Candidate
    status: str
    validation: Score | None
    seconds: float

    def __str__(self) -> str:
        return f"{self.candidate.title}: {self.status if self.validation is None else self.validation}"

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``candidates`` in ``config.json``."""
        return {
            **{each.name: getattr(self.candidate, each.name) for each in fields(self.candidate)},
            "status": self.status,
            "validation": None if self.validation is None else self.validation.to_dict(),
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any], by: str) -> Compared:
        """The inverse of :meth:`to_dict`."""
        score = entry["validation"]
        validation = None if score is None else Score.from_dict(score, by)
        candidate = Candidate(**{each.name: entry[each.name] for each in fields(Candidate)})
        return cls(candidate, entry["status"], validation, entry["seconds"])


Trained = tuple[Method, training.Outcome, Tensor]
"""What :func:`costa.training.train_and_embed` returns."""
Scored = tuple[Score, Candidate, Trained]


@dataclass(frozen=True)
class Choice:
    """What was chosen, from which table, by which labels (:data:`STRICT` or cross-validation).

    ``trained`` is the chosen candidate's model, how its training ended, and its vectors; None if read from a file.
    """

    chosen: Candidate
    by: str
    table: Sequence[Compared]
    trained: Trained | None = None

    def to_dict(self) -> dict[str, Any]:
        """The field ``chosen`` of ``config.json``."""
        return {"name": self.chosen.name, "by": self.by, "candidates": [row.to_dict() for row in self.table]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Choice:
        """The inverse of :meth:`to_dict`."""
        table = [Compared.from_dict(row, entry["by"]) for row in entry["candidates"]]
        (chosen,) = [row.candidate for row in table if row.candidate.name == entry["name"]]
        return cls(chosen, entry["by"], table)


def choose(
    graph: Data,
    y: Tensor | None = None,
    *,
    seed: int = 0,
    device: torch.device,
    epochs: int | None = None,
    report: Callable[[Compared], None] = lambda row: None,
) -> Choice:
    """Train every candidate, validate its vectors and choose the best.

    Args:
        graph: A checked graph.
        y: The labels, −1 if unlabelled; by default the graph's.
        seed: Random seed of every candidate.
        device: Device of training and validation.
        epochs: Number of epochs of the trained candidates; None for their defaults.
        report: Called with each candidate as it ends.
    """
    label = checked(graph, y)
    by = chosen_by(label)
    table: list[Compared] = []
    best: Scored | None = None
    default: Scored | None = None
    for candidate in PORTFOLIO:
        began = time.perf_counter()
        status, score, trained = _attempt(candidate, graph, label, by, seed, device, epochs)
        table.append(Compared(candidate, status, score, time.perf_counter() - began))
        report(table[-1])
        if score is None or trained is None:
            continue
        if candidate.name == DEFAULT:
            default = score, candidate, trained
        # equal means may differ in the last bit
        if best is None or score.mean > best[0].mean + 1e-12:
            best = score, candidate, trained
    if best is None:
        raise InputError(
            "no candidate gave vectors that can be used"
            f" ({', '.join(sorted({row.status for row in table}))}); look at the features."
        )
    _, chosen, kept = best if default is None or is_clearly_above(best[0], default[0], by) else default
    return Choice(chosen, by, table, kept)


def is_clearly_above(ours: Score, theirs: Score, by: str) -> bool:
    """Whether the mean difference on the same splits is above its standard error.

    >>> low, high = Score.of([0.6, 0.7, 0.6], STRICT), Score.of([0.7, 0.8, 0.69], STRICT)
    >>> is_clearly_above(high, low, STRICT), is_clearly_above(high, high, STRICT), is_clearly_above(low, high, STRICT)
    (True, False, False)
    """
    mean, error = difference(ours, theirs, by)
    return mean > error


def difference(ours: Score, theirs: Score, by: str) -> tuple[float, float]:
    """The mean difference on the same splits, and its standard error.

    >>> mean, error = difference(Score.of([0.7, 0.8, 0.69], STRICT), Score.of([0.6, 0.7, 0.6], STRICT), STRICT)
    >>> round(mean, 4), round(error, 4)
    (0.0967, 0.0067)
    """
    apart = np.subtract(ours.per_split, theirs.per_split)
    # the fifth is halved; a fold is validated by what the others have trained
    validated = 1.0 if by == STRICT else 1 / (FOLDS - 1)
    return float(apart.mean()), math.sqrt((1 / len(apart) + validated) * float(apart.var(ddof=1)))


def checked(graph: Data, y: Tensor | None = None) -> Tensor:
    """The labels that choose; refuse a graph that has none, before anything is trained."""
    y = graph.get("y") if y is None else y
    if y is None or not is_labelled(Data(y=y)):
        raise InputError("choosing needs labels of two classes, which this graph does not have; label some nodes.")
    return checked_labels(y)


def chosen_by(y: Tensor) -> str:
    """Which labels choose: :data:`STRICT`, or cross-validation if there are few."""
    labelled = int((y >= 0).sum())
    if labelled < ENOUGH:
        return CROSS_VALIDATION
    (split,) = splits(STRICT, y, repeats=1)
    # only the fifth is counted: how many classes the other nodes have must not matter either
    classes = len(classes_of(y[torch.cat([split.train, split.validation])]))
    return STRICT if 1 < classes <= labelled / PER_CLASS else CROSS_VALIDATION


def validate(z: Tensor, y: Tensor, by: str, device: torch.device | None = None) -> Score:
    """The validation accuracy of a candidate's vectors, over the splits of the fifth or the folds of all labels."""
    if by == CROSS_VALIDATION:
        return cross_validation_accuracies(z, y, device=device)
    return validation_accuracies([z], y, [by], device=device)[by][0]


def not_held_out(chosen: Mapping[str, Any] | None, protocol: str) -> str | None:
    """A warning if labels that a protocol tests on took part in choosing a run; else None.

    >>> not_held_out({"by": STRICT}, "random-20-80")
    'labels of nodes that random-20-80 tests on took part in choosing this run; strict-10-10-80 tests on the others'
    """
    if chosen is None or chosen["by"] == protocol == STRICT:
        return None
    instead = f"; {STRICT} tests on the others" if chosen["by"] == STRICT else ""
    return f"labels of nodes that {protocol} tests on took part in choosing this run{instead}"


def _attempt(
    candidate: Candidate, graph: Data, y: Tensor, by: str, seed: int, device: torch.device, epochs: int | None
) -> tuple[str, Score | None, Trained | None]:
    """The candidate's status and, if that is ``ok``, its score and what was trained."""
    values = candidate.resolve(graph, epochs).values
    try:
        method, outcome, z = training.train_and_embed(
            get_method(candidate.method), values, graph, seed=seed, device=device
        )
        status = health.ending(method, outcome, z, graph.x)
        if status != "ok":
            return status, None, None
        method.forget()
        return status, validate(z, y, by, device), (method, outcome, z)
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
    # here, because inside `except` the traceback still holds the memory
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return "out of memory", None, None
