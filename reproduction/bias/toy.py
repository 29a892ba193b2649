"""The paper's counterexample, measured: contrast under augmentations of equal strength, with and without bias.

Points of three classes lie around the corners of a triangle. An MLP f learns from two augmented views of them by
contrast, and is evaluated on the points themselves. A view moves a point by x̃ = x + b + s·ε, ε ~ N(0, I), and its
strength E‖x̃ − x‖² = ‖b‖² + 2s² is always the same; what varies is the share ‖b‖² of it that is bias. b is the same in
every draw; for each point it has its own random direction (``own``), or points to the centre of the next class
(``across``).

All seeds train as one stack of small networks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from costa.evaluate.probe import linear_probes
from costa.nn import cross_view_loss

NAME = "triangle"
KINDS = {"own": "each its own way", "across": "to the next class"}
"""Where the bias of a point leads, as figures and tables say it."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SETTINGS: dict[str, Any] = {
    "points": 90,
    "radius": 2.0,
    "deviation": 0.7,
    "strength": 1.5,
    "hidden": 32,
    "tau": 0.5,
    "lr": 0.01,
    "steps": 300,
    "seeds": 10,
}
DRAWS = 200
"""Draws of the augmented points, whose mean vector is compared with f(x)."""


def run(settings: dict[str, Any] | None = None) -> Iterable[dict[str, Any]]:
    """A line for each kind, share and seed: accuracy, and the cosine of f(x) and the mean of f(x̃).

    The lines of seed 0 also have the points and their vectors, for the figure.
    """
    settings = settings or SETTINGS
    x, y, centres = points(settings)
    for kind in KINDS:
        for share in SHARES:
            # the same weights, noise and directions for every share, so that only the share differs
            generator = torch.Generator().manual_seed(0)
            b = share**0.5 * settings["strength"] * directions(kind, x, y, centres, generator)
            std = math.sqrt((1 - share) / 2) * settings["strength"]
            weights = train(x, b, std, settings, generator)
            with torch.no_grad():
                z = embed(x, weights)
                mean = torch.zeros_like(z)
                for _ in range(DRAWS):
                    mean += embed(_view(x, b, std, generator), weights) / DRAWS
            cosine = F.cosine_similarity(z, mean, dim=-1).mean(-1)
            for seed, probe in enumerate(linear_probes(z, y, "random-10-10-80")):
                line = {"kind": kind, "share": share, "seed": seed}
                line |= {"accuracy": probe.accuracy.mean, "cosine": float(cosine[seed])}
                if seed == 0:
                    line |= {"x": x[0].tolist(), "b": b[0].tolist(), "z": z[0].tolist(), "y": y.tolist()}
                yield line


def points(settings: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """The points (a set of them for each seed), their classes, and the classes' centres."""
    generator = torch.Generator().manual_seed(1)
    angle = torch.arange(3) * (2 * math.pi / 3) + math.pi / 2
    centres = settings["radius"] * torch.stack([angle.cos(), angle.sin()], dim=1)
    y = torch.arange(settings["points"]) % 3
    spread = torch.randn(settings["seeds"], settings["points"], 2, generator=generator)
    return centres[y] + settings["deviation"] * spread, y, centres


def directions(kind: str, x: Tensor, y: Tensor, centres: Tensor, generator: torch.Generator) -> Tensor:
    """The direction of the bias of each point, as a unit vector."""
    random = F.normalize(torch.randn(x.shape, generator=generator), dim=-1)
    return random if kind == "own" else F.normalize(centres[(y + 1) % 3] - x, dim=-1)


def train(x: Tensor, b: Tensor, std: float, settings: dict[str, Any], generator: torch.Generator) -> list[Tensor]:
    """The weights of all seeds' networks after the last step."""
    seeds, hidden = settings["seeds"], settings["hidden"]
    weights = [
        torch.randn(seeds, 2, hidden, generator=generator) / math.sqrt(2),
        torch.zeros(seeds, 1, hidden),
        torch.randn(seeds, hidden, hidden, generator=generator) / math.sqrt(hidden),
        torch.zeros(seeds, 1, hidden),
        torch.randn(seeds, hidden, 2, generator=generator) / math.sqrt(hidden),
    ]
    for weight in weights:
        weight.requires_grad_()
    contrast = functools.partial(cross_view_loss, tau=settings["tau"], plain=True)
    optimizer = torch.optim.Adam(weights, lr=settings["lr"])
    for _ in range(settings["steps"]):
        u, v = (embed(_view(x, b, std, generator), weights) for _ in range(2))
        loss = torch.vmap(contrast)(u, v).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [weight.detach() for weight in weights]


def embed(x: Tensor, weights: list[Tensor]) -> Tensor:
    """f(x), of length one: a point on the circle."""
    first, first_bias, second, second_bias, last = weights
    hidden = torch.relu(torch.relu(x @ first + first_bias) @ second + second_bias)
    return F.normalize(hidden @ last, dim=-1)


def _view(x: Tensor, b: Tensor, std: float, generator: torch.Generator) -> Tensor:
    return x + b + std * torch.randn(x.shape, generator=generator)
