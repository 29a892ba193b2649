"""Nested cross-validation: how a classifier does on nodes that had no part in it, the choice of C included.

The labelled nodes are dealt into five folds, stratified by class; more than once if they are few, to say how much the
accuracy varies. For each fold, C is chosen by five-fold cross-validation among the other four, and the classifier that
they train with it predicts the fold. The classifier is that of :mod:`costa.evaluate.probe`, with every second of its C.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from costa.errors import InputError
from costa.evaluate.logistic import Embeddings, fit, fit_predict
from costa.evaluate.probe import CROSS_VALIDATION, STRENGTHS, choose_strengths
from costa.evaluate.protocols import FOLDS, cross_validation_folds, shuffled
from costa.evaluate.scores import Score

CHOICES, TOLERANCE = STRENGTHS[::2], 1e-6
"""The C to choose from, and how precisely each is fitted for the choice: two thirds of the time of 1e-8."""
LEAST = 2 * FOLDS
"""The fewest labelled nodes that are cross-validated."""
REPEATS, DEALT = 4, 1000
"""Folds are dealt four times, but no more often than makes so many nodes in all."""

Fold = tuple[Tensor, Tensor]
"""The nodes that train, and those that are predicted."""


def deal(classes: Tensor) -> list[Fold]:
    """The folds of all deals, one deal after the other, over nodes that all have a class."""
    if len(classes) < LEAST:
        raise InputError(
            f"cross-validation needs at least {LEAST} labelled nodes and the graph has {len(classes)}; label more."
        )
    repeats = max(1, min(REPEATS, DEALT // len(classes)))
    nodes = torch.arange(len(classes))
    return [fold for r in range(repeats) for fold in cross_validation_folds(shuffled(nodes, r), classes)]


def choose_c(x: Embeddings, classes: Tensor, sets: Sequence[Tensor]) -> Tensor:
    """The C of each training set, from cross-validation inside it; ties go to the smallest."""
    folds = [cross_validation_folds(nodes, classes) for nodes in sets]
    solver = partial(fit_predict, tolerance=TOLERANCE)
    chosen, _, _ = choose_strengths(folds, x, classes, solver, strengths=CHOICES)
    return torch.tensor(CHOICES, dtype=torch.float64)[chosen[0].cpu()]


def held_out_logits(x: Tensor, classes: Tensor, folds: Sequence[Fold]) -> list[Tensor]:
    """The logits (nodes × K) of each fold's nodes, of embeddings 1 × n × d; −∞ for a class without a training node."""
    logits = []
    for (train, test), c in zip(folds, choose_c(x, classes, [train for train, _ in folds]), strict=True):
        models = fit(x[0], classes, [train], c[None, None])
        logits.append((x[0, test].double() @ models.weight[0, 0].mT + models.bias[0, 0]).cpu())
    return logits


def held_out_accuracy(x: Embeddings, classes: Tensor, folds: Sequence[Fold]) -> Score:
    """The accuracy on each fold, of embeddings of any form."""
    sets, tests = [train for train, _ in folds], [test for _, test in folds]
    predicted = fit_predict(x, classes, sets, tests, choose_c(x, classes, sets)[None, :, None])[0, :, 0].cpu()
    return score([rows[: len(test)] == classes[test] for rows, test in zip(predicted, tests, strict=True)])


def score(right: Sequence[Tensor]) -> Score:
    """The accuracy over the folds."""
    return Score.of([float(each.double().mean()) for each in right], CROSS_VALIDATION)
