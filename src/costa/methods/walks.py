"""DeepWalk and node2vec: random walks are sentences, nodes are words, and a skip-gram learns their vectors.

Perozzi, Al-Rfou, Skiena: DeepWalk: Online Learning of Social Representations, KDD 2014; Grover, Leskovec: node2vec:
Scalable Feature Learning for Networks, KDD 2016. For each node u of a walk and each node v at most w steps from it,

    log σ(z_u·c_v) + Σ_k log σ(−z_u·c_k)

is raised by stochastic gradient ascent (learning rate from 0.025 down to 0.0001), k five nodes drawn by (how often they
are visited)^¾; z are the vectors, c serve only here. The pairs' w is drawn anew for each node, uniform on 1 … window.

Defaults are node2vec's for both: 10 walks of 80 nodes from each node, window 10, 128 dimensions, one pass. DeepWalk's
own are 80 walks of 40 nodes. What differs from the authors' code: DeepWalk's has a hierarchical softmax in the place of
the negatives; both leave out some visits to frequent nodes, gensim's default, and here all count; node2vec's steps
are drawn by rejection, not from a table for each edge, see :class:`costa.graphs.walks.RandomWalks`.

Walks and skip-gram (gensim's) run on the CPU, whatever the device, in one thread: several would race for the vectors,
and the same seed would no longer give the same ones. A node without any edge has the zero vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from costa.nn import FeatureScaling

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
    """Vectors of nodes that meet on uniform random walks; features play no part.

    Args:
        walks: Of the walks and the skip-gram.
        seed: Of both.
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
        """No vectors yet. The seed is drawn on the CPU, so that it means the same walks whatever the device."""
        return cls(settings.walks, _draw_seed(generator))

    @classmethod
    def choose(cls, graph: Data) -> dict[str, Any]:
        """Nothing: there are no features to scale."""
        return {}

    def fit(self, graph: Data) -> None:
        """Walk, and learn the vectors."""
        walks = self.walks
        bias = {"p": walks.p, "q": walks.q} if isinstance(walks, settings.BiasedWalks) else {}
        corpus = RandomWalks(graph, number=walks.number, length=walks.length, seed=self.seed, **bias)
        linked = corpus.linked
        if not linked.any():
            raise InputError(f"{self.name} learns from edges alone, and the graph has none; choose another method.")
        vectors = skip_gram(corpus, graph.num_nodes, walks, self.seed)
        # a walk of one node has no pairs: what stands there is what the training began with
        vectors[~linked] = 0
        self.vectors = torch.from_numpy(vectors).to(self.vectors.device)

    def embed(self, graph: Data) -> Tensor:
        """The vectors of the nodes that were walked on."""
        if graph.num_nodes != len(self.vectors):
            raise InputError(
                f"{self.name} has vectors for {len(self.vectors)} nodes, and the graph has {graph.num_nodes}; it gives"
                " vectors only for the graph it was trained on."
            )
        return self.vectors

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Make room first: a method is built without knowing how many nodes its graph has."""
        self.vectors = self.vectors.new_zeros(len(state_dict.get("vectors", ())), self.walks.dimension)
        return super().load_state_dict(state_dict, strict, assign)


class Node2Vec(DeepWalk):
    """DeepWalk on walks that are biased by p and q.

    The paper chooses p and q among ¼, ½, 1, 2 and 4 for each graph; the default, 1 and ½, is the pair it shows to find
    communities. Both 1 would be DeepWalk.
    """

    name = "node2vec"
    title = "node2vec"
    paper = "Grover and Leskovec, node2vec: Scalable Feature Learning for Networks, KDD"
    year = 2016
    Settings = Node2VecSettings


class DeepWalkX(DeepWalk):
    """DeepWalk's vectors beside the features: Z = [H/‖H‖, X/‖X‖], row by row, X scaled before.

    A classifier or a clustering reads rows of length one. Scaled so, each part alone is what it would read of it alone,
    and together they count the same; unscaled, whichever has the longer rows would drown the other.
    """

    name = "deepwalk-x"
    title = "DeepWalk, features beside it"
    Settings = DeepWalkXSettings

    def __init__(self, walks: settings.Walks, seed: int, scaling: FeatureScaling) -> None:
        super().__init__(walks, seed)
        self.scaling = scaling

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> DeepWalkX:
        """As DeepWalk, and what is done to X."""
        scaling = FeatureScaling(settings.features.scaling, in_features)
        return cls(settings.walks, _draw_seed(generator), scaling)

    @classmethod
    def choose(cls, graph: Data) -> dict[str, Any]:
        """The scaling of the features, as every method that reads them."""
        return Method.choose(graph)

    def fit(self, graph: Data) -> None:
        """Learn the feature scaling, and the vectors."""
        self.scaling.fit(graph.x)
        super().fit(graph)

    def embed(self, graph: Data) -> Tensor:
        """[H/‖H‖, X/‖X‖], where the features are."""
        h = super().embed(graph).to(graph.x.device)
        return torch.cat([F.normalize(h), F.normalize(self.scaling(graph.x))], dim=1)


def skip_gram(corpus: Iterable[list[int]], n: int, walks: settings.Walks, seed: int) -> np.ndarray:
    """The vectors of nodes 0 … n − 1, n × dimension, each of which is in the corpus at least once.

    Args:
        corpus: Walks; read once to count, and once an epoch.
        n: The number of nodes.
        walks: Window, dimension and epochs.
        seed: Of the first vectors, the windows and the negatives.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise InputError("random walks are learned from by gensim; pip install 'costa-gcl[walks]'.") from None
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
        seed=seed % 2**32,  # the most that it takes
    )
    vectors = np.empty((n, walks.dimension), dtype=np.float32)
    vectors[model.wv.index_to_key] = model.wv.vectors
    return vectors


def _draw_seed(generator: torch.Generator | None) -> int:
    return int(torch.randint(2**63 - 1, (), generator=generator))
