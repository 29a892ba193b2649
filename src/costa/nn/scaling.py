"""Feature scaling: part of the model, learned from the graph it was trained on, applied to every graph it embeds."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from costa.errors import InputError


class FeatureScaling(nn.Module):
    """What is done to X before the encoder.

    ``none`` leaves it; ``rows`` divides each row by the sum of its absolute values (a zero row stays); ``standard``
    subtracts each column's mean and divides by its standard deviation, both those of the graph that :meth:`fit` saw.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, kind: str, features: int) -> None:
        super().__init__()
        if kind not in ("none", "rows", "standard"):
            raise InputError(f"unknown feature scaling {kind!r}; there are none, rows and standard.")
        self.kind = kind
        if kind == "standard":
            self.register_buffer("mean", torch.zeros(features))
            self.register_buffer("std", torch.ones(features))

    def fit(self, x: Tensor) -> None:
        """Learn the columns' mean and standard deviation; a constant column is only centred."""
        if self.kind == "standard":
            std, mean = torch.std_mean(x, dim=0, correction=0)
            self.mean.copy_(mean)
            self.std.copy_(torch.where(std > 0, std, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The scaled features, where ``x`` is: a graph may wait on the CPU for a model that is on a GPU."""
        if self.kind == "rows":
            return x / x.abs().sum(1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        if self.kind == "standard":
            return (x - self.mean.to(x.device)) / self.std.to(x.device)
        return x

    def extra_repr(self) -> str:
        """The kind."""
        return repr(self.kind)


def choose_scaling(x: Tensor) -> str:
    """The scaling that ``auto`` stands for, from the features alone.

    Features within [0, 1] (bags of words, pixels, TF-IDF) are left as they are: normalising the rows of Amazon-Photo's
    cost up to sixty points of accuracy. Counts (0 or more, most of them 0) have their rows normalised. Anything else is
    measurements, each column in a unit of its own, and is standardised: of wines, normalised rows say little but how
    much proline there is, and cost 17 points.

    >>> choose_scaling(torch.tensor([[0., 1.], [1., 0.]])), choose_scaling(torch.tensor([[-3., 10.]]))
    ('none', 'standard')
    """
    low, high = float(x.min()), float(x.max())
    if low >= 0 and high <= 1:
        return "none"
    return "rows" if low >= 0 and 2 * int(x.count_nonzero()) < x.numel() else "standard"
