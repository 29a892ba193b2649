"""CCA-SSG: its loss put together by hand, and what λ is for."""

import functools

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.evaluate import health
from costa.methods import get_method
from costa.nn import Adjacency
from costa.settings import presets

CCASSG = get_method("cca-ssg")


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "cca-ssg", encoder__width=16)


@pytest.mark.parametrize("weight", [0.0, 0.2])
def test_the_loss_is_the_views_distance_and_the_correlations_within_each(build, graph, weight):
    """View 1 is the graph itself, view 2 without the masked attributes; in float64, as the formula reads."""
    plain = {"features__scaling": "none", "augment__edge_rate": 0.0, "augment__mask_rate": [0.0, 0.4]}
    method = build(graph, **plain, loss__weight=weight)
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    mask = (torch.rand(20, generator=drawn) >= 0.4).double()
    loss = method.loss(graph)

    adjacency = Adjacency(graph.edge_index, 60, dtype=torch.float64).normalized()
    method.double()
    x = graph.x.double()
    views = [method.encoder(each, adjacency) for each in (x, x * mask)]
    first, second = ((z - z.mean(0)) / z.std(0, correction=0) / 60**0.5 for z in views)
    twin = torch.dist(first, second) ** 2
    for z in (first, second):
        twin = twin + weight * sum((z[:, i] @ z[:, j] - float(i == j)) ** 2 for i in range(16) for j in range(16))
    assert loss.item() == pytest.approx(twin.item(), rel=1e-4)


def test_lambda_is_what_keeps_the_columns_apart(build, graph):
    def spread(weight):
        method = build(graph, loss__weight=weight)
        training.train(method, graph, settings.Train(epochs=60, lr=1e-2))
        return health.effective_rank(method.embed(graph))

    assert spread(0.1) > 1.2 * spread(0.0)


def test_every_setting_arrives(build, graph):
    method = build(graph, features__scaling="rows", augment__mask_rate=0.4, encoder__hidden=24, loss__weight=0.5)
    assert method.scaling.kind == "rows"
    assert method.augment == settings.Augment(edge_rate=(0.2,), mask_rate=(0.4,))
    assert [layer.weight.shape[1] for layer in method.encoder.layers] == [24, 16]
    assert [type(layer.activation).__name__ for layer in method.encoder.layers] == ["ReLU", "Identity"]
    assert method.weight == 0.5
    assert method.capturable
    with pytest.raises(InputError, match=r"loss\.weight = -1\.0 is out of range"):
        build(graph, loss__weight=-1)


def test_published_settings():
    assert presets.load_preset("paper", "cca-ssg", "coauthor-cs") is None
    for dataset, published in (
        ("cora", (2e-3, 2, 50)),
        ("citeseer", (1e-3, 1, 20)),
        ("amazon-computers", (1e-3, 2, 50)),
    ):
        values = settings.merge(CCASSG.Settings, [("paper", presets.load_preset("paper", "cca-ssg", dataset))])[0]
        assert (values.loss.weight, values.encoder.layers, values.train.epochs) == published
        assert values.encoder.width == 512
