"""Evaluate a large graph on a sample: more labels would hardly change a score, and cost hours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

MOST = 50_000
"""The most labelled nodes that are evaluated."""
MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class Sample:
    """How many labelled nodes were evaluated, of how many.

    >>> print(Sample(50_000, 1_000_000))
    50,000 of 1,000,000 labelled nodes
    """

    nodes: int
    of: int

    def __str__(self) -> str:
        return f"{self.nodes:,} of {self.of:,} labelled nodes"


def sample_of(y: Tensor) -> Sample | None:
    """The size of the sample that stands for these labels; None if all are evaluated."""
    labelled = int((y >= 0).sum())
    return None if labelled <= MOST else Sample(MOST, labelled)


def sampled_nodes(y: Tensor) -> Tensor | None:
    """The labelled nodes that stand for all, drawn once at random, in order; None if all are evaluated.

    >>> sampled_nodes(torch.zeros(100)) is None, len(sampled_nodes(torch.zeros(60_000)))
    (True, 50000)
    """
    labelled = (y >= 0).nonzero().squeeze(1)
    if len(labelled) <= MOST:
        return None
    order = torch.randperm(len(labelled), generator=torch.Generator().manual_seed(0))
    return labelled[order[:MOST]].sort().values


def labels_of(graph: Data, nodes: Tensor | None) -> Data:
    """The labels and masks of these nodes, without features or edges; the graph itself if ``nodes`` is None."""
    if nodes is None:
        return graph
    return Data(**{key: graph[key][nodes] for key in ("y", *MASKS) if graph.get(key) is not None})


def rows_at(parts: Iterable[Tensor], nodes: Tensor | None) -> Tensor:
    """These rows of a matrix that comes some rows at a time; all if ``nodes`` is None.

    >>> rows_at(torch.arange(10).split(4), torch.tensor([1, 5, 9]))
    tensor([1, 5, 9])
    """
    kept, start = [], 0
    for part in parts:
        if nodes is None:
            kept.append(part)
        else:
            inside = nodes[(nodes >= start) & (nodes < start + len(part))]
            kept.append(part[inside - start])
        start += len(part)
    return kept[0] if len(kept) == 1 else torch.cat(kept)
