"""Labels, whatever they come as: text or numbers, in a table, an array, a list or on the nodes of a graph.

**No label** is an empty cell, None, NaN, a text that means "missing" in any column (``NA``, ``null``, …:
:data:`costa.graphs.cells.MISSING`), or −1. Any other negative number is refused: it can only be a mistake. A whole
number is one label however it is written: ``1``, ``1.0`` and the text ``"1.0"``.

**Classes** are numbered 0, 1, … in sorted order, numbers by value. Nearly as many of them as labelled nodes, or many
numbers with a fraction, are measurements and no classes, and are refused.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from costa.errors import InputError
from costa.graphs.cells import MISSING
from costa.graphs.tables import is_missing, is_number
from costa.wording import counted

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)

WHOLE = re.compile(r"([+-]?\d+)\.0*")
FRACTIONS = 20
"""The most classes that numbers with a fraction may make."""
FEW = 20
"""Labelled nodes up to which each may have a class of its own."""


def classes_of(y: Tensor) -> Tensor:
    """The sorted classes of the labelled nodes; a negative number means unlabelled.

    >>> import torch
    >>> classes_of(torch.tensor([7, -1, 3, 7]))
    tensor([3, 7])
    """
    return y[y >= 0].unique()


def as_labels(labels: Any, where: str = "the labels") -> list[str]:
    """Labels as text, one per node; no label becomes the empty string.

    Args:
        labels: An array, a tensor, a series, or a sequence of whatever.
        where: Their name in error messages.

    >>> as_labels([2.0, float("nan"), -1, " red", "-1", "3.0"])
    ['2', '', '', 'red', '', '3']
    """
    cells = labels.tolist() if hasattr(labels, "tolist") else labels
    known, texts = dict[Any, str](), list[str]()
    for cell in cells:
        value = cell.item() if hasattr(cell, "item") else cell  # a number of NumPy's, or a tensor of one
        if is_missing(value):
            texts.append("")
            continue
        key = type(value), str(value)
        if key not in known:
            known[key] = _label(value, where)
        texts.append(known[key])
    if len(set(texts) - {""}) == 1 and any(text.strip() in ("-1", "-1.0") for _, text in known):
        logger.warning("%s are −1 or %s, and −1 means no label; if it is a class, give it a name.", where, max(texts))
    return texts


def labels_of(labels: Any, ids: Sequence[Any], where: str = "the labels") -> list[str]:
    """Labels that are given beside a graph, in the order of its nodes; no label becomes the empty string.

    A dictionary, and a pandas series whose index says more than the rows' positions, have labels by the nodes' ids.

    >>> labels_of({"cy": "red", "ann": "blue"}, ["ann", "bob", "cy"])
    ['blue', '', 'red']
    """
    if getattr(labels, "ndim", 1) != 1:
        raise InputError(f"{where} have the shape {tuple(labels.shape)}; give one for each node.")
    index = getattr(labels, "index", None)
    if hasattr(labels, "to_numpy") and index is not None and not index.equals(type(index)(range(len(index)))):
        labels = dict(zip(index.tolist(), labels.tolist(), strict=True))
    if not isinstance(labels, Mapping):
        return as_labels(labels, where)
    texts = dict(zip(map(_id, labels), as_labels(list(labels.values()), where), strict=True))
    known = set(map(str, ids))
    unknown = next((node for node in texts if node not in known), None)
    if unknown is not None:
        raise InputError(f"{where} have one for {unknown!r}, which is not a node; give them by the nodes' ids.")
    return [texts.get(str(node), "") for node in ids]


def label_column(table: Any) -> str:
    """What the labels of a table are called in :func:`check_once`."""
    return f"the column 'label' of {table.where}"


def check_once(places: Sequence[str]) -> None:
    """Refuse labels from several places."""
    if len(places) > 1:
        raise InputError(f"labels are given twice, by {' and '.join(places)}; give them once.")


def _id(key: Any) -> str:
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key).strip()


def _label(cell: Any, where: str) -> str:
    if isinstance(cell, bytes):
        raise InputError(f"{where} hold the bytes {cell!r}; give labels as text or numbers.")
    if isinstance(cell, list | tuple | dict | set):
        raise InputError(f"{where} hold a {type(cell).__name__}; give one label for each node, as text or a number.")
    text = str(cell).strip()
    if text in MISSING:
        return ""
    whole = WHOLE.fullmatch(text)
    text = whole[1] if whole else text
    if text.startswith("-") and is_number(text):
        if float(text) != -1:
            raise InputError(f"{where} hold {text}; only −1 means no label, so number the classes from 0 or name them.")
        return ""
    return text


def encode_labels(labels: Sequence[str], where: str = "the labels") -> tuple[Tensor, list[str]]:
    """Labels as codes in sorted order, −1 if empty, and the sorted labels; refused if they are no classes.

    >>> encode_labels(["10", "", "9"])
    (tensor([ 1, -1,  0]), ['9', '10'])
    """
    names = sorted_labels(labels)
    check_classes(names, len(labels) - labels.count(""), where)
    code = {"": -1} | {name: i for i, name in enumerate(names)}
    return torch.tensor([code[label] for label in labels], dtype=torch.long), names


def sorted_labels(labels: Sequence[str]) -> list[str]:
    """The different labels, numbers by value."""
    given = set(labels) - {""}
    return sorted(given, key=lambda label: (float(label), label)) if _numeric(given) else sorted(given)


def _numeric(names: Iterable[str]) -> bool:
    return all(is_number(name) and math.isfinite(float(name)) for name in names)


def check_classes(names: Sequence[str], labelled: int, where: str) -> None:
    """Refuse labels that are measurements: nearly all different, or many numbers with a fraction.

    >>> check_classes(["0.1", "0.25"] + [f"{i}.5" for i in range(30)], 1000, "the labels")
    Traceback (most recent call last):
        ...
    costa.errors.InputError: the labels hold 32 different values on 1,000 nodes, which are no classes; give a class \
for each node, such as a range of the values, or leave them out.
    """
    fractions = _numeric(names) and any(not float(name).is_integer() for name in names)
    if (labelled > FEW and 2 * len(names) > labelled) or (fractions and len(names) > FRACTIONS):
        raise InputError(
            f"{where} hold {len(names):,} different values on {counted(labelled, 'node')}, which are no classes; give a"
            " class for each node, such as a range of the values, or leave them out."
        )


def label_text(graph: Data, code: int) -> str:
    """A label as the user wrote it, from its code; empty if the code is negative."""
    names = graph.get("label_names")
    return "" if code < 0 else str(code if names is None else names[code])
