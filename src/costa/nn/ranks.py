"""Several processes, the ranks, that train one model on rows that each holds a range of.

Let L(θ) be the loss of one process. Each of the N ranks has a copy θ_r of the weights and computes the same number L_r
from its own rows and from sums over all ranks. L_1 + … + L_N is a function of all copies. The adjoint of a sum that all
ranks receive is again such a sum, so the backward pass of rank r gives ∂(L_1 + … + L_N)/∂θ_r. As all copies are equal,

    (1/N)·Σ_r ∂(L_1 + … + L_N)/∂θ_r = (1/N)·d(N·L)/dθ = dL/dθ:

the mean of the gradients over the ranks is the gradient of one process. That holds for weights before the sum (the
encoder, whose gradient on one rank is N times the share of its rows) and after it (the head, whose gradient is the same
on all).

If everything after a sum is the same on all ranks, then so is its gradient, and the sum of N equal gradients is N times
one of them: :meth:`Ranks.common_total` sends nothing in the backward pass.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

CPU = torch.device("cpu")
SENT = 2**22
"""Numbers of each rank that are sent at a time."""
T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """One of the processes that train together; alone by default, when every sum is its own term.

    Args:
        rank: The number of this process, from 0.
        size: N, how many there are.
        device: Where sent tensors must be.
        local: The number of this process among those of its machine, and how many these are; None if all are on one.

    >>> list(Ranks(1, 3).range(10)), ALONE.range(10)
    ([3, 4, 5], range(0, 10))
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU
    local: tuple[int, int] | None = None

    @property
    def first(self) -> bool:
        """Whether this process prints and writes files."""
        return self.rank == 0

    @property
    def part(self) -> str:
        """The name of what this rank holds."""
        return f"part-{self.rank}-of-{self.size}"

    @property
    def sharing(self) -> int:
        """How many processes share this machine's memory."""
        return self.size if self.local is None else self.local[1]

    def range(self, n: int) -> range:
        """The rows of n that this rank holds."""
        return _range(n, self.rank, self.size)

    def total(self, x: Tensor) -> Tensor:
        """Σ_r x_r, with a gradient: the sum of the gradients of all ranks."""
        return x if self.size == 1 else _Total.apply(x)

    def common_total(self, x: Tensor) -> Tensor:
        """:meth:`total`, if all ranks compute the same from it."""
        return x if self.size == 1 else _CommonTotal.apply(x, self.size)

    def largest(self, x: Tensor) -> Tensor:
        """The largest that any rank has of each number."""
        if self.size == 1:
            return x
        largest = x.to(self.device, copy=True)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return largest.to(x.device)

    def least(self, value: int) -> int:
        """The least that any rank has."""
        return -int(self.largest(torch.tensor(-value)))

    def complete(self, x: Tensor) -> Tensor:
        """Fill in the rows of x that other ranks hold, in place; x has room for all rows, on every rank."""
        if self.size == 1:
            return x
        at_once = max(1, SENT // x.shape[1])
        held = [_range(len(x), rank, self.size) for rank in range(self.size)]
        for blocks in itertools.zip_longest(*(x[rows.start : rows.stop].split(at_once) for rows in held)):
            there = {rank: (block, block.to(self.device)) for rank, block in enumerate(blocks) if block is not None}
            for work in [dist.broadcast(sent, rank, async_op=True) for rank, (_, sent) in there.items() if len(sent)]:
                work.wait()
            for block, sent in there.values():
                if sent is not block:
                    block.copy_(sent)
        return x

    def mean(
        self, loss: Tensor, gradients: Sequence[Tensor | None], flag: bool = False
    ) -> tuple[Tensor, list[Tensor | None], bool]:
        """The means of the loss and of the gradients, and whether the flag is set on any rank, in one sum.

        A gradient is None on all ranks or on none.
        """
        if self.size == 1:
            return loss, list(gradients), flag
        there = [loss, loss.new_tensor(float(flag)), *(each for each in gradients if each is not None)]
        flat = _summed(torch.cat([each.detach().flatten() for each in there])).div_(self.size)
        parts = flat.split([each.numel() for each in there])
        means = iter([part.view(each.shape) for part, each in zip(parts, there, strict=True)])
        mean, flags = next(means), next(means)
        return mean, [None if each is None else next(means) for each in gradients], bool(flags > 0)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return flag if self.size == 1 else bool(_summed(torch.tensor(float(flag), device=self.device)) > 0)

    def agree(self, *values: float) -> tuple[float, ...]:
        """The first rank's values."""
        if self.size == 1:
            return values
        agreed = torch.tensor([*values, 0.0], dtype=torch.float64, device=self.device)
        dist.broadcast(agreed, 0)
        return tuple(agreed.tolist()[:-1])

    def told(self, make: Callable[[], T]) -> T:
        """What the first rank has made, on every rank."""
        if self.size == 1:
            return make()
        with self._with_all_threads() if self.first else contextlib.nullcontext():
            made = [make() if self.first else None]
        dist.broadcast_object_list(made, 0)
        return cast("T", made[0])

    @torch.no_grad()
    def share(self, module: nn.Module) -> None:
        """Give every rank the first one's weights and buffers."""
        if self.size > 1:
            for tensor in module.state_dict().values():
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        """Until all ranks have come as far."""
        self.any(False)

    @contextlib.contextmanager
    def first_before_others(self) -> Iterator[None]:
        """The first rank passes this block, then the first of every other machine, then the others.

        So they find what has been written, whether or not the machines share a disk.
        """
        turn = 0 if self.first else 1 if self.local is not None and self.local[0] == 0 else 2
        for _ in range(turn):
            self.wait()
        with self._with_all_threads() if turn < 2 else contextlib.nullcontext():
            yield
        for _ in range(2 - turn):
            self.wait()

    @contextlib.contextmanager
    def _with_all_threads(self) -> Iterator[None]:
        """While the other processes of this machine wait, their threads are this one's."""
        threads = torch.get_num_threads()
        torch.set_num_threads(threads * self.sharing)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def gather(self, parts: Iterator[Tensor], n: int, at_once: int) -> Iterator[Tensor]:
        """On the first rank all n rows, so many at once; on the others the parts that they hold and have sent."""
        for part in parts:
            if not self.first:
                dist.send(part.contiguous(), 0)
            yield part
        for rank in range(1, self.size) if self.first else ():
            for rows in torch.empty(len(_range(n, rank, self.size))).split(at_once):
                received = torch.empty(len(rows), part.shape[1], dtype=part.dtype, device=self.device)
                dist.recv(received, rank)
                yield received


ALONE = Ranks()
"""A process that trains by itself."""


def _range(n: int, rank: int, size: int) -> range:
    return range(n * rank // size, n * (rank + 1) // size)


def _summed(x: Tensor) -> Tensor:
    """Sum a tensor that nobody else holds over the ranks, in place."""
    dist.all_reduce(x)
    return x


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _summed(x.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Total.apply(grads[0])


class _CommonTotal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int) -> Tensor:
        ctx.size = size
        return _summed(x.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * ctx.size, None
