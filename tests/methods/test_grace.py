"""GRACE's loss, written out as the paper has it, and its settings."""

import functools

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn import Adjacency
from costa.settings import presets

CPU = torch.device("cpu")
SMALL = {"features__scaling": "none", "encoder__width": 12, "encoder__hidden": 24, "head__width": 8}
PUBLISHED = {
    # lr, width, activation, edge drop, attribute mask, τ, epochs
    "cora": (5e-4, 128, "relu", (0.2, 0.4), (0.3, 0.4), 0.4, 200),
    "citeseer": (1e-3, 256, "prelu", (0.2, 0.0), (0.3, 0.2), 0.9, 200),
    "pubmed": (1e-3, 256, "relu", (0.4, 0.1), (0.0, 0.2), 0.7, 1500),
    "dblp": (1e-3, 256, "relu", (0.1, 0.4), (0.1, 0.0), 0.7, 1000),
}


@pytest.fixture(scope="module")
def merged(merged):
    return functools.partial(merged, "grace", **SMALL)


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "grace", **SMALL)


def written_out(u, v, tau):
    """L of nodes that went through the head, pair by pair."""

    def theta(a, b):
        return torch.exp(a @ b / (a.norm() * b.norm()) / tau)

    def one(u, v, i):
        others = sum(theta(u[i], v[j]) for j in range(len(u)))
        within = sum(theta(u[i], u[j]) for j in range(len(u)) if j != i)
        return -torch.log(theta(u[i], v[i]) / (others + within))

    return sum(one(u, v, i) + one(v, u, i) for i in range(len(u))) / (2 * len(u))


def views_in_double(method, graph, state):
    """g(U) and g(V) in float64, of the numbers that a generator in this state draws: edges, then attributes."""
    generator = torch.Generator()
    generator.set_state(state)
    low, high = graph.edge_index.aminmax(dim=0)
    ids = torch.unique(low * graph.num_nodes + high, return_inverse=True)[1]
    for edge_rate, mask_rate in zip(method.augment.edge_rate, method.augment.mask_rate, strict=True):
        kept = torch.rand(ids.numel(), generator=generator)[ids] >= edge_rate
        mask = torch.rand(graph.num_features, generator=generator) >= mask_rate
        adjacency = Adjacency(graph.edge_index[:, kept], graph.num_nodes, dtype=torch.float64).normalized()
        yield method.head(method.encoder(graph.x.double() * mask, adjacency))


@pytest.mark.parametrize("kernels", ["fast", "plain"])
def test_the_loss_is_the_papers(build, kernels):
    graph = planted_partition(14, 2, 6, degree=4, seed=1)
    method = build(graph, loss__tau=0.4, train__kernels=kernels)
    weights = [*method.encoder.parameters(), *method.head.parameters()]
    state = method.generator.get_state()
    loss = method.loss(graph)
    gradients = torch.autograd.grad(loss, weights)

    method.double()
    u, v = views_in_double(method, graph, state)
    expected = written_out(u, v, 0.4)
    assert (u - v).abs().max() > 1e-3
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-6)
    parameters = [*method.encoder.parameters(), *method.head.parameters()]
    for ours, exact in zip(gradients, torch.autograd.grad(expected, parameters), strict=True):
        torch.testing.assert_close(ours.double(), exact, rtol=1e-3, atol=1e-5)


def test_it_is_costa_in_two_views_without_a_sketch(build, merged, graph):
    method = build(graph)
    costa = get_method("costa-mv")
    values = {"sketch.kind": "none", "sketch.center": False, "loss.kind": "both"}
    values |= settings.flatten(merged())
    twin = training.build(costa, settings.merge(costa.Settings, [("test", values)])[0], graph, 0, CPU)
    twin.prepare(graph)
    assert method.loss(graph).item() == pytest.approx(twin.loss(graph).item(), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "capturable"),
    [
        ({}, True),
        ({"augment__edges": "permute"}, False),
        ({"augment__edges": "permute", "augment__edge_rate": 0.0}, True),
        ({"train__kernels": "plain"}, False),
    ],
)
def test_what_can_be_captured(build, graph, values, capturable):
    method = build(graph, **values)
    assert method.capturable == capturable
    assert training.train(method, graph, settings.Train(epochs=2)).status == "ok"


def test_a_setting_that_does_not_count_is_refused(merged, graph):
    given = {"head.width": 0, "head.activation": "relu"}
    with pytest.raises(InputError, match=r"head.activation was set, but head.width = 0"):
        presets.resolve(get_method("grace"), graph, preset="none", given=given)
    with pytest.raises(InputError, match=r"loss.tau = 0.001 is out of range"):
        merged(loss__tau=0.001)


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_papers_settings_are_the_published_ones(dataset):
    values = presets.load_preset("paper", "grace", dataset)
    found, _ = settings.merge(get_method("grace").Settings, [("paper", values)])
    lr, width, activation, edges, masks, tau, epochs = PUBLISHED[dataset]
    assert (found.train.lr, found.train.epochs, found.train.weight_decay) == (lr, epochs, 1e-5)
    assert (found.encoder.width, found.encoder.hidden, found.head.width) == (width, 2 * width, width)
    assert (found.encoder.activation, found.head.activation) == (activation, "elu")
    assert (found.augment.edge_rate, found.augment.mask_rate, found.loss.tau) == (edges, masks, tau)
    assert found.features.scaling == "rows"
