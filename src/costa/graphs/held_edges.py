"""Edges that are set aside before anything is computed from a graph, to evaluate which links its vectors predict.

Both directions of an edge go together, its weight goes with it, and features that were made from the edges are made
again from those that are left. All nodes stay, also one that loses its last edge; a self-loop is never held out.

PyG's ``RandomLinkSplit`` draws from the global generators, takes a self-loop for a link, may draw a pair without an
edge in both directions, and knows no features made from edges.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costa.errors import InputError
from costa.graphs.pairs import edge_numbers, number_pairs, pairs_of
from costa.graphs.storage import StoredGraph
from costa.graphs.structure import structural_features

if TYPE_CHECKING:
    from torch_geometric.data import Data


def hold_out_edges(graph: Data, share: float, *, seed: int = 0) -> tuple[Data, Tensor]:
    """Set a share of the edges aside: the graph without them, on which to train, and the held-out pairs.

    Args:
        graph: A graph from ``load_graph`` or ``as_graph``; it is not modified.
        share: The share of the edges, each counted once, above 0 and below 1.
        seed: Random seed.

    Returns:
        The training graph, and the held-out edges, 2 × h, each once and the smaller node first.

    Example:
        >>> from costa import load_graph
        >>> graph = load_graph("digits")
        >>> training, held = hold_out_edges(graph, 0.1)
        >>> graph.num_edges // 2, training.num_edges // 2, held.shape
        (7522, 6770, torch.Size([2, 752]))
    """
    if isinstance(graph, StoredGraph):
        raise InputError(
            f"{graph.name} stays on disk, where no edges can be held out; leave out --memory, or hold out edges of a"
            " smaller graph."
        )
    numbers = edge_numbers(graph)
    count = round(share * len(numbers)) if 0 < share < 1 else 0
    if not 0 < count < len(numbers):
        raise InputError(
            f"{share:g} of the {len(numbers):,} edges cannot be held out: at least one must be, and one be left; give a"
            " share such as 0.1."
        )
    held = np.sort(np.random.default_rng(seed).choice(numbers, count, replace=False))
    return _without(graph, held), pairs_of(held)


def _without(graph: Data, held: np.ndarray) -> Data:
    """The graph without these edges."""
    source, target = graph.edge_index
    # a self-loop has no number of its own
    left = np.isin(number_pairs(graph.edge_index), held, invert=True)
    keep = torch.from_numpy(left).to(source.device) | (source == target)
    training = copy.copy(graph)
    # by name: PyG takes a list of ids for one of edges if a graph has as many nodes as edges
    training.edge_index = graph.edge_index[:, keep]
    if graph.get("edge_weight") is not None:
        training.edge_weight = graph.edge_weight[keep]
    if graph.get("x_from_edges"):
        weight = training.get("edge_weight")
        made = structural_features(
            training.edge_index.cpu(), None if weight is None else weight.cpu(), int(graph.num_nodes)
        )
        training.x = made.to(graph.x.device)
    return training


@dataclass(frozen=True)
class HeldOut:
    """How edges were held out of a run's graph, as ``config.json`` records it, so that they are found again.

    Attributes:
        share: The share of the edges.
        seed: Random seed.
        edges: How many are held out.
        digest: A digest of the held-out edges and of the others.
    """

    share: float
    seed: int
    edges: int
    digest: str

    @classmethod
    def of(cls, training: Data, held: Tensor, share: float, seed: int) -> HeldOut:
        """The record of what :func:`hold_out_edges` made with this share and seed."""
        digest = hashlib.blake2b(digest_size=16)
        for numbers in (number_pairs(held), edge_numbers(training)):
            digest.update(f"{len(numbers)} ".encode())
            digest.update(np.ascontiguousarray(numbers).data)
        return cls(share, seed, held.shape[1], digest.hexdigest())

    def again(self, graph: Data) -> tuple[Data, Tensor]:
        """What :func:`hold_out_edges` made, from the same graph; another one is refused."""
        training, held = hold_out_edges(graph, self.share, seed=self.seed)
        if HeldOut.of(training, held, self.share, self.seed) != self:
            raise InputError(
                f"{graph.name} has other edges than when {self.edges:,} of them were held out, so those cannot be told"
                " from the others; restore the edges, or train again into another --out."
            )
        return training, held

    def to_dict(self) -> dict[str, Any]:
        """The entry in ``config.json``."""
        return asdict(self)
