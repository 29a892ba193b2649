"""MVGRL: its loss and its vectors against the formulas in float64, where the diffusion is an inverse."""

import functools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from costa import settings
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn import Adjacency, SparseMatrix
from costa.settings import presets

MVGRL = get_method("mvgrl")
N = 60


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "mvgrl", encoder__width=16)


def matrices(graph, alpha):
    """Â and S, whole and in float64."""
    a = Adjacency(graph.edge_index, N, dtype=torch.float64).normalized().a.to_dense()
    return a, alpha * torch.linalg.inv(torch.eye(N, dtype=torch.float64) - (1 - alpha) * a)


def test_the_loss_and_its_gradient_are_the_formulas(build, graph, either):
    method = build(either, features__scaling="none", diffusion__alpha=0.3, diffusion__k=N)
    assert isinstance(method.inputs(either).x, SparseMatrix) == (either is not graph)
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    order = torch.rand(N, generator=drawn).argsort()
    loss = method.loss(either)
    weights = [
        method.encoder.layers[0].weight,
        method.diffusion_encoder.layers[0].weight,
        method.discriminator.weight,
    ]
    gradients = torch.autograd.grad(loss, weights)

    w_a, w_b, bilinear = twins = [weight.detach().double().requires_grad_() for weight in weights]
    a, s = matrices(either, alpha=0.3)
    x = either.x.double()
    h_a, h_b = F.leaky_relu(a @ x @ w_a, 0.25), F.leaky_relu(s @ x @ w_b, 0.25)
    fake_a, fake_b = F.leaky_relu(a @ x[order] @ w_a, 0.25), F.leaky_relu(s @ x[order] @ w_b, 0.25)
    s_a, s_b = torch.sigmoid(h_a.mean(0)), torch.sigmoid(h_b.mean(0))
    real = torch.cat([h_a @ bilinear @ s_b, h_b @ bilinear @ s_a])
    fake = torch.cat([fake_a @ bilinear @ s_b, fake_b @ bilinear @ s_a])
    truth = torch.cat([torch.ones(2 * N), torch.zeros(2 * N)]).double()
    twin = 2 * F.binary_cross_entropy(torch.sigmoid(torch.cat([real, fake])), truth)
    assert loss.item() == pytest.approx(twin.item(), rel=1e-5)
    for ours, expected in zip(gradients, torch.autograd.grad(twin, twins), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-3, atol=1e-6)


def test_the_vectors_are_the_sum_of_both_views_with_nothing_permuted(build, either):
    method = build(either, features__scaling="none", diffusion__k=N)
    a, s = matrices(either, alpha=0.2)
    w_a, w_b = (encoder.layers[0].weight.detach().double() for encoder in (method.encoder, method.diffusion_encoder))
    x = either.x.double()
    expected = F.leaky_relu(a @ x @ w_a, 0.25) + F.leaky_relu(s @ x @ w_b, 0.25)
    torch.testing.assert_close(method.embed(either).double(), expected, rtol=1e-4, atol=1e-5)
    assert not torch.equal(w_a, w_b)


def test_a_row_of_the_diffusion_has_k_entries(build, graph):
    s = build(graph, diffusion__k=5).inputs(graph).diffused.adjacency
    assert s.a.crow_indices().diff().tolist() == [5] * N
    assert torch.equal(s.a.to_dense().T, s.a_t.to_dense())
    assert not torch.equal(s.a.to_dense(), s.a_t.to_dense())  # so that the gradient must take the transpose


def test_a_graph_not_seen_in_training_is_diffused_too(build, graph):
    method = build(graph)
    before = method.embed(graph)
    method.forget()
    assert torch.equal(method.embed(graph), before)
    assert method.embed(planted_partition(30, 3, 20, seed=5)).shape == (30, 16)


def test_the_order_is_drawn_anew_every_epoch(build, graph):
    method = build(graph)
    assert method.loss(graph).item() != method.loss(graph).item()


def test_settings_the_published_ones_and_those_out_of_range(build, graph):
    defaults = MVGRL.Settings()
    assert (defaults.encoder.width, defaults.encoder.activation) == (512, "prelu")
    assert (defaults.diffusion.alpha, defaults.train.lr) == (0.2, 1e-3)
    for dataset in ("cora", "pubmed"):
        published, origins = settings.merge(MVGRL.Settings, [("paper", presets.load_preset("paper", "mvgrl", dataset))])
        assert published == replace(defaults, features=settings.Features("rows"))
        assert {key for key, origin in origins.items() if origin == "default"} == {
            "features.rank",
            "diffusion.k",
            "train.epochs",
            "train.batch",
            "train.parts",
            "train.group",
            "train.kernels",
        }
    for key, value in (("alpha", 0), ("alpha", 1), ("k", 0)):
        with pytest.raises(InputError, match=rf"diffusion.{key} = {value}(\.0)? is out of range"):
            build(graph, **{f"diffusion__{key}": value})


def test_a_directed_graph_is_refused(build, graph):
    directed = graph.clone()
    directed.edge_index = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    with pytest.raises(InputError, match=r"mvgrl .* undirected"):
        build(directed)
    uneven = graph.clone()
    uneven.edge_weight = torch.arange(graph.num_edges).float()
    with pytest.raises(InputError, match=r"mvgrl .* undirected"):
        build(uneven)
