"""Methods with an encoder: what they read of a graph, prepare, share and forget; augmented views of it."""

import pytest
import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.encoding import View
from costa.nn import Adjacency, SparseMatrix

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def build(build_plain):
    return build_plain


def encode(method, graph):
    """f(X, A) with nothing dropped or masked."""
    return method.encoder(graph.x, Adjacency(graph.edge_index, graph.num_nodes).normalized())


@pytest.mark.parametrize("kind", ["gcn", "appnp"])
def test_the_vectors_are_the_encoders_whichever_it_is(build, graph, kind):
    method = build("costa-sv", graph, encoder__kind=kind, encoder__steps=2)
    torch.testing.assert_close(method.embed(graph), encode(method, graph))


@pytest.mark.parametrize("steps", [0, 2])
def test_without_steps_there_is_nowhere_to_go_back_from(merged, steps):
    unused = get_method("costa-sv").unused(merged("costa-sv", encoder__steps=steps))
    assert ("encoder.teleport" in unused) == (steps == 0)


def test_augmented_views_differ_and_each_has_its_rate(build, graph):
    method = build("costa-mv", graph, augment__edge_rate=[0.0, 0.6], augment__mask_rate=[0.0, 0.5])
    inputs = method.inputs(graph)
    first, second = (method.encode_view(inputs, view) for view in (0, 1))
    torch.testing.assert_close(first, encode(method, graph))
    assert (first - second).abs().max() > 1e-3


def test_embedding_leaves_nothing_out(build, graph):
    method = build("costa-sv", graph, augment__edge_rate=0.5, encoder__norm="batch")
    method.loss(graph)
    first, second = method.embed(graph), method.embed(graph)
    assert torch.equal(first, second)
    assert method.training
    assert not first.requires_grad


def test_a_new_graph_can_be_embedded(build, graph):
    method = build("costa-sv", graph, features__scaling="standard")
    other = planted_partition(45, 3, 20, seed=1)
    z = method.embed(other)
    assert z.shape == (45, 16)
    x = (other.x - graph.x.mean(0)) / graph.x.std(0, correction=0)
    torch.testing.assert_close(z, method.encoder(x, Adjacency(other.edge_index, 45).normalized()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv", "grace", "gbt", "bgrl", "cca-ssg"])
def test_others_take_a_centrality_and_have_none_by_default(graph, name):
    method = get_method(name)
    small = {"encoder.kind": "gcn", "features.scaling": "none", "augment.edge_rate": 0.4, "augment.mask_rate": 0.2}
    rates = {}
    for centrality in ("none", "degree"):
        values, _ = settings.merge(method.Settings, [("test", small | {"augment.centrality": centrality})])
        built = training.build(method, values, graph, 0, CPU)
        built.prepare(graph)
        rates[centrality] = built._rates[0]
    assert method.Settings().augment.centrality == "none"
    assert rates["none"] == (0.4, 0.2)
    assert rates["degree"][0].mean().item() == pytest.approx(0.4, abs=0.01)
    assert rates["degree"][1].mean().item() == pytest.approx(0.2, abs=0.01)
    assert rates["degree"][0].std() > 0.01


@pytest.mark.parametrize(
    ("values", "unused"),
    [
        ({"augment__edge_rate": 0.2, "augment__mask_rate": 0.2, "encoder__steps": 2}, {}),
        (
            {"encoder__layers": 1, "augment__edge_rate": 0.2},
            {
                "encoder.hidden": "encoder.layers = 1 has no hidden layer",
                "encoder.teleport": "encoder.steps = 0 takes no step",
            },
        ),
        (
            {"head__width": 0, "encoder__steps": 1, "augment__mask_rate": [0.0, 0.3], "augment__edge_rate": 0.0},
            {
                "head.activation": "head.width = 0 leaves out the head",
                "augment.edges": "augment.edge_rate = 0 leaves the edges as they are",
            },
        ),
        (
            {"encoder__steps": 1, "augment__mask_rate": 0.0, "augment__edge_rate": 0.0},
            {
                "augment.edges": "augment.edge_rate = 0 leaves the edges as they are",
                "augment.centrality": "augment.edge_rate and mask_rate = 0 drop nothing",
            },
        ),
    ],
)
def test_what_is_unused_is_named_with_its_reason(merged, values, unused):
    hops = dict.fromkeys(("encoder.powers", "encoder.columns", "encoder.weight"), "it belongs to encoder.kind = hops")
    hops |= {
        "augment.hop_rate": "encoder.kind = gcn has no hops",
        "train.batch": "encoder.kind = gcn trains on the whole graph",
    }
    assert get_method("grace").unused(merged("grace", **values)) == unused | hops


def test_hops_have_no_edges_to_drop_and_one_layer(merged):
    values = {"encoder__kind": "hops", "encoder__columns": 0, "encoder__steps": 0}
    edges, layer = "encoder.kind = hops trains without edges", "encoder.kind = hops has one layer a hop"
    assert get_method("grace").unused(merged("grace", **values)) == {
        "encoder.hidden": layer,
        "encoder.layers": layer,
        "encoder.teleport": "encoder.steps = 0 takes no step",
        "encoder.weight": "encoder.columns = 0 leaves the codes alone",
        "augment.edges": edges,
        "augment.edge_rate": edges,
        "augment.centrality": edges,
    }


def test_a_product_is_prepared_only_where_the_first_layer_reads_it(build, graph, bag_of_words):
    inputs = build("costa-sv", graph).inputs(graph)
    torch.testing.assert_close(inputs.mixed, inputs.adjacency @ graph.x)
    assert build("costa-sv", graph, encoder__kind="appnp", encoder__steps=1).inputs(graph).mixed is None
    sparse = build("costa-sv", bag_of_words).inputs(bag_of_words)
    assert isinstance(sparse.x, SparseMatrix)
    assert sparse.mixed is None


def test_what_another_seed_has_prepared_is_taken_over_once(build, graph):
    first, second = build("costa-sv", graph), build("costa-sv", graph, seed=1)
    own = second.inputs(graph)
    second.share(first)
    assert second.inputs(graph) is own  # until it prepares
    second.prepare(graph)
    assert second.inputs(graph) is first.inputs(graph)
    second.prepare(graph)
    assert second.inputs(graph) is not first.inputs(graph)


def test_of_another_graph_nothing_is_taken_over(build, graph):
    first, second, equal = build("costa-sv", graph), build("costa-sv", graph, seed=1), graph.clone()
    second.share(first)
    second.prepare(equal)
    assert second.inputs(equal) is second.inputs(equal)
    assert second.inputs(equal) is not first.inputs(graph)
    second.prepare(graph)  # what was shared has been let go of
    assert second.inputs(graph) is not first.inputs(graph)


def test_a_graph_that_has_changed_is_read_anew(build, graph):
    changing = graph.clone()
    method = build("costa-sv", changing, features__scaling="standard")
    before = method.embed(changing)
    changing.x = 2 * changing.x + 1
    changing.edge_index = changing.edge_index[:, :0]
    assert torch.equal(method.embed(changing), before)  # as prepared
    method.prepare(changing)
    assert method.inputs(changing).edge_index.shape == (2, 0)
    torch.testing.assert_close(method.scaling(changing.x).mean(0), torch.zeros(20), atol=1e-5, rtol=0)
    assert not torch.allclose(method.embed(changing), before)


def test_what_is_prepared_is_forgotten(build, graph):
    method = build("costa-sv", graph)
    prepared, z = method.inputs(graph), method.embed(graph)
    assert method.inputs(graph) is prepared
    method.forget()
    assert method.inputs(graph) is not prepared
    assert method.inputs(graph) is not method.inputs(graph)  # nothing is kept
    assert torch.equal(method.embed(graph), z)


@pytest.mark.parametrize(
    ("given", "rates"),
    [(([0.2], [0.3]), [(0.2, 0.3)] * 2), (([0.2, 0.0], [0.3]), [(0.2, 0.3), (None, 0.3)])],
)
def test_a_single_rate_serves_both_views_and_zero_is_none(build, graph, given, rates):
    method = build("costa-mv", graph, augment__edge_rate=given[0], augment__mask_rate=given[1])
    assert method._rates == rates


def test_a_view_with_nothing_dropped_is_the_graph_itself(build, graph):
    method = build("costa-mv", graph, augment__mask_rate=[0.0, 0.5])
    inputs = method.inputs(graph)
    assert method.draw_view(inputs, 0) == View()
    view = method.draw_view(inputs, 1)
    assert view.adjacency is None
    assert view.mask.shape == (20,)
