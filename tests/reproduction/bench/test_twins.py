import copy
import math

import pytest
import torch
from torch_geometric.data import Data

from costa.graphs.synthetic import planted_partition
from costa.nn import GCN, Adjacency, both_views_loss, cross_view_loss, self_contrast_loss
from reproduction.bench import twins

CPU = torch.device("cpu")
MAKERS = {
    "grace": twins.PlainGRACE,
    "gca": twins.PlainGCA,
    "costa, one view": lambda *args, **options: twins.PlainCOSTA(*args, views=1, **options),
    "costa, two views": lambda *args, **options: twins.PlainCOSTA(*args, views=2, draw_on="cpu", **options),
}


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def graph():
    return planted_partition(120, 3, 12, seed=0)


def in_float64(graph):
    graph = graph.clone()
    graph.x = graph.x.double()
    return graph


@pytest.mark.parametrize("name", MAKERS)
def test_training_lowers_the_loss(graph, name):
    twin = MAKERS[name](graph, CPU, width=16)
    losses = torch.stack([twin.epoch() for _ in range(60)])
    assert losses[-10:].mean() < losses[:10].mean() - 0.05
    assert not losses.requires_grad
    assert twin.embed().shape == (120, 16)


@pytest.mark.parametrize("name", MAKERS)
def test_an_epoch_steps_along_its_own_gradient(graph, name):
    twin = MAKERS[name](graph, CPU, width=4)
    twin.epoch()
    fresh = copy.deepcopy(twin)
    for step in (twin.epoch, lambda: (fresh.zero_grad(), fresh.loss().backward())):
        torch.manual_seed(1)
        step()
    for found, expected in zip(twin.parameters(), fresh.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


@pytest.mark.parametrize("name", MAKERS)
def test_the_inputs_stay_as_they_were(graph, name):
    before = graph.x.clone(), graph.edge_index.clone()
    MAKERS[name](graph, CPU, width=4).epoch()
    assert torch.equal(graph.x, before[0])
    assert torch.equal(graph.edge_index, before[1])


@pytest.mark.parametrize(
    ("plain", "ours"),
    [
        (twins.contrast_both, both_views_loss),
        (twins.contrast_cross, cross_view_loss),
        (lambda u, v, tau: twins.contrast_self(u, tau), lambda u, v, tau: self_contrast_loss(u, tau)),
    ],
    ids=["both", "cross", "self"],
)
@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_losses_are_those_of_the_package(plain, ours, tau):
    rows = [torch.randn(7, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    found, wanted = plain(*rows, tau), ours(*rows, tau)
    torch.testing.assert_close(found, wanted)
    pairs = zip(*(torch.autograd.grad(loss, rows, allow_unused=True) for loss in (found, wanted)), strict=True)
    for gradient, expected in pairs:
        if expected is not None:
            torch.testing.assert_close(gradient, expected)


def test_the_encoder_is_the_package_s(graph):
    twin = twins.PlainGRACE(graph, CPU, width=8)
    gcn = GCN(graph.num_features, (8, 8))
    with torch.no_grad():
        for layer, conv in zip(gcn.layers, (twin.first, twin.second), strict=True):
            layer.weight.copy_(conv.lin.weight.T)
            layer.bias.copy_(conv.bias.normal_())
        expected = gcn(graph.x, Adjacency(graph.edge_index, graph.num_nodes).normalized())
    torch.testing.assert_close(twin.embed(), expected)


def test_one_view_contrasts_the_sketch_of_the_whole_graph_with_itself(graph, float64):
    twin = twins.PlainCOSTA(in_float64(graph), CPU, views=1, width=8)
    torch.manual_seed(1)
    found = twin.loss()
    torch.manual_seed(1)
    p = torch.randn(60, 120) / math.sqrt(60)
    expected = self_contrast_loss(twin.head(p @ twin.embed()), twins.TAU)
    torch.testing.assert_close(found, expected)


def test_two_views_are_sketched_by_one_p(graph, float64, monkeypatch):
    twin = twins.PlainCOSTA(in_float64(graph), CPU, views=2, width=8)
    views = [twin.view(), twin.view()]
    hidden = [twin.encode(*view) for view in views]
    left = iter(views)
    monkeypatch.setattr(twin, "view", lambda: next(left))
    torch.manual_seed(1)
    found = twin.loss()
    torch.manual_seed(1)
    p = torch.randn(60, 120) / math.sqrt(60)
    torch.testing.assert_close(found, cross_view_loss(*(twin.head(p @ h) for h in hidden), twins.TAU))


def test_grace_contrasts_two_views_of_all_nodes(graph, float64, monkeypatch):
    twin = twins.PlainGRACE(in_float64(graph), CPU, width=8)
    views = [twin.view(), twin.view()]
    left = iter(views)
    monkeypatch.setattr(twin, "view", lambda: next(left))
    torch.testing.assert_close(
        twin.loss(), both_views_loss(*(twin.head(twin.encode(*view)) for view in views), twins.TAU)
    )


def kept_and_hidden(twin, draws):
    views = [twin.view() for _ in range(draws)]
    kept = sum(edges.size(1) for _, edges in views) / draws
    hidden = sum((x == 0).all(0).float() for x, _ in views) / draws
    return kept, hidden


def test_a_view_drops_edges_and_columns_at_their_rates(graph):
    kept, hidden = kept_and_hidden(twins.PlainGRACE(graph, CPU, width=4), 300)
    assert kept / graph.num_edges == pytest.approx(1 - twins.EDGE_RATE, abs=0.01)
    assert hidden.mean() == pytest.approx(twins.MASK_RATE, abs=0.03)


def test_gca_drops_what_is_central_less_often():
    """A star with one edge apart, its hub alone with the first attribute; the last one nobody has."""
    edges = torch.tensor([[0, 0, 0, 0, 5], [1, 2, 3, 4, 6]])
    x = torch.tensor([[1.0, 0, 0]] + [[0, 1.0, 0]] * 2 + [[0.0, 0, 0]] * 4)
    twin = twins.PlainGCA(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1)), CPU, width=4)
    # edges weigh (4 + 1)/2 and (1 + 1)/2: 2/10 of the entries lie log 2.5 below the others, 5 times the mean; capped
    torch.testing.assert_close(twin.edge_drop.unique(), torch.tensor([0.0, twins.MOST_LIKELY]))
    assert (twin.edge_drop > 0).tolist() == [False] * 4 + [True] + [False] * 4 + [True]
    # columns weigh 4·1, 1·2 and nothing, which counts as the least there is: s below the most by 0, log 2, log 2
    torch.testing.assert_close(twin.column_drop, torch.tensor([0, 1.5, 1.5]) * twins.MASK_RATE)
    kept, hidden = kept_and_hidden(twin, 1000)
    assert kept == pytest.approx(8 + 2 * (1 - twins.MOST_LIKELY), abs=0.1)
    assert hidden[:2].tolist() == pytest.approx([0, 0.3], abs=0.06)


def test_alike_weights_are_dropped_alike():
    assert twins.drop_probability(torch.full((5,), 3.0), 0.2).tolist() == pytest.approx([0.2] * 5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("draw_on", [None, "cpu"])
def test_p_is_drawn_where_it_is_said(graph, draw_on):
    twin = twins.PlainCOSTA(graph, torch.device("cuda"), views=1, draw_on=draw_on, width=4)
    before = torch.get_rng_state()
    assert twin.epoch().is_cuda
    assert torch.equal(torch.get_rng_state(), before) == (draw_on is None)
