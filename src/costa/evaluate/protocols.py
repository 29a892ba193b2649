"""Protocols: which labelled nodes train, which choose C and which test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from costa.errors import InputError
from costa.evaluate.inputs import checked_labels

FOLDS = 5

FIFTH = 20220814
"""Random seed of the fixed fifth of the labelled nodes that a strict protocol trains and chooses C on."""


@dataclass(frozen=True)
class Protocol:
    """Which labelled nodes train, which choose C and which test.

    Attributes:
        name: The name that is printed with every number.
        train: Fraction of the labelled nodes that trains; None if the graph's own masks decide.
        validation: Fraction that chooses C; 0 if cross-validation inside ``train`` does.
        test: Fraction that tests.
        selection: How C is chosen, and what the tested classifier is then trained on: ``"validation"`` (chosen on
            validation, trained on train), ``"cv"`` (5-fold cross-validation inside train, then all of it),
            ``"refit"`` (chosen on validation, trained on train + validation) or ``"public"`` (as ``"validation"``,
            on the graph's own masks).
        label_fraction: Fraction of the labelled nodes that the tested classifier is trained on; None if the graph's
            own masks decide.
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
    """Node indices of one split, on the CPU; ``validation`` is empty if C is chosen by cross-validation."""

    train: Tensor
    validation: Tensor
    test: Tensor


def splits(
    protocol: str, y: Tensor | np.ndarray | None, *, repeats: int = 20, first: int = 0, masks: Any = None
) -> list[Split]:
    """The splits of a protocol; split r has its own generator, seeded with first + r, whatever ``repeats`` is.

    Of N labelled nodes, train and validation get ⌊N·fraction⌋ each and test gets the rest; splits are not stratified.
    A strict protocol draws train and validation from the same nodes in every split, a fifth chosen once with a fixed
    seed, so that no test node helps to choose anything. ``public`` takes the labelled nodes of the graph's own masks
    (for WikiCS, ``val_mask`` chooses C and ``stopping_mask`` is unused).

    Args:
        protocol: A name in ``PROTOCOLS``.
        y: The class of each node; negative means unlabelled.
        repeats: Number of splits; for ``public`` at most the number in the masks.
        first: The first split's seed; tuning uses other seeds than reporting. ``public`` ignores it.
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
    rule, label = PROTOCOLS[protocol], checked_labels(y)
    labelled = (label >= 0).nonzero().squeeze(1)
    if rule.train is None or rule.validation is None:
        return _mask_splits(label >= 0, masks)[:repeats]

    smallest, part = (FOLDS, rule.train) if rule.selection == "cv" else (1, min(rule.train, rule.validation))
    if len(labelled) * part < smallest:
        raise InputError(
            f"the protocol '{protocol}' needs at least {math.ceil(smallest / part)} labelled nodes and the graph has "
            f"{len(labelled)}; label more nodes or choose another protocol."
        )
    # The floats nearest to these fractions lie above them, so a product that should be whole is never below it.
    sizes = [int(len(labelled) * rule.train), int(len(labelled) * rule.validation)]
    sizes.append(len(labelled) - sum(sizes))
    dealt, always = labelled, labelled[:0]
    if rule.strict:
        dealt, always = shuffled(labelled, FIFTH).split([sizes[0] + sizes[1], sizes[2]])
        sizes[2] = 0
    deals = (shuffled(dealt, first + r).split(sizes) for r in range(repeats))
    return [Split(train, validation, torch.cat([test, always])) for train, validation, test in deals]


def held_out_fold(part: Split) -> list[tuple[Tensor, Tensor]]:
    """The single fold (fit on, held out) of a split that has validation nodes."""
    return [(part.train, part.validation)]


def cross_validation_folds(train: Tensor, classes: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(fit on, held out) for each fold of a training set; nodes are sorted by class and dealt out in turn."""
    order = train[classes[train].argsort(stable=True)]
    fold = torch.arange(len(order)) % FOLDS
    return [(order[fold != k], order[fold == k]) for k in range(FOLDS)]


def _mask_splits(labelled: Tensor, masks: Any) -> list[Split]:
    """The graph's own splits, from its train_mask, val_mask and test_mask (each n, or n × splits)."""
    names = ("train_mask", "val_mask", "test_mask")
    if masks is None or any(name not in masks or masks[name] is None for name in names):
        raise InputError(
            "the protocol 'public' needs a train_mask, val_mask and test_mask, which this graph does not have; "
            "choose a random protocol instead."
        )
    columns = [torch.as_tensor(masks[name]).cpu().bool() for name in names]
    columns = [mask[:, None] if mask.dim() == 1 else mask for mask in columns]
    count = max(mask.shape[1] for mask in columns)
    for name, mask in zip(names, columns, strict=True):
        if len(mask) != len(labelled) or mask.shape[1] not in (1, count):
            raise InputError(
                f"the {name} is {mask.shape[0]} × {mask.shape[1]} but should be {len(labelled)} × 1 or "
                f"{len(labelled)} × {count}, one row per node and one column per split."
            )
    train, validation, test = (mask.expand(-1, count) & labelled[:, None] for mask in columns)
    if ((train & validation) | (train & test) | (validation & test)).any():
        raise InputError("the graph's train_mask, val_mask and test_mask share nodes; make them disjoint.")
    if not all(mask.any(0).all() for mask in (train, validation, test)):
        raise InputError(
            "the graph's masks leave part of a split without labelled nodes; add some or choose a random protocol."
        )
    return [
        Split(*(mask[:, split].nonzero().squeeze(1) for mask in (train, validation, test))) for split in range(count)
    ]


def shuffled(nodes: Tensor, seed: int) -> Tensor:
    """The nodes in the random order of this seed."""
    return nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
