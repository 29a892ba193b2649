"""COSTA as a scikit-learn estimator."""

import copy
import json
import logging
import pickle

import joblib
import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from torch_geometric.data import Data

from costa import COSTA, linear_probe, load_graph
from costa.errors import InputError
from costa.graphs import as_graph
from costa.graphs.synthetic import planted_partition
from costa.methods.costa import CostaMV
from costa.tuning import portfolio

SMALL = {"encoder.width": 16, "head.width": 16}
REACH = {"encoder.powers": "1,4"}


@pytest.fixture(scope="module")
def graph():
    return planted_partition(300, 3, 30, seed=0)


@pytest.fixture(scope="module")
def fitted(graph):
    return COSTA(epochs=2, settings=SMALL).fit(graph)


@pytest.mark.parametrize("views", [1, 2])
def test_vectors_beat_the_raw_features(graph, views):
    z = COSTA(views=views, epochs=40, settings={"encoder.width": 64}).fit_transform(graph)
    assert z.dtype == np.float32
    ours, raw = (linear_probe(vectors, graph.y, repeats=5).accuracy.mean for vectors in (z, graph.x))
    assert ours > raw + 0.1


def test_a_seed_fixes_the_vectors_and_the_global_generators_are_left_alone(graph):
    before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second, other = (COSTA(epochs=3, settings=SMALL, random_state=s).fit_transform(graph) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002


def test_fit_transform_is_fit_and_then_transform(graph, fitted):
    np.testing.assert_array_equal(clone(fitted).fit_transform(graph), fitted.transform(graph))


def test_parameters_are_scikit_learns(graph):
    model = COSTA(views=2, epochs=4, settings=SMALL, random_state=3)
    assert model.get_params() == {
        "views": 2,
        "n_components": None,
        "epochs": 4,
        "settings": SMALL,
        "random_state": 3,
        "choose": False,
        "device": "auto",
        "verbose": 0,
    }
    assert clone(model).set_params(random_state=5).random_state == 5
    with pytest.raises(NotFittedError):
        model.transform(graph)
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()


class OfRows(COSTA):
    """A table's rows as the nodes of a graph without an edge: what scikit-learn's checks can be run on."""

    def fit(self, X, y=None):
        return super().fit(_without_edges(X))

    def fit_transform(self, X, y=None):
        return super().fit_transform(_without_edges(X))

    def transform(self, X):
        return super().transform(_without_edges(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


def _without_edges(rows):
    if scipy.sparse.issparse(rows):
        raise TypeError("sparse data was given, and a dense table is needed")
    return np.empty((0, 2), dtype=np.int64), rows


WITHOUT_WIDTH = {key: value for key, value in SMALL.items() if key != "encoder.width"}
"""Some checks set ``n_components``."""
OWN_WORDS = "it is refused in the package's own words, not in scikit-learn's"
DOES_NOT_APPLY = {
    "check_n_features_in_after_fitting": OWN_WORDS,
    "check_complex_data": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
    "check_fit2d_1sample": OWN_WORDS,
    "check_fit2d_predict1d": OWN_WORDS,
    "check_dtype_object": "an array of objects is refused even where all of them are numbers",
    "check_transformer_data_not_an_array": "features are an array, a scipy matrix or a frame, nothing that looks alike",
    "check_methods_subset_invariance": "it transforms node by node, and a graph has at least two",
}


def test_scikit_learns_own_checks():
    ended = check_estimator(
        OfRows(n_components=8, epochs=1, settings=WITHOUT_WIDTH, device="cpu"),
        expected_failed_checks=DOES_NOT_APPLY,
        on_fail=None,
        on_skip=None,
    )
    named = {
        status: [r["check_name"] for r in ended if r["status"] == status] for status in ("passed", "failed", "xfail")
    }
    assert named["failed"] == []
    assert sorted(named["xfail"]) == sorted(DOES_NOT_APPLY)
    assert len(named["passed"]) >= 35


@pytest.mark.parametrize("kind", ["gcn", "hops"])
@pytest.mark.parametrize("views", [1, 2])
def test_there_is_a_name_for_every_column(graph, views, kind):
    model = COSTA(views, epochs=1, settings={"encoder.kind": kind, "encoder.width": 8})
    assert model.fit_transform(graph).shape[1] == len(model.get_feature_names_out())


@pytest.mark.parametrize("encoder", [{"kind": "gcn"}, {"kind": "appnp", "steps": 2}, {"kind": "hops"}])
@pytest.mark.parametrize("columns", [7, 16, 700])
def test_the_vectors_have_as_many_columns_as_asked_for(graph, encoder, columns):
    settings = {f"encoder.{key}": value for key, value in encoder.items()}
    model = COSTA(n_components=columns, epochs=1, settings=settings)
    assert model.fit_transform(graph).shape[1] == columns
    assert model.origins_["encoder.width"] == "n_components"


def test_scikit_learn_is_told_that_a_graph_is_no_table():
    assert not get_tags(COSTA()).input_tags.two_d_array


def test_a_graph_that_changed_is_read_anew(graph, fitted):
    changed = graph.clone()
    before = fitted.transform(changed)
    changed.x = changed.x.flip(0)
    assert not np.array_equal(fitted.transform(changed), before)


def test_a_new_graph_with_the_same_features(fitted):
    assert fitted.transform(planted_partition(50, 3, 30, seed=1)).shape == (50, fitted.method_.vector_width)


def test_a_new_graph_does_not_change_what_was_learnt(graph, fitted):
    before = fitted.transform(graph)
    other = planted_partition(50, 3, 30, seed=1)
    other.x = 100 * other.x
    fitted.transform(other)
    np.testing.assert_array_equal(fitted.transform(graph), before)


def test_a_graph_with_other_features_is_one_sentence(fitted):
    with pytest.raises(InputError, match=r"has 7 features, but the model was fitted on 30; give .* the same order"):
        fitted.transform(planted_partition(50, 3, 7, seed=1))


def test_a_graph_without_features_is_one_sentence(graph, fitted):
    says = r"has 33 features \(as many as are made for a graph without features\), but the model was fitted on 30"
    for bare in Data(edge_index=graph.edge_index, num_nodes=300), graph.edge_index.numpy():
        with pytest.raises(InputError, match=says):
            fitted.transform(bare)


def test_without_features_they_are_made_from_the_edges_of_each_graph(graph):
    model = COSTA(epochs=2, settings=SMALL).fit(Data(edge_index=graph.edge_index, num_nodes=300))
    other = planted_partition(250, 3, 2, seed=1)
    assert model.transform(Data(edge_index=other.edge_index, num_nodes=250)).shape == (250, model.method_.vector_width)


def test_every_way_in_gives_the_same_vectors(graph, fitted):
    x, edges = graph.x.numpy(), graph.edge_index.numpy()
    adjacency = scipy.sparse.coo_array((np.ones(edges.shape[1]), edges), shape=(300, 300)).tocsr()
    linked = networkx.Graph()
    linked.add_nodes_from((i, {f"f{j}": float(v) for j, v in enumerate(row)}) for i, row in enumerate(x))
    linked.add_edges_from(edges.T.tolist())
    frames = pandas.DataFrame({"source": edges[0], "target": edges[1]}), pandas.DataFrame(x).assign(id=range(300))
    z = fitted.transform(graph)
    for given in (adjacency, x), (edges, x), linked, frames:
        np.testing.assert_allclose(fitted.transform(given), z, atol=1e-6)


def test_columns_have_names_and_rows_have_ids(graph, fitted):
    assert fitted.get_feature_names_out()[[0, 15]].tolist() == ["z0", "z15"]
    edges = pandas.DataFrame({"source": ["bob", "eve"], "target": ["eve", "ada"]})
    features = pandas.DataFrame({"id": ["ada", "bob", "eve"], "age": [31.0, 40.0, 25.0], "height": [1.7, 1.8, 1.6]})
    model = COSTA(epochs=1, settings=SMALL).set_output(transform="pandas")
    for frame in model.fit_transform((edges, features)), model.transform((edges, features)):
        assert frame.index.tolist() == ["ada", "bob", "eve"]
        assert frame.columns.tolist() == model.get_feature_names_out().tolist()
    assert isinstance(clone(model).fit_transform((edges, features)), pandas.DataFrame)
    with config_context(transform_output="pandas"):
        assert fitted.transform(graph).index.tolist() == list(range(300))
    assert isinstance(fitted.transform(graph), np.ndarray)


def test_a_pipeline_takes_labels_that_are_there_for_some(graph):
    y = graph.y.numpy().copy()
    y[30:] = -1
    model = make_pipeline(
        COSTA(epochs=40, settings={"encoder.width": 64}), SelfTrainingClassifier(LogisticRegression(C=100))
    )
    found = model.fit(graph, y).predict(graph)
    assert (found[30:] == graph.y.numpy()[30:]).mean() > 0.7
    assert model.predict(planted_partition(50, 3, 30, seed=0)).shape == (50,)


def test_labels_are_not_looked_at(graph, fitted):
    shuffled = graph.clone()
    shuffled.y = graph.y.flip(0)
    given = COSTA(epochs=2, settings=SMALL).fit(shuffled, np.arange(300))
    np.testing.assert_array_equal(given.transform(graph), fitted.transform(graph))


@pytest.fixture(scope="module")
def by_chance():
    """A graph whose edges join nodes at random: its features are best left alone."""
    return planted_partition(300, 3, 16, degree=6, homophily=0.33, signal=3.0, seed=7)


@pytest.fixture(scope="module")
def few_candidates():
    """A portfolio of raw features, their hops and a small GCN."""
    gcn = portfolio.Candidate("gcn", "a small GCN", "costa-mv", {"encoder.kind": "gcn", **SMALL})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portfolio, "PORTFOLIO", (portfolio.PORTFOLIO[0], portfolio.PORTFOLIO[2], gcn))
        yield


@pytest.fixture(scope="module")
def raw_chosen(by_chance, few_candidates):
    return COSTA(choose=True, epochs=1).fit(by_chance)


def test_labels_choose_a_baseline_where_the_edges_say_nothing(by_chance, raw_chosen):
    assert raw_chosen.method_.name == "raw"
    rows = {row.candidate.name: row.validation.mean for row in raw_chosen.candidates_}
    assert list(rows) == ["raw", "hops", "gcn"]
    assert max(rows, key=rows.get) == "raw"
    z = raw_chosen.transform(by_chance)
    assert z.shape == (300, 16)
    assert raw_chosen.get_feature_names_out().shape == (16,)
    np.testing.assert_array_equal(clone(raw_chosen).fit_transform(by_chance), z)


def test_labels_given_to_fit_choose_whatever_their_form(graph, few_candidates):
    y = graph.y.numpy().copy()
    y[120:] = -1
    names = np.array(["blue", "green", "red"], dtype=object)[graph.y.numpy()]
    names[120:] = None
    without = graph.clone()
    del without.y
    given, named = (COSTA(choose=True, epochs=1).fit(without, labels) for labels in (y, names))
    assert [row.validation for row in given.candidates_] == [row.validation for row in named.candidates_]
    unlabelled = graph.clone()
    unlabelled.y = torch.from_numpy(y)
    own = COSTA(choose=True, epochs=1).fit(unlabelled)
    assert [row.validation for row in own.candidates_] == [row.validation for row in given.candidates_]
    np.testing.assert_array_equal(own.transform(graph), given.transform(graph))


def test_a_chosen_baseline_is_saved_loaded_and_pickled(by_chance, raw_chosen, tmp_path):
    z = raw_chosen.transform(by_chance)
    raw_chosen.save(tmp_path / "model")
    for again in COSTA.load(tmp_path / "model"), pickle.loads(pickle.dumps(raw_chosen)), copy.deepcopy(raw_chosen):
        np.testing.assert_array_equal(again.transform(by_chance), z)
        assert again.get_params() == raw_chosen.get_params()
        assert again.candidates_ == raw_chosen.candidates_
        assert again.get_feature_names_out().tolist() == raw_chosen.get_feature_names_out().tolist()


def test_a_table_of_candidates_that_is_damaged_is_one_sentence(raw_chosen, tmp_path):
    raw_chosen.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen": {"by": "luck"}}))
    with pytest.raises(InputError, match=r"config.json is damaged: its 'chosen' is missing or wrong"):
        COSTA.load(tmp_path / "model")


def test_without_choosing_there_are_no_candidates(fitted):
    assert fitted.candidates_ == []


def test_names_of_columns_are_as_many_as_the_columns(graph):
    model = COSTA(views=2, epochs=1).fit(graph)
    assert len(model.get_feature_names_out()) == model.transform(graph).shape[1]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_fitted_model_can_be_copied_and_pickled(graph, fitted, again):
    copied = again(fitted)
    np.testing.assert_array_equal(copied.transform(graph), fitted.transform(graph))
    assert copied.get_params() == fitted.get_params()
    assert copied.choices_ == fitted.choices_


def test_joblib_keeps_a_model(graph, fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").transform(graph), fitted.transform(graph))


def test_a_model_that_is_not_fitted_can_be_pickled():
    assert pickle.loads(pickle.dumps(COSTA(random_state=4))).random_state == 4


def test_verbose_prints_what_was_chosen_and_how_long_it_took(graph, capsys):
    COSTA(epochs=1, settings=SMALL).fit(graph)
    assert capsys.readouterr().out == ""
    model = COSTA(epochs=1, settings=SMALL, verbose=1).fit(graph)
    *chosen, last = capsys.readouterr().out.splitlines()
    assert chosen == [f"[COSTA] {line}" for line in model.choices_]
    assert last.startswith("[COSTA] 1 epoch in ")


def test_choices_are_explained(graph, caplog):
    with caplog.at_level(logging.INFO, logger="costa.estimator"):
        model = COSTA(epochs=1, settings=SMALL | REACH).fit(graph)
    assert model.choices_ == [
        "features.scaling = standard: the features are measurements, each on its own scale",
    ]
    assert [record.getMessage() for record in caplog.records] == [f"{line}." for line in model.choices_]
    origins = [model.origins_[key] for key in ("features.scaling", "train.epochs", "encoder.width", "train.lr")]
    assert origins == ["graph", "epochs", "given", "default"]
    assert COSTA(settings=SMALL | {"train.epochs": 1}).fit(graph).origins_["train.epochs"] == "given"


def test_how_far_it_looks_is_a_choice_and_needs_no_labels(graph):
    model, unlabelled = COSTA(epochs=1).fit(graph), graph.clone()
    del unlabelled.y
    keys = ("encoder.powers", "encoder.steps", "encoder.width")
    assert [model.origins_[key] for key in keys] == ["graph"] * 3
    assert any(line.startswith("encoder.powers = ") for line in model.choices_)
    assert COSTA(epochs=1).fit(unlabelled).settings_ == model.settings_


def test_what_is_given_is_not_a_choice(graph):
    model = COSTA(epochs=1, settings=SMALL | REACH | {"features.scaling": "none"}).fit(graph)
    assert model.choices_ == []
    assert model.settings_.features.scaling == "none"


def test_tuned_settings_are_not_taken_unasked():
    model = COSTA(epochs=1).fit(load_graph("digits"))
    assert set(model.origins_.values()) == {"default", "graph", "epochs"}
    assert not any("tuned" in line for line in model.choices_)


def test_vectors_that_all_point_one_way_are_said_aloud(graph, caplog):
    flat = graph.clone()
    flat.x = torch.ones(300, 30) + 1e-6 * graph.x
    flat.edge_index = torch.empty(2, 0, dtype=torch.long)
    COSTA(epochs=1, settings=SMALL | {"encoder.kind": "gcn", "features.scaling": "none"}).fit(flat)
    assert "point the same way" in caplog.text


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"views": 3}, "views = 3 is out of range: 1 or 2"),
        ({"views": True}, "views = True is out of range"),
        ({"views": [1]}, "views = .1. is out of range"),
        ({"device": "tpu"}, "unknown device"),
        ({"settings": {"loss.taus": 1}}, "did you mean loss.tau"),
        ({"settings": {"loss.tau": "warm"}}, "'warm' is not a number"),
        ({"settings": ["loss.tau"]}, "settings must be a dictionary .* not a list"),
        ({"settings": {"sketch.density": 0.5}}, "sketch.density was set, but it belongs to sketch.kind = sparse"),
        ({"epochs": 0}, "at least 1"),
        ({"epochs": "many"}, "'many' is not a whole number"),
        ({"random_state": -1}, "seed"),
        ({"random_state": 2**70}, "seed"),
        ({"random_state": "one"}, "random_state = 'one' is not a whole number"),
        ({"random_state": None}, "random_state = None is not a whole number"),
        ({"n_components": 0}, "n_components = 0 is out of range: at least 1, or None"),
        ({"n_components": 2.5}, "n_components = 2.5 is out of range"),
        ({"n_components": 8, "settings": {"encoder.width": 8}}, "n_components decides encoder.width; leave one of"),
        ({"n_components": 1, "settings": {"encoder.powers": "0,1"}}, "too few for the 3 hops .* give at least 3"),
        ({"choose": True, "n_components": 8}, "choose=True decides .* leave out n_components, or choose"),
        ({"choose": True, "settings": {"loss.tau": 1}}, "choose=True decides the method and its settings; leave out"),
    ],
)
def test_wrong_parameters_are_one_sentence(graph, parameters, says):
    with pytest.raises(InputError, match=says):
        COSTA(**parameters).fit(graph)


def test_choosing_without_labels_is_one_sentence(graph):
    bare = graph.clone()
    del bare.y
    with pytest.raises(InputError, match="choosing needs labels of two classes, which this graph does not have"):
        COSTA(choose=True, epochs=1).fit(bare)
    with pytest.raises(InputError, match="there are 3 labels for 300 nodes; give one each, −1 if unlabelled"):
        COSTA(choose=True, epochs=1).fit(bare, [0, 1, 2])


@pytest.mark.parametrize("given", [None, 3, object()])
def test_something_that_is_no_graph_is_one_sentence(given):
    with pytest.raises(InputError, match="not a graph that costa can read"):
        COSTA().fit(given)


@pytest.mark.parametrize(("part", "epochs"), [("loss", 0), ("embed", 2)])
def test_a_training_that_diverges_is_one_sentence(graph, monkeypatch, part, epochs):
    original = getattr(CostaMV, part)
    monkeypatch.setattr(CostaMV, part, lambda self, *given: original(self, *given) * float("nan"))
    with pytest.raises(InputError, match=f"the training diverged after {epochs} epochs; lower train.lr"):
        COSTA(epochs=2, settings=SMALL).fit(graph)


def test_what_the_watch_did_and_a_collapse_are_warned_of(graph, caplog, monkeypatch):
    monkeypatch.setattr("costa.training.watch.Watch._is_dying", lambda *_: True)
    line = torch.linspace(-1, 1, 300)[:, None] * torch.ones(4)
    monkeypatch.setattr("costa.methods.encoding.EncoderMethod.embed", lambda self, graph: line)
    COSTA(epochs=2, settings=SMALL).fit(graph)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned[0].startswith("all vectors point the same way, lie along one line, or are zero; look at the features")
    assert warned[1] == (
        "the vectors were about to collapse, so training stopped at the last epoch where they were not."
    )


def test_the_nearest_nodes_of_the_fitted_graph_and_of_another_are_named_by_their_ids(graph, fitted, tmp_path):
    z = fitted.transform(graph).astype(np.float64)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    order = [row for row in np.argsort(-(unit @ unit[7]), kind="stable").tolist() if row != 7][:5]
    assert [node for node, _ in fitted.most_similar(7, k=5)] == order
    np.testing.assert_allclose([cosine for _, cosine in fitted.most_similar(7, k=5)], (unit @ unit[7])[order])

    named = copy.copy(graph)
    named.node_ids = [f"node {row}" for row in range(graph.num_nodes)]
    wanted = [f"node {row}" for row in order]
    assert [node for node, _ in fitted.most_similar("node 7", k=5, graph=named)] == wanted
    assert [node for node, _ in clone(fitted).fit(named).most_similar("node 7", k=5)] == wanted
    with pytest.raises(InputError, match="did you mean 'node 7'"):
        fitted.most_similar("Node 7", graph=named)

    fitted.save(tmp_path / "model")
    loaded = COSTA.load(tmp_path / "model")
    with pytest.raises(InputError, match="give the graph"):
        loaded.most_similar(7)
    assert loaded.most_similar(7, k=5, graph=graph) == fitted.most_similar(7, k=5)


def test_columns_of_a_frame_are_found_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 40
    edges = pandas.DataFrame({"source": range(n), "target": [(i + 1) % n for i in range(n)]})
    people = pandas.DataFrame({"id": range(n), "age": rng.normal(size=n), "plan": rng.choice(["a", "b"], n)})
    model = COSTA(epochs=2).fit((edges, people))
    assert model.feature_names_in_.tolist() == ["age", "plan"]
    z = model.transform((edges, people))
    turned = people[["plan", "age", "id"]]
    assert np.array_equal(model.transform((edges, turned)), z)
    assert np.array_equal(model.transform(as_graph((edges, turned))), z)
    model.save(tmp_path / "model")
    assert np.array_equal(COSTA.load(tmp_path / "model").transform((edges, turned)), z)
    with pytest.raises(InputError, match="lacks the column 'age'"):
        model.transform((edges, people[["id", "plan"]]))
    fewer = people.assign(plan="b")
    assert model.transform((edges, fewer)).shape == z.shape
