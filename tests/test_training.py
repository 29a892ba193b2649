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
from costa.methods.base import state_of

CPU = torch.device("cpu")

# a bias before BatchNorm has a gradient of nothing but rounding, and Adam makes whole steps of it
PLAIN = {"encoder.norm": "none"}


@pytest.fixture(scope="module")
def graph():
    return planted_partition(50, 3, 12, seed=0)


def resolve(graph, name="costa-mv", **values):
    values = {"encoder.width": 8, "head.width": 8, "augment.edge_rate": 0.2, "augment.mask_rate": 0.2} | values
    method = get_method(name)
    return method, settings.merge(method.Settings, [("graph", method.choose(graph)), ("test", values)])[0]


def build(graph, name="costa-mv", seed=0, **values):
    return training.build(*resolve(graph, name, **values), graph, seed, CPU)


def read_log(folder):
    with (folder / training.LOG).open() as file:
        return list(csv.DictReader(file))


def after(epochs):
    """A should_stop that says so once this many epochs are done."""
    count = iter(range(1, 1000))
    return lambda: next(count) == epochs


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
    stopped = training.train(build(graph, **values), graph, train, folder=tmp_path, should_stop=after(4))
    assert (stopped.status, stopped.epochs) == ("interrupted", 4)
    resumed = build(graph, **values)
    outcome = training.train(resumed, graph, train, folder=tmp_path, resume=True)
    assert (outcome.status, outcome.epochs) == ("ok", 9)
    assert outcome.seconds > stopped.seconds
    assert torch.equal(resumed.embed(graph), straight.embed(graph))
    assert [int(row["epoch"]) for row in read_log(tmp_path)] == list(range(1, 10))


def test_fewer_epochs_than_are_done_is_one_sentence(graph, tmp_path):
    train = settings.Train(epochs=9)
    training.train(build(graph), graph, train, folder=tmp_path, should_stop=after(4))
    with pytest.raises(InputError, match="4 epochs are done already"):
        training.train(build(graph), graph, settings.Train(epochs=2), folder=tmp_path, resume=True)


def test_rows_past_the_checkpoint_are_written_anew(graph, tmp_path):
    """A checkpoint may be older than the log: the process was killed in between."""
    train = settings.Train(epochs=6)
    training.train(build(graph), graph, train, folder=tmp_path, should_stop=after(3))
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
    training.train(build(graph), graph, settings.Train(), folder=tmp_path, should_stop=after(1))
    wider = build(graph, **{"encoder.width": 16})
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train(wider, graph, settings.Train(), folder=tmp_path, resume=True)


def test_a_fixed_sketch_made_from_h_cannot_be_resumed(graph, tmp_path):
    values = {"sketch.kind": "svd", "sketch.k": 4, "sketch.fixed": True}
    training.train(build(graph, **values), graph, settings.Train(), folder=tmp_path, should_stop=after(1))
    with pytest.raises(InputError, match="costa-mv cannot be resumed: a fixed sketch made from H"):
        training.train(build(graph, **values), graph, settings.Train(), folder=tmp_path, resume=True)


def test_a_loss_that_is_not_finite_ends_the_training(graph, monkeypatch):
    method = build(graph)
    losses = iter([1.0, 2.0, float("nan")])
    monkeypatch.setattr(method, "loss", lambda graph: method.encoder.layers[0].weight.sum() * next(losses))
    outcome = training.train(method, graph, settings.Train(epochs=9))
    assert (outcome.status, outcome.epochs) == ("diverged", 2)


# --- several initialisations in one --------------------------------------------------------------------------

SEEDS = [2, 3, 5]
# No weight decay: in single precision it makes Adam follow the rounding of biases that do not matter.
NINE = settings.Train(epochs=9)


def stacked(graph, seeds=SEEDS, **values):
    method = training.stacked(*resolve(graph, **values), graph, seeds, CPU)
    assert method is not None
    return method


@pytest.fixture
def folders(tmp_path):
    paths = [tmp_path / f"seed-{seed}" for seed in SEEDS]
    for path in paths:
        path.mkdir()
    return paths


def test_each_of_a_stack_has_its_log_and_its_outcome(graph, folders):
    heard = []
    outcomes = training.train_stacked(
        stacked(graph), graph, NINE, folders=folders, report=lambda *row: heard.append(row)
    )
    assert [(outcome.status, outcome.epochs) for outcome in outcomes] == [("ok", 9)] * 3
    assert [done for done, _ in heard] == list(range(1, 10))
    for folder, seed in zip(folders, SEEDS, strict=True):
        alone = folder / "alone"
        alone.mkdir()
        training.train(build(graph, seed=seed), graph, NINE, folder=alone)
        ours, twin = ([float(row["loss"]) for row in read_log(place)] for place in (folder, alone))
        assert ours == pytest.approx(twin, rel=1e-4)
        assert not (folder / training.CHECKPOINT).exists()


@pytest.mark.parametrize(
    "values",
    [{}, {"encoder.norm": "batch", "encoder.activation": "prelu"}, {"sketch.fixed": True, "sketch.noise_std": 0.1}],
)
def test_a_stack_resumes_as_if_it_had_never_stopped(graph, folders, values):
    straight = stacked(graph, **values)
    training.train_stacked(straight, graph, NINE)
    stopped = training.train_stacked(stacked(graph, **values), graph, NINE, folders=folders, should_stop=after(4))
    assert [(outcome.status, outcome.epochs) for outcome in stopped] == [("interrupted", 4)] * 3
    assert [training.read_progress(folder) for folder in folders] == [4] * 3
    resumed = stacked(graph, **values)
    outcomes = training.train_stacked(resumed, graph, NINE, folders=folders, resume=True)
    assert [(outcome.status, outcome.epochs) for outcome in outcomes] == [("ok", 9)] * 3
    assert torch.equal(resumed.embed(graph), straight.embed(graph))
    for folder in folders:
        assert [int(row["epoch"]) for row in read_log(folder)] == list(range(1, 10))


@pytest.mark.parametrize(
    "values", [PLAIN, PLAIN | {"sketch.fixed": True, "encoder.activation": "elu"}], ids=["fresh", "fixed"]
)
def test_a_checkpoint_of_a_stack_serves_a_run_of_its_own_and_back(graph, folders, values):
    training.train_stacked(stacked(graph, **values), graph, NINE, folders=folders, should_stop=after(4))
    for seed, folder in zip(SEEDS, folders, strict=True):
        alone = build(graph, seed=seed, **values)
        outcome = training.train(alone, graph, NINE, folder=folder, resume=True, should_stop=after(2))
        assert (outcome.status, outcome.epochs) == ("interrupted", 6)
    resumed = stacked(graph, **values)
    training.train_stacked(resumed, graph, NINE, folders=folders, resume=True)
    straight = stacked(graph, **values)
    training.train_stacked(straight, graph, NINE)
    torch.testing.assert_close(resumed.embed(graph), straight.embed(graph), rtol=1e-3, atol=1e-4)
    for folder in folders:
        assert [int(row["epoch"]) for row in read_log(folder)] == list(range(1, 10))


def test_a_checkpoint_of_a_stack_holds_what_each_has(graph, folders):
    values = {"encoder.norm": "batch", "encoder.activation": "prelu", "features.scaling": "standard"}
    method = stacked(graph, **values)
    training.train_stacked(method, graph, NINE, folders=folders, should_stop=after(4))
    for index, (seed, folder) in enumerate(zip(SEEDS, folders, strict=True)):
        alone = build(graph, seed=seed + 100, **values)
        training.train(alone, graph, settings.Train(epochs=4), folder=folder, resume=True)
        own = state_of(method, index)
        assert own.keys() == alone.state_dict().keys()
        assert all(torch.equal(tensor, own[key]) for key, tensor in alone.state_dict().items())
        assert torch.equal(alone.generator.get_state(), method.generator[index].get_state())


def test_one_that_diverges_is_reported_alone_and_the_others_go_on(graph, folders):
    method = stacked(graph, **PLAIN)
    method.encoder.layers[0].weight.data[1, 0, 0] = torch.inf
    outcomes = training.train_stacked(method, graph, NINE, folders=folders)
    assert [(outcome.status, outcome.epochs) for outcome in outcomes] == [("ok", 9), ("diverged", 0), ("ok", 9)]
    assert [len(read_log(folder)) for folder in folders] == [9, 0, 9]
    for index in (0, 2):
        alone = build(graph, seed=SEEDS[index], **PLAIN)
        training.train(alone, graph, NINE)
        torch.testing.assert_close(method.embed(graph)[index], alone.embed(graph), rtol=1e-3, atol=1e-4)


def test_one_that_diverges_later_is_reported_from_then_on(graph, folders, monkeypatch):
    method = stacked(graph)
    loss, epochs = method.loss, iter(range(1, 100))

    def fails_at_the_fourth(graph):
        factor = torch.tensor([1.0, torch.nan if next(epochs) >= 4 else 1.0, 1.0])
        return loss(graph) * factor

    monkeypatch.setattr(method, "loss", fails_at_the_fourth)
    outcomes = training.train_stacked(method, graph, NINE, folders=folders)
    assert [(outcome.status, outcome.epochs) for outcome in outcomes] == [("ok", 9), ("diverged", 3), ("ok", 9)]
    assert [len(read_log(folder)) for folder in folders] == [9, 3, 9]


def test_a_stack_ends_when_all_have_diverged(graph):
    method = stacked(graph)
    method.encoder.layers[0].weight.data[:, 0, 0] = torch.nan
    heard = []
    outcomes = training.train_stacked(method, graph, NINE, report=lambda *row: heard.append(row))
    assert [(outcome.status, outcome.epochs) for outcome in outcomes] == [("diverged", 0)] * 3
    assert len(heard) == 1


def test_another_models_checkpoints_are_refused_for_a_stack(graph, folders):
    training.train_stacked(stacked(graph), graph, NINE, folders=folders, should_stop=after(1))
    with pytest.raises(InputError, match="is not a checkpoint of this method"):
        training.train_stacked(stacked(graph, **{"encoder.width": 16}), graph, NINE, folders=folders, resume=True)


# --- steps ----------------------------------------------------------------------------------------------------


def test_steps_are_adams_steps_of_the_loss(graph):
    method, twin = build(graph), build(graph)
    for each in (method, twin):
        each.prepare(graph)
    train = settings.Train(lr=0.01, weight_decay=1e-3)
    losses = training.Steps(method, graph, train).run(3)
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.01, weight_decay=1e-3)
    expected = []
    for _ in range(3):
        loss = twin.loss(graph)
        expected.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses.shape == (3, 1)
    assert losses.flatten().tolist() == pytest.approx(expected, rel=1e-4)


def test_steps_go_on_where_they_were(graph):
    one, two = build(graph), build(graph)
    for each in (one, two):
        each.prepare(graph)
    at_once = training.Steps(one, graph, NINE).run(5)
    steps = training.Steps(two, graph, NINE)
    assert torch.equal(torch.cat([steps.run(2), steps.run(3)]), at_once)


def test_nothing_is_captured_without_a_gpu(graph):
    assert not training.Steps(build(graph), graph, NINE).captures


# --- interrupts, devices --------------------------------------------------------------------------------------


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
