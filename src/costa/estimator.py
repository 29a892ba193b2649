"""COSTA as a scikit-learn estimator: ``fit``, ``transform``, ``get_params``, ``save`` and ``load``."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from costa import runs, training
from costa.errors import InputError
from costa.evaluate import health
from costa.graphs import as_graph
from costa.graphs.columns import Columns
from costa.graphs.labels import encode_labels, labels_of
from costa.graphs.structure import COLUMNS
from costa.insight import similar
from costa.methods import get_method
from costa.methods.base import Method
from costa.runs import hub, saving
from costa.runs.files import METRICS
from costa.settings.components import with_components
from costa.settings.explain import explain
from costa.settings.presets import Resolved, resolve
from costa.tuning import portfolio
from costa.wording import counted

if TYPE_CHECKING:
    from sklearn.utils import Tags

logger = logging.getLogger(__name__)

METHOD_OF_VIEWS = {1: "costa-sv", 2: "costa-mv"}
"""The method by its number of views."""


class COSTA(TransformerMixin, BaseEstimator):
    """Node embeddings without labels: features and their hops along the edges, encoded by contrasting sketches.

    A graph is anything that :func:`costa.graphs.as_graph` takes: a PyG ``Data``, a NetworkX graph, a tuple of a scipy
    adjacency matrix (or an edge array, or a frame) and features, a name or a path.

    Settings that are not given are the method's defaults or chosen from the graph; the logger ``costa.estimator`` says
    at level INFO what was chosen and why.

    Args:
        views: 2 contrasts two augmented views, which is better on most graphs; 1 contrasts one view with itself.
        n_components: Number of columns of the vectors; None for the default, at most 512 with hops. With hops it is
            shared between ``encoder.width`` and ``encoder.columns``; otherwise it is ``encoder.width``.
        epochs: Number of passes over the graph; None for the default.
        settings: Any other setting by its dotted key, such as ``{"sketch.ratio": 0.25, "loss.tau": 0.4}``.
        random_state: Random seed, a whole number: the same one gives the same vectors.
        choose: Whether labels choose the method: ``fit`` trains a small portfolio, baselines included, and keeps the
            candidate with the best validation accuracy (:mod:`costa.tuning.portfolio`); ``views`` is then unused.
        device: ``auto``, ``cpu`` or ``cuda``.
        verbose: 1 prints what is chosen from the graph and, if training takes more than two seconds, how far it is.

    Attributes:
        settings_: Every setting of the fit.
        origins_: Where each setting came from, by its dotted key.
        choices_: What was chosen from the graph and why, one line each.
        candidates_: With ``choose``, how each candidate did, by validation; else empty.
        n_features_in_: The number of columns of x.
        feature_names_in_: The columns of the features' table, if they are from one; a later table needs them, in any
            order.
        embedding_: The vectors of the fitted graph, n × d; a loaded model has none.
        node_ids_: The ids of the fitted graph's nodes, row numbers if it has none; a loaded model has none.
        method_: The trained method, a ``torch.nn.Module``; ``method_.name`` is its name and, unless a baseline without
            weights was chosen, ``method_.encoder`` its encoder.

    >>> from costa import COSTA, load_graph
    >>> graph = load_graph("digits")
    >>> COSTA(views=1, epochs=2).fit_transform(graph).shape
    (1797, 384)
    """

    _about: saving.About
    """The model's ``config.json``."""
    _columns: Columns | None
    """What became of the columns of the features' table."""
    _metrics: runs.Metrics | None = None
    """What was measured of the run that it was loaded from."""

    def __init__(
        self,
        views: int = 2,
        *,
        n_components: int | None = None,
        epochs: int | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: int = 0,
        choose: bool = False,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.n_components = n_components
        self.epochs = epochs
        self.settings = settings
        self.random_state = random_state
        self.choose = choose
        self.device = device
        self.verbose = verbose

    def fit(self, graph: Any, y: Any = None) -> COSTA:
        """Train on a graph; labels are ignored or, with ``choose``, choose the method and are not used otherwise.

        Args:
            graph: The graph.
            y: A label for each node, −1 if unlabelled; by default the graph's.
        """
        self._fit(as_graph(graph), y)
        return self

    def most_similar(self, node: Any, k: int = 10, *, graph: Any = None) -> list[tuple[Any, float]]:
        """The k nodes whose vectors are nearest to a node's by cosine, and their cosines, nearest first.

        Args:
            node: The node's id; its row number if the graph has no ids.
            k: How many nodes; all others if there are fewer.
            graph: Another graph, as for :meth:`transform`; by default the fitted one.
        """
        check_is_fitted(self)
        if graph is None and not hasattr(self, "embedding_"):
            raise InputError(
                "a loaded model has no vectors of its graph; give the graph: most_similar(id, graph=graph)."
            )
        data = None if graph is None else as_graph(graph, columns=self._columns)
        z = torch.from_numpy(self.embedding_ if data is None else self._vectors(data))
        ids = self.node_ids_ if data is None else similar.ids_of(data)
        return [(ids[row], cosine) for row, cosine in similar.most_similar(z, similar.find_node(ids, node), k)]

    def fit_transform(self, graph: Any, y: Any = None) -> np.ndarray:
        """:meth:`fit`, and return the graph's vectors (n × d, float32)."""
        data = as_graph(graph)
        self._fit(data, y)
        return self._output(self.embedding_, data)

    def transform(self, graph: Any) -> np.ndarray:
        """The vectors (n × d, float32) of the fitted graph, or of another with the same features.

        After ``set_output(transform="pandas")`` they are a frame whose index is the nodes' ids.
        """
        check_is_fitted(self)
        data = as_graph(graph, columns=self._columns)
        return self._output(self._vectors(data), data)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the vectors' columns: z0, z1 …, as in the tables of ``costa train`` and ``costa embed``.

        Args:
            input_features: Ignored; scikit-learn passes the names of the columns that went in.
        """
        check_is_fitted(self)
        return np.array(runs.column_names(self._n_features_out), dtype=object)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model into a new folder: weights as safetensors, the rest as JSON.

        ``COSTA.load`` and ``costa embed FOLDER GRAPH`` read it.

        Args:
            folder: A folder that does not exist, or is empty.
            overwrite: Whether it may take the place of an earlier model; anything else in the folder is kept, and an
                error says so.
        """
        check_is_fitted(self)
        about = self._about | {"parameters": self._parameters()}
        saving.save(Path(folder), self.method_, about, self._columns, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto") -> COSTA:
        """Load a model that ``save`` wrote, or ``costa train`` with one of COSTA's methods or ``--choose``.

        Args:
            folder: The model's folder or a RUN folder.
            device: ``auto``, ``cpu`` or ``cuda``; it need not be the device of training.
        """
        method, about = saving.load(Path(folder), training.resolve_device(device))
        views = {name: views for views, name in METHOD_OF_VIEWS.items()}
        if method.name not in views and "chosen" not in about:
            raise InputError(f"{folder} holds a model of {method.name}, not of COSTA; `costa embed` makes its vectors.")
        again: dict[str, Any] = {"choose": True}
        if method.name in views:
            again = {"views": views[method.name], **saving.repeating(type(method), about)}
        parameters = about.get("parameters") or again
        if not set(parameters) <= set(cls().get_params()):
            raise saving.damaged(Path(folder), "parameters")
        model = cls(**{"random_state": about["seed"]} | parameters, device=device)
        try:
            _candidates(about)
        except (KeyError, TypeError, ValueError):
            raise saving.damaged(Path(folder), "chosen") from None
        place = Path(folder).expanduser()
        model._become(method, about, runs.load_columns(place))
        model._metrics = runs.read_metrics(place) if (place / METRICS).exists() else None
        return model

    def push_to_hub(self, repo_id: str, *, private: bool = True, token: str | None = None) -> str:
        """Upload the fitted model and a card to the Hugging Face Hub; return its address.

        The graph's vectors, ids, labels and edges stay here. The values of categories and the words of texts in the
        table of features are part of the model; a warning names these columns before anything is uploaded.

        Args:
            repo_id: ``user/name``; the repository is made if there is none.
            private: Whether a new repository can be read by its owner alone.
            token: An access token; by default that of ``hf auth login``.
        """
        check_is_fitted(self)
        if said := hub.disclosed(self._columns):
            logger.warning("the model has %s, and whoever can read %s can read them.", " and ".join(said), repo_id)
        about = hub.published(self._about)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "model"
            saving.save(folder, self.method_, about | {"parameters": self._parameters()}, self._columns)
            text = hub.card(repo_id, about, self._columns, self._metrics, self._n_features_out)
            (folder / hub.CARD).write_text(text, encoding="utf-8")
            return hub.push(folder, repo_id, private=private, token=token)

    @classmethod
    def from_pretrained(
        cls,
        repo_id: str | os.PathLike[str],
        *,
        revision: str | None = None,
        token: str | None = None,
        device: str = "auto",
    ) -> COSTA:
        """Load a model from the Hugging Face Hub, or from a folder as :meth:`load` does.

        Args:
            repo_id: ``user/name``, or a folder; a folder comes first.
            revision: A branch, a tag or a commit of the repository.
            token: An access token; by default that of ``hf auth login``.
            device: ``auto``, ``cpu`` or ``cuda``.
        """
        folder = Path(repo_id).expanduser()
        if not folder.is_dir():
            folder = hub.fetch(str(repo_id), revision=revision, token=token)
        return cls.load(folder, device=device)

    def _parameters(self) -> dict[str, Any]:
        """The parameters that are saved; a model is loaded on any device."""
        return {name: value for name, value in self.get_params().items() if name not in ("device", "verbose")}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "method_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a graph is not a table
        tags.transformer_tags.preserves_dtype = []  # vectors are float32 whatever the features are
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the weights as arrays, not modules, so that it loads without a GPU."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "method_" in state:
            state["weights"] = {
                name: tensor.cpu().numpy() for name, tensor in state.pop("method_").state_dict().items()
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        weights = state.pop("weights", None)
        super().__setstate__(state)
        if weights is not None:
            device = training.resolve_device("cpu" if self.device == "cpu" else "auto")
            method = runs.rebuild(self._about)
            method.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
            self.method_ = method.to(device)

    def _fit(self, graph: Data, y: Any) -> None:
        self._check_parameters()
        device = training.resolve_device(self.device)
        z = self._choose(graph, _labels(y, graph), device) if self.choose else self._train(graph, device)
        self.embedding_, self.node_ids_ = _as_array(z), similar.ids_of(graph)

    def _train(self, graph: Data, device: torch.device) -> torch.Tensor:
        """Train COSTA; return the vectors."""
        method = get_method(METHOD_OF_VIEWS[self.views])
        resolved = resolve(method, graph, given=self.settings or {}, epochs=self.epochs)
        if self.n_components is not None:
            resolved = with_components(resolved, graph.num_features, int(self.n_components))
        choices = self._explained(resolved, graph)
        seed, epochs = int(self.random_state), resolved.values.train.epochs
        lines = training.progress_lines(epochs, self._tell) if self.verbose else None
        built, outcome, z = training.train_and_embed(
            method, resolved.values, graph, seed=seed, device=device, report=lines
        )
        status = health.status(z, graph.x, built.code_columns)
        if "diverged" in (outcome.status, status):
            remedy = health.remedy("diverged", resolved.origins)
            raise InputError(f"the training diverged after {outcome.epochs} epochs; {remedy}.")
        if status == "collapsed":
            logger.warning("%s; %s.", health.COLLAPSED, health.remedy(status, resolved.origins))
        if outcome.watched is not None:
            logger.warning("%s.", outcome.watched)
        if training.loss_fell(outcome.losses) is False:
            logger.warning("%s.", training.FLAT)
        self._tell(f"{counted(outcome.epochs, 'epoch')} in {outcome.seconds:.1f} s")
        built.forget()
        about = saving.describe(built, resolved, graph, seed)
        self._become(built, about | {"choices": choices}, graph.get("columns"))
        return z

    def _choose(self, graph: Data, y: torch.Tensor | None, device: torch.device) -> torch.Tensor:
        """Train the portfolio and keep the best candidate; return its vectors."""

        def report(row: portfolio.Compared) -> None:
            logger.info("%s.", row)
            self._tell(str(row))

        seed = int(self.random_state)
        choice = portfolio.choose(graph, y, seed=seed, device=device, epochs=self.epochs, report=report)
        assert choice.trained is not None
        built, _, z = choice.trained
        resolved = choice.chosen.resolve(graph, self.epochs)
        about = saving.describe(built, resolved, graph, seed) | {"chosen": choice.to_dict()}
        self._become(built, about | {"choices": self._explained(resolved, graph)}, graph.get("columns"))
        return z

    def _explained(self, resolved: Resolved, graph: Data) -> list[str]:
        """What was chosen from the graph and why; the logger says it too."""
        choices = explain(resolved, graph)
        for line in choices:
            logger.info("%s.", line)
            self._tell(line)
        return choices

    def _tell(self, line: str) -> None:
        """Print a line if ``verbose``."""
        if self.verbose:
            print(f"[{type(self).__name__}] {line}", flush=True)

    def _check_parameters(self) -> None:
        if isinstance(self.views, bool) or self.views not in tuple(METHOD_OF_VIEWS):
            raise InputError(f"views = {self.views!r} is out of range: 1 or 2.")
        if not _is_whole(self.random_state):
            raise InputError(
                f"random_state = {self.random_state!r} is not a whole number; give one from 0 to 2^63 − 1."
            )
        if self.n_components is not None and not (_is_whole(self.n_components) and self.n_components > 0):
            raise InputError(f"n_components = {self.n_components!r} is out of range: at least 1, or None.")
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise InputError(
                f"settings must be a dictionary such as {{'sketch.ratio': 0.25}}, not a {type(self.settings).__name__}."
            )
        if self.choose and self.settings:
            raise InputError("choose=True decides the method and its settings; leave out settings, or choose.")
        if self.choose and self.n_components is not None:
            raise InputError("choose=True decides the method and its settings; leave out n_components, or choose.")
        if both := {"encoder.width", "encoder.columns"} & set(self.settings or {} if self.n_components else {}):
            raise InputError(f"n_components decides {min(both)}; leave one of them out.")

    def _become(self, method: Method, about: saving.About, columns: Columns | None) -> None:
        """Take over a trained method, its ``config.json``, and what became of the columns of a table."""
        self.method_ = method
        self._about, self._columns, self._metrics = about, columns, None
        if columns is not None:
            self.feature_names_in_ = np.array([column.name for column in columns.columns], dtype=object)
        self.settings_ = runs.read_settings(type(method), about)
        self.origins_ = about.get("origins", {})
        self.choices_ = about.get("choices", [])
        self.candidates_ = _candidates(about)
        self.n_features_in_ = about["in_features"]
        two = Data(x=torch.zeros(2, self.n_features_in_), edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=2)
        self._n_features_out = method.embed(two).shape[1]

    def _vectors(self, graph: Data) -> np.ndarray:
        """The trained method's vectors of a graph, which must have the features of the fitted one."""
        if graph.num_features != self.n_features_in_:
            made = " (as many as are made for a graph without features)" if graph.num_features == COLUMNS else ""
            raise InputError(
                f"the graph has {graph.num_features} features{made}, but the model was fitted on {self.n_features_in_};"
                " give it the same feature columns in the same order."
            )
        return _as_array(self.method_.embed(graph))

    def _output(self, vectors: np.ndarray, graph: Data) -> Any:
        """The vectors as an array, or as a frame with the ids if scikit-learn is set to pandas output."""
        container = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if container != "pandas":
            return vectors
        import pandas

        # scikit-learn keeps the index of a frame that it gets
        return pandas.DataFrame(vectors, index=graph.get("node_ids"))


def _as_array(z: torch.Tensor) -> np.ndarray:
    """The vectors (n × d, float32)."""
    vectors: np.ndarray = z.float().to_dense().cpu().numpy()
    return vectors


def _candidates(about: saving.About) -> list[portfolio.Compared]:
    """The table that the method was chosen from; empty if it was not."""
    return list(portfolio.Choice.from_dict(about["chosen"]).table) if "chosen" in about else []


def _labels(y: Any, graph: Data) -> torch.Tensor | None:
    """The labels given to ``fit`` as codes, −1 if unlabelled; None if none were."""
    if y is None:
        return None
    codes, _ = encode_labels(labels_of(y, graph.get("node_ids") or range(graph.num_nodes)))
    if len(codes) != graph.num_nodes:
        raise InputError(f"there are {len(codes)} labels for {graph.num_nodes} nodes; give one each, −1 if unlabelled.")
    return codes


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
