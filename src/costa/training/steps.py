"""Steps of a method: loss, gradient, Adam step. An epoch is one step, or one per batch of rows or group of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.partition import partition
from costa.methods.base import GradientMethod
from costa.settings import Train
from costa.training.batches import Batches
from costa.training.groups import Groups

MOST_AT_ONCE = 4096
"""The most steps that run before the losses are fetched."""


class Steps:
    """Steps of a method with one seed or several; each seed draws and computes the same as it would alone.

    Args:
        methods: One prepared method per seed, all on the same device.
        graph: The graph that they were prepared for.
        train: Learning rate, weight decay, and the rows of a batch or the parts of a group.
    """

    captures = False
    """Whether steps are captured and replayed, so that many may run before the losses are fetched."""

    def __init__(self, methods: Sequence[GradientMethod], graph: Data, train: Train) -> None:
        self.methods = methods
        self._graph = graph
        self._parameters = [list(method.parameters()) for method in methods]
        self.device = self._parameters[0][0].device
        cuda = self.device.type == "cuda"
        self.optimizers = [
            torch.optim.Adam(parameters, lr=train.lr, weight_decay=train.weight_decay, fused=True, capturable=cuda)
            for parameters in self._parameters
        ]
        self.per_epoch = batches_of(methods[0], graph, train)
        self._batches = _rows_of_steps(methods, graph, train, self.per_epoch)
        self.done = 0
        """Steps done; a resumed training sets it."""
        self.should_stop: Callable[[], bool] = lambda: False
        """Whether this process should stop; several ask in every step, and sum the answers with the gradients."""
        self._stops = False
        self._lost: set[int] = set()
        self._losses = torch.zeros(len(methods), MOST_AT_ONCE, device=self.device)
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)
        for method in methods:
            method.train()

    @property
    def told_to_stop(self) -> bool:
        """Whether training should stop; of several processes, whether one of them should have in the last step."""
        return self.should_stop() if self.methods[0].ranks.size == 1 else self._stops

    def leave(self, seed: int) -> None:
        """Train one of several seeds no further; what captured steps go on computing for it does not count."""
        self._lost.add(seed)

    def run(self, count: int) -> Tensor:
        """Train ``count`` steps, at most MOST_AT_ONCE.

        Returns:
            The losses on the CPU, ``count`` × seeds. On a CPU, which checks each loss, a seed whose loss is not finite
            stops there: it keeps its weights, and its further losses are NaN.
        """
        for _ in range(count):
            self._all_seeds()
        return self._fetch(count)

    def _fetch(self, count: int) -> Tensor:
        losses = self._losses[:, :count].T.to("cpu", copy=True)  # on a CPU the next run would overwrite them
        self._place.zero_()
        self.done += count
        return losses

    def _all_seeds(self) -> None:
        for seed in range(len(self.methods)):
            self._step(seed)
        self._place += 1

    def loss(self, seed: int) -> Tensor:
        """The loss of a seed's next step, on fresh random draws."""
        method = self.methods[seed]
        if self.per_epoch == 1:
            return method.loss(self._graph)
        batches, step = self._batches[seed], self.done + int(self._place)
        rows = batches.rows(step)
        method.prefetch(lambda: batches.rows(step + 1))
        return method.loss(self._graph, rows.to(self.device))  # type: ignore[call-arg]  # a method of batches takes them

    def _step(self, seed: int) -> None:
        if seed in self._lost:
            # new draws may give a finite loss again
            self._losses[seed].index_fill_(0, self._place, torch.nan)
            return
        method, parameters = self.methods[seed], self._parameters[seed]
        loss = self.loss(seed)
        # Not backward(): it accumulates into .grad on the stream where the parameters were first used.
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        several = method.ranks.size > 1
        loss, means, self._stops = method.ranks.mean(loss.detach(), gradients, several and self.should_stop())
        self._losses[seed].index_copy_(0, self._place, loss.float().view(1))
        if self.device.type == "cpu" and not bool(loss.isfinite()):
            self._lost.add(seed)
            return
        for parameter, gradient in zip(parameters, means, strict=True):
            parameter.grad = _laid_out_like(parameter, gradient)
        self.optimizers[seed].step()
        if method.after_step is not None:
            method.after_step()


def batches_of(method: GradientMethod, graph: Data, train: Train) -> int:
    """Number of batches of an epoch, or of groups of parts; 1 for a method that reads the whole graph."""
    if method.by_rows:
        return train.batches(graph.num_nodes)
    if train.parts and not method.takes_parts:
        raise InputError(f"{method.name} trains on the whole graph; set train.parts=0, or choose another method.")
    return train.groups


def _rows_of_steps(
    methods: Sequence[GradientMethod], graph: Data, train: Train, per_epoch: int
) -> Sequence[Batches | Groups]:
    """What each seed's steps read."""
    seeds = [method.generator.initial_seed() for method in methods]
    if methods[0].by_rows or per_epoch == 1:
        return [Batches(graph.num_nodes, per_epoch, seed) for seed in seeds]
    part = partition(graph.edge_index, graph.num_nodes, train.parts)
    return [Groups(part, per_epoch, seed) for seed in seeds]


def _laid_out_like(parameter: Tensor, gradient: Tensor | None) -> Tensor | None:
    """The gradient in its parameter's memory layout, which fused Adam takes for granted."""
    if gradient is None or gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)
