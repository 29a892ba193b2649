"""What a target is requested with, and how it is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

UNMEASURED = ("wikics",)
"""Graphs whose file was not available."""


@dataclass(frozen=True)
class Request:
    """Where results are read from and files written to, and what part of a target is requested.

    Attributes:
        results: The store of results.
        out: Folder of the figures; the pages are next to it.
        seeds: Number of random seeds behind each number, 0 … seeds − 1.
        datasets: Only these datasets, for runs and figures; if empty, the target's.
        methods: Only these methods, for runs.
    """

    results: Path = Path("results")
    out: Path = Path("docs/figures")
    seeds: int = 20
    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()

    def graphs(self, default: Sequence[str]) -> list[str]:
        """The requested datasets, or else those of ``default`` whose files were available."""
        return list(self.datasets) or [dataset for dataset in default if dataset not in UNMEASURED]


@dataclass(frozen=True)
class Setup:
    """How a measurement is made.

    Attributes:
        device: Where it computes.
        jobs: Tasks at a time; None for as many as cores, or one on a GPU.
        data_dir: Folder of the benchmark graphs.
        announce: Called with a line for each finished task.
    """

    device: torch.device
    jobs: int | None = None
    data_dir: Path | None = None
    announce: Callable[[str], None] = lambda text: None
