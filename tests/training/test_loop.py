"""The loop: what it writes, how it stops, and that going on is the same as never having stopped."""

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.training import loop

SEEDS = [2, 3, 5]
NINE = settings.Train(epochs=9, weight_decay=1e-3)
VALUES = pytest.mark.parametrize(
    "values",
    [
        {},
        {"encoder.norm": "batch", "encoder.activation": "prelu"},
        {"sketch.fixed": True, "sketch.noise_std": 0.1},
        {"encoder.kind": "hops", "encoder.norm": "batch"},
        {"encoder.kind": "hops", "sketch.fixed": True},
    ],
)
BATCHES = settings.Train(epochs=4, weight_decay=1e-3, batch=15)
"""Four batches of 50 rows."""
PARTS = settings.Train(epochs=4, weight_decay=1e-3, parts=6, group=2)
"""Three groups of two parts."""
HOPS = {"encoder.kind": "hops", "encoder.norm": "batch"}


def ends(outcomes):
    return [(outcome.status, outcome.epochs) for outcome in outcomes]


# --- one seed -------------------------------------------------------------------------------------------------


def test_the_log_has_a_row_for_every_epoch(graph, build, read_log, tmp_path):
    heard = []
    outcome = training.train(
        build(), graph, settings.Train(epochs=5), folder=tmp_path, report=lambda *row: heard.append(row)
    )
    log = read_log(tmp_path)
    assert (outcome.status, outcome.epochs) == ("ok", 5)
    assert log.epochs == [1, 2, 3, 4, 5]
    assert [done for done, _ in heard] == [1, 2, 3, 4, 5]
    assert log.losses == pytest.approx([loss for _, loss in heard], rel=1e-5)
    assert not (tmp_path / training.CHECKPOINT).exists()


@VALUES
def test_resuming_is_the_same_as_never_having_stopped(graph, build, after, read_log, tmp_path, values):
    straight = build(**values)
    training.train(straight, graph, NINE)

    stopped = training.train(build(**values), graph, NINE, folder=tmp_path, should_stop=after(4))
    assert (stopped.status, stopped.epochs) == ("interrupted", 4)
    resumed = build(**values)
    outcome = training.train(resumed, graph, NINE, folder=tmp_path, resume=True)
    assert (outcome.status, outcome.epochs) == ("ok", 9)
    assert outcome.seconds > stopped.seconds
    assert torch.equal(resumed.embed(graph), straight.embed(graph))
    assert read_log(tmp_path).epochs == list(range(1, 10))


def test_fewer_epochs_than_are_done_is_one_sentence(graph, build, after, tmp_path):
    training.train(build(), graph, NINE, folder=tmp_path, should_stop=after(4))
    with pytest.raises(InputError, match="the run has already trained 4 epochs, more than the 2 requested"):
        training.train(build(), graph, settings.Train(epochs=2), folder=tmp_path, resume=True)


def test_rows_past_the_checkpoint_are_written_anew(graph, build, after, read_log, tmp_path):
    """A checkpoint may be older than the log: the process was killed in between."""
    train = settings.Train(epochs=6)
    training.train(build(), graph, train, folder=tmp_path, should_stop=after(3))
    with (tmp_path / training.LOG).open("a") as file:
        file.write("4,99,99\n5,9")
    training.train(build(), graph, train, folder=tmp_path, resume=True)
    log = read_log(tmp_path)
    assert log.epochs == list(range(1, 7))
    assert max(log.losses) < 50


def test_a_checkpoint_is_written_as_time_goes_by(graph, build, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_SECONDS", 0.0)
    seen = []
    training.train(
        build(),
        graph,
        settings.Train(epochs=3),
        folder=tmp_path,
        report=lambda done, loss: seen.append((tmp_path / training.CHECKPOINT).exists()),
    )
    assert seen == [False, True, True]


def test_a_fixed_sketch_made_from_h_cannot_be_resumed(graph, build, after, tmp_path):
    values = {"sketch.kind": "svd", "sketch.k": 4, "sketch.fixed": True}
    training.train(build(**values), graph, settings.Train(), folder=tmp_path, should_stop=after(1))
    with pytest.raises(InputError, match="costa-mv cannot be resumed: a fixed sketch made from H"):
        training.train(build(**values), graph, settings.Train(), folder=tmp_path, resume=True)


def test_a_loss_that_is_not_finite_ends_the_training(graph, build, monkeypatch):
    method = build()
    losses = iter([1.0, 2.0, float("nan")])
    monkeypatch.setattr(method, "loss", lambda graph: method.encoder.layers[0].weight.sum() * next(losses))
    outcome = training.train(method, graph, settings.Train(epochs=9))
    assert (outcome.status, outcome.epochs) == ("diverged", 2)


def test_weights_and_draws_have_streams_of_their_own(build):
    """The draws' seed comes after the weights in the seed's stream: it is neither the seed nor the stream's start."""
    seeds = range(8)
    streams = [build(seed).generator.initial_seed() for seed in seeds]
    assert streams == [build(seed).generator.initial_seed() for seed in seeds]
    assert len(set(streams)) == len(seeds)
    for seed, stream in zip(seeds, streams, strict=True):
        of_the_weights = torch.Generator().manual_seed(seed)
        start = int(torch.randint(2**63 - 1, (), generator=of_the_weights))
        assert stream not in (seed, start)
        first = torch.rand(50, generator=build(seed).generator)
        assert not torch.equal(first, torch.rand(50, generator=of_the_weights.manual_seed(seed)))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_one_sentence(build, seed):
    with pytest.raises(InputError, match=f"the seed {seed} is out of range"):
        build(seed)


# --- batches of rows ------------------------------------------------------------------------------------------


def states_equal(one, other):
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in right)


def test_an_epoch_is_a_step_for_each_batch_and_the_log_has_its_mean(graph, build, read_log, tmp_path, monkeypatch):
    method, losses, heard = build(**HOPS), [], []
    loss = method.loss

    def listening(graph, rows):
        losses.append((loss(graph, rows), rows))
        return losses[-1][0]

    monkeypatch.setattr(method, "loss", listening)
    outcome = training.train(method, graph, BATCHES, folder=tmp_path, report=lambda *row: heard.append(row))
    assert (outcome.status, outcome.epochs) == ("ok", 4)
    assert len(losses) == 16
    for epoch in range(4):
        rows = torch.cat([rows for _, rows in losses[4 * epoch : 4 * epoch + 4]])
        assert torch.equal(rows.sort().values, torch.arange(50))
    log = read_log(tmp_path)
    assert log.epochs == [1, 2, 3, 4]
    means = [sum(each.item() for each, _ in losses[start : start + 4]) / 4 for start in range(0, 16, 4)]
    assert log.losses == pytest.approx(means, rel=1e-5)
    assert [done for done, _ in heard] == [1, 2, 3, 4]


def test_a_long_epoch_reports_the_steps_inside(graph, build, monkeypatch):
    monkeypatch.setattr("costa.training.loop.REPORT_EVERY_SECONDS", 0)
    heard = []
    training.train(build(**HOPS), graph, BATCHES, report=lambda *row: heard.append(row))
    assert [done for done, _ in heard] == [step / 4 for step in range(1, 17)]


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv", "grace", "bgrl"])
def test_interrupted_at_any_step_of_an_epoch_it_resumes_to_the_same_bits(graph, build, after, read_log, tmp_path, name):
    straight, whole = build(0, name, **HOPS), tmp_path / "whole"
    whole.mkdir()
    training.train(straight, graph, BATCHES, folder=whole)
    for steps in range(1, 9):
        folder = tmp_path / f"{steps}"
        folder.mkdir()
        stopped = training.train(build(0, name, **HOPS), graph, BATCHES, folder=folder, should_stop=after(steps))
        assert (stopped.status, stopped.epochs) == ("interrupted", steps // 4)
        assert training.read_progress(folder) == steps // 4
        resumed = build(9, name, **HOPS)
        resumed.generator = build(0, name, **HOPS).generator  # whose seed orders the rows
        assert training.train(resumed, graph, BATCHES, folder=folder, resume=True).epochs == 4
        assert states_equal(resumed, straight)
        assert torch.equal(resumed.embed(graph), straight.embed(graph))
        assert read_log(folder).losses == read_log(whole).losses


@pytest.mark.parametrize("name", ["costa-mv", "grace", "bgrl", "dgi", "gae"])
def test_interrupted_inside_an_epoch_of_parts_it_resumes_to_the_same_bits(
    graph, build, after, read_log, tmp_path, name
):
    straight, whole = build(0, name), tmp_path / "whole"
    whole.mkdir()
    training.train(straight, graph, PARTS, folder=whole)
    assert read_log(whole).epochs == [1, 2, 3, 4]
    for steps in (2, 5):
        folder = tmp_path / f"{steps}"
        folder.mkdir()
        stopped = training.train(build(0, name), graph, PARTS, folder=folder, should_stop=after(steps))
        assert (stopped.status, stopped.epochs) == ("interrupted", steps // 3)
        resumed = build(9, name)
        resumed.generator = build(0, name).generator  # whose seed orders the parts
        assert training.train(resumed, graph, PARTS, folder=folder, resume=True).epochs == 4
        assert states_equal(resumed, straight)
        assert read_log(folder).losses == read_log(whole).losses


def test_several_seeds_with_parts_train_as_each_would_alone(graph, build, several):
    methods = several()
    training.train_together(methods, graph, PARTS)
    for method, seed in zip(methods, SEEDS, strict=True):
        alone = build(seed)
        training.train(alone, graph, PARTS)
        assert states_equal(method, alone)


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_parts_that_are_all_in_one_group_are_the_whole_graph(graph, build, parts):
    whole, parted = build(), build()
    training.train(whole, graph, settings.Train(epochs=3))
    training.train(parted, graph, settings.Train(epochs=3, parts=parts))
    assert states_equal(whole, parted)


def test_the_watch_sees_all_nodes_whatever_the_parts(graph, build, monkeypatch):
    method, seen = build(), []
    hidden = method.hidden
    monkeypatch.setattr(method, "hidden", lambda *given: seen.append(hidden(*given)) or seen[-1])
    training.train(method, graph, PARTS)
    assert [len(h) for h in seen] == [50] * 4  # untrained, and after 1, 2 and 4 epochs


def test_several_seeds_with_batches_train_as_each_would_alone_and_resume(
    graph, build, several, after, folders, read_log
):
    stopped = training.train_together(several(**HOPS), graph, BATCHES, folders=folders, should_stop=after(6))
    assert ends(stopped) == [("interrupted", 1)] * 3
    resumed = several(**HOPS)
    assert ends(training.train_together(resumed, graph, BATCHES, folders=folders, resume=True)) == [("ok", 4)] * 3
    for method, seed, folder in zip(resumed, SEEDS, folders, strict=True):
        alone, other = build(seed, **HOPS), folder / "alone"
        other.mkdir()
        training.train(alone, graph, BATCHES, folder=other)
        assert states_equal(method, alone)
        assert read_log(folder).losses == read_log(other).losses


def test_a_batch_that_diverges_ends_its_seed_in_that_epoch_and_the_others_resume(
    graph, several, after, folders, read_log, monkeypatch
):
    methods = several(**HOPS)
    loss, steps = methods[1].loss, iter(range(1, 100))
    monkeypatch.setattr(
        methods[1], "loss", lambda graph, rows: loss(graph, rows) * (torch.nan if next(steps) == 6 else 1)
    )
    outcomes = training.train_together(methods, graph, BATCHES, folders=folders, should_stop=after(7))
    assert ends(outcomes) == [("interrupted", 1), ("diverged", 1), ("interrupted", 1)]
    assert [read_log(folder).epochs for folder in folders] == [[1], [1], [1]]
    resumed = training.train_together(several(**HOPS), graph, BATCHES, folders=folders, resume=True)
    assert [outcome.epochs for outcome in resumed][::2] == [4, 4]


def test_a_fixed_p_needs_all_rows_at_once(graph, build):
    with pytest.raises(InputError, match=r"sketch.fixed keeps one P for all rows.*set train.batch=0"):
        training.train(build(**HOPS, **{"sketch.fixed": True}), graph, BATCHES)

    with pytest.raises(InputError, match=r"sketch.fixed keeps one P.* each group of parts .*set train.parts=0"):
        training.train(build(**{"sketch.fixed": True}), graph, PARTS)


def test_a_gcn_trains_on_the_whole_graph_whatever_the_batch(graph, build):
    one, other = build(), build()
    training.train(one, graph, BATCHES)
    training.train(other, graph, settings.Train(epochs=4, weight_decay=1e-3))
    assert states_equal(one, other)


# --- several seeds --------------------------------------------------------------------------------------------


def test_each_of_several_has_its_log_and_its_outcome(graph, build, several, folders, read_log):
    heard = []
    outcomes = training.train_together(several(), graph, NINE, folders=folders, report=lambda *row: heard.append(row))
    assert ends(outcomes) == [("ok", 9)] * 3
    assert [done for done, _ in heard] == list(range(1, 10))
    for folder, seed in zip(folders, SEEDS, strict=True):
        alone = folder / "alone"
        alone.mkdir()
        training.train(build(seed), graph, NINE, folder=alone)
        assert read_log(folder).losses == read_log(alone).losses
        assert not (folder / training.CHECKPOINT).exists()
    means = [sum(losses) / 3 for losses in zip(*(read_log(folder).losses for folder in folders), strict=True)]
    assert [loss for _, loss in heard] == pytest.approx(means, rel=1e-5)


def test_seeds_share_what_is_prepared(graph, several):
    methods = several(**{"features.scaling": "standard"})
    training.train_together(methods, graph, settings.Train(epochs=1))
    assert all(method.inputs(graph) is methods[0].inputs(graph) for method in methods)
    for method in methods:  # but each has learnt the scaling, which is part of its state
        torch.testing.assert_close(method.scaling.mean, graph.x.mean(0))


@VALUES
def test_several_resume_as_if_they_had_never_stopped(graph, several, after, folders, read_log, values):
    straight = several(**values)
    training.train_together(straight, graph, NINE)
    stopped = training.train_together(several(**values), graph, NINE, folders=folders, should_stop=after(4))
    assert ends(stopped) == [("interrupted", 4)] * 3
    assert [training.read_progress(folder) for folder in folders] == [4] * 3
    resumed = several(**values)
    outcomes = training.train_together(resumed, graph, NINE, folders=folders, resume=True)
    assert ends(outcomes) == [("ok", 9)] * 3
    for one, other, folder in zip(resumed, straight, folders, strict=True):
        assert torch.equal(one.embed(graph), other.embed(graph))
        assert read_log(folder).epochs == list(range(1, 10))


def test_one_that_diverges_is_reported_alone_and_the_others_go_on(graph, build, several, folders, read_log):
    methods = several()
    methods[1].encoder.layers[0].weight.data[0, 0] = torch.inf
    outcomes = training.train_together(methods, graph, NINE, folders=folders)
    assert ends(outcomes) == [("ok", 9), ("diverged", 0), ("ok", 9)]
    assert [len(read_log(folder).epochs) for folder in folders] == [9, 0, 9]
    for index in (0, 2):
        alone = build(SEEDS[index])
        training.train(alone, graph, NINE)
        assert torch.equal(methods[index].embed(graph), alone.embed(graph))


def test_one_that_diverges_later_is_reported_from_then_on(graph, build, several, folders, read_log, monkeypatch):
    methods = several()
    loss, epochs = methods[1].loss, iter(range(1, 100))
    # once: what is lost stays lost, though later losses would be numbers again
    monkeypatch.setattr(methods[1], "loss", lambda graph: loss(graph) * (torch.nan if next(epochs) == 4 else 1))
    outcomes = training.train_together(methods, graph, NINE, folders=folders)
    assert ends(outcomes) == [("ok", 9), ("diverged", 3), ("ok", 9)]
    assert [len(read_log(folder).epochs) for folder in folders] == [9, 3, 9]
    alone = build(SEEDS[1])
    training.train(alone, graph, settings.Train(epochs=3, weight_decay=1e-3))
    for one, other in zip(methods[1].parameters(), alone.parameters(), strict=True):
        assert torch.equal(one, other)


def test_training_ends_when_all_have_diverged(graph, several):
    methods, heard = several(), []
    for method in methods:
        method.encoder.layers[0].weight.data[0, 0] = torch.nan
    outcomes = training.train_together(methods, graph, NINE, report=lambda *row: heard.append(row))
    assert ends(outcomes) == [("diverged", 0)] * 3
    assert len(heard) == 1
