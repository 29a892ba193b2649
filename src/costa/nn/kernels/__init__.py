"""The fused GPU forms of what :mod:`costa.nn.losses` and :mod:`costa.nn.philox` define; those are their oracles.

They need Triton, which CUDA builds of PyTorch bring along. ``TRITON_INTERPRET=1`` in the environment runs them on a
CPU, slowly, which is how they are tested without a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from collections.abc import Iterator

import torch
from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

_branches = 1


@contextlib.contextmanager
def branches(count: int) -> Iterator[None]:
    """Within it, kernels are launched for a GPU that ``count`` branches of a captured graph share.

    A kernel that splits its sums to fill the whole GPU pays for it with memory traffic, and gains nothing if the others
    fill the GPU anyway.
    """
    global _branches
    before, _branches = _branches, count
    try:
        yield
    finally:
        _branches = before


def share(programs: int) -> int:
    """What one branch may take of this many programs.

    >>> with branches(4):
    ...     share(12), share(2)
    (3, 1)
    """
    return max(1, programs // _branches)


@functools.cache
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _large_enough(device: torch.device) -> bool:
    """Whether the tiles fit into a multiprocessor's memory: those of an A100, H100 or H200, not of a desktop's card."""
    # not every build of PyTorch has the field
    return getattr(torch.cuda.get_device_properties(device), "shared_memory_per_block_optin", 0) >= 160 * 1024


def usable(rows: Tensor) -> bool:
    """Whether the kernels take this tensor: float32 on a large enough CUDA device, and Triton at hand."""
    return rows.is_cuda and rows.dtype == torch.float32 and _installed() and _large_enough(rows.device)
