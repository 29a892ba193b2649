"""DeepWalk and node2vec: random walks are sentences, nodes are words, and a skip-gram model learns their vectors.

Perozzi, Al-Rfou, Skiena: DeepWalk: Online Learning of Social Representations, KDD 2014; Grover, Leskovec: node2vec:
Scalable Feature Learning for Networks, KDD 2016. For each node u of a walk and each node v at most w steps from it,

    log σ(z_u·c_v) + Σ_k log σ(−z_u·c_k)

is maximised by stochastic gradient ascent (learning rate from 0.025 down to 0.0001), with k over five nodes drawn in
proportion to (number of visits)^¾; z are the vectors, and c are discarded. w is drawn for each node, uniform on
1 … window.

Defaults are node2vec's for both: 10 walks of 80 nodes from each node, window 10, 128 dimensions, one pass; DeepWalk's
paper has 80 walks of 40 nodes. What differs from the authors' code: DeepWalk's has a hierarchical softmax instead of
negatives; both skip some visits to frequent nodes, gensim's default, while here all count; node2vec's steps are drawn
by rejection, not from a table for each edge, see :class:`costa.graphs.walks.RandomWalks`.

Walks and skip-gram (gensim's) run on the CPU in one thread, whatever the device: with several threads the same seed
would not give the same vectors. A node without edges has the zero vector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.graphs.walks import RandomWalks
from costa.methods.base import Method
from costa.methods.building import build_features
from costa.nn import Preparation, SparseMatrix

NEGATIVES = 5


@dataclass(frozen=True)
class DeepWalkSettings:
    """Settings of ``deepwalk``."""

    walks: settings.Walks = field(default_factory=settings.Walks)


@dataclass(frozen=True)
class Node2VecSettings:
    """Settings of ``node2vec``."""

    walks: settings.BiasedWalks = field(default_factory=settings.BiasedWalks)


@dataclass(frozen=True)
class DeepWalkXSettings:
    """Settings of ``deepwalk-x``."""

    features: settings.Features = field(default_factory=settings.Features)
    walks: settings.Walks = field(default_factory=settings.Walks)


class DeepWalk(Method):
    """DeepWalk: vectors from uniform random walks; features are not used.

    Args:
        walks: Settings of the walks and the skip-gram model.
        seed: Random seed.
    """

    name = "deepwalk"
    title = "DeepWalk"
    paper = "Perozzi et al., DeepWalk: Online Learning of Social Representations, KDD"
    year = 2014
    inductive = False
    Settings: ClassVar[type] = DeepWalkSettings

    vectors: Tensor

    def __init__(self, walks: settings.Walks, seed: int) -> None:
        super().__init__()
        self.walks = walks
        self.seed = seed
        self.register_buffer("vectors", torch.zeros(0, walks.dimension))

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> DeepWalk:
        """No vectors yet. The seed is drawn on the CPU, so that the walks are the same on every device."""
        return cls(settings.walks, _draw_seed(generator))

    @classmethod
    def choose(cls, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """Nothing: features are not used."""
        return {}

    def fit(self, graph: Data) -> None:
        """Walk and learn the vectors."""
        walks = self.walks
        bias = {"p": walks.p, "q": walks.q} if isinstance(walks, settings.BiasedWalks) else {}
        corpus = RandomWalks(graph, number=walks.number, length=walks.length, seed=self.seed, **bias)
        linked = corpus.linked
        if not linked.any():
            raise InputError(f"{self.name} learns from edges alone, but the graph has none; choose another method.")
        vectors = skip_gram(corpus, graph.num_nodes, walks, self.seed)
        # a walk of one node has no pairs: its vector is still the initial one
        vectors[~linked] = 0
        self.vectors = torch.from_numpy(vectors).to(self.vectors.device)

    def embed(self, graph: Data) -> Tensor:
        """The vectors of the training graph's nodes."""
        if graph.num_nodes != len(self.vectors):
            raise InputError(
                f"{self.name} has vectors for {len(self.vectors)} nodes, and the graph has {graph.num_nodes}; give"
                " the graph it was trained on."
            )
        return self.vectors

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Resize the vectors first: a method is built without knowing the number of nodes."""
        self.vectors = self.vectors.new_zeros(len(state_dict.get("vectors", ())), self.walks.dimension)
        return super().load_state_dict(state_dict, strict, assign)


class Node2Vec(DeepWalk):
    """DeepWalk on walks that are biased by p and q.

    The paper chooses p and q among ¼, ½, 1, 2 and 4 for each graph; the default, 1 and ½, is the pair with which it
    finds communities. With p = q = 1 it is DeepWalk.
    """

    name = "node2vec"
    title = "node2vec"
    paper = "Grover and Leskovec, node2vec: Scalable Feature Learning for Networks, KDD"
    year = 2016
    Settings = Node2VecSettings


class DeepWalkX(DeepWalk):
    """DeepWalk's vectors concatenated with the features, scaled and perhaps reduced: Z = [H/‖H‖, X/‖X‖], row by row.

    Scaled to length one, both parts count the same; otherwise the part with the longer rows would drown the other.
    """

    name = "deepwalk-x"
    title = "DeepWalk with features"
    Settings = DeepWalkXSettings

    def __init__(self, walks: settings.Walks, seed: int, preparation: Preparation) -> None:
        super().__init__(walks, seed)
        self.scaling, self.reduction = preparation

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> DeepWalkX:
        """As DeepWalk, with feature scaling and reduction."""
        return cls(settings.walks, _draw_seed(generator), build_features(settings.features, in_features))

    @classmethod
    def choose(cls, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """The feature scaling, as for every method that reads features."""
        return Method.choose(graph, settings)

    def fit(self, graph: Data) -> None:
        """Learn feature scaling, reduction and the vectors."""
        Preparation(self.scaling, self.reduction).fit(graph.x)
        super().fit(graph)

    def embed(self, graph: Data) -> Tensor:
        """[H/‖H‖, X/‖X‖], on the features' device."""
        h = super().embed(graph).to(graph.x.device)
        x = Preparation(self.scaling, self.reduction).apply(graph.x)
        return torch.cat([F.normalize(h), F.normalize(x.to_dense() if isinstance(x, SparseMatrix) else x)], dim=1)


def skip_gram(corpus: Iterable[list[int]], n: int, walks: settings.Walks, seed: int) -> np.ndarray:
    """The vectors of nodes 0 … n − 1, n × dimension.

    Args:
        corpus: Walks that visit every node; read once to count the visits, and once per epoch.
        n: The number of nodes.
        walks: Window, dimension and epochs.
        seed: Random seed of the initial vectors, the windows and the negatives.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise InputError("random walks need gensim; pip install 'costa-gcl[walks]'.") from None
    model = Word2Vec(
        corpus,
        vector_size=walks.dimension,
        window=walks.window,
        epochs=walks.epochs,
        sg=1,
        negative=NEGATIVES,
        min_count=1,
        sample=0,
        workers=1,
        seed=seed % 2**32,  # gensim takes at most 32 bits
    )
    vectors = np.empty((n, walks.dimension), dtype=np.float32)
    vectors[model.wv.index_to_key] = model.wv.vectors
    return vectors


def _draw_seed(generator: torch.Generator | None) -> int:
    return int(torch.randint(2**63 - 1, (), generator=generator))
