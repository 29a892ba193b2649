"""Methods with an encoder: what they read of a graph, prepare, share and forget; augmented views of it."""

import pytest
import torch
from torch_geometric.data import Data

from costa import settings, training
from costa.errors import InputError
from costa.evaluate import health
from costa.graphs import as_graph
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.encoding import HopInputs, View
from costa.nn import Adjacency, SparseMatrix
from costa.nn.hops import propagate
from costa.settings.presets import resolve

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


def test_of_a_small_graph_each_layer_is_computed_as_a_whole(build, graph, monkeypatch):
    method = build("costa-sv", graph)
    monkeypatch.setattr(method.encoder, "by_columns", None)
    assert torch.equal(method.embed(graph), method._encode(method.inputs(graph)))


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
    keys = ("encoder.powers", "encoder.columns", "encoder.weight", "encoder.stored")
    hops = dict.fromkeys(keys, "it belongs to encoder.kind = hops")
    hops |= {
        "augment.hop_rate": "encoder.kind = gcn has no hops",
        "train.batch": "encoder.kind = gcn trains on the whole graph",
        "train.group": "train.parts = 0 trains on the whole graph",
    }
    assert get_method("grace").unused(merged("grace", **values)) == unused | hops


def test_hops_have_no_edges_to_drop_and_one_layer(merged):
    values = {"encoder__kind": "hops", "encoder__columns": 0, "encoder__steps": 0}
    edges, layer = "encoder.kind = hops trains without edges", "encoder.kind = hops has one layer a hop"
    rows = "encoder.kind = hops trains on rows, train.batch of them a step"
    assert get_method("grace").unused(merged("grace", **values)) == {
        "encoder.hidden": layer,
        "encoder.layers": layer,
        "encoder.teleport": "encoder.steps = 0 takes no step",
        "encoder.weight": "encoder.columns = 0 leaves the codes alone",
        "augment.edges": edges,
        "augment.edge_rate": edges,
        "augment.centrality": edges,
        "train.parts": rows,
        "train.group": rows,
    }


def test_parts_leave_no_use_for_batches_of_rows(merged):
    unused = get_method("grace").unused(merged("grace", train__parts=8))
    assert unused["train.batch"] == "train.parts says what a step reads"
    assert "train.group" not in unused


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


# --- hops -----------------------------------------------------------------------------------------------------

HOPS = {"encoder__kind": "hops", "encoder__powers": (1, 4), "encoder__steps": 3, "encoder__columns": 12}
WITH_HOPS = ["costa-sv", "costa-mv", "grace", "gbt", "bgrl", "cca-ssg"]


@pytest.mark.parametrize("name", WITH_HOPS)
def test_only_hops_choose_how_far_they_look(name, graph, merged):
    method, reach = get_method(name), {"encoder.powers", "encoder.steps", "encoder.width"}
    assert reach <= method.choose(graph, merged(name, encoder__kind="hops")).keys()
    for kind in ("gcn", "appnp"):
        assert not reach & method.choose(graph, merged(name, encoder__kind=kind, encoder__steps=2)).keys()


def test_an_encoder_without_a_kind_chooses_no_reach(graph):
    assert get_method("dgi").choose(graph).keys() == {"features.scaling"}


def test_hops_read_the_features_after_scaling_and_every_hop_once(build, either):
    method = build("costa-mv", either, **HOPS, features__scaling="rows", features__rank=10)
    inputs = method.inputs(either)
    assert isinstance(inputs, HopInputs)
    x = method.features(either)
    x = x.to_dense() if isinstance(x, SparseMatrix) else x
    adjacency = Adjacency(either.edge_index, either.num_nodes).normalized()
    expected = propagate(x, adjacency, method.encoder.powers, 3, method.encoder.teleport)
    assert x.shape[1] == 10
    assert all(torch.equal(*pair) for pair in zip(inputs.blocks, expected, strict=True))
    assert method.inputs(either) is inputs
    some = method.inputs(either, torch.tensor([5, 2])).blocks
    assert all(torch.equal(part, block[[5, 2]]) for part, block in zip(some, inputs.blocks, strict=True))


def test_a_view_of_hops_hides_columns_and_leaves_out_hops_but_never_all(build, graph):
    rates = {"augment__mask_rate": [0.0, 0.5], "augment__hop_rate": [0.0, 0.9]}
    method = build("costa-mv", graph, **HOPS, **rates)
    inputs = method.inputs(graph)
    assert method.draw_view(inputs, 0) == View()
    kept = torch.stack([method.draw_view(inputs, 1).kept for _ in range(200)])
    assert kept.shape == (200, 3)
    assert ((kept != 0).any(1)).all()
    assert 0.05 < (kept != 0).float().mean() < 0.6
    assert 0.3 < torch.stack([method.draw_view(inputs, 1).mask for _ in range(50)]).mean() < 0.7
    h = method.encode_view(method.inputs(graph, torch.arange(7)), 0)
    torch.testing.assert_close(h, method.encoder([block[:7] for block in inputs.blocks]))


def test_a_single_hop_is_never_left_out(merged):
    def unused(powers, steps):
        values = {"encoder__kind": "hops", "encoder__powers": powers, "encoder__steps": steps}
        return get_method("costa-mv").unused(merged("costa-mv", **values)).get("augment.hop_rate")

    assert unused((0,), 0) == unused((), 10) == "a single hop is never left out"
    assert unused((4,), 10) is unused((0, 2), 0) is None


@pytest.mark.parametrize(
    ("kind", "key", "value", "why"),
    [
        ("hops", "augment.edge_rate", 0.2, "trains without edges"),
        ("hops", "encoder.layers", 3, "one layer a hop"),
        ("gcn", "augment.hop_rate", 0.2, "encoder.kind = gcn has no hops"),
        ("gcn", "train.batch", 32, "encoder.kind = gcn trains on the whole graph"),
        ("gcn", "train.group", 2, "train.parts = 0 trains on the whole graph"),
        ("hops", "train.parts", 4, "encoder.kind = hops trains on rows, train.batch of them a step"),
        ("gcn", "encoder.powers", "1,2", "it belongs to encoder.kind = hops"),
        ("appnp", "encoder.columns", 8, "it belongs to encoder.kind = hops"),
    ],
)
@pytest.mark.parametrize("name", ["costa-sv", "costa-mv", "grace"])
def test_a_setting_of_the_other_encoder_is_refused(graph, name, kind, key, value, why):
    steps = {"encoder.steps": 2} if kind == "appnp" else {}
    with pytest.raises(InputError, match=f"{key} was set, but .*{why}; leave it out"):
        resolve(get_method(name), graph, given={"encoder.kind": kind, key: value} | steps)


@pytest.mark.parametrize("name", ["gca", "gae", "vgae", "untrained"])
def test_a_method_that_reads_edges_says_so(graph, name):
    method = get_method(name)
    values = resolve(method, graph, given={"encoder.kind": "hops"}).values
    with pytest.raises(InputError, match=f"{name} reads the edges, which encoder.kind = hops does without; choose gcn"):
        training.build(method, values, graph, 0, CPU)


@pytest.mark.parametrize("name", ["dgi", "gmi", "mvgrl"])
def test_a_method_whose_encoder_is_given_has_no_kind(graph, name):
    with pytest.raises(InputError, match=r"unknown setting 'encoder\.kind'"):
        resolve(get_method(name), graph, given={"encoder.kind": "hops"})


@pytest.mark.parametrize("name", ["gmi", "mvgrl"])
def test_a_method_that_takes_no_parts_says_so(graph, name):
    method = get_method(name)
    with pytest.raises(InputError, match=rf"train.parts was set, but {name} trains on the whole graph; leave it out"):
        resolve(method, graph, given={"train.parts": 4})
    assert {"train.batch", "train.group"} < set(method.unused(method.Settings()))


@pytest.mark.parametrize("weighted", [False, True])
def test_nodes_have_the_inputs_of_their_subgraph(build, either, weighted):
    whole = either.clone()
    if weighted:
        low, high = whole.edge_index.aminmax(dim=0)
        whole.edge_weight = 1 + low + 0.01 * high
    nodes = torch.arange(1, 60, 2)
    part, own = build("costa-mv", whole).inputs(whole, nodes), whole.subgraph(nodes)
    expected = build("costa-mv", own).inputs(own)
    assert torch.equal(part.edge_index, expected.edge_index)
    assert torch.equal(whole.edge_index[:, part.entries], nodes[expected.edge_index])
    assert torch.equal(part.edge_ids, expected.edge_ids)
    assert (part.edge_weight is None) == (not weighted) or torch.equal(part.edge_weight, expected.edge_weight)
    assert torch.equal(part.adjacency.a.to_dense(), expected.adjacency.a.to_dense())
    assert isinstance(part.x, SparseMatrix) == isinstance(expected.x, SparseMatrix) == (either.num_features == 40)
    dense = [inputs.x.to_dense() for inputs in (part, expected)]
    assert torch.equal(*dense)


def test_a_group_of_nodes_without_edges_is_read_too(build, graph):
    alone = graph.clone()
    alone.edge_index = graph.edge_index[:, (graph.edge_index > 9).all(0)]
    inputs = build("costa-mv", alone, augment__edge_rate=0.5).inputs(alone, torch.arange(10))
    assert inputs.edge_index.shape == (2, 0)
    assert torch.equal(inputs.adjacency.a.to_dense(), torch.eye(10))


@pytest.mark.parametrize("name", WITH_HOPS)
def test_hops_embed_a_new_graph_with_what_the_first_has_taught(name, graph):
    method = get_method(name)
    given = {"encoder.kind": "hops", "features.rank": 8, "features.scaling": "standard", "train.batch": 25}
    values = resolve(method, graph, given=given, epochs=2).values
    built = training.build(method, values, graph, 0, CPU)
    assert training.train(built, graph, values.train).status == "ok"
    z = built.embed(graph)
    state = {key: tensor.clone() for key, tensor in built.state_dict().items()}
    other = planted_partition(45, 3, 20, seed=1)
    assert built.embed(other).shape == (45, z.shape[1]) == (45, built.encoder.vector_width)
    assert built.embed(other).isfinite().all()
    built.forget()
    # an isolated copy of a graph has the vectors of the graph
    twice = Data(x=torch.cat([graph.x, graph.x]), edge_index=torch.cat([graph.edge_index, graph.edge_index + 60], 1))
    torch.testing.assert_close(built.embed(twice), torch.cat([z, z]), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(tensor, state[key]) for key, tensor in built.state_dict().items())


def test_seeds_share_the_hops_and_what_is_fitted_to_them(build, graph):
    first, second = build("costa-mv", graph, **HOPS), build("costa-mv", graph, seed=1, **HOPS)
    expected = {name: getattr(second.encoder, name).clone() for name in ("scale", "basis")}
    for buffer in expected:
        getattr(second.encoder, buffer).zero_()
    second.share(first)
    second.prepare(graph)
    assert second.inputs(graph) is first.inputs(graph)
    assert all(torch.equal(getattr(second.encoder, buffer), tensor) for buffer, tensor in expected.items())


def unusual(kind):
    """A graph at the edge of what hops can read."""
    n, x = 30, torch.randn(30, 6, generator=torch.Generator().manual_seed(0))
    ring = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
    edges = {
        "no edges": torch.empty(2, 0, dtype=torch.int64),
        "one edge": torch.tensor([[0], [1]]),
        "star": torch.stack([torch.zeros(n - 1, dtype=torch.int64), torch.arange(1, n)]),
        "two nodes": torch.tensor([[0], [1]]),
        "three nodes": torch.tensor([[0, 1], [1, 2]]),
    }.get(kind, ring)
    x = {
        "two nodes": x[:2],
        "three nodes": x[:3],
        "constant features": torch.ones(n, 6),
        "one column": x[:, :1],
        "some zero rows": x * (torch.arange(n) % 3 > 0)[:, None],
        "large features": 1e6 * x,
        "small features": 1e-6 * x,
        "no features": None,
    }.get(kind, x)
    edge_index = torch.cat([edges, edges.flip(0)], 1)
    weight = {"weights": torch.rand(edges.shape[1]), "zero weights": torch.zeros(edges.shape[1])}.get(kind)
    graph = Data(x=x, edge_index=edge_index, num_nodes=n if x is None else len(x))
    if weight is not None:
        graph.edge_weight = torch.cat([weight, weight])
    return as_graph(graph)


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
@pytest.mark.parametrize(
    "kind",
    [
        "no edges",
        "one edge",
        "star",
        "two nodes",
        "three nodes",
        "constant features",
        "one column",
        "some zero rows",
        "large features",
        "small features",
        "no features",
        "weights",
        "zero weights",
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        {"train.batch": 0},
        {"train.batch": 8},
        {"train.batch": 8, "encoder.norm": "batch", "encoder.powers": "0,1,4", "encoder.steps": 3},
    ],
)
def test_hops_train_on_unusual_graphs(name, kind, given):
    graph = unusual(kind)
    method = get_method(name)
    values = resolve(method, graph, given={"encoder.kind": "hops"} | given, epochs=3).values
    built, outcome, z = training.train_and_embed(method, values, graph, device=CPU)
    assert outcome.status == "ok"
    assert z.isfinite().all()
    assert z.shape == (graph.num_nodes, built.encoder.vector_width)
    assert health.status(z, graph.x) in ("ok", "collapsed")
