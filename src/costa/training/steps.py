"""Epochs of a method: loss, gradient, Adam step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.methods.base import GradientMethod
from costa.settings import Train

MOST_AT_ONCE = 4096
"""The most epochs that run before the losses are fetched."""


class Steps:
    """Epochs of a method with one seed or several; each seed draws and computes the same as it would alone.

    Args:
        methods: One prepared method per seed, all on the same device.
        graph: The graph that they were prepared for.
        train: Learning rate and weight decay.
    """

    captures = False
    """Whether epochs are captured and replayed, so that many may run before the losses are fetched."""

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
        self._lost: set[int] = set()
        self._losses = torch.zeros(len(methods), MOST_AT_ONCE, device=self.device)
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)
        for method in methods:
            method.train()

    def run(self, count: int) -> Tensor:
        """Train ``count`` epochs, at most MOST_AT_ONCE.

        Returns:
            The losses on the CPU, ``count`` × seeds. On a CPU, which checks each loss, a seed whose loss is not finite
            stops there: it keeps its weights, and its further losses are NaN.
        """
        for _ in range(count):
            self._epoch()
        return self._fetch(count)

    def _fetch(self, count: int) -> Tensor:
        losses = self._losses[:, :count].T.to("cpu", copy=True)  # on a CPU the next run would overwrite them
        self._place.zero_()
        return losses

    def _epoch(self) -> None:
        for seed in range(len(self.methods)):
            self._step(seed)
        self._place += 1

    def _step(self, seed: int) -> None:
        if seed in self._lost:
            # new draws may give a finite loss again
            self._losses[seed].index_fill_(0, self._place, torch.nan)
            return
        method, parameters = self.methods[seed], self._parameters[seed]
        loss = method.loss(self._graph)
        self._losses[seed].index_copy_(0, self._place, loss.detach().float().view(1))
        if self.device.type == "cpu" and not bool(loss.isfinite()):
            self._lost.add(seed)
            return
        # Not backward(): it accumulates into .grad on the stream where the parameters were first used.
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = _laid_out_like(parameter, gradient)
        self.optimizers[seed].step()
        if method.after_step is not None:
            method.after_step()


def _laid_out_like(parameter: Tensor, gradient: Tensor | None) -> Tensor | None:
    """The gradient in its parameter's memory layout, which fused Adam takes for granted."""
    if gradient is None or gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)
