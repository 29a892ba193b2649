import pytest

from costa.graphs.synthetic import planted_partition


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
