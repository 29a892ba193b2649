"""Classes of labelled nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data


def classes_of(y: Tensor) -> Tensor:
    """The sorted classes of the labelled nodes; a negative number means unlabelled.

    >>> import torch
    >>> classes_of(torch.tensor([7, -1, 3, 7]))
    tensor([3, 7])
    """
    return y[y >= 0].unique()


def label_text(graph: Data, code: int) -> str:
    """A label as the user wrote it, from its code; empty if the code is negative."""
    names = graph.get("label_names")
    return "" if code < 0 else str(code if names is None else names[code])
