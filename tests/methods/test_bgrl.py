"""BGRL: its loss put together by hand, and the target that follows the encoder."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F

from costa import settings, training
from costa.errors import InputError
from costa.methods import get_method
from costa.nn import Adjacency
from costa.settings import presets

BGRL = get_method("bgrl")
SMALL = {"encoder__width": 16, "encoder__hidden": 24, "predictor__width": 20}


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, "bgrl", **SMALL)


def weights(encoder):
    """All tensors but BatchNorm's running averages, by name."""
    return {name: t.clone() for name, t in encoder.state_dict().items() if "running" not in name and "num_" not in name}


def test_the_loss_is_each_views_prediction_of_the_others_target(build, graph):
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


def test_the_target_is_state_but_no_parameter_and_begins_with_weights_of_its_own(build, graph):
    method = build(graph)
    assert not list(method.target.parameters())
    assert not any(name.startswith("target") for name, _ in method.named_parameters())
    assert method.target.state_dict().keys() == method.encoder.state_dict().keys()
    assert "epoch" in method.state_dict()
    assert not torch.equal(method.target.layers[0].weight, method.encoder.layers[0].weight)
    method.loss(graph).backward()
    assert all(parameter.grad is not None for parameter in method.parameters())


def test_parts_count_as_steps(build, graph):
    method = build(graph, train__epochs=8, train__parts=12, train__group=4)
    assert method.steps == 24


def test_the_target_follows_the_encoder_ever_more_slowly(build, graph):
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


def test_with_batches_the_schedule_lasts_as_long_as_training(build, graph):
    method = build(graph, encoder__kind="hops", train__epochs=4, train__batch=25)
    training.train(method, graph, settings.Train(epochs=4, batch=25))
    assert (int(method.epoch), method.steps) == (12, 12)


def test_the_loop_moves_the_target_after_each_step(build, graph):
    method = build(graph, target__decay=0.0, train__epochs=10**6)
    training.Steps([method], graph, settings.Train(lr=1e-2)).run(3)
    assert int(method.epoch) == 3
    for name, tensor in weights(method.target).items():
        torch.testing.assert_close(tensor, method.encoder.state_dict()[name])


def test_going_on_is_the_same_as_never_having_stopped(build, graph, tmp_path):
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


def test_every_setting_arrives(build, graph):
    method = build(graph, features__scaling="rows", predictor__activation="elu", target__decay=0.5, train__epochs=7)
    assert method.scaling.kind == "rows"
    assert method.augment == settings.Augment(edge_rate=(0.2, 0.3), mask_rate=(0.2, 0.1))
    for encoder in (method.encoder, method.target):
        assert [layer.weight.shape[1] for layer in encoder.layers] == [24, 16]
    assert method.predictor.first.out_features == 20
    assert type(method.predictor.activation).__name__ == "ELU"
    assert (method.decay, method.steps) == (0.5, 7)
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
