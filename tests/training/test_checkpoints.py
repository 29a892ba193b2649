"""Checkpoints: they hold all that a seed needs to go on, and what is none of its own is refused."""

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.training.checkpoints import Progress, load_checkpoint, save_checkpoint

SEEDS = [2, 3, 5]
NINE = settings.Train(epochs=9, weight_decay=1e-3)


def prepared(method, graph):
    """The method with its optimiser."""
    method.prepare(graph)
    return method, training.Steps([method], graph, NINE)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"encoder.norm": "batch", "encoder.activation": "prelu"},
        {"encoder.kind": "hops", "encoder.norm": "batch"},
    ],
)
def test_what_is_saved_is_found_again(graph, build, tmp_path, values):
    method, steps = prepared(build(3, **values), graph)
    steps.run(4)
    save_checkpoint(tmp_path, method, steps.optimizers[0], Progress(4, 1.5, (0.25, 3.0)))
    other, others = prepared(build(8, **values), graph)
    progress = load_checkpoint(tmp_path, other, others.optimizers[0])
    assert progress == Progress(4, 1.5, (0.25, 3.0))
    assert other.state_dict().keys() == method.state_dict().keys()
    assert all(torch.equal(tensor, other.state_dict()[key]) for key, tensor in method.state_dict().items())
    assert torch.equal(other.generator.get_state(), method.generator.get_state())
    assert torch.equal(others.run(3), steps.run(3))  # by Adam's averages, too


def test_the_progress_of_what_is_no_checkpoint_is_none(tmp_path):
    assert training.read_progress(tmp_path) is None
    (tmp_path / training.CHECKPOINT).write_bytes(b"not a checkpoint")
    assert training.read_progress(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_damaged_checkpoint_is_one_sentence(graph, build, tmp_path, content):
    (tmp_path / training.CHECKPOINT).write_bytes(content)
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train(build(), graph, settings.Train(epochs=2), folder=tmp_path, resume=True)


def test_another_models_checkpoint_is_refused(graph, build, after, tmp_path):
    training.train(build(), graph, settings.Train(), folder=tmp_path, should_stop=after(1))
    wider = build(**{"encoder.width": 16})
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train(wider, graph, settings.Train(), folder=tmp_path, resume=True)


def test_another_models_checkpoints_are_refused_for_several(graph, several, after, folders):
    training.train_together(several(), graph, NINE, folders=folders, should_stop=after(1))
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train_together(several(**{"encoder.width": 16}), graph, NINE, folders=folders, resume=True)


def test_each_of_several_has_a_checkpoint_of_its_own(graph, build, several, after, folders):
    values = {"encoder.norm": "batch", "encoder.activation": "prelu", "features.scaling": "standard"}
    methods = several(**values)
    training.train_together(methods, graph, NINE, folders=folders, should_stop=after(4))
    for seed, folder, method in zip(SEEDS, folders, methods, strict=True):
        alone = build(seed + 100, **values)
        training.train(alone, graph, settings.Train(epochs=4), folder=folder, resume=True)
        assert alone.state_dict().keys() == method.state_dict().keys()
        assert all(torch.equal(tensor, method.state_dict()[key]) for key, tensor in alone.state_dict().items())
        assert torch.equal(alone.generator.get_state(), method.generator.get_state())


@pytest.mark.parametrize("values", [{}, {"sketch.fixed": True, "encoder.activation": "elu"}], ids=["fresh", "fixed"])
def test_checkpoints_of_several_serve_runs_of_their_own_and_back(
    graph, build, several, after, folders, read_log, values
):
    training.train_together(several(**values), graph, NINE, folders=folders, should_stop=after(4))
    for seed, folder in zip(SEEDS, folders, strict=True):
        outcome = training.train(build(seed, **values), graph, NINE, folder=folder, resume=True, should_stop=after(2))
        assert (outcome.status, outcome.epochs) == ("interrupted", 6)
    resumed, straight = several(**values), several(**values)
    training.train_together(resumed, graph, NINE, folders=folders, resume=True)
    training.train_together(straight, graph, NINE)
    for one, other, folder in zip(resumed, straight, folders, strict=True):
        assert torch.equal(one.embed(graph), other.embed(graph))
        assert read_log(folder).epochs == list(range(1, 10))


def test_checkpoints_of_different_epochs_are_refused_together(graph, build, several, after, folders):
    for epochs, seed, folder in zip((4, 4, 2), SEEDS, folders, strict=True):
        training.train(build(seed), graph, NINE, folder=folder, should_stop=after(epochs))
    with pytest.raises(InputError, match="were stopped at different epochs; resume them one by one"):
        training.train_together(several(), graph, NINE, folders=folders, resume=True)
