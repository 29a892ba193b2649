"""Two small graphs, and a method built for one of them."""

import pytest
import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method

PLAIN = {
    "augment__edge_rate": 0.0,
    "augment__hop_rate": 0.0,
    "augment__mask_rate": 0.0,
    "sketch__kind": "gaussian",
    "sketch__ratio": 0.5,
    "encoder__kind": "gcn",
    "encoder__powers": (1, 4),
    "encoder__steps": 0,
    "encoder__width": 16,
    "encoder__activation": "relu",
    "encoder__norm": "none",
    "head__width": 16,
    "features__scaling": "none",
    "features__rank": 0,
}


@pytest.fixture(scope="module")
def graph():
    return planted_partition(60, 3, 20, seed=0)


@pytest.fixture(scope="module")
def bag_of_words():
    """A graph whose X is kept sparse."""
    graph = planted_partition(60, 3, 40, seed=1)
    graph.x = (graph.x > graph.x.quantile(0.95)).float()
    return graph


@pytest.fixture(params=["dense", "sparse"])
def either(request, graph, bag_of_words):
    return graph if request.param == "dense" else bag_of_words


def merge_values(name, graph=None, **values):
    method = get_method(name)
    values = {key.replace("__", "."): value for key, value in values.items()}
    given = settings.merge(method.Settings, [("test", values)])[0]
    if graph is None:
        return given
    return settings.merge(method.Settings, [("graph", method.choose(graph, given)), ("test", values)])[0]


def build_method(name, graph, seed=0, **values):
    method = training.build(get_method(name), merge_values(name, graph, **values), graph, seed, torch.device("cpu"))
    method.prepare(graph)
    return method


@pytest.fixture(scope="session")
def merged():
    """merged("gbt", graph, encoder__width=16): a method's settings, with those that it chooses for a graph."""
    return merge_values


@pytest.fixture(scope="session")
def build():
    """build("gbt", graph, seed=1, encoder__width=16): a method on the CPU, with the graph prepared."""
    return build_method


@pytest.fixture(scope="session")
def build_plain():
    """As build, of COSTA: a small GCN, a Gaussian P, and nothing of the graph is scaled, dropped or masked."""
    return lambda name, graph, **values: build_method(name, graph, **PLAIN | values)
