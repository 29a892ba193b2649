"""Random tensors from one generator, or from several, whose draws are stacked along a first dimension.

Several generators belong to several initialisations that train together: each draws exactly what it would draw alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Streams: TypeAlias = torch.Generator | Sequence[torch.Generator]


def uniform(streams: Streams, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniform on [0, 1), on the generators' device.

    >>> uniform(torch.Generator(), 3).shape, uniform([torch.Generator(), torch.Generator()], 3).shape
    (torch.Size([3]), torch.Size([2, 3]))
    """
    return _draw(streams, lambda g: torch.rand(shape, generator=g, device=g.device, dtype=dtype))


def normal(streams: Streams, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """N(0, 1)."""
    return _draw(streams, lambda g: torch.randn(shape, generator=g, device=g.device, dtype=dtype))


def integers(streams: Streams, high: int, *shape: int) -> Tensor:
    """Uniform on 0 … high − 1."""
    return _draw(streams, lambda g: torch.randint(high, shape, generator=g, device=g.device))


def as_list(streams: Streams) -> list[torch.Generator]:
    """The generators, one or several."""
    return [streams] if isinstance(streams, torch.Generator) else list(streams)


def from_the_start(streams: Streams) -> Streams:
    """New generators with the seeds that these began with."""
    if isinstance(streams, torch.Generator):
        return torch.Generator(streams.device).manual_seed(streams.initial_seed())
    return [torch.Generator(g.device).manual_seed(g.initial_seed()) for g in streams]


def _draw(streams: Streams, draw: Callable[[torch.Generator], Tensor]) -> Tensor:
    return draw(streams) if isinstance(streams, torch.Generator) else torch.stack([draw(g) for g in streams])
