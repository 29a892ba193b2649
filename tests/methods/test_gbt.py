"""Graph Barlow Twins: its loss put together by hand, and what methods of two views share."""

import dataclasses
import functools

import pytest
import torch

from costa import settings
from costa.methods import get_method
from costa.nn import Adjacency
from costa.settings import presets

GBT = get_method("gbt")


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "gbt", encoder__width=16, encoder__hidden=24)


def test_the_loss_is_that_of_the_correlations_across_the_views(build, graph):
    """View 1 is the graph itself, view 2 without the masked attributes; in float64, as the formula reads."""
    method = build(graph, features__scaling="none", augment__edge_rate=0.0, augment__mask_rate=[0.0, 0.4])
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    mask = (torch.rand(20, generator=drawn) >= 0.4).double()
    loss = method.loss(graph)

    adjacency = Adjacency(graph.edge_index, 60, dtype=torch.float64).normalized()
    method.double()
    x = graph.x.double()
    first, second = (method.encoder(each, adjacency) for each in (x, x * mask))
    standard = [(z - z.mean(0)) / z.std(0, correction=0) for z in (first, second)]
    c = standard[0].T @ standard[1] / 60
    on = sum((1 - c[i, i]) ** 2 for i in range(16))
    off = sum(c[i, j] ** 2 for i in range(16) for j in range(16) if i != j)
    assert loss.item() == pytest.approx((on + off / 16).item(), rel=1e-4)


def test_the_views_have_fresh_draws_and_rates_of_their_own(build, graph):
    method = build(graph, augment__edge_rate=[0.0, 0.6], augment__mask_rate=[0.0, 0.5], encoder__norm="none")
    (first, second), (again, other) = method.encode_both(graph), method.encode_both(graph)
    torch.testing.assert_close(first, method.embed(graph))
    assert torch.equal(first, again)
    assert (second - other).abs().max() > 1e-3


def test_rewired_edges_are_not_captured(build, graph):
    dropped, rewired = build(graph), build(graph, augment__edges="permute")
    assert dropped.capturable
    assert not rewired.capturable
    assert build(graph, augment__edges="permute", augment__edge_rate=0.0).capturable
    assert rewired.loss(graph).isfinite()


def test_every_setting_arrives(build, graph):
    method = build(graph, features__scaling="rows", augment__edge_rate=0.25, encoder__activation="elu")
    assert method.scaling.kind == "rows"
    assert method.augment == settings.Augment(edge_rate=(0.25,), mask_rate=(0.1,))
    assert [layer.weight.shape[1] for layer in method.encoder.layers] == [24, 16]
    assert [type(layer.norm).__name__ for layer in method.encoder.layers] == ["BatchNorm", "NoneType"]
    assert [type(layer.activation).__name__ for layer in method.encoder.layers] == ["ELU", "Identity"]
    assert {item.name for item in dataclasses.fields(GBT.Settings)} == {"features", "encoder", "augment", "train"}


def test_published_settings():
    published = {"wikics", "amazon-computers", "amazon-photo", "coauthor-cs", "coauthor-physics"}
    assert set(presets.published("paper", "gbt")) == published
    for dataset in published:
        values = settings.merge(GBT.Settings, [("paper", presets.load_preset("paper", "gbt", dataset))])[0]
        assert values.encoder.hidden == 2 * values.encoder.width
        assert values.features.scaling == "rows"
