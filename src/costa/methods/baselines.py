"""The baselines of every table: raw features, features averaged along the edges, hops, an untrained encoder.

A random two-layer GCN is a strong embedding; a method that does not beat it has learned nothing. If neighbours are
alike, averaging the features over them is another, without any weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.graphs.propagation import fitted_rows, stored_hops
from costa.graphs.storage import StoredGraph
from costa.methods.base import Method
from costa.methods.building import build_encoder, build_features
from costa.methods.encoding import EncoderMethod
from costa.nn import Adjacency, Preparation
from costa.nn.hops import ROWS, propagate
from costa.nn.sparse import is_csr


@dataclass(frozen=True)
class RawSettings:
    """Settings of ``raw``."""

    features: settings.Features = field(default_factory=settings.Features)


@dataclass(frozen=True)
class DiffusedSettings:
    """Settings of ``diffused``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.StepsAlone = field(default_factory=settings.StepsAlone)


@dataclass(frozen=True)
class HopsSettings:
    """Settings of ``hops``."""

    features: settings.Features = field(default_factory=partial(settings.Features, rank=512))
    encoder: settings.HopsAlone = field(default_factory=settings.HopsAlone)


@dataclass(frozen=True)
class UntrainedSettings:
    """Settings of ``untrained``."""

    features: settings.Features = field(default_factory=settings.Features)
    encoder: settings.Encoder = field(default_factory=partial(settings.Encoder, width=512))


FULL = 2**31
"""Bytes. Features that would take more once they are filled in are reduced to ``RANK`` columns first."""
RANK = 512


class Raw(Method):
    """The features themselves: Z = X, scaled and perhaps reduced."""

    name = "raw"
    title = "Raw features"
    paper = "a baseline: the features without the graph"
    random = False
    Settings: ClassVar[type] = RawSettings

    def __init__(self, preparation: Preparation) -> None:
        super().__init__()
        self.scaling, self.reduction = preparation

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> Raw:
        """Feature scaling and reduction; nothing is random."""
        return cls(build_features(settings.features, in_features))

    def fit(self, graph: Data) -> None:
        """Learn feature scaling and reduction."""
        self.preparation.fit(fitted_rows(graph))

    @property
    def preparation(self) -> Preparation:
        """Feature scaling and reduction."""
        return Preparation(self.scaling, self.reduction)

    @classmethod
    def choose(cls, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """Also reduce a sparse X that would be too large once it is filled in; a dense one is in memory already."""
        chosen = super().choose(graph)
        large = is_csr(graph.x) and 4 * graph.x.numel() > FULL
        return chosen | ({"features.rank": RANK} if large and cls._fills_in(chosen["features.scaling"]) else {})

    @staticmethod
    def _fills_in(scaling: str) -> bool:
        return scaling == "standard"

    def embed(self, graph: Data) -> Tensor:
        """X, scaled and perhaps reduced; a CSR tensor if the graph's X is one, unless its columns are centred."""
        if isinstance(graph, StoredGraph):
            return self._hops(graph, (0,))[0]
        x = self.preparation.apply(graph.x)
        if isinstance(x, Tensor):
            return x
        return x.a if x.shift is None else x.to_dense()

    def _hops(self, graph: Data, powers: Sequence[int], steps: int = 0, teleport: float = 0.1) -> Sequence[Tensor]:
        """Hops of the prepared X (:func:`costa.nn.hops.propagate`); of a graph on disk, mapped from there."""
        if isinstance(graph, StoredGraph):
            return [hop.block[:] for hop in stored_hops(graph, self.preparation, powers, steps, teleport)]
        adjacency = Adjacency(graph.edge_index, graph.num_nodes, graph.get("edge_weight")).normalized()
        return propagate(Raw.embed(self, graph).float().to_dense(), adjacency, powers, steps, teleport)


class Diffused(Raw):
    """Z = X, scaled and perhaps reduced, after K steps of personalised PageRank (:func:`costa.nn.encoders.diffuse`)."""

    name = "diffused"
    title = "Diffused features"
    paper = "a baseline: the features averaged along the edges"
    Settings = DiffusedSettings

    def __init__(self, preparation: Preparation, steps: int, teleport: float) -> None:
        super().__init__(preparation)
        self.steps, self.teleport = steps, teleport

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> Diffused:
        """Feature scaling and reduction, and the steps; nothing is random."""
        encoder = settings.encoder
        return cls(build_features(settings.features, in_features), encoder.steps, encoder.teleport)

    @staticmethod
    def _fills_in(scaling: str) -> bool:
        return True

    def embed(self, graph: Data) -> Tensor:
        """X, scaled, perhaps reduced, and diffused."""
        return self._hops(graph, () if self.steps else (0,), self.steps, self.teleport)[0]


class HopsBaseline(Raw):
    """Z = [u(X), u(ÂX), u(Â²X), u(Â⁴X), u(PageRank of X)], where u scales a row to length one; zero rows stay zero."""

    name = "hops"
    title = "Hops"
    paper = "a baseline: the features and what comes along one edge, two, four and PageRank's walks, side by side"
    Settings = HopsSettings

    def __init__(self, preparation: Preparation, encoder: settings.HopsAlone) -> None:
        super().__init__(preparation)
        self.encoder = encoder

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> HopsBaseline:
        """Feature scaling and reduction, and the hops; nothing is random."""
        return cls(build_features(settings.features, in_features), settings.encoder)

    def embed(self, graph: Data) -> Tensor:
        """The hops of X side by side."""
        return torch.cat(list(self.embed_rows(graph)))

    def embed_rows(self, graph: Data) -> Iterator[Tensor]:
        """The same, some rows at a time."""
        hops = self.encoder
        blocks = self._hops(graph, hops.powers, hops.steps, hops.teleport)
        for rows in zip(*(block.split(ROWS) for block in blocks), strict=True):
            yield torch.cat([F.normalize(block) for block in rows], 1)


class Untrained(EncoderMethod):
    """H = f(X, A) with random weights."""

    name = "untrained"
    title = "Untrained GCN"
    paper = "a baseline: the encoder with random weights"
    Settings = UntrainedSettings

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> Untrained:
        """The encoder with random weights."""
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(settings.encoder, preparation.out_features, generator)
        return cls(encoder, preparation)
