"""BatchNorm whose moments are those of the rows of all ranks (:mod:`costa.nn.ranks`).

    μ = Σ_r 1ᵀH_r / n,    σ² = Σ_r 1ᵀH_r² / n − μ²,    n = Σ_r n_r,

summed in float64, where the difference loses nothing that float32 has. ``torch.nn.SyncBatchNorm`` does the same, but
not on a CPU. Alone, it is ``torch.nn.BatchNorm1d``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from costa.nn.ranks import ALONE, Ranks


class BatchNorm(nn.BatchNorm1d):
    """σ⁻¹(H − μ)·weight + bias; in eval mode with the running moments.

    >>> norm = BatchNorm(2)
    >>> norm(torch.tensor([[1.0, 4.0], [3.0, 2.0]])).detach().round()
    tensor([[-1.,  1.],
            [ 1., -1.]])
    """

    ranks: Ranks = ALONE

    def moments(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor | int]:
        """μ, σ² and n of the rows of all ranks."""
        if self.ranks.size == 1:
            variance, mean = torch.var_mean(h, dim=0, correction=0)
            return mean, variance, len(h)
        wide = h.double()
        sums = torch.cat([wide.sum(0), wide.square().sum(0), wide.new_full((1,), len(h))])
        first, second, n = self.ranks.total(sums).split([h.shape[1], h.shape[1], 1])
        mean = first / n
        variance = (second / n - mean.square()).clamp(min=0)
        return mean.to(h.dtype), variance.to(h.dtype), n.detach().to(h.dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised rows."""
        if self.ranks.size == 1 or not self.training:
            return super().forward(input)
        mean, variance, n = self.moments(input)
        if self.track_running_stats:
            assert self.momentum is not None
            with torch.no_grad():
                self.get_buffer("running_mean").lerp_(mean, self.momentum)
                self.get_buffer("running_var").lerp_(variance * n / (n - 1), self.momentum)
                self.get_buffer("num_batches_tracked").add_(1)
        return (input - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias
