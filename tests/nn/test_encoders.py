"""The encoder against the formula with dense float64 matrices."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from costa.insight.variants import MLP
from costa.nn import GCN, Adjacency, SparseMatrix, sparse_if_faster
from costa.nn.encoders import ACTIVATIONS


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def graph():
    n = 12
    edges = torch.randint(n, (2, 40), generator=gen(1))
    edges = edges[:, edges[0] < edges[1]].unique(dim=1)
    weight = torch.rand(edges.size(1), generator=gen(2)) + 0.5
    return n, torch.cat([edges, edges.flip(0)], 1), torch.cat([weight, weight])


def dense_normalized(n, edge_index, weight):
    """D̂^-½ Â D̂^-½ with Â = A + I, in float64."""
    a_hat = torch.eye(n, dtype=torch.float64)
    for (source, target), w in zip(edge_index.T.tolist(), weight.tolist(), strict=True):
        a_hat[target, source] += w
    scale = torch.diag(a_hat.sum(1) ** -0.5)
    return scale @ a_hat @ scale


def test_normalisation_equals_the_formula_weights_honoured(graph):
    n, edge_index, weight = graph
    ours = Adjacency(edge_index, n, weight).normalized().a.to_dense()
    torch.testing.assert_close(ours.double(), dense_normalized(n, edge_index, weight), rtol=1e-5, atol=1e-6)
    unweighted = Adjacency(edge_index, n).normalized().a.to_dense()
    torch.testing.assert_close(
        unweighted.double(), dense_normalized(n, edge_index, torch.ones_like(weight)), rtol=1e-5, atol=1e-6
    )


def test_equals_pygs_gcn_convolution(graph):
    from torch_geometric.nn import GCNConv

    n, edge_index, weight = graph
    x = torch.randn(n, 6, generator=gen(3))
    gcn = GCN(6, (4,), generator=gen(4))
    conv = GCNConv(6, 4)
    conv.lin.weight.data = gcn.layers[0].weight.data.T
    ours = gcn(x, Adjacency(edge_index, n, weight).normalized())
    torch.testing.assert_close(ours, conv(x, edge_index, weight).relu())


def test_a_dropped_edge_is_as_if_it_was_not_there(graph):
    n, edge_index, weight = graph
    keep = torch.rand(edge_index.size(1), generator=gen(5)) < 0.5  # either direction by itself
    dropped = Adjacency(edge_index, n, weight).normalized(keep)
    exact = dense_normalized(n, edge_index[:, keep], weight[keep])
    torch.testing.assert_close(dropped.a.to_dense().double(), exact, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(dropped.a_t.to_dense().double(), exact.T, rtol=1e-5, atol=1e-6)


def test_a_directed_edge_flows_from_source_to_target():
    adjacency = Adjacency(torch.tensor([[0], [1]]), 2).normalized()
    out = adjacency @ torch.tensor([[1.0], [0.0]])
    assert out[1].item() > 0
    back = torch.eye(2, requires_grad=True)
    (adjacency @ back)[1].sum().backward()
    torch.testing.assert_close(back.grad, adjacency.a.to_dense()[1].view(2, 1).expand(2, 2))


def test_isolated_nodes_keep_their_own_features():
    adjacency = Adjacency(torch.empty(2, 0, dtype=torch.long), 3).normalized()
    torch.testing.assert_close(adjacency.a.to_dense(), torch.eye(3))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_steps_after_the_layers_are_personalised_pagerank_gradients_included(graph, steps):
    n, edge_index, weight = graph
    x, alpha = torch.randn(n, 6, generator=gen(6)), 0.3
    gcn = GCN(6, (5, 4), steps=steps, teleport=alpha, generator=gen(7))
    ours = gcn(x, Adjacency(edge_index, n, weight).normalized())
    a = dense_normalized(n, edge_index, weight)
    first, second = (layer.weight.detach().double().requires_grad_() for layer in gcn.layers)
    start = (a @ (a @ x.double() @ first).relu() @ second).relu()
    matrix = torch.linalg.matrix_power((1 - alpha) * a, steps)
    for t in range(steps):
        matrix = matrix + alpha * torch.linalg.matrix_power((1 - alpha) * a, t)
    torch.testing.assert_close(ours.double(), matrix @ start, rtol=1e-5, atol=1e-6)
    upstream = torch.randn(n, 4, generator=gen(8))
    exact = torch.autograd.grad(((matrix @ start) * upstream).sum(), [first, second])
    found = torch.autograd.grad((ours * upstream).sum(), [layer.weight for layer in gcn.layers])
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


def test_layers_that_look_at_each_node_alone_leave_the_edges_to_the_steps(graph):
    n, edge_index, weight = graph
    x, adjacency = torch.randn(n, 6, generator=gen(6)), Adjacency(edge_index, n, weight).normalized()
    appnp = GCN(6, (5, 4), alone=True, steps=1, teleport=0.3, generator=gen(7))
    first, second = (layer.weight.detach().double() for layer in appnp.layers)
    start = ((x.double() @ first).relu() @ second).relu()
    exact = 0.7 * dense_normalized(n, edge_index, weight) @ start + 0.3 * start
    torch.testing.assert_close(appnp(x, adjacency).double(), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "elu", "prelu"])
def test_two_layers_equal_the_formula_gradients_included(graph, activation):
    n, edge_index, weight = graph
    x = torch.randn(n, 6, generator=gen(6))
    gcn = GCN(6, (5, 3), activation=activation, generator=gen(7))
    h = gcn(x, Adjacency(edge_index, n, weight).normalized())

    a = dense_normalized(n, edge_index, weight)
    sigma = {"relu": torch.relu, "elu": torch.nn.functional.elu, "prelu": lambda t: torch.where(t > 0, t, 0.25 * t)}
    w1, w2 = (layer.weight.detach().double().requires_grad_() for layer in gcn.layers)
    twin = sigma[activation](a @ sigma[activation](a @ x.double() @ w1) @ w2)
    torch.testing.assert_close(h.double(), twin, rtol=1e-4, atol=1e-5)
    h.square().sum().backward()
    twin.square().sum().backward()
    torch.testing.assert_close(gcn.layers[0].weight.grad.double(), w1.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gcn.layers[1].weight.grad.double(), w2.grad, rtol=1e-4, atol=1e-4)


def test_sparse_features_give_the_dense_result_masked_or_not(graph):
    n, edge_index, _ = graph
    x = (torch.rand(n, 50, generator=gen(8)) < 0.05).float()
    sparse = sparse_if_faster(x)
    assert isinstance(sparse, SparseMatrix)
    assert sparse_if_faster(x + 1) is not None
    assert isinstance(sparse_if_faster(x + 1), torch.Tensor)
    adjacency = Adjacency(edge_index, n).normalized()
    mask = (torch.arange(50) % 3 > 0).float()
    gcn = GCN(50, (4, 4), generator=gen(9))
    for m in (None, mask):
        gcn.zero_grad()
        gcn(x if m is None else x * m, adjacency).sum().backward()
        dense_grad = gcn.layers[0].weight.grad.clone()
        gcn.zero_grad()
        gcn(sparse, adjacency, m).sum().backward()
        torch.testing.assert_close(gcn.layers[0].weight.grad, dense_grad if m is None else dense_grad * m[:, None])
        torch.testing.assert_close(gcn(sparse, adjacency, m), gcn(x if m is None else x * m, adjacency))


def test_batch_norm_comes_before_the_activation(graph):
    n, edge_index, _ = graph
    gcn = GCN(6, (5, 5), norm="batch", activation="elu", generator=gen(10))
    x = torch.randn(n, 6, generator=gen(11))
    adjacency = Adjacency(edge_index, n).normalized()
    inner = adjacency @ (x @ gcn.layers[0].weight)
    expected = torch.nn.functional.elu((inner - inner.mean(0)) / (inner.var(0, correction=0) + 1e-5).sqrt())
    torch.testing.assert_close(gcn.layers[0](x, adjacency), expected, rtol=1e-4, atol=1e-5)


def test_a_linear_last_layer_has_neither_norm_nor_activation(graph):
    n, edge_index, weight = graph
    x = torch.randn(n, 6, generator=gen(11))
    adjacency = Adjacency(edge_index, n, weight).normalized()
    gcn = GCN(6, (5, 3), activation="elu", norm="batch", linear=True, generator=gen(10))
    expected = adjacency @ (gcn.layers[0](x, adjacency) @ gcn.layers[1].weight)
    torch.testing.assert_close(gcn(x, adjacency), expected)
    assert gcn.layers[0].norm is not None


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_order_is_that_of_the_features_rows(graph, kind):
    n, edge_index, weight = graph
    x = (torch.rand(n, 30, generator=gen(8)) < 0.08).float()
    read = sparse_if_faster(x) if kind == "sparse" else x
    assert isinstance(read, SparseMatrix) == (kind == "sparse")
    adjacency = Adjacency(edge_index, n, weight).normalized()
    order = torch.randperm(n, generator=gen(9))
    gcn = GCN(30, (5, 3), generator=gen(0))
    torch.testing.assert_close(gcn(read, adjacency, order=order), gcn(x[order], adjacency))


@pytest.mark.parametrize("masked", [False, True])
def test_features_that_the_graph_has_mixed_before_are_read_as_they_are(graph, masked):
    n, edge_index, weight = graph
    x, adjacency = torch.randn(n, 6, generator=gen(8)), Adjacency(edge_index, n, weight).normalized()
    mask = torch.tensor([1.0, 0, 1, 1, 0, 1]) if masked else None
    gcn = GCN(6, (5, 3), generator=gen(9))
    torch.testing.assert_close(gcn(adjacency @ x, adjacency, mask, mixed=True), gcn(x, adjacency, mask))


def test_the_mlp_shares_the_gcns_very_weights(graph):
    n, _, _ = graph
    gcn = GCN(6, (5, 3), generator=gen(12))
    mlp = MLP(gcn)
    assert {id(p) for p in mlp.parameters()} == {id(p) for p in gcn.parameters()}
    x = torch.randn(n, 6, generator=gen(13))
    no_edges = Adjacency(torch.empty(2, 0, dtype=torch.long), n).normalized()
    torch.testing.assert_close(mlp(x), gcn(x, no_edges))


def test_rrelu_is_the_deterministic_one():
    h = torch.randn(7, 4, generator=gen())
    torch.testing.assert_close(ACTIVATIONS["rrelu"]()(h), torch.nn.functional.rrelu(h, training=False))


def test_a_seed_is_a_start_and_the_global_generator_is_left_alone(graph):
    before = torch.random.get_rng_state()
    a, b, c = (GCN(6, (5, 3), generator=gen(seed)) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(a.layers[0].weight, b.layers[0].weight)
    assert not torch.equal(a.layers[0].weight, c.layers[0].weight)


def large_cases(n):
    """Encoders of any kind and depth in float64, with settled moments, and features that are dense, sparse or mixed."""
    for alone, steps, widths, norm in [
        (False, 0, (7, 5), "none"),
        (False, 0, (7, 5), "batch"),
        (False, 3, (5,), "batch"),
        (False, 2, (6, 9, 4), "batch"),
        (True, 4, (7, 5), "batch"),
        (True, 2, (5,), "none"),
    ]:
        for activation, linear in (("prelu", False), ("elu", True)):
            gcn = GCN(
                30,
                widths,
                activation=activation,
                norm=norm,
                linear=linear,
                alone=alone,
                steps=steps,
                teleport=0.3,
                generator=gen(0),
            ).double()
            for number, (name, tensor) in enumerate(gcn.state_dict().items()):
                if tensor.is_floating_point() and "weight" not in name:
                    tensor.copy_(torch.rand(tensor.shape, generator=gen(number), dtype=torch.float64) + 0.1)
            yield gcn


@pytest.mark.parametrize("features", ["dense", "sparse", "centred", "mixed"])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_by_columns_every_encoder_has_the_vectors_of_the_whole_forward(graph, features, count):
    n, edge_index, weight = graph
    adjacency = Adjacency(edge_index, n, weight.double(), torch.float64).normalized()
    x = (torch.rand(n, 30, generator=gen(8), dtype=torch.float64) < 0.08).double()
    if features in ("sparse", "centred"):
        x = SparseMatrix.from_dense(x)
        x.shift = torch.rand(30, generator=gen(1), dtype=torch.float64) if features == "centred" else None
    for gcn in large_cases(n):
        mixed = features == "mixed" and not gcn.alone
        read = adjacency @ x if mixed else x
        for training in (False, True):
            gcn.train(training)
            for norm in [each.norm for each in gcn.layers if each.norm is not None]:
                norm.track_running_stats = not training
            before = {key: tensor.clone() for key, tensor in gcn.state_dict().items()}
            found = gcn.by_columns(read, adjacency, count, mixed=mixed)
            torch.testing.assert_close(found, gcn(read, adjacency, mixed=mixed), rtol=0, atol=1e-10)
            assert not found.requires_grad
            assert all(torch.equal(tensor, before[key]) for key, tensor in gcn.state_dict().items())


class Largest(TorchDispatchMode):
    """The most entries of a tensor that is computed."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor._base is None:
                self.entries = max(self.entries, tensor.numel())
        return made


@pytest.mark.parametrize("alone", [False, True])
def test_by_columns_no_layer_is_in_memory_as_a_whole_nor_a_dense_copy_of_sparse_features(alone):
    n = 1000
    ring = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
    adjacency = Adjacency(torch.cat([ring, ring.flip(0)], 1), n).normalized()
    x = sparse_if_faster((torch.rand(n, 100, generator=gen(8)) < 0.02).float())
    gcn = GCN(100, (64, 8), alone=alone, steps=2, norm="batch", generator=gen(0)).eval()
    entries = []
    for compute in (lambda: gcn(x, adjacency), lambda: gcn.by_columns(x, adjacency, 4)):
        with torch.no_grad(), Largest() as largest:
            compute()
        entries.append(largest.entries)
    assert entries == [64 * n, 8 * n]  # the vectors
