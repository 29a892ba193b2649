"""COSTA with scikit-learn's face."""

import copy

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from costa import COSTA, linear_probe
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition

SMALL = {"encoder.width": 16, "head.width": 16}


@pytest.fixture(scope="module")
def graph():
    return planted_partition(300, 3, 30, seed=0)


@pytest.mark.parametrize("views", [1, 2])
def test_vectors_beat_the_raw_features(graph, views):
    z = COSTA(views=views, epochs=60).fit_transform(graph)
    assert z.dtype == np.float32
    assert linear_probe(z, graph.y).accuracy.mean > linear_probe(graph.x, graph.y).accuracy.mean + 0.1


def test_a_seed_fixes_the_vectors_and_the_global_generators_are_left_alone(graph):
    before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second, other = (COSTA(epochs=3, settings=SMALL, seed=s).fit_transform(graph) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002


def test_parameters_are_scikit_learns(graph):
    model = COSTA(views=2, epochs=4, settings=SMALL, seed=3)
    assert model.get_params() == {"views": 2, "epochs": 4, "settings": SMALL, "seed": 3, "device": "auto"}
    assert clone(model).set_params(seed=5).seed == 5
    with pytest.raises(NotFittedError):
        model.transform(graph)


def test_a_graph_that_changed_is_read_anew(graph):
    changed = graph.clone()
    model = COSTA(epochs=2, settings=SMALL).fit(changed)
    before = model.transform(changed)
    changed.x = changed.x.flip(0)
    assert not np.array_equal(model.transform(changed), before)


def test_a_new_graph_with_the_same_features(graph):
    model = COSTA(epochs=2, settings=SMALL).fit(graph)
    assert model.transform(planted_partition(50, 3, 30, seed=1)).shape == (50, 16)
    with pytest.raises(InputError, match="has 7 features, and the model was fitted on 30"):
        model.transform(planted_partition(50, 3, 7, seed=1))


def test_a_fitted_model_can_be_copied(graph):
    model = COSTA(epochs=2, settings=SMALL).fit(graph)
    np.testing.assert_array_equal(copy.deepcopy(model).transform(graph), model.transform(graph))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"views": 3}, "1 or 2"),
        ({"device": "tpu"}, "unknown device"),
        ({"settings": {"loss.taus": 1}}, "did you mean loss.tau"),
        ({"epochs": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**70}, "seed"),
    ],
)
def test_wrong_parameters_are_one_sentence(graph, parameters, says):
    with pytest.raises(InputError, match=says):
        COSTA(**parameters).fit(graph)


def test_something_that_is_no_graph_is_one_sentence():
    with pytest.raises(InputError, match="torch_geometric"):
        COSTA().fit(np.ones((4, 3)))
