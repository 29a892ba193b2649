import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn import Adjacency


def run(name, graph, **values):
    method = get_method(name)
    merged, _ = settings.merge(method.Settings, [("test", {k.replace("__", "."): v for k, v in values.items()})])
    built = training.build(method, merged, graph, 0, torch.device("cpu"))
    outcome = training.train(built, graph)
    assert (outcome.status, outcome.epochs) == ("ok", 0)
    return built


def test_raw_is_the_features():
    graph = planted_partition(30, 2, 5, seed=0)
    assert torch.equal(run("raw", graph, features__scaling="none").embed(graph), graph.x)
    standard = run("raw", graph, features__scaling="standard").embed(graph)
    torch.testing.assert_close(standard.mean(0), torch.zeros(5), atol=1e-5, rtol=0)


def test_untrained_is_the_encoder_as_it_starts():
    graph = planted_partition(30, 2, 5, seed=0)
    method = run("untrained", graph, features__scaling="none", encoder__width=8)
    expected = method.encoder(graph.x, Adjacency(graph.edge_index, 30).normalized())
    torch.testing.assert_close(method.embed(graph), expected)
