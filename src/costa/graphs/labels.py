"""Classes of labelled nodes."""

from __future__ import annotations

from torch import Tensor


def classes_of(y: Tensor) -> Tensor:
    """The sorted classes of the labelled nodes; a negative number means unlabelled.

    >>> import torch
    >>> classes_of(torch.tensor([7, -1, 3, 7]))
    tensor([3, 7])
    """
    return y[y >= 0].unique()
