"""The labels that nodes without one most likely have, and how far to trust them.

The classifier is the linear probe's (:mod:`costa.evaluate.probe`): rows of Z scaled to length one, l2-regularised
logistic regression, trained on all labelled nodes, a sample of them if they are very many. C is chosen by
cross-validation among them. What accuracy to expect is told by nested cross-validation (:mod:`costa.evaluate.nested`),
for the vectors and for the raw features with the same folds. A probability is softmax(logits / T) with the temperature
T of the held-out logits of the first deal (:mod:`costa.evaluate.calibration`); to tell how well calibrated that is,
each fold's T comes from the other four.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate import nested
from costa.evaluate.baselines import raw_rows
from costa.evaluate.calibration import calibration_error, error_by_chance, fit_temperature, probabilities
from costa.evaluate.inputs import class_codes, stacked_rows, unit_rows
from costa.evaluate.logistic import fit
from costa.evaluate.protocols import FOLDS
from costa.evaluate.samples import rows_at, sampled_nodes
from costa.evaluate.scores import Score
from costa.graphs.labels import classes_of, label_text
from costa.insight.similar import ids_of
from costa.writing import write_csv

COLUMNS = ("id", "label", "probability", "given-or-predicted")
CROSS = 5_000
"""The most labelled nodes that are cross-validated."""
ROWS = 2**14
"""Rows that are predicted at a time."""
SURE = 0.9


@dataclass(frozen=True)
class Expectation:
    """What cross-validation says of predictions.

    Attributes:
        accuracy: Of the vectors, over the folds.
        raw: Of the raw features, over the same folds.
        most_common: The share of the most common class.
        nodes: How many labelled nodes were cross-validated.
        calibration: The expected calibration error.
        by_chance: What it would be if every probability were exact.
        sure: The share of nodes whose probability is at least :data:`SURE`.
        sure_right: The share of those that is right; None if there are none.
    """

    accuracy: Score
    raw: Score
    most_common: float
    nodes: int
    calibration: float
    by_chance: float
    sure: float
    sure_right: float | None


@dataclass(frozen=True)
class Classifier:
    """A trained classifier: W (K × d), b, the temperature, and the label codes of the K classes."""

    weight: Tensor
    bias: Tensor
    temperature: float
    codes: Tensor

    def __call__(self, rows: Tensor) -> tuple[list[int], list[float]]:
        """The label code of each row and its probability."""
        logits = unit_rows(rows, len(rows), self.weight.device).double() @ self.weight.mT + self.bias
        sure, place = probabilities(logits, self.temperature).max(1)
        return self.codes[place.cpu()].tolist(), sure.tolist()


def check(graph: Data) -> None:
    """Refuse a graph whose labels leave nothing to learn or nothing to predict."""
    y = graph.get("y")
    known = classes_of(y) if y is not None else torch.empty(0)
    if not len(known):
        raise InputError(
            f"{graph.name} has no labels, so there is nothing to learn from; label some nodes of each class."
        )
    if len(known) == 1:
        only = label_text(graph, int(known[0]))
        raise InputError(f"all labelled nodes of {graph.name} are {only!r}; label some nodes of another class too.")
    if not bool((y < 0).any()):
        raise InputError(
            f"every node of {graph.name} has a label, so there is nothing to predict; `costa probe` evaluates the"
            " vectors on them."
        )


def learn(z: Tensor, graph: Data, device: torch.device) -> tuple[Classifier, Expectation]:
    """Train on the graph's labels, and say what to expect of the predictions.

    Args:
        z: The vectors, n × d, perhaps mapped.
        graph: The graph, with labels that :func:`check` accepts.
        device: Where to train.
    """
    nodes = sampled_nodes(graph.y)
    nodes = (graph.y >= 0).nonzero().squeeze(1) if nodes is None else nodes
    classes, codes = class_codes(graph.y[nodes]), classes_of(graph.y[nodes])
    x: Any = stacked_rows([rows_at([z], nodes)], len(nodes), device)
    chosen = torch.arange(len(nodes))
    if len(nodes) > CROSS:
        chosen = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(0))[:CROSS].sort().values
    folds = nested.deal(classes[chosen])
    logits = nested.held_out_logits(x[:, chosen], classes[chosen], folds)
    raw = stacked_rows([raw_rows(graph, nodes[chosen])], len(chosen), device)
    expectation, temperature = _expect(
        logits, classes[chosen], folds, nested.held_out_accuracy(raw, classes[chosen], folds)
    )
    c = nested.choose_c(x[:, chosen], classes[chosen], [torch.arange(len(chosen))])
    model = fit(x[0], classes, [torch.arange(len(nodes))], c[:, None])
    return Classifier(model.weight[0, 0], model.bias[0, 0], temperature, codes), expectation


def _expect(logits: list[Tensor], classes: Tensor, folds: list[nested.Fold], raw: Score) -> tuple[Expectation, float]:
    """The expectation, and the temperature of all folds of the first deal."""
    accuracy = nested.score([each.argmax(1) == classes[test] for each, (_, test) in zip(logits, folds, strict=True)])
    deal, truths = logits[:FOLDS], [classes[test] for _, test in folds[:FOLDS]]
    calibrated = []
    for fold, own in enumerate(deal):
        others = [other for other in range(FOLDS) if other != fold]
        temperature = fit_temperature(torch.cat([deal[i] for i in others]), torch.cat([truths[i] for i in others]))
        calibrated.append(probabilities(own, temperature))
    probability, truth = torch.cat(calibrated), torch.cat(truths)
    sure, predicted = probability.max(1)
    right, very = predicted == truth, sure >= SURE
    expectation = Expectation(
        accuracy=accuracy,
        raw=raw,
        most_common=float(classes.bincount().max() / len(classes)),
        nodes=len(classes),
        calibration=calibration_error(sure, right),
        by_chance=error_by_chance(sure),
        sure=float(very.double().mean()),
        sure_right=float(right[very].double().mean()) if very.any() else None,
    )
    return expectation, fit_temperature(torch.cat(deal), truth)


def rarely_labelled(graph: Data) -> list[str]:
    """The classes with too few labelled nodes for one in each fold."""
    codes, counts = graph.y[graph.y >= 0].unique(return_counts=True)
    return [label_text(graph, code) for code in codes[counts < FOLDS].tolist()]


def write_predictions(path: Path, z: Tensor, graph: Data, classifier: Classifier) -> None:
    """Write the label of every node, some rows at a time: its own, or the predicted one and its probability."""
    starts = range(0, graph.num_nodes, ROWS)
    parts = (_rows(start, z[start : start + ROWS], graph, classifier) for start in starts)
    write_csv(path, COLUMNS, itertools.chain.from_iterable(parts))


def _rows(start: int, z: Tensor, graph: Data, classifier: Classifier) -> Iterator[tuple[Any, str, str, str]]:
    ids, given = ids_of(graph)[start : start + len(z)], graph.y[start : start + len(z)].tolist()
    for node, own, code, sure in zip(ids, given, *classifier(z), strict=True):
        if own >= 0:
            yield node, label_text(graph, own), "", "given"
        else:
            yield node, label_text(graph, code), f"{sure:.4f}", "predicted"
