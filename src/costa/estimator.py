"""COSTA with scikit-learn's face: ``fit``, ``transform``, ``get_params``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from costa import training
from costa.errors import InputError
from costa.experiments.presets import resolve
from costa.graphs.checks import check_graph
from costa.methods import get_method


class COSTA(TransformerMixin, BaseEstimator):
    """Node embeddings without labels: a GCN trained by contrasting sketches of its own features.

    Settings that are not given are the method's defaults, what the graph suggests, or a benchmark's tuned ones.

    Args:
        views: 1 contrasts the sketch with itself; 2 contrasts two augmented views of the graph.
        epochs: Passes over the graph; None for the default.
        settings: Any other setting by its dotted key, such as ``{"sketch.ratio": 0.25, "loss.tau": 0.4}``.
        seed: Of the weights and of everything random in training.
        device: ``auto``, ``cpu`` or ``cuda``.

    >>> from costa import COSTA, load_graph
    >>> graph = load_graph("digits")
    >>> COSTA(views=1, epochs=2).fit_transform(graph).shape
    (1797, 128)
    """

    def __init__(
        self,
        views: int = 1,
        *,
        epochs: int | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.views = views
        self.epochs = epochs
        self.settings = settings
        self.seed = seed
        self.device = device

    def fit(self, graph: Data, y: None = None) -> COSTA:
        """Train on a graph; labels, if it has any, are not looked at."""
        if self.views not in (1, 2):
            raise InputError(f"views = {self.views!r} is out of range: 1 or 2.")
        check_graph(graph)
        method = get_method("costa-sv" if self.views == 1 else "costa-mv")
        resolved = resolve(method, graph, given=self.settings or {}, epochs=self.epochs)
        built = training.build(method, resolved.values, graph, self.seed, training.resolve_device(self.device))
        outcome = training.train(built, graph, resolved.values.train)
        if outcome.status == "diverged":
            raise InputError(
                f"the loss was not finite at epoch {outcome.epochs + 1}; lower train.lr or raise loss.tau."
            )
        self.settings_ = resolved.values
        self.n_features_in_ = graph.num_features
        built.forget()
        self.method_ = built
        return self

    def transform(self, graph: Data) -> np.ndarray:
        """The vectors (n × d, float32) of the graph it was fitted on, or of another with the same features."""
        check_is_fitted(self)
        check_graph(graph)
        if graph.num_features != self.n_features_in_:
            raise InputError(
                f"the graph has {graph.num_features} features, and the model was fitted on {self.n_features_in_}."
            )
        z: np.ndarray = self.method_.embed(graph).float().cpu().numpy()
        return z
