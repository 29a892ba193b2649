"""The judge: how well a linear classifier, or a clustering, does on frozen embeddings.

The protocol decides more than the method, so it has a name, and the name travels with every number. It says which
labelled nodes train, choose and test; the classifier is always the same: rows of Z scaled to length one,
l2-regularised logistic regression, C from 2⁻¹⁰ … 2¹⁰, ties to the smallest C.

What missing labels mean:

- An unlabelled node (y < 0) is in no part of any split, and fractions are of the labelled nodes.
- A class without a node in a training set is never predicted there; its test nodes count as errors, and its F1 is 0.
- Macro-F1 is the mean over the classes present in the test set.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from costa.errors import InputError
from costa.kmeans import kmeans
from costa.logistic import TOLERANCE, FitPredict, Solver, fit_predict, fit_predict_sklearn
from costa.wording import counted

STRENGTHS = tuple(2.0**power for power in range(-10, 11))
FOLDS = 5
FIFTH = 20220814
"""The seed of the one fifth of the labelled nodes that a strict protocol trains and chooses on."""
SOLVERS: Mapping[str, Solver] = {"torch": fit_predict, "sklearn": fit_predict_sklearn}


@dataclass(frozen=True)
class Protocol:
    """Which labelled nodes train, which choose C and which test.

    Attributes:
        name: What is printed beside every number.
        train: Fraction of the labelled nodes that trains; None where the graph's own masks say.
        validation: Fraction that chooses C; 0 where cross-validation inside ``train`` does.
        test: Fraction that is tested on.
        selection: How C is chosen, and what the tested classifier is then trained on: ``"validation"`` (chosen on
            validation, trained on train), ``"cv"`` (5-fold cross-validation inside train, then all of it),
            ``"refit"`` (chosen on validation, trained on train + validation) or ``"public"`` (as ``"validation"``,
            on the graph's own masks).
        label_fraction: Fraction of the labelled nodes that the tested classifier is trained on; None where the
            graph's own masks say.
        description: One line for a person.
        strict: Whether the same nodes test in every split, whatever its seed.
    """

    name: str
    train: float | None
    validation: float | None
    test: float | None
    selection: Literal["validation", "cv", "refit", "public"]
    label_fraction: float | None
    description: str
    strict: bool = False


PROTOCOLS: Mapping[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "random-10-10-80", 0.1, 0.1, 0.8, "validation", 0.1,
            "10% train, 10% choose C, 80% test (the default)",
        ),
        Protocol(
            "random-10-90-cv", 0.1, 0.0, 0.9, "cv", 0.1,
            "10% train and choose C by 5-fold cross-validation, 90% test (GRACE's)",
        ),
        Protocol(
            "random-20-80", 0.1, 0.1, 0.8, "refit", 0.2,
            "10% train, 10% choose C, then both train again, 80% test (BGRL's)",
        ),
        Protocol(
            "random-10-80-10", 0.1, 0.8, 0.1, "validation", 0.1,
            "10% train, 80% choose C, 10% test (what the released COSTA code does)",
        ),
        Protocol(
            "random-2-2-96", 0.02, 0.02, 0.96, "validation", 0.02,
            "2% train, 2% choose C, 96% test (few labels)",
        ),
        Protocol(
            "strict-10-10-80", 0.1, 0.1, 0.8, "validation", 0.1,
            "10% train, 10% choose C, both inside one fixed fifth; the other 80% test",
            strict=True,
        ),
        Protocol(
            "public", None, None, None, "public", None,
            "the graph's own masks: Planetoid's one split, WikiCS' twenty",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Node indices of one split, on the CPU; ``validation`` is empty where C is chosen by cross-validation."""

    train: Tensor
    validation: Tensor
    test: Tensor


@dataclass(frozen=True)
class Score:
    """A measure over the splits of a protocol, as fractions; ``std`` is the sample's (n − 1), and 0 for one split."""

    mean: float
    std: float
    per_split: tuple[float, ...]
    protocol: str

    @classmethod
    def of(cls, values: Sequence[float], protocol: str) -> "Score":
        """The score of the given values, one a split.

        Example:
            >>> print(Score.of([0.80, 0.82, 0.81], "random-10-10-80"))
            81.0 ± 1.0 % (random-10-10-80, 3 splits)
        """
        per_split = tuple(float(value) for value in values)
        std = float(np.std(per_split, ddof=1)) if len(per_split) > 1 else 0.0
        return cls(float(np.mean(per_split)), std, per_split, protocol)

    @property
    def percent(self) -> str:
        """The mean and, where there is more than one split, ± the standard deviation, in percent."""
        spread = f" ± {100 * self.std:.1f}" if len(self.per_split) > 1 else ""
        return f"{100 * self.mean:.1f}{spread} %"

    def __str__(self) -> str:
        return f"{self.percent} ({self.protocol}, {counted(len(self.per_split), 'split')})"

    def to_dict(self) -> dict[str, Any]:
        """``mean``, ``std`` and ``per_split`` as plain numbers."""
        return {"mean": self.mean, "std": self.std, "per_split": list(self.per_split)}


@dataclass(frozen=True)
class ProbeResult:
    """What :func:`linear_probe` found.

    Attributes:
        protocol: The protocol's name.
        label_fraction: Fraction of the labelled nodes that the tested classifiers were trained on.
        trained_on: How many nodes that is, in the smallest split.
        classes: How many classes the labelled nodes have.
        accuracy: Test accuracy over the splits.
        macro_f1: Macro-F1 over the splits.
        validation: Accuracy of the chosen strength on the nodes that chose it: what settings may be chosen by.
        chosen_c: The strength chosen in each split.
    """

    protocol: str
    label_fraction: float
    trained_on: int
    classes: int
    accuracy: Score
    macro_f1: Score
    validation: Score
    chosen_c: tuple[float, ...]

    def __str__(self) -> str:
        return (
            f"{self.protocol}, {counted(len(self.chosen_c), 'split')}: "
            f"accuracy {self.accuracy.percent}, macro-F1 {self.macro_f1.percent}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``probes`` in ``metrics.json``; accuracies are fractions."""
        return {
            "protocol": self.protocol,
            "label_fraction": self.label_fraction,
            "trained_on": self.trained_on,
            "classes": self.classes,
            "accuracy": self.accuracy.to_dict(),
            "macro_f1": self.macro_f1.to_dict(),
        }


def classes_of(y: Tensor) -> Tensor:
    """The classes that labelled nodes have, rising; a negative number is no label.

    >>> classes_of(torch.tensor([7, -1, 3, 7]))
    tensor([3, 7])
    """
    return y[y >= 0].unique()


def too_few(found: Mapping[str, Any]) -> str | None:
    """What to say of an entry of ``probes`` whose classifiers saw fewer than two nodes a class; None of others.

    >>> too_few({"protocol": "random-10-10-80", "trained_on": 3, "classes": 4})
    'by random-10-10-80 a classifier learns 4 classes from 3 nodes; so few say little'
    """
    # a run that was judged by an earlier version does not say
    if "trained_on" not in found or found["trained_on"] >= 2 * found["classes"]:
        return None
    nodes = counted(found["trained_on"], "node")
    return f"by {found['protocol']} a classifier learns {found['classes']} classes from {nodes}; so few say little"


@dataclass(frozen=True)
class Clustering:
    """Agreement of k-means clusters with the classes: normalised mutual information and adjusted Rand index."""

    nmi: float
    ari: float


def splits(
    protocol: str, y: Tensor | np.ndarray | None, *, repeats: int = 20, first: int = 0, masks: Any = None
) -> list[Split]:
    """The splits of a protocol; split r comes from its own generator, seeded with first + r, whatever ``repeats`` is.

    Of N labelled nodes, train and validation take ⌊N·fraction⌋ each and test takes all that remain; nothing is
    stratified. Train and validation of a strict protocol are together the same nodes in every split, drawn once by a
    seed of their own: what is chosen inside them is tested on nodes that helped to choose nothing. ``public`` takes the
    labelled nodes of the graph's own masks (of WikiCS, ``val_mask`` chooses C and ``stopping_mask`` is unused).

    Args:
        protocol: A name in ``PROTOCOLS``.
        y: The class of each node; negative means unlabelled.
        repeats: How many splits; of ``public`` at most as many as the masks hold.
        first: The first split's seed; splits from other seeds can tune what these report. ``public`` draws nothing,
            and takes its masks from the first one on whatever this is.
        masks: For ``public``: the graph itself, or a dictionary, with ``train_mask``, ``val_mask`` and
            ``test_mask``, each n or n × splits.

    Example:
        >>> split = splits("random-10-10-80", torch.arange(54) % 2, repeats=1)[0]
        >>> len(split.train), len(split.validation), len(split.test)
        (5, 5, 44)
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol '{protocol}'; choose one of: {', '.join(PROTOCOLS)}.")
    if repeats < 1:
        raise InputError(f"the number of splits, repeats, must be at least 1, not {repeats}.")
    rule, label = PROTOCOLS[protocol], _labels(y)
    labelled = (label >= 0).nonzero().squeeze(1)
    if rule.train is None or rule.validation is None:
        return _own_splits(label >= 0, masks)[:repeats]

    smallest, part = (FOLDS, rule.train) if rule.selection == "cv" else (1, min(rule.train, rule.validation))
    if len(labelled) * part < smallest:
        raise InputError(
            f"the protocol '{protocol}' needs at least {math.ceil(smallest / part)} labelled nodes and the graph has "
            f"{len(labelled)}; label more nodes or choose another protocol."
        )
    # The fractions' nearest floats lie above them, so a product that should be whole never falls below.
    sizes = [int(len(labelled) * rule.train), int(len(labelled) * rule.validation)]
    sizes.append(len(labelled) - sum(sizes))
    dealt, always = labelled, labelled[:0]
    if rule.strict:
        dealt, always = _shuffled(labelled, FIFTH).split([sizes[0] + sizes[1], sizes[2]])
        sizes[2] = 0
    deals = (_shuffled(dealt, first + r).split(sizes) for r in range(repeats))
    return [Split(train, validation, torch.cat([test, always])) for train, validation, test in deals]


def linear_probe(
    z: Tensor | np.ndarray,
    y: Tensor | np.ndarray | None,
    protocol: str = "random-10-10-80",
    *,
    repeats: int = 20,
    first_split: int = 0,
    masks: Any = None,
    solver: str = "torch",
    device: torch.device | str | None = None,
) -> ProbeResult:
    """How well logistic regression on the embeddings Z predicts the classes of nodes it was not trained on.

    Rows of Z are scaled to length one (zero rows stay zero). C·Σᵢ lossᵢ + ½‖W‖² is minimised, the intercept free,
    for C in 2⁻¹⁰ … 2¹⁰; the C most accurate on validation, the smallest of equals, is tested.

    Args:
        z: Embeddings, n × d.
        y: The class of each node, any integers; a node whose class is negative is unlabelled and takes no part.
        protocol: A name in ``PROTOCOLS``.
        repeats: How many splits; of ``public`` at most as many as the masks hold.
        first_split: The seed of the first split, ``first`` of :func:`splits`.
        masks: For ``public``: the graph itself, or a dictionary, with ``train_mask``, ``val_mask`` and ``test_mask``.
        solver: ``"torch"``, all strengths and splits at once, or ``"sklearn"``, the reference, one after the other.
        device: Where ``"torch"`` computes; where ``z`` is unless given.

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
    y: Tensor | np.ndarray | None,
    protocol: str = "random-10-10-80",
    *,
    repeats: int = 20,
    first_split: int = 0,
    own_splits: Sequence[int] | None = None,
    masks: Any = None,
    solver: str = "torch",
    device: torch.device | str | None = None,
) -> list[ProbeResult]:
    """What :func:`linear_probe` finds for each of several embeddings of the same nodes, solved all at once.

    Args:
        zs: The embeddings, each n × d.
        y, protocol, repeats, first_split, masks, solver, device: As for :func:`linear_probe`.
        own_splits: The one split that each embedding is judged on, in place of all ``repeats``.

    Example:
        >>> y = torch.arange(300) % 3
        >>> right, wrong = linear_probes([torch.eye(3)[y], torch.ones(300, 3)], y, repeats=5)
        >>> right.accuracy.mean, wrong.accuracy.mean < 0.4
        (1.0, True)
    """
    if solver not in SOLVERS:
        raise InputError(f"there is no solver '{solver}'; choose one of: {', '.join(SOLVERS)}.")
    last = repeats if own_splits is None else max(own_splits) + 1
    parts = splits(protocol, y, repeats=last, first=first_split, masks=masks)
    if own_splits is not None:
        if last > len(parts):
            raise InputError(f"the graph has {len(parts)} splits of its own, and no split {last - 1}; ask for fewer.")
        parts = [parts[number] for number in own_splits]
    rule, label = PROTOCOLS[protocol], _labels(y)
    x = _together(zs, len(label), device)

    fit_on = [torch.cat([part.train, part.validation]) if rule.selection == "refit" else part.train for part in parts]
    solve = SOLVERS[solver] if own_splits is None else _each_on_its_own(SOLVERS[solver])
    chosen, validation, confusion = _select(rule, parts, fit_on, x, _classes(label), solve)
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

    The labels of nodes that neither train nor validate in any of the splits are taken away first, so they cannot have
    a part in what is chosen by these scores. All protocols are solved at once.

    Args:
        zs: The embeddings, each n × d.
        y, repeats, first_split, masks, device: As for :func:`linear_probe`.
        protocols: Names in ``PROTOCOLS``; one that chooses C by cross-validation has no validation nodes and is
            refused.
        strengths: The C to choose from, rising.
        tolerance: Of the solver, :func:`costa.logistic.fit`'s.

    Example:
        >>> y = torch.arange(300) % 3
        >>> print(*validation_accuracies([torch.eye(3)[y]], y, ["strict-10-10-80"], repeats=5)["strict-10-10-80"])
        100.0 ± 0.0 % (strict-10-10-80, 5 splits)
    """
    parts = {name: splits(name, y, repeats=repeats, first=first_split, masks=masks) for name in protocols}
    for name in protocols:
        if PROTOCOLS[name].selection == "cv":
            raise InputError(f"the protocol '{name}' has no validation nodes; choose one that has.")
    label, together = _labels(y), [part for own in parts.values() for part in own]
    seen = torch.zeros(len(label), dtype=torch.bool)
    for part in together:
        seen[part.train] = seen[part.validation] = True
    classes, x = _classes(label.masked_fill(~seen, -1)), _together(zs, len(label), device)
    solver = partial(fit_predict, tolerance=tolerance)
    _, validation, _ = _choose([_held_out(part) for part in together], x, classes, solver, strengths=strengths)
    columns = validation.split([len(own) for own in parts.values()], dim=1)
    return {
        name: [Score.of(per_split, name) for per_split in column.tolist()]
        for name, column in zip(parts, columns, strict=True)
    }


def cluster(
    z: Tensor | np.ndarray,
    y: Tensor | np.ndarray | None,
    *,
    seed: int = 0,
    device: torch.device | str | None = None,
) -> Clustering:
    """k-means on the rows of Z scaled to length one, k the number of classes, best of ten starts.

    All nodes are clustered; the labelled ones are scored. On a CPU by scikit-learn, on CUDA by :mod:`costa.kmeans`.

    Example:
        >>> cluster(torch.eye(3).repeat(10, 1), torch.arange(30) % 3)
        Clustering(nmi=1.0, ari=1.0)
    """
    from scipy.sparse import csr_matrix
    from sklearn.cluster import KMeans

    label = _labels(y)
    x = _unit_rows(z, len(label), device or "cpu")
    labelled = label >= 0
    truth = label[labelled].numpy()
    if x.is_cuda:
        assigned = kmeans(x, len(np.unique(truth)), seed=seed)[0].cpu()[labelled].numpy()
        return _agreement(truth, assigned)
    # Raw features are mostly zeros: k-means on their non-zeros takes seconds where it would take minutes.
    points = csr_matrix(x.numpy()) if x.count_nonzero() < 0.1 * x.numel() else x.numpy()
    found = KMeans(len(np.unique(truth)), n_init=10, random_state=seed).fit_predict(points)[labelled.numpy()]
    return _agreement(truth, found)


def _agreement(truth: np.ndarray, found: np.ndarray) -> Clustering:
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return Clustering(float(normalized_mutual_info_score(truth, found)), float(adjusted_rand_score(truth, found)))


def _select(
    rule: Protocol,
    parts: Sequence[Split],
    fit_on: Sequence[Tensor],
    x: Tensor,
    classes: Tensor,
    fit_predict: FitPredict,
) -> tuple[Tensor, Tensor, Tensor]:
    """For S embeddings × T splits: the strength chosen, its accuracy where it was, its confusion matrix on the test."""
    tests = [part.test for part in parts]
    if rule.selection in ("validation", "public"):
        # The candidates are what is tested, so they predict both parts at once and are fitted once.
        chosen, validation, found = _choose([_held_out(part) for part in parts], x, classes, fit_predict, also=tests)
        tested = found.take_along_dim(chosen[..., None, None], 2)
        known = [torch.cat([torch.full_like(part.validation, -1), classes[part.test]]) for part in parts]
        truth = pad_sequence(known, batch_first=True, padding_value=-1)
    else:
        folds = [_folds(part.train, classes) if rule.selection == "cv" else _held_out(part) for part in parts]
        chosen, validation, _ = _choose(folds, x, classes, fit_predict)
        c = torch.tensor(STRENGTHS, dtype=torch.float64)[chosen.cpu()]
        tested = fit_predict(x, classes, fit_on, tests, c[..., None])
        truth = _truth(classes, tests)
    return chosen, validation, _confusion(tested.squeeze(2), truth.to(tested.device), int(classes.max()) + 1)


def _each_on_its_own(solver: Solver) -> FitPredict:
    """A solver that fits the s-th split in the s-th embedding alone; what it finds is shaped as of one embedding."""

    def solve(x: Tensor, classes: Tensor, fit_on: Sequence[Tensor], predict_on: Sequence[Tensor], c: Tensor) -> Tensor:
        folds = len(fit_on) // len(x)
        within = [number // folds for number in range(len(fit_on))]
        return solver(x, classes, fit_on, predict_on, c[0], within=within)[None]

    return solve


def _choose(
    folds: Sequence[Sequence[tuple[Tensor, Tensor]]],
    x: Tensor,
    classes: Tensor,
    fit_predict: FitPredict,
    also: Sequence[Tensor] | None = None,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[Tensor, Tensor, Tensor]:
    """For S embeddings × T splits: the strength chosen, its accuracy where it was, and what all candidates predicted.

    Each split has one or more folds (fit on, held out), whose accuracies are averaged. The candidates predict the nodes
    held out and, after those, the ones that each shall predict ``also``.
    """
    trials = [fold for own in folds for fold in own]
    held_outs = [held_out for _, held_out in trials]
    wanted = held_outs if also is None else [torch.cat(pair) for pair in zip(held_outs, also, strict=True)]
    c = torch.tensor(strengths, dtype=torch.float64)
    found = fit_predict(x, classes, [train for train, _ in trials], wanted, c.expand(len(x), len(trials), -1))
    truth = _truth(classes, held_outs).to(found.device)
    scores = _accuracy(found[..., : truth.shape[1]], truth).view(len(found), len(folds), -1, len(c)).mean(2)
    chosen = _best(scores)
    return chosen, scores.take_along_dim(chosen[..., None], -1).squeeze(-1), found


def _held_out(part: Split) -> list[tuple[Tensor, Tensor]]:
    """The one fold of a split that has validation nodes."""
    return [(part.train, part.validation)]


def _classes(label: Tensor) -> Tensor:
    """The labels as 0 … K − 1, −1 where there is none."""
    return torch.searchsorted(classes_of(label), label).masked_fill(label < 0, -1)


def _truth(classes: Tensor, rows: Sequence[Tensor]) -> Tensor:
    """The classes of each split's rows, one split a line; −1 beyond the rows of a short one."""
    return pad_sequence([classes[part] for part in rows], batch_first=True, padding_value=-1)


def _accuracy(found: Tensor, truth: Tensor) -> Tensor:
    """The accuracy of the classes found (S × T × G × m) where the truth (T × m) is not −1."""
    counted = truth >= 0
    hits = (found == truth[:, None]) & counted[:, None]
    return hits.sum(-1).double() / counted.sum(-1, keepdim=True)


def _best(scores: Tensor) -> Tensor:
    """The place of the best strength, the last dimension of the scores; the smallest of equals."""
    # Equal means may differ in the last bit, since the trials' scores are added in another order.
    return scores.round(decimals=12).argmax(-1)


def _confusion(found: Tensor, truth: Tensor, classes: int) -> Tensor:
    """How many nodes of each class (a row) were given each class (a column), where the truth is not −1.

    Args:
        found: Classes found, S × T × m.
        truth: Their true classes, T × m.
        classes: Their number K.

    Returns:
        S × T × K × K, as float64.
    """
    place = torch.arange(found[..., 0].numel(), device=found.device).view(*found.shape[:2], 1)
    cell = ((place * classes + truth) * classes + found)[truth.expand_as(found) >= 0]
    return cell.bincount(minlength=place.numel() * classes**2).view(*found.shape[:2], classes, classes).double()


def _folds(train: Tensor, classes: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(fit on, held out) for each fold of a training set; its nodes are dealt out in turn, class after class."""
    order = train[classes[train].argsort(stable=True)]
    fold = torch.arange(len(order)) % FOLDS
    return [(order[fold != k], order[fold == k]) for k in range(FOLDS)]


def _macro_f1(confusion: Tensor) -> Tensor:
    """The mean over the classes that have a node of F1 = 2·hits / (nodes of the class + nodes given the class)."""
    hits, real, given = confusion.diagonal(dim1=-2, dim2=-1), confusion.sum(-1), confusion.sum(-2)
    return (2 * hits / (real + given)).where(real > 0, 0.0).sum(-1) / (real > 0).sum(-1)


def _own_splits(labelled: Tensor, masks: Any) -> list[Split]:
    """The graph's own splits, from its train_mask, val_mask and test_mask (each n, or n × splits)."""
    names = ("train_mask", "val_mask", "test_mask")
    if masks is None or any(name not in masks or masks[name] is None for name in names):
        raise InputError(
            "the protocol 'public' needs the graph's own train_mask, val_mask and test_mask, which are not given; "
            "choose a random protocol instead."
        )
    columns = [torch.as_tensor(masks[name]).cpu().bool() for name in names]
    columns = [mask[:, None] if mask.dim() == 1 else mask for mask in columns]
    count = max(mask.shape[1] for mask in columns)
    for name, mask in zip(names, columns, strict=True):
        if len(mask) != len(labelled) or mask.shape[1] not in (1, count):
            raise InputError(
                f"the {name} is {mask.shape[0]} × {mask.shape[1]} but should be {len(labelled)} × 1 or "
                f"{len(labelled)} × {count}, a row for each node and a column for each split."
            )
    train, validation, test = (mask.expand(-1, count) & labelled[:, None] for mask in columns)
    if ((train & validation) | (train & test) | (validation & test)).any():
        raise InputError("the graph's train_mask, val_mask and test_mask share nodes; make them disjoint.")
    if not all(mask.any(0).all() for mask in (train, validation, test)):
        raise InputError(
            "the graph's own masks leave a part of a split without labelled nodes; fill it or choose a random protocol."
        )
    return [
        Split(*(mask[:, split].nonzero().squeeze(1) for mask in (train, validation, test))) for split in range(count)
    ]


def _labels(y: Tensor | np.ndarray | None) -> Tensor:
    """The labels as a checked integer tensor on the CPU."""
    if y is None:
        raise InputError("the graph has no labels (y is None), so there is nothing to score embeddings against.")
    label = y.detach().cpu() if isinstance(y, Tensor) else torch.tensor(np.asarray(y))
    if label.dim() != 1 or label.is_floating_point():
        kind = str(label.dtype).removeprefix("torch.")
        raise InputError(f"the labels must be one integer a node, not {kind} of shape {tuple(label.shape)}.")
    label = label.long()
    count = len(classes_of(label))
    if count < 2:
        raise InputError(
            "the graph has no labels, so there is nothing to score embeddings against."
            if count == 0
            else "all labelled nodes are of one class, so there is nothing to tell apart; label nodes of another class."
        )
    return label


def _shuffled(nodes: Tensor, seed: int) -> Tensor:
    """The nodes in an order of their own for each seed."""
    return nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]


def _together(
    zs: Sequence[Tensor | np.ndarray] | Tensor | np.ndarray, nodes: int, device: torch.device | str | None
) -> Tensor:
    """The embeddings as :func:`_unit_rows` makes them, S × n × d."""
    embeddings = [_unit_rows(z, nodes, device) for z in zs]
    if len(widths := {x.shape[1] for x in embeddings}) != 1:
        found = " and ".join(str(width) for width in sorted(widths)) or "none"
        raise InputError(f"the embeddings probed together must be of one width, not {found}; probe them apart.")
    return torch.stack(embeddings)


def _unit_rows(z: Tensor | np.ndarray, nodes: int, device: torch.device | str | None) -> Tensor:
    """The embeddings, checked, with rows of length one (zero rows stay zero)."""
    x = z.detach() if isinstance(z, Tensor) else torch.tensor(np.asarray(z))
    if x.dim() != 2 or len(x) != nodes or x.shape[1] == 0:
        raise InputError(f"the embeddings must be {nodes} × d, a row for each label, not of shape {tuple(x.shape)}.")
    if device is not None and torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise InputError("the probe was asked to run on CUDA, which this machine does not have; use device='cpu'.")
    x = x.to(x.device if device is None else device)
    x = x if x.dtype == torch.float64 else x.float()
    if not (finite := x.isfinite().all(1)).all():
        row = int((~finite).nonzero()[0])
        raise InputError(f"the embeddings are not finite, first in row {row}; the model that made them has diverged.")
    # Scaling by the largest entry first keeps the squares of very large and very small rows in range.
    largest = x.abs().amax(1, keepdim=True)
    x = x / largest.where(largest > 0, 1.0)
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / length.where(length > 0, 1.0)
