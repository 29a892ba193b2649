"""The linear probe: how well a linear classifier does on frozen embeddings.

The protocol matters more than the method, so it has a name that is printed with every number. It says which labelled
nodes train, which choose C and which test. The classifier is always the same: rows of Z scaled to length one,
l2-regularised logistic regression, C from 2⁻¹⁰ … 2¹⁰, ties to the smallest C.

Missing labels:

- An unlabelled node (y < 0) is in no part of any split; fractions are of the labelled nodes.
- A class without a node in a training set is never predicted there; its test nodes count as errors, and its F1 is 0.
- Macro-F1 is the mean over the classes present in the test set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from costa.errors import InputError
from costa.evaluate.inputs import checked_labels, class_codes, stacked_rows
from costa.evaluate.logistic import TOLERANCE, Embeddings, FitPredict, Solver, fit_predict, fit_predict_sklearn
from costa.evaluate.protocols import (
    FOLDS,
    PROTOCOLS,
    Protocol,
    Split,
    cross_validation_folds,
    held_out_fold,
    shuffled,
    splits,
)
from costa.evaluate.scores import ProbeResult, Score
from costa.graphs.labels import classes_of

STRENGTHS = tuple(2.0**power for power in range(-10, 11))

CROSS_VALIDATION = f"{FOLDS}-fold cross-validation"
"""What :func:`cross_validation_accuracies` is called where others name a protocol."""

SOLVERS: Mapping[str, Solver] = {"torch": fit_predict, "sklearn": fit_predict_sklearn}


def linear_probe(
    z: Tensor | np.ndarray,
    y: Tensor | np.ndarray | Sequence[Any] | None,
    protocol: str = "random-10-10-80",
    *,
    repeats: int = 20,
    first_split: int = 0,
    masks: Any = None,
    solver: str = "torch",
    device: torch.device | str | None = None,
) -> ProbeResult:
    """How well logistic regression on the embeddings Z predicts the classes of nodes it was not trained on.

    Rows of Z are scaled to length one (zero rows stay zero). C·Σᵢ lossᵢ + ½‖W‖² is minimised, with a free intercept,
    for C in 2⁻¹⁰ … 2¹⁰; the C with the best validation accuracy, the smallest one if tied, is tested.

    Args:
        z: Embeddings, n × d; a CSR tensor may be wide.
        y: The class of each node: any integers, of which negative ones mean unlabelled, or text, empty if unlabelled.
        protocol: A name in ``PROTOCOLS``.
        repeats: Number of splits; for ``public`` at most the number in the masks.
        first_split: The seed of the first split.
        masks: For ``public``: the graph itself, or a dictionary, with ``train_mask``, ``val_mask`` and ``test_mask``.
        solver: ``"torch"``, all strengths and splits at once, or ``"sklearn"``, the reference, one after the other.
        device: Device of ``"torch"``; by default that of ``z``.

    Example:
        >>> y = torch.arange(300) % 3
        >>> z = torch.eye(3)[y] + 0.01 * torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
        >>> print(linear_probe(z, y, repeats=5).accuracy)
        100.0 ± 0.0 % (random-10-10-80, 5 splits)
    """
    (result,) = linear_probes(
        [z], y, protocol, repeats=repeats, first_split=first_split, masks=masks, solver=solver, device=device
    )
    return result


def linear_probes(
    zs: Sequence[Tensor | np.ndarray] | Tensor | np.ndarray,
    y: Tensor | np.ndarray | Sequence[Any] | None,
    protocol: str = "random-10-10-80",
    *,
    repeats: int = 20,
    first_split: int = 0,
    own_splits: Sequence[int] | None = None,
    masks: Any = None,
    solver: str = "torch",
    device: torch.device | str | None = None,
) -> list[ProbeResult]:
    """The :func:`linear_probe` of each of several embeddings of the same nodes, solved all at once.

    Args:
        zs: The embeddings, each n × d.
        y, protocol, repeats, first_split, masks, solver, device: As for :func:`linear_probe`.
        own_splits: The one split that each embedding is evaluated on, instead of all ``repeats``.

    Example:
        >>> y = torch.arange(300) % 3
        >>> right, wrong = linear_probes([torch.eye(3)[y], torch.ones(300, 3)], y, repeats=5)
        >>> right.accuracy.mean, wrong.accuracy.mean < 0.4
        (1.0, True)
    """
    if solver not in SOLVERS:
        raise InputError(f"there is no solver '{solver}'; choose one of: {', '.join(SOLVERS)}.")
    last = repeats if own_splits is None else max(own_splits) + 1
    label = checked_labels(y)
    parts = splits(protocol, label, repeats=last, first=first_split, masks=masks)
    if own_splits is not None:
        if last > len(parts):
            raise InputError(f"split {last - 1} does not exist: the graph's masks have splits 0 to {len(parts) - 1}.")
        parts = [parts[number] for number in own_splits]
    rule = PROTOCOLS[protocol]
    x = stacked_rows(zs, len(label), device)

    fit_on = [torch.cat([part.train, part.validation]) if rule.selection == "refit" else part.train for part in parts]
    solve = SOLVERS[solver] if own_splits is None else _each_on_its_own(SOLVERS[solver])
    chosen, validation, confusion = _select(rule, parts, fit_on, x, class_codes(label), solve)
    accuracy = confusion.diagonal(dim1=-2, dim2=-1).sum(-1) / confusion.sum((-1, -2))
    own_fraction = sum(len(rows) for rows in fit_on) / len(fit_on) / int((label >= 0).sum())
    measures = (accuracy, _macro_f1(confusion), validation, chosen)
    columns = [(measure if own_splits is None else measure.mT).tolist() for measure in measures]
    return [
        ProbeResult(
            protocol=protocol,
            label_fraction=own_fraction if rule.label_fraction is None else rule.label_fraction,
            trained_on=min(map(len, fit_on)),
            classes=len(classes_of(label)),
            accuracy=Score.of(right, protocol),
            macro_f1=Score.of(f1, protocol),
            validation=Score.of(held_out, protocol),
            chosen_c=tuple(STRENGTHS[index] for index in indices),
        )
        for right, f1, held_out, indices in zip(*columns, strict=True)
    ]


def validation_accuracies(
    zs: Sequence[Tensor | np.ndarray] | Tensor | np.ndarray,
    y: Tensor | np.ndarray | None,
    protocols: Sequence[str],
    *,
    repeats: int = 20,
    first_split: int = 0,
    masks: Any = None,
    device: torch.device | str | None = None,
    strengths: Sequence[float] = STRENGTHS,
    tolerance: float = TOLERANCE,
) -> dict[str, list[Score]]:
    """The ``validation`` of :func:`linear_probes` by protocol, for each embedding, blind to the test nodes.

    The labels of nodes that neither train nor validate in any of the splits are removed first, so they cannot
    influence what these scores choose. All protocols are solved at once.

    Args:
        zs: The embeddings, each n × d.
        y, repeats, first_split, masks, device: As for :func:`linear_probe`.
        protocols: Names in ``PROTOCOLS``, except those that choose C by cross-validation.
        strengths: The C to choose from, in increasing order.
        tolerance: Tolerance of :func:`costa.evaluate.logistic.fit`.

    Example:
        >>> y = torch.arange(300) % 3
        >>> print(*validation_accuracies([torch.eye(3)[y]], y, ["strict-10-10-80"], repeats=5)["strict-10-10-80"])
        100.0 ± 0.0 % (strict-10-10-80, 5 splits)
    """
    parts = {name: splits(name, y, repeats=repeats, first=first_split, masks=masks) for name in protocols}
    for name in protocols:
        if PROTOCOLS[name].selection == "cv":
            raise InputError(f"the protocol '{name}' has no validation nodes; choose one that does.")
    label, together = checked_labels(y), [part for protocol_splits in parts.values() for part in protocol_splits]
    seen = torch.zeros(len(label), dtype=torch.bool)
    for part in together:
        seen[part.train] = seen[part.validation] = True
    classes, x = class_codes(label.masked_fill(~seen, -1)), stacked_rows(zs, len(label), device)
    solver = partial(fit_predict, tolerance=tolerance)
    _, validation, _ = choose_strengths(
        [held_out_fold(part) for part in together], x, classes, solver, strengths=strengths
    )
    columns = validation.split([len(protocol_splits) for protocol_splits in parts.values()], dim=1)
    return {
        name: [Score.of(per_split, name) for per_split in column.tolist()]
        for name, column in zip(parts, columns, strict=True)
    }


def cross_validation_accuracies(
    z: Tensor | np.ndarray,
    y: Tensor | np.ndarray | None,
    *,
    repeats: int = 4,
    device: torch.device | str | None = None,
) -> Score:
    """The accuracy of each fold of a repeated 5-fold cross-validation among all labelled nodes.

    The folds are stratified by class and drawn anew in each repeat, r with the seed r. One C serves all folds, the one
    with the best mean accuracy, so a fold of few nodes does not choose its own.

    Example:
        >>> y = torch.arange(30) % 3
        >>> print(cross_validation_accuracies(torch.eye(3)[y], y))
        100.0 ± 0.0 % (5-fold cross-validation, 20 splits)
    """
    label = checked_labels(y)
    classes, labelled = class_codes(label), (label >= 0).nonzero().squeeze(1)
    if len(labelled) < 2 * FOLDS:
        raise InputError(
            f"cross-validation needs at least {2 * FOLDS} labelled nodes and the graph has {len(labelled)}; label more."
        )
    folds = [fold for r in range(repeats) for fold in cross_validation_folds(shuffled(labelled, r), classes)]
    c = torch.tensor(STRENGTHS, dtype=torch.float64)
    held_outs = [held_out for _, held_out in folds]
    x = stacked_rows([z], len(label), device)
    predicted = fit_predict(x, classes, [train for train, _ in folds], held_outs, c.expand(1, len(folds), -1))
    (accuracy,) = _accuracy(predicted, _truth(classes, held_outs).to(predicted.device))
    return Score.of(accuracy[:, _best(accuracy.mean(0))].tolist(), CROSS_VALIDATION)


def _select(
    rule: Protocol,
    parts: Sequence[Split],
    fit_on: Sequence[Tensor],
    x: Embeddings,
    classes: Tensor,
    fit_predict: FitPredict,
) -> tuple[Tensor, Tensor, Tensor]:
    """For S embeddings × T splits: the chosen strength, its validation accuracy, its confusion matrix on the test."""
    tests = [part.test for part in parts]
    if rule.selection in ("validation", "public"):
        # The candidates are also what is tested: fit them once and predict both parts at once.
        chosen, validation, predicted = choose_strengths(
            [held_out_fold(part) for part in parts], x, classes, fit_predict, also=tests
        )
        tested = predicted.take_along_dim(chosen[..., None, None], 2)
        known = [torch.cat([torch.full_like(part.validation, -1), classes[part.test]]) for part in parts]
        truth = pad_sequence(known, batch_first=True, padding_value=-1)
    else:
        folds = [
            cross_validation_folds(part.train, classes) if rule.selection == "cv" else held_out_fold(part)
            for part in parts
        ]
        chosen, validation, _ = choose_strengths(folds, x, classes, fit_predict)
        c = torch.tensor(STRENGTHS, dtype=torch.float64)[chosen.cpu()]
        tested = fit_predict(x, classes, fit_on, tests, c[..., None])
        truth = _truth(classes, tests)
    return chosen, validation, _confusion(tested.squeeze(2), truth.to(tested.device), int(classes.max()) + 1)


def _each_on_its_own(solver: Solver) -> FitPredict:
    """A solver that fits split s in embedding s only; its result has the shape of one embedding's."""

    def solve(
        x: Embeddings, classes: Tensor, fit_on: Sequence[Tensor], predict_on: Sequence[Tensor], c: Tensor
    ) -> Tensor:
        folds = len(fit_on) // len(x)
        within = [number // folds for number in range(len(fit_on))]
        return solver(x, classes, fit_on, predict_on, c[0], within=within)[None]

    return solve


def choose_strengths(
    folds: Sequence[Sequence[tuple[Tensor, Tensor]]],
    x: Embeddings,
    classes: Tensor,
    fit_predict: FitPredict,
    also: Sequence[Tensor] | None = None,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[Tensor, Tensor, Tensor]:
    """For S embeddings × T splits: the chosen strength, its validation accuracy, and all candidates' predictions.

    Each split has one or more folds (fit on, held out), whose accuracies are averaged. The candidates predict the
    held-out nodes and, after those, the nodes in ``also``.
    """
    trials = [fold for split_folds in folds for fold in split_folds]
    held_outs = [held_out for _, held_out in trials]
    wanted = held_outs if also is None else [torch.cat(pair) for pair in zip(held_outs, also, strict=True)]
    c = torch.tensor(strengths, dtype=torch.float64)
    predicted = fit_predict(x, classes, [train for train, _ in trials], wanted, c.expand(len(x), len(trials), -1))
    truth = _truth(classes, held_outs).to(predicted.device)
    scores = _accuracy(predicted[..., : truth.shape[1]], truth).view(len(predicted), len(folds), -1, len(c)).mean(2)
    chosen = _best(scores)
    return chosen, scores.take_along_dim(chosen[..., None], -1).squeeze(-1), predicted


def _truth(classes: Tensor, rows: Sequence[Tensor]) -> Tensor:
    """The classes of each split's rows, one line per split, padded with −1."""
    return pad_sequence([classes[part] for part in rows], batch_first=True, padding_value=-1)


def _accuracy(predicted: Tensor, truth: Tensor) -> Tensor:
    """The accuracy of predicted classes (S × T × G × m), over the entries whose truth (T × m) is not −1."""
    counted = truth >= 0
    hits = (predicted == truth[:, None]) & counted[:, None]
    return hits.sum(-1).double() / counted.sum(-1, keepdim=True)


def _best(scores: Tensor) -> Tensor:
    """The index of the best strength, along the last dimension of the scores; ties go to the smallest."""
    # Equal means may differ in the last bit, because the folds' scores are added in another order.
    return scores.round(decimals=12).argmax(-1)


def _confusion(predicted: Tensor, truth: Tensor, classes: int) -> Tensor:
    """Confusion matrices: rows are true classes, columns predicted ones.

    Args:
        predicted: Predicted classes, S × T × m.
        truth: True classes, T × m; −1 is ignored.
        classes: Number of classes K.

    Returns:
        S × T × K × K, as float64.
    """
    place = torch.arange(predicted[..., 0].numel(), device=predicted.device).view(*predicted.shape[:2], 1)
    cell = ((place * classes + truth) * classes + predicted)[truth.expand_as(predicted) >= 0]
    return cell.bincount(minlength=place.numel() * classes**2).view(*predicted.shape[:2], classes, classes).double()


def _macro_f1(confusion: Tensor) -> Tensor:
    """The mean of F1 = 2·hits / (nodes of the class + nodes predicted as it), over the classes present."""
    hits, real, predicted = confusion.diagonal(dim1=-2, dim2=-1), confusion.sum(-1), confusion.sum(-2)
    return (2 * hits / (real + predicted)).where(real > 0, 0.0).sum(-1) / (real > 0).sum(-1)
