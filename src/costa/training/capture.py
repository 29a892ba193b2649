"""Epochs on CUDA, captured once as a graph of kernels and replayed.

On a small graph, launching kernels takes longer than running them, so replaying an epoch is several times as fast.
For the same reason one seed leaves most of a GPU unused: several seeds are branches of one captured graph and run in
parallel.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.methods.base import GradientMethod
from costa.nn import kernels
from costa.settings import Train
from costa.training.devices import tensor_float
from costa.training.steps import Steps, batches_of

WARM_UP = 3
"""Epochs that run uncaptured first, because libraries choose their kernels and set themselves up in them."""
BRANCHES = 16
"""The most streams that seeds are spread over. On an H200, 8 are as fast as 20, and 4 take a quarter longer."""


def make_steps(methods: Sequence[GradientMethod], graph: Data, train: Train) -> Steps:
    """The epochs of a method with one seed or several, captured if the device and the method allow it."""
    parameter = next(methods[0].parameters())
    captures = (
        parameter.is_cuda
        and kernels.usable(parameter)
        and methods[0].capturable
        and batches_of(methods[0], graph, train) == 1  # the rows of a batch or a group come from the CPU
        and train.kernels == "fast"
        and not torch.are_deterministic_algorithms_enabled()
    )
    return (CapturedSteps if captures else Steps)(methods, graph, train)


class CapturedSteps(Steps):
    """Epochs that are captured once and replayed, with the same results as running them one by one.

    Dense products use TensorFloat-32 here, which is as precise as the kernels' float16.
    """

    captures = True

    def __init__(self, methods: Sequence[GradientMethod], graph: Data, train: Train) -> None:
        super().__init__(methods, graph, train)
        self._warm_up = WARM_UP
        self._captured: torch.cuda.CUDAGraph | None = None
        # Capturing does not work on the default stream, and the warm-up should run on the stream of the capture.
        self._stream = torch.cuda.Stream(self.device)
        count = min(BRANCHES, len(methods)) if len(methods) > 1 else 0
        self._branches = [torch.cuda.Stream(self.device) for _ in range(count)]

    def run(self, count: int) -> Tensor:
        """Train ``count`` epochs, at most MOST_AT_ONCE; return the losses on the CPU, ``count`` × seeds."""
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream), tensor_float():
            for _ in range(count):
                if self._captured is not None:
                    self._captured.replay()
                elif self._warm_up:
                    self._warm_up -= 1
                    self._all_seeds()
                else:
                    self._captured = self._capture()
                    self._captured.replay()
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return self._fetch(count)

    def _all_seeds(self) -> None:
        """Run one epoch of every seed, each on its branch."""
        if not self._branches:
            super()._all_seeds()
            return
        for branch in self._branches:
            branch.wait_stream(self._stream)
        with kernels.branches(len(self.methods)):
            for seed in range(len(self.methods)):
                with torch.cuda.stream(self._branches[seed % len(self._branches)]):
                    self._step(seed)
        for branch in self._branches:
            self._stream.wait_stream(branch)
        self._place += 1

    def _capture(self) -> torch.cuda.CUDAGraph:
        captured = torch.cuda.CUDAGraph()
        for method in self.methods:
            captured.register_generator_state(method.generator)
        with torch.cuda.graph(captured, stream=self._stream):
            self._all_seeds()
        return captured
