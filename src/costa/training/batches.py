"""Batches of rows: every epoch visits each row once, in an order that depends on the seed, the epoch and n alone."""

from __future__ import annotations

import torch
from torch import Tensor


class Batches:
    """The rows of every step of a training.

    Args:
        n: Number of rows.
        count: Batches of an epoch; they differ by at most one row.
        seed: The seed of the method's draws.

    >>> batches = Batches(10, count=3, seed=0)
    >>> [len(batches.rows(step)) for step in range(3)], torch.cat([batches.rows(step) for step in range(3)]).sum()
    ([4, 3, 3], tensor(45))
    """

    def __init__(self, n: int, count: int, seed: int) -> None:
        self.n, self.count, self.seed = n, count, seed
        self._epoch, self._parts = -1, tuple[Tensor, ...]()

    def rows(self, step: int) -> Tensor:
        """The rows of a step, counted from the start of training."""
        epoch, part = divmod(step, self.count)
        if epoch != self._epoch:
            # its own stream: an order does not depend on what the steps before have drawn, nor on the device
            order = torch.randperm(self.n, generator=torch.Generator().manual_seed((self.seed + epoch) % 2**32))
            self._epoch, self._parts = epoch, order.tensor_split(self.count)
        return self._parts[part]
