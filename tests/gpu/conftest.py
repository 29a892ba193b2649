"""A graph, a method built for it on the GPU, and captured epochs."""

import pytest
import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method


@pytest.fixture(scope="module")
def graph():
    return planted_partition(301, 3, 40, seed=0)


def merge_values(name, graph, **values):
    method = get_method(name)
    values = {key.replace("__", "."): value for key, value in values.items()}
    return settings.merge(method.Settings, [("graph", method.choose(graph)), ("test", values)])[0]


def build_method(name, graph, seed=0, **values):
    return training.build(get_method(name), merge_values(name, graph, **values), graph, seed, torch.device("cuda"))


def captured_steps(methods, graph):
    training.prepare(methods, graph)
    steps = training.make_steps(methods, graph, settings.Train(lr=1e-4))
    assert steps.captures
    return steps


@pytest.fixture(scope="session")
def merged():
    """merged("gbt", graph, encoder__width=48): a method's settings, with those that it chooses for the graph."""
    return merge_values


@pytest.fixture(scope="session")
def build():
    """build("gbt", graph, seed=1, encoder__width=48): a method on the GPU; the graph is not prepared."""
    return build_method


@pytest.fixture(scope="session")
def steps_of():
    """steps_of(methods, graph): the steps of methods that share what they prepare; their epochs are captured."""
    return captured_steps
