"""GCA: GRACE's loss on views that are drawn by centrality."""

import functools

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.utils import to_networkx

from costa import settings, training
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn import Adjacency, both_views_loss
from costa.settings import presets

CPU = torch.device("cpu")
SMALL = {"features__scaling": "none", "encoder__width": 12, "encoder__hidden": 24, "head__width": 8}
CENTRALITY = {
    "degree": lambda graph: dict(graph.degree()),
    "pagerank": lambda graph: nx.pagerank(graph, tol=1e-13, max_iter=1000),
    "eigenvector": nx.eigenvector_centrality_numpy,
}
PUBLISHED = {
    # lr, width, head, activation, edge drop, attribute mask, τ, epochs
    "amazon-computers": (0.01, 128, 128, "rrelu", (0.6, 0.3), (0.2, 0.3), 0.2, 2000),
    "amazon-photo": (0.1, 256, 64, "relu", (0.3, 0.5), (0.1, 0.1), 0.3, 2000),
    "coauthor-cs": (5e-4, 256, 256, "rrelu", (0.3, 0.2), (0.3, 0.4), 0.4, 1000),
    "coauthor-physics": (0.01, 128, 64, "rrelu", (0.4, 0.1), (0.1, 0.4), 0.5, 1500),
    "wikics": (0.01, 256, 256, "prelu", (0.2, 0.3), (0.1, 0.1), 0.4, 3000),
}


@pytest.fixture(scope="module")
def merged(merged):
    return functools.partial(merged, "gca", **SMALL)


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "gca", **SMALL)


def test_a_part_keeps_the_probabilities_of_the_whole_graph(build):
    """What is dropped of 400 views of half the nodes, against the probabilities from the degrees in the graph."""
    graph, nodes = planted_partition(200, 2, 8, seed=3), torch.arange(100)
    method = build(graph, augment__edge_rate=0.4)
    inputs = method.inputs(graph, nodes)
    probability = method._rates[0][0][inputs.entries]
    assert probability.std() > 0.05
    kept = torch.zeros(inputs.edge_index.shape[1])
    for _ in range(400):
        view = method.draw_view(inputs, 0).adjacency.a.to_dense()
        kept += view[inputs.edge_index[1], inputs.edge_index[0]] > 0
    torch.testing.assert_close(1 - kept / 400, probability, atol=0.12, rtol=0)


def capped(s, rate):
    return torch.tensor(np.minimum((s.max() - s) / (s.max() - s.mean()) * rate, 0.7))


def views_in_double(method, graph, state, centrality):
    """U and V in float64, of the probabilities as the paper has them, from the numbers a generator so draws."""
    generator = torch.Generator()
    generator.set_state(state)
    nodes = CENTRALITY[centrality](to_networkx(graph, to_undirected=True))
    phi = np.array([nodes[node] for node in range(graph.num_nodes)], dtype=float)
    source, target = graph.edge_index.numpy()
    of_edges = np.log((phi[source] + phi[target]) / 2)
    of_attributes = np.log(np.abs(graph.x.double().numpy()).T @ phi)
    low, high = graph.edge_index.aminmax(dim=0)
    ids = torch.unique(low * graph.num_nodes + high, return_inverse=True)[1]
    for edge_rate, mask_rate in zip(method.augment.edge_rate, method.augment.mask_rate, strict=True):
        kept = torch.rand(ids.numel(), generator=generator)[ids] >= capped(of_edges, edge_rate)
        mask = torch.rand(graph.num_features, generator=generator) >= capped(of_attributes, mask_rate)
        adjacency = Adjacency(graph.edge_index[:, kept], graph.num_nodes, dtype=torch.float64).normalized()
        yield method.encoder(graph.x.double() * mask, adjacency)


@pytest.mark.parametrize("centrality", CENTRALITY)
@pytest.mark.parametrize("kernels", ["fast", "plain"])
def test_the_loss_is_graces_of_views_drawn_by_centrality(build, graph, centrality, kernels):
    values = {"augment__centrality": centrality, "augment__edge_rate": [0.4, 0.2], "augment__mask_rate": [0.2, 0.5]}
    method = build(graph, **values, train__kernels=kernels)
    state = method.generator.get_state()
    loss = method.loss(graph)
    gradient = torch.autograd.grad(loss, method.encoder.layers[0].weight)[0]

    method.double()
    u, v = views_in_double(method, graph, state, centrality)
    exact = both_views_loss(method.head(u), method.head(v), method.tau, plain=True)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=1e-6)
    expected = torch.autograd.grad(exact, method.encoder.layers[0].weight)[0]
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-3, atol=1e-5)


def test_costa_without_a_sketch_and_by_the_same_centrality_is_gca(build, merged, graph):
    costa = get_method("costa-mv")
    values = {"sketch.kind": "none", "sketch.center": False, "loss.kind": "both"} | settings.flatten(merged())
    twin = training.build(costa, settings.merge(costa.Settings, [("test", values)])[0], graph, 0, CPU)
    twin.prepare(graph)
    assert build(graph).loss(graph).item() == pytest.approx(twin.loss(graph).item(), rel=1e-6)


def test_what_is_rewired_has_no_centrality():
    with pytest.raises(InputError, match=r"does not apply to augment\.edges = permute; leave it out"):
        settings.Augment(edges="permute", edge_rate=(0.2,), centrality="degree")


def test_a_rate_of_zero_leaves_the_graph_as_it_is(build, graph):
    method = build(graph, augment__edge_rate=[0.0, 0.3], augment__mask_rate=[0.0, 0.3])
    whole, thinned = method.encode_both(graph)
    torch.testing.assert_close(whole, method.embed(graph))
    assert (whole - thinned).abs().max() > 1e-3


def test_the_probabilities_go_with_the_prepared_graph(build, graph):
    method = build(graph)
    assert all(isinstance(rate, torch.Tensor) for rates in method._rates for rate in rates)
    method.forget()
    assert method._rates == [(0.2, 0.3), (0.4, 0.4)]


def test_features_that_are_standardised_are_weighed_as_the_graph_has_them(build, graph):
    one, other = build(graph), build(graph, features__scaling="standard")
    assert torch.equal(one._rates[0][1], other._rates[0][1])


def test_a_graph_without_edges_and_attributes_that_nobody_has(build):
    graph = planted_partition(30, 2, 5, degree=0, seed=0)
    graph.x[:, 0] = 0
    for centrality in CENTRALITY:
        method = build(graph, augment__centrality=centrality)
        assert training.train(method, graph, settings.Train(epochs=2)).status == "ok", centrality


def test_settings_that_are_not_its_own_are_refused(merged):
    with pytest.raises(InputError, match=r"augment\.edges = 'permute' is not one of drop"):
        merged(augment__edges="permute")
    with pytest.raises(InputError, match="one of degree, pagerank, eigenvector"):
        merged(augment__centrality="closeness")
    with pytest.raises(InputError, match="below 1"):
        merged(augment__mask_rate=1.0)


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_papers_settings_are_the_published_ones(dataset):
    values = presets.load_preset("paper", "gca", dataset)
    found, _ = settings.merge(get_method("gca").Settings, [("paper", values)])
    lr, width, head, activation, edges, masks, tau, epochs = PUBLISHED[dataset]
    assert (found.train.lr, found.train.epochs, found.train.weight_decay) == (lr, epochs, 1e-5)
    assert (found.encoder.width, found.encoder.hidden, found.head.width) == (width, 2 * width, head)
    assert (found.encoder.activation, found.head.activation) == (activation, "elu")
    assert (found.augment.edge_rate, found.augment.mask_rate, found.loss.tau) == (edges, masks, tau)
    assert (found.features.scaling, found.augment.centrality) == ("rows", "degree")
