"""GAE and VGAE: their losses against the formula in float64 and against PyG's."""

import functools

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn.models import GAE as PyGGAE
from torch_geometric.nn.models import VGAE as PyGVGAE

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn import Adjacency, SparseMatrix
from costa.settings import presets

BOTH = pytest.mark.parametrize("name", ["gae", "vgae"])


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, encoder__width=8, encoder__hidden=12, features__scaling="none")


def by_the_formula(method, graph, w1, w2):
    """The outputs of the encoder, with dense float64 matrices; biases are 0 at the start."""
    a = Adjacency(graph.edge_index, graph.num_nodes).normalized().a.to_dense().double()
    return a @ torch.relu(a @ graph.x.double() @ w1) @ w2


def as_pyg(name, out, edges, others, noise):
    if name == "gae":
        return PyGGAE(torch.nn.Identity()).recon_loss(out, edges, others)
    model = PyGVGAE(torch.nn.Identity())
    mu, log_sigma = out[:, :8], out[:, 8:]
    z = mu + noise * log_sigma.exp()
    return model.recon_loss(z, edges, others) + model.kl_loss(mu, log_sigma) / len(mu)


@BOTH
@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_the_loss_and_its_gradient_are_the_formulas_and_pygs(build, graph, bag_of_words, name, features):
    graph = graph if features == "dense" else bag_of_words
    method = build(name, graph)
    assert isinstance(method.inputs(graph).x, SparseMatrix) == (features == "sparse")
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    noise = torch.randn(60, 8, generator=drawn).double() if name == "vgae" else None
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    others = torch.randint(60, once.shape, generator=drawn)
    loss = method.loss(graph)
    weights = [layer.weight for layer in method.encoder.layers]
    gradients = torch.autograd.grad(loss, weights)

    twins = [weight.detach().double().requires_grad_() for weight in weights]
    # both directions of an edge, as PyG has them: the mean is the same
    twin = as_pyg(name, by_the_formula(method, graph, *twins), graph.edge_index, others, noise)
    assert loss.item() == pytest.approx(twin.item(), rel=1e-5)
    for ours, expected in zip(gradients, torch.autograd.grad(twin, twins), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-3, atol=1e-5)


def test_the_vectors_are_what_the_loss_decodes_and_of_vgae_the_mean(build, graph):
    for name in ("gae", "vgae"):
        method = build(name, graph)
        weights = [layer.weight.detach().double() for layer in method.encoder.layers]
        out = by_the_formula(method, graph, *weights)
        z = method.embed(graph)
        assert z.shape == (60, 8)
        assert z.is_contiguous()
        assert (z < 0).any()  # the last layer is linear
        torch.testing.assert_close(z.double(), out[:, :8], rtol=1e-4, atol=1e-5)


def test_every_undirected_edge_counts_once(build):
    pairs = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 3, 0]])  # both ways, a self-loop, one way alone
    graph = Data(x=torch.eye(4), edge_index=pairs)
    assert build("gae", graph).edges.T.tolist() == [[0, 1], [0, 3], [1, 2], [3, 3]]


@BOTH
def test_a_graph_without_edges_is_refused(build, name):
    with pytest.raises(InputError, match=f"{name} reconstructs edges"):
        build(name, Data(x=torch.eye(4), edge_index=torch.empty(2, 0, dtype=torch.long)))


def test_a_sigma_does_not_overflow(build, graph):
    method = build("vgae", graph)
    with torch.no_grad():
        method.encoder.layers[-1].bias[8:] = 200.0
    assert method.loss(graph).isfinite()


@BOTH
def test_batch_norm_is_for_the_first_layer(build, graph, name):
    method = build(name, graph, encoder__norm="batch")
    assert [layer.norm is not None for layer in method.encoder.layers] == [True, False]
    assert torch.equal(method.embed(graph), method.embed(graph))


@BOTH
def test_negatives_are_drawn_anew_every_epoch(build, graph, name):
    method = build(name, graph)
    assert method.loss(graph).item() != method.loss(graph).item()


@BOTH
def test_a_trained_model_lets_go_of_the_graph_and_embeds_another(build, graph, name):
    method = build(name, graph)
    method.forget()
    assert method.edges.numel() == 0
    assert not any("edges" in key for key in method.state_dict())
    assert method.embed(planted_partition(45, 3, 20, seed=1)).shape == (45, 8)


@BOTH
def test_the_published_settings_are_a_preset_and_the_defaults_are_wider(graph, name):
    defaults = get_method(name).Settings()
    assert (defaults.encoder.hidden, defaults.encoder.width) == (256, 128)
    assert (defaults.train.lr, defaults.train.epochs) == (1e-3, 200)
    assert presets.published("paper", name) == ["cora", "citeseer", "pubmed"]
    values = presets.load_preset("paper", name, "pubmed")
    assert (values["encoder.hidden"], values["encoder.width"], values["train.lr"]) == (32, 16, 0.01)


@BOTH
def test_a_group_without_an_edge_reconstructs_nothing(build, graph, name):
    apart = graph.clone()
    apart.edge_index = graph.edge_index[:, (graph.edge_index > 9).all(0)]
    method = build(name, apart)
    loss = method.loss(apart, torch.arange(10))
    assert loss.isfinite()
    assert (loss == 0) == (name == "gae")  # VGAE keeps its second term
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in method.parameters())
