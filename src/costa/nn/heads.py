"""The projection head θ, between the sketch and the loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from costa.nn.encoders import ACTIVATIONS


class Linear(nn.Linear):
    """H Wᵀ + b, with one W and b for each of a stack."""

    def forward(self, input: Tensor) -> Tensor:
        """The product, … × n × out."""
        if self.weight.dim() == 2:
            return super().forward(input)
        return torch.baddbmm(self.bias[:, None, :], input, self.weight.mT)


class ProjectionHead(nn.Module):
    """Z = θ(H) = W⁽²⁾ σ(W⁽¹⁾ H), one hidden layer with biases; Z is as wide as H.

    The paper prints ReLU; the released code, and the default here, has ELU.

    Args:
        features: Columns of H and of Z.
        hidden: Width of the hidden layer.
        activation: ``relu``, ``elu`` or ``prelu``.
        generator: Draws the initial weights (Glorot); the global one if left out.
    """

    def __init__(
        self, features: int, hidden: int, activation: str = "elu", generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        # Made empty, so that nn.Linear does not draw from the global generator.
        self.first = nn.utils.skip_init(Linear, features, hidden)
        self.second = nn.utils.skip_init(Linear, hidden, features)
        self.activation = ACTIVATIONS[activation]()
        for linear in (self.first, self.second):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, h: Tensor) -> Tensor:
        """Z for any number of rows."""
        z: Tensor = self.second(self.activation(self.first(h)))
        return z
