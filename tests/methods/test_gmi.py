"""GMI: its loss against the formula in float64, and what it reads of the edges."""

import functools

import pytest
import torch
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.gmi import Topology
from costa.nn import Adjacency, SparseMatrix
from costa.settings import presets

GMI = get_method("gmi")


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "gmi", encoder__width=16)


def prelu(h):
    return torch.nn.functional.leaky_relu(h, 0.25)


def plain_loss(graph, weights, thetas, orders, alpha, beta, gamma):
    """The loss written out, node by node and edge by edge."""
    n, x = graph.num_nodes, graph.x.double()
    normalized = Adjacency(graph.edge_index, n).normalized().a.to_dense().double()
    h = x
    for weight in weights:
        h = prelu(normalized @ h @ weight)
    edges = {(min(i, j), max(i, j)) for i, j in graph.edge_index.T.tolist()}
    neighbours = [[j for pair in edges if i in pair for j in pair if j != i] for i in range(n)]
    of_neighbours = torch.stack(
        [
            prelu(sum((x[j] @ weights[0] for j in near), start=0 * weights[0][0]) / max(len(near), 1))
            for near in neighbours
        ]
    )

    def sp(t):
        return torch.log(1 + torch.exp(t))

    def information(others, theta):
        def d(i, j):
            return torch.sigmoid(h[i] @ (others[j] @ theta))

        real = sum(sp(-d(i, i)) for i in range(n)) / n
        return -real - sum(sp(d(order[i], i)) for order in orders for i in range(n)) / (n * len(orders))

    edge = -sum(torch.log(torch.sigmoid(h[i] @ h[j])) for i, j in edges) / len(edges)
    drawn = [(i, order[i]) for order in orders for i in range(n)]
    edge = edge - sum(torch.log(1 - torch.sigmoid(h[i] @ h[j])) for i, j in drawn) / len(drawn)
    return -alpha * information(x, thetas[0]) - beta * information(of_neighbours, thetas[1]) + gamma * edge


@pytest.mark.parametrize("layers", [1, 2])
def test_the_loss_and_its_gradient_are_the_formulas(build, graph, either, layers):
    method = build(either, features__scaling="none", encoder__layers=layers, loss__negatives=3, loss__gamma=0.7)
    assert isinstance(method.inputs(either).x, SparseMatrix) == (either is not graph)
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    orders = torch.rand(3, 60, generator=drawn).argsort(-1).tolist()
    parameters = [layer.weight for layer in method.encoder.layers]
    parameters += [method.of_features.theta, method.of_neighbours.theta]
    with torch.no_grad():
        for theta in parameters[layers:]:
            theta.mul_(30)  # the first weights are so small that D is ½ whatever is compared
    loss = method.loss(either)
    gradients = torch.autograd.grad(loss, parameters)

    twins = [each.detach().double().requires_grad_() for each in parameters]
    twin = plain_loss(either, twins[:layers], twins[layers:], orders, 0.8, 1.0, 0.7)
    assert loss.item() == pytest.approx(twin.item(), rel=1e-5)
    for ours, expected in zip(gradients, torch.autograd.grad(twin, twins), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-3, atol=1e-6)


def test_edges_count_once_and_the_mean_is_over_neighbours():
    both_ways_once_and_a_loop = torch.tensor([[0, 1, 1, 3], [1, 0, 2, 3]])
    topology = Topology.of(both_ways_once_and_a_loop, 5)
    assert topology.edges.T.tolist() == [[0, 1], [1, 2], [3, 3]]
    expected = [[0, 1, 0, 0, 0], [0.5, 0, 0.5, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]
    assert topology.mean.a.to_dense().tolist() == expected
    assert topology.mean.a_t.to_dense().T.tolist() == expected


def test_only_the_encoder_sees_the_weights_of_edges(build, graph):
    weighted = Data(x=graph.x, edge_index=graph.edge_index, edge_weight=torch.full((graph.num_edges,), 3.0))
    plain, other = build(graph), build(weighted)
    assert torch.equal(plain._topology.mean.a.values(), other._topology.mean.a.values())
    assert not torch.allclose(plain.embed(graph), other.embed(weighted))


def test_the_orders_are_drawn_anew_every_epoch(build, graph):
    method = build(graph)
    assert method.loss(graph).item() != method.loss(graph).item()


def test_the_vectors_are_the_encoders_also_of_another_graph(build, graph):
    method = build(graph)
    method.forget()
    other = planted_partition(30, 3, 20, seed=5)
    normalized = Adjacency(other.edge_index, 30).normalized()
    expected = method.encoder(method.scaling(other.x), normalized).detach()
    torch.testing.assert_close(method.embed(other), expected, rtol=1e-4, atol=1e-5)


def test_the_discriminators_first_weights_are_glorots_for_a_bilinear_form(build, graph):
    for theta in (
        build(graph, encoder__width=64).of_features.theta,
        build(graph, encoder__width=64).of_neighbours.theta,
    ):
        bilinear = torch.empty(1, *theta.shape)
        torch.nn.init.xavier_uniform_(bilinear, generator=torch.Generator().manual_seed(0))
        assert theta.abs().max().item() == pytest.approx(bilinear.abs().max().item(), rel=0.01)
        assert theta.std().item() == pytest.approx(bilinear.std().item(), rel=0.1)


def test_settings_the_published_ones_and_those_out_of_range(build, graph):
    defaults, published = GMI.Settings(), presets.load_preset("paper", "gmi", "cora")
    assert published.items() - settings.flatten(defaults).items() == {
        ("features.scaling", "rows"),
        ("train.epochs", 550),
    }
    layers = {
        dataset: presets.load_preset("paper", "gmi", dataset)["encoder.layers"]
        for dataset in ("cora", "citeseer", "pubmed")
    }
    assert layers == {"cora": 2, "citeseer": 1, "pubmed": 1}
    for values, message in [
        ({"encoder__layers": 0}, "encoder.layers = 0 is out of range: at least 1"),
        ({"encoder__width": 0}, "encoder.width = 0 is out of range"),
        ({"loss__negatives": 0}, "loss.negatives = 0 is out of range"),
        ({"loss__beta": -1.0}, "loss.beta = -1.0 is out of range: 0 or more"),
        ({"loss__alpha": 0, "loss__beta": 0, "loss__gamma": 0}, "one of alpha, beta and gamma must be above 0"),
    ]:
        with pytest.raises(InputError, match=message):
            build(graph, **values)


def test_a_graph_without_edges_is_refused(build):
    with pytest.raises(InputError, match="gmi learns from edges, and the graph has none"):
        build(Data(x=torch.rand(4, 3), edge_index=torch.empty(2, 0, dtype=torch.int64)))
