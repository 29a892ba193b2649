"""What every method that is trained by a loss has to do, whatever its loss is."""

import functools
import typing

import pytest
import torch

from costa import settings, training
from costa.evaluate import health
from costa.evaluate.probe import linear_probe
from costa.graphs.streaming import keep_on_disk
from costa.graphs.synthetic import planted_partition
from costa.methods import METHODS, encoding, get_method
from costa.methods.base import GradientMethod
from costa.nn import SparseMatrix
from costa.settings.presets import load_base

CPU = torch.device("cpu")
TRAINED = [name for name in METHODS if issubclass(get_method(name), GradientMethod)]
PARTS = [name for name in TRAINED if get_method(name).takes_parts]
HOPS = [name for name in TRAINED if getattr(get_method(name), "takes_hops", False)]
CASES = [*((name, "gcn") for name in TRAINED), *((name, "hops") for name in HOPS)]
EVERY = pytest.mark.parametrize(("name", "kind"), CASES)
SMALL = {"encoder.kind": "gcn", "encoder.width": 16, "encoder.hidden": 24, "head.width": 16, "predictor.width": 20}
SMALL |= {"encoder.powers": (1, 4), "encoder.steps": 0}
WIDER = {"encoder.width": 32, "encoder.hidden": 64, "head.width": 32, "predictor.width": 64}
AUGMENTED = {"augment.edge_rate": 0.3, "augment.mask_rate": 0.2, "augment.hop_rate": 0.4}
SEVERAL = [
    *((name, "dense", {}) for name in TRAINED),
    *((name, "sparse", {"encoder.activation": "prelu", "encoder.norm": "batch"} | AUGMENTED) for name in TRAINED),
    *((name, "dense", {"encoder.kind": "hops", "encoder.steps": 3} | AUGMENTED) for name in HOPS),
    *((name, "sparse", {"encoder.kind": "hops", "encoder.norm": "batch"} | AUGMENTED) for name in HOPS),
    ("grace", "dense", {"head.width": 0, "augment.edge_rate": [0.0, 0.3]}),
    ("costa-mv", "sparse", {"encoder.steps": 3, "encoder.norm": "none"} | AUGMENTED),
    ("gae", "dense", {"encoder.steps": 3}),
    ("costa-mv", "dense", {"encoder.kind": "appnp", "encoder.steps": 2, "augment.edge_rate": [0.0, 0.3]}),
    ("gca", "dense", {"encoder.activation": "rrelu", "augment.edge_rate": [0.0, 0.3]}),
    ("bgrl", "dense", {"target.decay": 0.7, "train.epochs": 5}),  # a target that moves within the test
]


@functools.cache
def small_graph(features="dense"):
    if features == "dense":
        return planted_partition(60, 3, 20, seed=0)
    graph = planted_partition(60, 3, 40, seed=1)
    graph.x = (graph.x > graph.x.quantile(0.95)).float()
    return graph


def merged(name, graph, values):
    """The settings, with those of ``values`` that the method has."""
    method = get_method(name)
    known = settings.flatten(method.Settings())
    values = {key: value for key, value in (SMALL | values).items() if key in known}
    base = load_base(name) if values.get("encoder.kind") != "hops" else {}
    layers = [("base", base), ("test", values)]
    chosen = method.choose(graph, settings.merge(method.Settings, layers)[0])
    return settings.merge(method.Settings, [("graph", chosen), *layers])[0]


def build(name, graph, values, seed=0):
    method = training.build(get_method(name), merged(name, graph, values), graph, seed, CPU)
    method.prepare(graph)
    return method


def run(method, graph, steps, lr, batch=25):
    """Train on batches of rows if the encoder is one of hops, otherwise on the whole graph."""
    losses = training.Steps([method], graph, settings.Train(lr=lr, batch=batch)).run(steps)
    method.settle(graph)
    return losses


@EVERY
def test_a_seed_fixes_every_bit_and_the_global_generator_is_left_alone(name, kind):
    graph = small_graph()
    before = torch.random.get_rng_state()

    def vectors(seed):
        method = build(name, graph, {"encoder.kind": kind}, seed)
        run(method, graph, 2, lr=1e-3)
        return method.embed(graph)

    first = vectors(3)
    assert torch.equal(first, vectors(3))
    assert not torch.equal(first, vectors(4))
    assert torch.equal(before, torch.random.get_rng_state())


@EVERY
def test_the_loss_of_the_same_draws_falls(name, kind):
    graph = small_graph()
    # a high temperature leaves little to fall, and so do rows that are apart from the start: few, or after BatchNorm
    values = {"encoder.kind": kind, "loss.tau": 0.7, "sketch.ratio": 0.5}
    if name == "costa-sv":
        values |= {"encoder.norm": "none", "augment.mask_rate": 0.0, "augment.hop_rate": 0.0}
    method = build(name, graph, values)
    start = method.generator.get_state()

    def average_loss():
        method.generator.set_state(start)
        return sum(method.loss(graph).item() for _ in range(3)) / 3

    before = average_loss()
    run(method, graph, 15, lr=1e-2)
    assert average_loss() < before - 0.02 * abs(before)


def loss_and_gradients(method, graph, *nodes, state):
    """By parameter, on the draws of this state."""
    method.generator.set_state(state)
    loss = method.loss(graph, *nodes)
    named = dict(method.named_parameters())
    return loss, dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("values", [AUGMENTED, {"augment.edge_rate": 0.0, "augment.mask_rate": 0.0}])
@pytest.mark.parametrize("name", PARTS)
def test_a_group_of_all_nodes_has_the_loss_and_the_gradients_of_the_graph(name, values, features):
    graph = small_graph(features)
    method = build(name, graph, values)
    state = method.generator.get_state()
    whole, expected = loss_and_gradients(method, graph, state=state)
    loss, gradients = loss_and_gradients(method, graph, torch.arange(60), state=state)
    torch.testing.assert_close(loss, whole, rtol=1e-6, atol=1e-6)
    for key, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[key], rtol=1e-4, atol=1e-6, msg=key)


@pytest.mark.parametrize("name", [name for name in PARTS if name != "gca"])  # whose centralities are the whole graph's
def test_a_step_on_some_nodes_is_a_step_on_their_subgraph(name):
    graph, nodes = small_graph("sparse"), torch.arange(0, 60, 3)
    subgraph, values = graph.subgraph(nodes), AUGMENTED | {"features.scaling": "none", "sketch.ratio": 0.5}
    method, other = build(name, graph, values), build(name, subgraph, values)
    state = method.generator.get_state()
    loss, gradients = loss_and_gradients(method, graph, nodes, state=state)
    whole, expected = loss_and_gradients(other, subgraph, state=state)
    torch.testing.assert_close(loss, whole, rtol=1e-6, atol=1e-6)
    for key, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[key], rtol=1e-4, atol=1e-6, msg=key)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("kind", ["gcn", "appnp"])
@pytest.mark.parametrize("name", PARTS)
def test_of_a_large_graph_no_layer_is_computed_as_a_whole(name, kind, features, monkeypatch):
    graph, rows = small_graph(features), torch.tensor([3, 40])
    values = {"encoder.kind": kind, "encoder.steps": 2, "encoder.norm": "batch", "encoder.activation": "prelu"}
    method = build(name, graph, values)

    def vectors():
        with torch.no_grad():  # the watch sees rows in training mode, with the moments of all nodes
            return method.embed(graph), torch.cat(list(method.embed_rows(graph))), method.hidden(graph, rows)

    def forbidden(*given, **named):
        raise AssertionError("computed as a whole")

    training.Steps([method], graph, settings.Train(parts=6, group=2)).run(3)  # the vectors do not depend on it
    for module in method.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.track_running_stats = False
    expected = vectors()
    monkeypatch.setattr(encoding, "WIDE", 4 * 60)
    monkeypatch.setattr(encoding, "AT_ONCE", 0)
    monkeypatch.setattr(method.encoder, "forward", forbidden)
    for found, whole in zip(vectors(), expected, strict=True):
        torch.testing.assert_close(found, whole)


@pytest.mark.parametrize("name", PARTS)
def test_training_on_parts_lowers_the_loss_of_the_graph(name):
    graph = small_graph()
    values = {"encoder.norm": "none", "augment.mask_rate": 0.0, "loss.tau": 0.7, "sketch.ratio": 0.5}
    method = build(name, graph, values)
    start = method.generator.get_state()

    def average_loss():
        method.generator.set_state(start)
        return sum(method.loss(graph).item() for _ in range(10))

    before = average_loss()
    steps = training.Steps([method], graph, settings.Train(lr=1e-2, parts=6, group=2))
    assert steps.per_epoch == 3
    steps.run(15)
    assert average_loss() < before


@pytest.mark.parametrize(("name", "features", "values"), SEVERAL)
def test_each_of_several_seeds_trains_exactly_as_it_would_alone(name, features, values):
    graph, seeds, train = small_graph(features), [0, 7], settings.Train(epochs=3, weight_decay=1e-3, batch=25)
    together = [training.build(get_method(name), merged(name, graph, values), graph, seed, CPU) for seed in seeds]
    training.train_together(together, graph, train)
    if values.get("encoder.kind") != "hops":
        assert isinstance(together[0].inputs(graph).x, SparseMatrix) == (features == "sparse")
    assert together[1].inputs(graph) is together[0].inputs(graph)
    losses = training.Steps(together, graph, train).run(3)
    for index, (method, seed) in enumerate(zip(together, seeds, strict=True)):
        alone = training.build(get_method(name), merged(name, graph, values), graph, seed, CPU)
        training.train(alone, graph, train)
        assert torch.equal(losses[:, [index]], training.Steps([alone], graph, train).run(3))
        own, expected = method.state_dict(), alone.state_dict()
        assert own.keys() == expected.keys()
        assert [key for key, tensor in expected.items() if not torch.equal(own[key], tensor)] == []
        assert torch.equal(method.embed(graph), alone.embed(graph))
        assert torch.equal(method.generator.get_state(), alone.generator.get_state())


@pytest.mark.parametrize("scaling", ["none", "rows", "standard"])
@pytest.mark.parametrize("rank", [0, 5])
@EVERY
def test_csr_features_train_to_what_dense_ones_do(name, kind, scaling, rank):
    dense = small_graph("sparse")
    sparse = dense.clone()
    sparse.x = SparseMatrix.from_dense(dense.x).a
    values = AUGMENTED | {"features.scaling": scaling, "features.rank": rank, "augment.centrality": "degree"}
    values |= {"encoder.kind": kind}

    def compared(method, graph):
        # the columns beside the codes of hops are directions, and rounding turns those of nearly equal size
        return method.trained_hidden(graph) if kind == "hops" else method.embed(graph)

    ours, expected = (build(name, graph, values) for graph in (sparse, dense))
    torch.testing.assert_close(compared(ours, sparse), compared(expected, dense), rtol=1e-3, atol=1e-5)
    loss, plain = (method.loss(graph) for method, graph in ((ours, sparse), (expected, dense)))
    torch.testing.assert_close(loss, plain, rtol=1e-4, atol=1e-5)
    for (key, weight), other in zip(ours.named_parameters(), expected.parameters(), strict=True):
        if weight.requires_grad:
            gradients = [torch.autograd.grad(*of, retain_graph=True)[0] for of in ((loss, weight), (plain, other))]
            torch.testing.assert_close(*gradients, rtol=1e-2, atol=1e-4, msg=key)
    # Adam makes steps of rounding errors where a gradient vanishes, so the vectors may be a few steps apart.
    for method, graph in ((ours, sparse), (expected, dense)):
        run(method, graph, 2, lr=1e-4)
    torch.testing.assert_close(compared(ours, sparse), compared(expected, dense), rtol=1e-3, atol=2e-3)


IN_USE = AUGMENTED | {"features.scaling": "none", "features.rank": 0, "loss.kind": "both", "encoder.steps": 2}
IN_USE |= {"encoder.columns": 8}
"""Values beside which no other setting is refused."""
ON_DISK = ("hops", "encoder.stored")
"""What counts for a graph on disk alone."""


def another(name, kind, key):
    """A value that the setting does not have beside ``IN_USE``; None where there is no other."""
    group, _, item = key.partition(".")
    own = getattr(merged(name, small_graph(), IN_USE | {"encoder.kind": kind}), group)
    value, kind = getattr(own, item), typing.get_type_hints(type(own))[item]
    if typing.get_origin(kind) is typing.Literal:
        return next((choice for choice in typing.get_args(kind) if choice not in (value, "auto")), None)
    if isinstance(value, tuple):
        return [each + 1 if isinstance(each, int) else each / 2 for each in value]
    if isinstance(value, bool):
        return not value
    return value + 3 if isinstance(value, int) else value / 2 or 0.25


@functools.cache
def first_epochs(name, kind, key=None):
    """Losses of two epochs, for a setting may be one of what follows a step, and vectors; with another ``key``."""
    changed = {} if key is None else {key: another(name, kind, key)}
    return trained_two_epochs(name, kind, small_graph(), changed)


def trained_two_epochs(name, kind, graph, changed):
    method = build(name, graph, IN_USE | {"encoder.kind": kind} | changed)
    return run(method, graph, 2, lr=1e-2, batch=0), method.embed(graph)


@pytest.mark.parametrize(
    ("name", "kind", "key"),
    [
        (name, kind, key)
        for name, kind in CASES
        for key in settings.flatten(get_method(name).Settings())
        if not key.startswith("train.") and another(name, kind, key) is not None and (kind, key) != ON_DISK
    ],
)
def test_a_setting_counts_or_is_said_to_be_unused(name, kind, key):
    idle = key in get_method(name).unused(merged(name, small_graph(), IN_USE | {"encoder.kind": kind}))
    same = [torch.equal(*each) for each in zip(first_epochs(name, kind, key), first_epochs(name, kind), strict=True)]
    assert all(same) == idle


@pytest.mark.parametrize("name", HOPS)
def test_how_hops_are_stored_counts_on_disk(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph, (kind, key) = keep_on_disk(small_graph(), 2**26), ON_DISK
    full, half = (trained_two_epochs(name, kind, graph, {key: stored})[1] for stored in ("float32", "float16"))
    assert not torch.equal(full, half)
    torch.testing.assert_close(full, half, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("name", "values", "key"),
    [
        ("grace", {"head.width": 0}, "head.activation"),
        ("costa-sv", {"head.width": 0}, "head.activation"),
        ("costa-sv", {"sketch.kind": "noise"}, "sketch.fixed"),
        ("bgrl", {"augment.edge_rate": 0.0}, "augment.edges"),
        ("gca", {"augment.edge_rate": 0.0, "augment.mask_rate": 0.0}, "augment.centrality"),
    ],
)
def test_what_another_setting_makes_idle_is_said(name, values, key):
    assert key in get_method(name).unused(merged(name, small_graph(), values))
    assert key not in get_method(name).unused(merged(name, small_graph(), {}))


@pytest.fixture(scope="module")
def communities():
    return planted_partition(300, 3, 200, degree=8, homophily=0.75, signal=2.0, seed=1)


@pytest.fixture(scope="module")
def accuracy(communities):
    return lambda z: linear_probe(z, communities.y, repeats=3).accuracy.mean


@pytest.fixture(scope="module")
def raw(communities, accuracy):
    return accuracy(communities.x)


@EVERY
def test_training_finds_communities_that_features_hardly_show_and_does_not_collapse(
    communities, accuracy, raw, name, kind
):
    # as far as choose_reach looks on this graph
    reach = {"encoder.powers": (4,), "encoder.steps": 10} if kind == "hops" else {}
    method = build(name, communities, WIDER | reach | {"encoder.kind": kind, "train.epochs": 30})
    untrained = accuracy(method.embed(communities))
    run(method, communities, 30, lr=1e-2)
    z = method.embed(communities)
    assert raw < 0.5
    # with hops most of it is there before training
    assert accuracy(z) > max(raw + 0.3, untrained + (0.05 if kind == "gcn" else -0.02))
    assert health.status(z, communities.x) == "ok"
    assert health.mean_cosine(z) < 0.9
    assert health.effective_rank(z) > 5
