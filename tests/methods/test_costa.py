"""COSTA's loss, put together by hand from its parts, and what the variants promise."""

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.evaluate.probe import linear_probe
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.costa import MOST_ROWS, ROW_VISITS
from costa.nn import Adjacency, cross_view_loss, philox, self_contrast_loss
from costa.settings.presets import resolve

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def build(build_plain):
    return build_plain


def encode(method, graph):
    """f(X, A) with nothing dropped or masked."""
    return method.encoder(graph.x, Adjacency(graph.edge_index, graph.num_nodes).normalized())


def gaussian(state, k, n):
    """P, N(0, 1)/√k: a function of a seed that is the next draw of a generator in this state."""
    generator = torch.Generator()
    generator.set_state(state)
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    return philox.gaussian(seed, 0, k, n, torch.empty(0)) / k**0.5


def test_one_view_is_encoder_sketch_head_self_contrast(build, graph):
    method = build("costa-sv", graph, sketch__ratio=0.4, loss__tau=0.3)
    state = method.generator.get_state()
    loss = method.loss(graph)

    h = encode(method, graph)
    p = gaussian(state, 24, 60)
    twin = self_contrast_loss(method.head(p @ (h - h.mean(0))), 0.3)
    assert loss.item() == pytest.approx(twin.item(), rel=1e-5)


def test_two_views_share_one_p(build, graph):
    method = build("costa-mv", graph, sketch__center=False, loss__tau=0.5)
    state = method.generator.get_state()
    loss = method.loss(graph)  # no augmentation: both views are the same H

    h = encode(method, graph)
    p = gaussian(state, 30, 60)
    z = method.head(p @ h)
    assert loss.item() == pytest.approx(cross_view_loss(z, z, 0.5).item(), rel=1e-5)


@pytest.mark.parametrize(
    "kind", ["gaussian", "rademacher", "sparse", "countsketch", "selection", "svd", "noise", "none"]
)
@pytest.mark.parametrize("loss", ["cross", "both", "self"])
def test_plain_is_the_same_loss_and_gradient(build, graph, kind, loss):
    compare_with_plain(build, graph, loss, sketch__kind=kind, sketch__k=14, sketch__density=0.05, sketch__noise_std=0.1)


@pytest.mark.parametrize("loss", ["cross", "both", "self"])
def test_plain_is_the_same_where_the_fast_form_leaves_out_empty_rows(build, graph, loss):
    compare_with_plain(build, graph, loss, rows=(60, 100), sketch__kind="countsketch", sketch__k=100)
    # E has as many rows as P, so all are kept
    noise = {"sketch__noise_std": 0.1}
    compare_with_plain(build, graph, loss, rows=(100, 100), sketch__kind="countsketch", sketch__k=100, **noise)


def test_of_as_many_rows_as_nodes_a_part_is_contrasted(build):
    graph = planted_partition(1000, 3, 20, seed=0)
    compare_with_plain(build, graph, "cross", rows=(759, 1000), sketch__kind="countsketch", sketch__ratio=1.0)


def compare_with_plain(build, graph, loss, rows=None, **values):
    """The loss and its gradient, both ways; ``rows`` are those that reach the head."""
    values |= {"augment__edge_rate": 0.3, "augment__mask_rate": 0.2, "loss__kind": loss, "encoder__activation": "elu"}
    name = "costa-sv" if loss == "self" else "costa-mv"
    fast, plain = build(name, graph, **values), build(name, graph, **values, train__kernels="plain")
    assert plain.sketch.stored or values["sketch__kind"] == "none"  # which has no P
    seen = []
    for method in (fast, plain):
        method.head.register_forward_hook(lambda head, given, out: seen.append(out.shape[0]))
    losses = [method.loss(graph) for method in (fast, plain)]
    assert rows is None or seen == [count for count in rows for _ in range(fast.views)]
    torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-5)
    gradients = [
        torch.autograd.grad(each, method.encoder.layers[0].weight)[0]
        for each, method in zip(losses, (fast, plain), strict=True)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("values", "capturable"),
    [
        ({}, True),
        ({"sketch__kind": "countsketch", "augment__edge_rate": 0.2}, True),
        ({"sketch__kind": "selection"}, True),
        ({"sketch__kind": "svd", "sketch__k": 4}, False),
        ({"augment__edges": "permute", "augment__edge_rate": 0.2}, False),
        ({"augment__edges": "permute"}, True),
        ({"train__kernels": "plain"}, False),
    ],
)
def test_what_can_be_captured(build, graph, values, capturable):
    assert build("costa-mv", graph, **values).capturable == capturable


@pytest.mark.parametrize("edges", ["drop", "permute"])
@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
def test_every_sketch_trains(build, graph, name, edges):
    for kind in ("gaussian", "rademacher", "sparse", "countsketch", "selection", "svd", "noise", "none"):
        method = build(
            name,
            graph,
            sketch__kind=kind,
            sketch__k=12,
            sketch__density=0.1,
            sketch__noise_std=0.1,
            augment__edges=edges,
            augment__edge_rate=0.3,
            augment__mask_rate=0.2,
        )
        outcome = training.train(method, graph, settings.Train(epochs=3))
        assert outcome.status == "ok", kind
        assert method.embed(graph).isfinite().all(), kind


@pytest.mark.parametrize("rows", [None, torch.tensor([3, 50, 4, 17, 30, 9, 41, 22])], ids=["all", "batch"])
def test_with_hops_the_rows_of_a_batch_are_sketched_and_contrasted(build, graph, rows):
    method = build("costa-mv", graph, encoder__kind="hops", encoder__steps=2, sketch__ratio=0.5, loss__tau=0.5)
    state = method.generator.get_state()
    loss = method.loss(graph) if rows is None else method.loss(graph, rows)  # no augmentation: both views are the same

    h = method.encoder([block if rows is None else block[rows] for block in method.inputs(graph).blocks])
    z = method.head(gaussian(state, len(h) // 2, len(h)) @ (h - h.mean(0)))
    assert loss.item() == pytest.approx(cross_view_loss(z, z, 0.5).item(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "loss"),
    [("costa-sv", "self"), ("costa-sv", "cross"), ("costa-sv", "both"), ("costa-mv", "cross"), ("costa-mv", "both")],
)
def test_every_sketch_and_loss_trains_on_batches_of_hops(build, graph, name, loss):
    values = {"encoder__kind": "hops", "encoder__norm": "batch", "loss__kind": loss, "sketch__density": 0.1}
    values |= {"augment__mask_rate": 0.3, "augment__hop_rate": 0.3, "sketch__noise_std": 0.1, "sketch__k": 6}
    for kind in ("gaussian", "rademacher", "sparse", "countsketch", "selection", "svd", "noise", "none"):
        method = build(name, graph, sketch__kind=kind, **values)
        before = method.encoder.layers[0].weight.detach().clone()
        outcome = training.train(method, graph, settings.Train(epochs=2, batch=25))
        assert (outcome.status, outcome.epochs) == ("ok", 2), kind
        assert method.embed(graph).isfinite().all(), kind
        assert not torch.equal(method.encoder.layers[0].weight, before), kind


@pytest.mark.parametrize("kind", ["cross", "both", "self"])
def test_one_view_takes_every_loss(build, graph, kind):
    assert build("costa-sv", graph, loss__kind=kind).loss(graph).isfinite()


def test_training_teaches_something(build, graph):
    """The loss falls, on draws that training did not see."""
    method = build("costa-sv", graph, loss__tau=0.7)
    probe = torch.Generator()

    def average_loss():
        kept, method.generator = method.generator, probe.manual_seed(9)
        value = sum(method.loss(graph).item() for _ in range(10)) / 10
        method.generator = kept
        return value

    before = average_loss()
    training.train(method, graph, settings.Train(epochs=60, lr=0.005))
    assert average_loss() < before - 0.05


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
def test_the_defaults_beat_raw_features_and_an_untrained_encoder(name):
    graph = planted_partition(200, 3, 100, degree=4, homophily=0.7, signal=3.0, seed=1005)

    def accuracy(name):
        method = get_method(name)
        values = resolve(method, graph, preset="none").values
        built = training.build(method, values, graph, 1000, CPU)
        training.train(built, graph, getattr(values, "train", None))
        return linear_probe(built.embed(graph), graph.y).accuracy.mean

    assert accuracy(name) > max(accuracy("raw"), accuracy("untrained")) + 0.02


def test_a_seed_fixes_every_bit_and_the_global_generator_is_left_alone(build, graph):
    before = torch.random.get_rng_state()

    def vectors(seed):
        method = build("costa-mv", graph, seed=seed, augment__edge_rate=0.2, augment__mask_rate=0.2)
        training.train(method, graph, settings.Train(epochs=4))
        return method.embed(graph)

    assert torch.equal(vectors(3), vectors(3))
    assert not torch.equal(vectors(3), vectors(4))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_fixed_p_stays_but_its_noise_does_not(build, graph):
    method = build("costa-sv", graph, sketch__fixed=True, sketch__noise_std=0.5)
    h = encode(method, graph)
    one, two = (method.sketch.draw(h, method.generator) for _ in range(2))
    assert torch.equal(one.matrix(), two.matrix())
    assert not torch.equal(one.apply(h), two.apply(h))
    again = build("costa-sv", graph, sketch__fixed=True)
    assert torch.equal(again.sketch.draw(h, again.generator).matrix(), one.matrix())


def test_a_one_row_sketch_does_not_crash(build, graph):
    method = build("costa-sv", graph, sketch__k=1)
    assert training.train(method, graph, settings.Train(epochs=2)).status == "ok"


def test_a_large_graph_gets_fewer_rows(merged):
    large = planted_partition(20_000, 2, 4, seed=0)
    costa, gcn = get_method("costa-sv"), merged("costa-sv", encoder__kind="gcn", sketch__ratio=0.5)
    assert costa.choose(large, gcn)["sketch.ratio"] * 20_000 == pytest.approx(MOST_ROWS)
    assert "sketch.ratio" not in costa.choose(planted_partition(100, 2, 4, seed=0), gcn)


def test_with_hops_the_rows_are_those_of_a_batch_and_a_large_graph_gets_fewer_epochs(merged):
    costa, large = get_method("costa-mv"), planted_partition(20_000, 2, 4, seed=0)
    hops = merged("costa-mv", encoder__kind="hops", sketch__ratio=0.5, train__batch=4096)
    assert "sketch.ratio" not in costa.choose(large, hops)
    every = merged("costa-mv", encoder__kind="hops", sketch__ratio=0.5, train__batch=0)
    assert costa.choose(large, every)["sketch.ratio"] * 20_000 == pytest.approx(MOST_ROWS)
    assert costa.choose(large, hops)["train.epochs"] == round(ROW_VISITS / 20_000)
    assert costa.choose(planted_partition(2_000, 2, 4, seed=0), hops)["train.epochs"] * 2_000 == ROW_VISITS
    assert costa.choose(planted_partition(ROW_VISITS * 3, 2, 4, seed=0), hops)["train.epochs"] == 1
    assert "train.epochs" not in costa.choose(planted_partition(100, 2, 4, seed=0), hops)
    assert "train.epochs" not in costa.choose(large, merged("costa-mv", encoder__kind="gcn"))


def test_settings_that_contradict_each_other_are_refused(build, graph):
    with pytest.raises(InputError, match="choose cross or both"):
        build("costa-mv", graph, loss__kind="self")
    with pytest.raises(InputError, match="noise_std above 0"):
        build("costa-sv", graph, sketch__kind="noise")
    with pytest.raises(InputError, match="there are: costa-sv, costa-mv"):
        get_method("costa-s")
