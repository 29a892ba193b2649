"""The loop: what it writes, how it stops, and that going on is the same as never having stopped."""

import csv
import os
import signal

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graph():
    return planted_partition(50, 3, 12, seed=0)


def build(graph, name="costa-mv", seed=0, **values):
    values = {"encoder.width": 8, "head.width": 8, "augment.edge_rate": 0.2, "augment.mask_rate": 0.2} | values
    method = get_method(name)
    merged, _ = settings.merge(method.Settings, [("graph", method.choose(graph)), ("test", values)])
    return training.build(method, merged, graph, seed, CPU)


def read_log(folder):
    with (folder / training.LOG).open() as file:
        return list(csv.DictReader(file))


def test_the_log_has_a_row_for_every_epoch(graph, tmp_path):
    heard = []
    outcome = training.train(
        build(graph), graph, settings.Train(epochs=5), folder=tmp_path, report=lambda *row: heard.append(row)
    )
    rows = read_log(tmp_path)
    assert (outcome.status, outcome.epochs) == ("ok", 5)
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [done for done, _ in heard] == [1, 2, 3, 4, 5]
    assert [float(row["loss"]) for row in rows] == pytest.approx([loss for _, loss in heard], rel=1e-5)
    assert not (tmp_path / training.CHECKPOINT).exists()


@pytest.mark.parametrize("values", [{}, {"encoder.norm": "batch"}, {"sketch.fixed": True, "sketch.noise_std": 0.1}])
def test_resuming_is_the_same_as_never_having_stopped(graph, tmp_path, values):
    straight = build(graph, **values)
    training.train(straight, graph, settings.Train(epochs=9, weight_decay=1e-3))

    train = settings.Train(epochs=9, weight_decay=1e-3)
    count = iter(range(100))
    stopped = training.train(
        build(graph, **values), graph, train, folder=tmp_path, should_stop=lambda: next(count) == 3
    )
    assert (stopped.status, stopped.epochs) == ("interrupted", 4)
    resumed = build(graph, **values)
    outcome = training.train(resumed, graph, train, folder=tmp_path, resume=True)
    assert (outcome.status, outcome.epochs) == ("ok", 9)
    assert outcome.seconds > stopped.seconds
    assert torch.equal(resumed.embed(graph), straight.embed(graph))
    assert [int(row["epoch"]) for row in read_log(tmp_path)] == list(range(1, 10))


def test_fewer_epochs_than_are_done_is_one_sentence(graph, tmp_path):
    count = iter(range(100))
    train = settings.Train(epochs=9)
    training.train(build(graph), graph, train, folder=tmp_path, should_stop=lambda: next(count) == 3)
    with pytest.raises(InputError, match="4 epochs are done already"):
        training.train(build(graph), graph, settings.Train(epochs=2), folder=tmp_path, resume=True)


def test_rows_past_the_checkpoint_are_written_anew(graph, tmp_path):
    """A checkpoint may be older than the log: the process was killed in between."""
    count = iter(range(100))
    train = settings.Train(epochs=6)
    training.train(build(graph), graph, train, folder=tmp_path, should_stop=lambda: next(count) == 2)
    with (tmp_path / training.LOG).open("a") as file:
        file.write("4,99,99\n5,9")
    training.train(build(graph), graph, train, folder=tmp_path, resume=True)
    rows = read_log(tmp_path)
    assert [int(row["epoch"]) for row in rows] == list(range(1, 7))
    assert all(float(row["loss"]) < 50 for row in rows)


def test_a_checkpoint_is_written_as_time_goes_by(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_EVERY_SECONDS", 0.0)
    seen = []
    training.train(
        build(graph),
        graph,
        settings.Train(epochs=3),
        folder=tmp_path,
        report=lambda done, loss: seen.append((tmp_path / training.CHECKPOINT).exists()),
    )
    assert seen == [False, True, True]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_damaged_checkpoint_is_one_sentence(graph, tmp_path, content):
    (tmp_path / training.CHECKPOINT).write_bytes(content)
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train(build(graph), graph, settings.Train(epochs=2), folder=tmp_path, resume=True)


def test_another_models_checkpoint_is_refused(graph, tmp_path):
    count = iter(range(100))
    training.train(build(graph), graph, settings.Train(), folder=tmp_path, should_stop=lambda: next(count) == 0)
    wider = build(graph, **{"encoder.width": 16})
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train(wider, graph, settings.Train(), folder=tmp_path, resume=True)


def test_a_fixed_sketch_made_from_h_cannot_be_resumed(graph, tmp_path):
    values = {"sketch.kind": "svd", "sketch.k": 4, "sketch.fixed": True}
    count = iter(range(100))
    training.train(
        build(graph, **values), graph, settings.Train(), folder=tmp_path, should_stop=lambda: next(count) == 0
    )
    with pytest.raises(InputError, match="cannot be resumed"):
        training.train(build(graph, **values), graph, settings.Train(), folder=tmp_path, resume=True)


def test_a_loss_that_is_not_finite_ends_the_training(graph, monkeypatch):
    method = build(graph)
    losses = iter([1.0, 2.0, float("nan")])
    monkeypatch.setattr(method, "loss", lambda graph: method.encoder.layers[0].weight.sum() * next(losses))
    outcome = training.train(method, graph, settings.Train(epochs=9))
    assert (outcome.status, outcome.epochs) == ("diverged", 2)


@pytest.fixture
def interrupts_arrive():
    """A test run in the background may have been started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_arrive")
def test_the_first_interrupt_waits_for_the_epoch_and_the_second_does_not():
    with training.stop_on_interrupt() as should_stop:
        assert not should_stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert should_stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_weights_and_draws_have_streams_of_their_own(graph):
    method = build(graph, seed=5)
    start = torch.Generator().manual_seed(5)
    assert method.generator.initial_seed() != start.initial_seed()


def test_cuda_asked_for_and_absent(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.resolve_device("auto").type == "cpu"
    with pytest.raises(InputError, match="sees no CUDA device"):
        training.resolve_device("cuda")
    with pytest.raises(InputError, match="unknown device"):
        training.resolve_device("tpu")
