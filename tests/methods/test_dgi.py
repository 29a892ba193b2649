"""DGI: its loss against the formula in float64 and against PyG's."""

import functools

import pytest
import torch
from torch_geometric.nn.models import DeepGraphInfomax

from costa.errors import InputError
from costa.methods import get_method
from costa.nn import Adjacency, SparseMatrix
from costa.settings import presets

DGI = get_method("dgi")


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "dgi", encoder__width=16)


def test_the_loss_and_its_gradient_are_the_formulas_and_pygs(build, graph, either):
    method = build(either, features__scaling="none")
    assert isinstance(method.inputs(either).x, SparseMatrix) == (either is not graph)
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    order = torch.rand(60, generator=drawn).argsort()
    loss = method.loss(either)
    weights = [method.encoder.layers[0].weight, method.discriminator.weight]
    gradients = torch.autograd.grad(loss, weights)

    w, bilinear = twins = [weight.detach().double().requires_grad_() for weight in weights]
    a = Adjacency(either.edge_index, 60).normalized().a.to_dense().double()
    x = either.x.double()
    h, corrupted = (torch.nn.functional.leaky_relu(a @ each @ w, 0.25) for each in (x, x[order]))
    s = torch.sigmoid(h.mean(0))
    twin = -sum(torch.log(torch.sigmoid(row @ bilinear @ s)) for row in h) / 60
    twin = twin - sum(torch.log(1 - torch.sigmoid(row @ bilinear @ s)) for row in corrupted) / 60
    assert loss.item() == pytest.approx(twin.item(), rel=1e-5)
    for ours, expected in zip(gradients, torch.autograd.grad(twin, twins), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-3, atol=1e-6)

    with torch.random.fork_rng():
        pyg = DeepGraphInfomax(16, torch.nn.Identity(), summary=None, corruption=None)
    pyg.weight.data = bilinear.detach()
    assert pyg.loss(h, corrupted, s).item() == pytest.approx(twin.item(), rel=1e-9)


def test_the_vectors_are_the_encoders_with_nothing_permuted(build, either):
    method = build(either, features__scaling="none")
    a = Adjacency(either.edge_index, 60).normalized().a.to_dense()
    expected = torch.nn.functional.leaky_relu(a @ either.x @ method.encoder.layers[0].weight, 0.25)
    torch.testing.assert_close(method.embed(either), expected.detach(), rtol=1e-4, atol=1e-5)
    assert len(method.encoder.layers) == 1


def test_the_order_is_drawn_anew_every_epoch(build, graph):
    method = build(graph)
    assert method.loss(graph).item() != method.loss(graph).item()


def test_the_discriminators_first_weights_are_pygs(build, graph):
    weight = build(graph, encoder__width=64).discriminator.weight
    assert 0.99 / 8 < weight.abs().max() <= 1 / 8
    assert weight.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.05)


def test_settings_the_published_ones_and_those_out_of_range(build, graph):
    defaults = DGI.Settings()
    assert (defaults.encoder.width, defaults.encoder.activation) == (512, "prelu")
    assert (defaults.train.lr, defaults.train.epochs) == (1e-3, 500)
    widths = {dataset: presets.load_preset("paper", "dgi", dataset)["encoder.width"] for dataset in ("cora", "pubmed")}
    assert widths == {"cora": 512, "pubmed": 256}
    with pytest.raises(InputError, match=r"encoder.width = 0 is out of range"):
        build(graph, encoder__width=0)
    with pytest.raises(InputError, match=r"unknown setting 'encoder.hidden'"):
        build(graph, encoder__hidden=8)
