"""The projection head θ, between the sketch and the loss."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from costa.nn.encoders import ACTIVATIONS


class ProjectionHead(nn.Sequential):
    """Z = θ(H) = W⁽²⁾ σ(W⁽¹⁾ H), one hidden layer with biases; Z is as wide as H.

    The paper prints ReLU; the released code, and the default here, has ELU.

    Args:
        features: Columns of H and of Z.
        hidden: Width of the hidden layer.
        activation: ``relu``, ``elu`` or ``prelu``.
        generator: Draws the initial weights (Glorot); torch's global generator by default.
    """

    def __init__(
        self, features: int, hidden: int, activation: str = "elu", generator: torch.Generator | None = None
    ) -> None:
        # skip_init, so that nn.Linear does not draw from the global generator
        first = nn.utils.skip_init(nn.Linear, features, hidden)
        second = nn.utils.skip_init(nn.Linear, hidden, features)
        for linear in (first, second):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)
        super().__init__(OrderedDict(first=first, activation=ACTIVATIONS[activation](), second=second))
