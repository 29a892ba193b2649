"""Rows of a matrix by index, from one matrix or from each of a stack."""

from __future__ import annotations

import torch
from torch import Tensor


def take_rows(h: Tensor, index: Tensor) -> Tensor:
    """H[index], k × d; of a stack, S × n × d, each by its own k of the S × k indices.

    By ``index_select``, which waits for no GPU in either direction and takes, on a CPU, half the time of
    ``take_along_dim``.

    >>> take_rows(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 1, 0])).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    if h.dim() == 2:
        return h.index_select(0, index)
    stack, n, d = h.shape
    below = index + n * torch.arange(stack, device=index.device)[:, None]
    return h.reshape(stack * n, d).index_select(0, below.flatten()).view(stack, -1, d)
