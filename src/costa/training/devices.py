"""Which device computes, and how precisely."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from costa.errors import InputError


def resolve_device(name: str) -> torch.device:
    """The device of this name; ``auto`` is CUDA if available.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {name!r}; choose auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("the device cuda was chosen, but PyTorch sees no CUDA device here; use cpu or auto.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def make_deterministic() -> None:
    """Use only deterministic kernels from now on, in the whole process; on CUDA some of them are slower."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)


@contextlib.contextmanager
def tensor_float() -> Iterator[None]:
    """Inside this block, float32 products on CUDA may round their factors to TensorFloat-32."""
    products: Any = torch.backends.cuda.matmul
    before = products.fp32_precision
    products.fp32_precision = "tf32"
    try:
        yield
    finally:
        products.fp32_precision = before
