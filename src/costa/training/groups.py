"""Groups of parts: every epoch visits each part once, in an order that depends on the seed, the epoch and p alone."""

from __future__ import annotations

import torch
from torch import Tensor

from costa.training.batches import Batches


class Groups:
    """The nodes of every step of a training, those of several parts of the graph.

    Args:
        part: The part of each node, see :func:`costa.graphs.partition.partition`.
        count: Groups of an epoch; their numbers of parts differ by at most one.
        seed: The seed of the method's draws.

    >>> groups = Groups(torch.tensor([0, 1, 2, 0, 1, 2]), count=2, seed=0)
    >>> torch.cat([groups.rows(step) for step in range(2)]).sort().values
    tensor([0, 1, 2, 3, 4, 5])
    """

    def __init__(self, part: Tensor, count: int, seed: int) -> None:
        sizes = part.bincount()
        self._nodes = part.argsort(stable=True).split(sizes.tolist())
        self._parts = Batches(len(sizes), count, seed)

    def rows(self, step: int) -> Tensor:
        """The nodes of a step, counted from the start of training, in ascending order."""
        return torch.cat([self._nodes[part] for part in self._parts.rows(step)]).sort().values
