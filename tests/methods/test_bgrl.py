"""BGRL: its loss put together by hand, the target that follows the encoder, and what training does to a graph."""

import math

import pytest
import torch
import torch.nn.functional as F

from costa import health, settings, training
from costa.errors import InputError
from costa.experiments import presets
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.base import state_of
from costa.nn import Adjacency
from costa.probe import linear_probe

CPU = torch.device("cpu")
BGRL = get_method("bgrl")
SMALL = {"encoder.width": 16, "encoder.hidden": 24, "predictor.width": 20}


@pytest.fixture(scope="module")
def graph():
    return planted_partition(60, 3, 20, seed=0)


def merged(graph, **values):
    values = SMALL | {key.replace("__", "."): value for key, value in values.items()}
    return settings.merge(BGRL.Settings, [("graph", BGRL.choose(graph)), ("test", values)])[0]


def build(graph, seed=0, **values):
    method = training.build(BGRL, merged(graph, **values), graph, seed, CPU)
    method.prepare(graph)
    return method


def weights(encoder):
    """All tensors but BatchNorm's running averages, by name."""
    return {name: t.clone() for name, t in encoder.state_dict().items() if "running" not in name and "num_" not in name}


def test_the_loss_is_each_views_prediction_of_the_others_target(graph):
    """View 1 is the graph itself, view 2 without the masked attributes; in float64, as the formula reads."""
    method = build(graph, features__scaling="none", augment__edge_rate=0.0, augment__mask_rate=[0.0, 0.4])
    drawn = torch.Generator()
    drawn.set_state(method.generator.get_state())
    mask = (torch.rand(20, generator=drawn) >= 0.4).double()
    loss = method.loss(graph)

    adjacency = Adjacency(graph.edge_index, 60, dtype=torch.float64).normalized()
    method.double()
    x = graph.x.double()
    q1, q2 = (method.predictor(method.encoder(each, adjacency)) for each in (x, x * mask))
    h1, h2 = (method.target(each, adjacency) for each in (x, x * mask))
    cosines = [(F.cosine_similarity(q1[i], h2[i], dim=0), F.cosine_similarity(q2[i], h1[i], dim=0)) for i in range(60)]
    twin = 2 - sum(there + back for there, back in cosines) / 60
    assert loss.item() == pytest.approx(twin.item(), rel=1e-4)


def test_the_target_is_state_but_no_parameter_and_begins_with_weights_of_its_own(graph):
    method = build(graph)
    assert not list(method.target.parameters())
    assert not any(name.startswith("target") for name, _ in method.named_parameters())
    assert method.target.state_dict().keys() == method.encoder.state_dict().keys()
    assert "epoch" in method.state_dict()
    assert not torch.equal(method.target.layers[0].weight, method.encoder.layers[0].weight)
    method.loss(graph).backward()
    assert all(parameter.grad is not None for parameter in method.parameters())


def test_the_target_follows_the_encoder_ever_more_slowly(graph):
    method = build(graph, target__decay=0.9, train__epochs=8)
    online = weights(method.encoder)
    for epoch in range(10):
        before = weights(method.target)
        method.after_step()
        tau = 1 - 0.1 * (1 + math.cos(math.pi * min(epoch, 8) / 8)) / 2
        for name, tensor in weights(method.target).items():
            torch.testing.assert_close(tensor, tau * before[name] + (1 - tau) * online[name], rtol=0, atol=1e-7)
    assert torch.equal(tensor, before[name])  # past the last epoch it stands still
    assert all(torch.equal(tensor, online[name]) for name, tensor in weights(method.encoder).items())


def test_the_loop_moves_the_target_after_each_step(graph):
    method = build(graph, target__decay=0.0, train__epochs=10**6)
    training.Steps(method, graph, settings.Train(lr=1e-2)).run(3)
    assert int(method.epoch) == 3
    for name, tensor in weights(method.target).items():
        torch.testing.assert_close(tensor, method.encoder.state_dict()[name])


def test_the_loss_falls_and_a_seed_fixes_every_bit(graph):
    before = torch.random.get_rng_state()

    def vectors(seed):
        method = build(graph, seed)
        losses = training.Steps(method, graph, settings.Train(lr=1e-2)).run(20)
        assert losses[-5:].mean() < 0.7 * losses[:5].mean()
        return method.embed(graph)

    assert torch.equal(vectors(3), vectors(3))
    assert not torch.equal(vectors(3), vectors(4))
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_communities_are_found_where_raw_features_do_not_show_them():
    graph = planted_partition(400, 4, 32, degree=8, homophily=0.75, seed=0)
    method = build(graph, encoder__width=32, encoder__hidden=64, predictor__width=64, train__epochs=200)

    def accuracy(z):
        return linear_probe(z, graph.y, repeats=3).accuracy.mean

    untrained = accuracy(method.embed(graph))
    training.train(method, graph, settings.Train(epochs=200, lr=5e-3))
    z = method.embed(graph)
    assert accuracy(graph.x) < 0.5
    assert accuracy(z) > untrained + 0.05
    assert health.status(z) == "ok"
    assert health.effective_rank(z) > 8


def test_each_of_a_stack_trains_as_it_would_alone(graph):
    seeds, train = [0, 1, 7], settings.Train(lr=1e-5)
    values = {"target__decay": 0.7, "train__epochs": 5}
    stacked = training.stacked(BGRL, merged(graph, **values), graph, seeds, CPU)
    stacked.prepare(graph)
    losses = training.Steps(stacked, graph, train).run(4)
    for index, seed in enumerate(seeds):
        alone = build(graph, seed, **values)
        single = training.Steps(alone, graph, train).run(4)
        torch.testing.assert_close(losses[:, index : index + 1], single, rtol=1e-4, atol=1e-4)
        own, expected = state_of(stacked, index), alone.state_dict()
        assert own.keys() == expected.keys()
        for key, tensor in expected.items():
            torch.testing.assert_close(own[key], tensor, rtol=1e-3, atol=2e-4, msg=lambda m, k=key: f"{k}: {m}")


def test_going_on_is_the_same_as_never_having_stopped(graph, tmp_path):
    values, train = {"train__epochs": 12, "target__decay": 0.8}, settings.Train(epochs=12, lr=1e-2)
    through = build(graph, **values)
    training.train(through, graph, train)
    asked = iter(range(100))
    training.train(build(graph, **values), graph, train, folder=tmp_path, should_stop=lambda: next(asked) == 4)
    resumed = build(graph, seed=5, **values)
    assert training.train(resumed, graph, train, folder=tmp_path, resume=True).epochs == 12
    assert int(resumed.epoch) == 12
    for key, tensor in through.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], tensor), key


def test_every_setting_arrives(graph):
    method = build(graph, features__scaling="rows", predictor__activation="elu", target__decay=0.5, train__epochs=7)
    assert method.scaling.kind == "rows"
    assert method.augment == settings.Augment(edge_rate=(0.2, 0.3), mask_rate=(0.2, 0.1))
    for encoder in (method.encoder, method.target):
        assert [layer.weight.shape[1] for layer in encoder.layers] == [24, 16]
    assert method.predictor.first.out_features == 20
    assert type(method.predictor.activation).__name__ == "ELU"
    assert (method.decay, method.epochs) == (0.5, 7)
    assert method.capturable
    with pytest.raises(InputError, match=r"predictor\.width = 0 is out of range"):
        build(graph, predictor__width=0)
    with pytest.raises(InputError, match=r"target\.decay = 1\.5 is out of range"):
        build(graph, target__decay=1.5)


def test_published_settings():
    published = {"wikics", "amazon-computers", "amazon-photo", "coauthor-cs", "coauthor-physics"}
    assert set(presets.published("paper", "bgrl")) == published
    for dataset in published:
        values = settings.merge(BGRL.Settings, [("paper", presets.load_preset("paper", "bgrl", dataset))])[0]
        assert values.encoder.hidden == 2 * values.encoder.width
        assert (values.train.epochs, values.target.decay, values.predictor.width) == (10000, 0.99, 512)
