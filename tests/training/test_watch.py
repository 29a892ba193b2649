"""The watch: vectors that would collapse do not, and a training that it leaves alone has the same bits without it."""

import numpy as np
import pytest
import torch

from costa import settings, training
from costa.evaluate import health
from costa.graphs.synthetic import planted_partition
from costa.nn.spectrum import LINE, effective_rank
from costa.training import watch
from costa.training.watch import Spread, Watch, Watched, next_check

SEEDS = [2, 3, 5]
DYING = {"encoder.width": 32, "head.width": 32, "loss.tau": 4.0, "augment.edge_rate": 0.0, "augment.mask_rate": 0.0}
STRONG = settings.Train(epochs=70, lr=0.01, weight_decay=0.3)
HOPS = {"encoder.kind": "hops", "encoder.norm": "batch", "augment.edge_rate": 0.0}


@pytest.fixture(scope="module")
def words():
    """Bags of 2,000 words: with a strong weight decay the vectors die within 64 epochs."""
    graph = planted_partition(200, 3, 2, degree=5, homophily=0.75, seed=0)
    rng = np.random.default_rng(0)
    rates = np.where(rng.random((3, 2000)) < 0.1, 0.06, 0.015)
    graph.x = torch.from_numpy((rng.random((200, 2000)) < rates[graph.y.numpy()]).astype("float32"))
    return graph


@pytest.fixture
def dying(build, words):
    """dying(seed) → a method whose vectors die if it is trained as STRONG says."""
    return lambda seed=1, **values: build(seed, "costa-sv", words, **DYING | values)


@pytest.fixture
def unwatched(monkeypatch):
    monkeypatch.setattr(Watch, "check", lambda *_: True)


def same_state(one, other):
    assert torch.equal(one.generator.get_state(), other.generator.get_state())
    assert all(torch.equal(tensor, other.state_dict()[key]) for key, tensor in one.state_dict().items())


def test_when_it_looks():
    epochs, looks = 0, []
    while epochs < 130:
        epochs = next_check(epochs)
        looks.append(epochs)
    assert looks == [1, 2, 4, 8, 16, 32, 64, 96, 128, 160]


# --- what it does ---------------------------------------------------------------------------------------------


def test_without_it_the_vectors_collapse(words, dying, unwatched):
    method = dying()
    outcome = training.train(method, words, STRONG)
    assert (outcome.status, outcome.epochs, outcome.watched) == ("ok", 70, None)
    z = method.embed(words)
    assert effective_rank(z) < 1.5
    assert health.mean_cosine(z) < 0.9  # a line has two ends
    assert health.status(z, words.x) == "collapsed"


def test_it_goes_back_with_less_weight_decay(words, dying, read_log, tmp_path):
    method = dying()
    outcome = training.train(method, words, STRONG, folder=tmp_path)
    assert (outcome.status, outcome.epochs) == ("ok", 70)
    assert outcome.watched == Watched(pytest.approx(0.003), 32, stopped=False)
    assert "from epoch 32 with train.weight_decay = 0.003" in str(outcome.watched)
    z = method.embed(words)
    assert health.status(z, words.x) == "ok"
    assert effective_rank(z) > 3
    assert read_log(tmp_path).epochs == list(range(1, 71))

    # the same as training so long with one weight decay and then with another
    twin = dying()
    twin.prepare(words)
    steps = training.Steps([twin], words, STRONG)
    for epochs, weight_decay in ((16, 0.3), (16, 0.3 / 10), (38, 0.3 / 10 / 10)):
        steps.optimizers[0].param_groups[0]["weight_decay"] = weight_decay
        steps.run(epochs)
    same_state(method, twin)


def test_it_steps_in_for_codes_of_hops_too(words, dying, monkeypatch):
    hops = {"encoder.kind": "hops", "encoder.norm": "none", "encoder.powers": (4,), "encoder.steps": 10}
    hops |= {"features.rank": 512, "features.scaling": "none", "augment.hop_rate": 0.0, "train.batch": 50}
    strong = settings.Train(epochs=70, lr=0.01, weight_decay=1.0, batch=50)
    method = dying(**hops)
    outcome = training.train(method, words, strong)
    assert outcome.watched == Watched(pytest.approx(0.1), 16, stopped=False)
    monkeypatch.setattr(Watch, "check", lambda *_: True)
    lost = dying(**hops)
    assert training.train(lost, words, strong).watched is None
    assert effective_rank(lost.trained_hidden(words)) < LINE
    assert effective_rank(method.trained_hidden(words)) > 3


@pytest.mark.parametrize(("weight_decay", "lowered", "looks"), [(0.0, 0.0, 1), (0.3, 0.003, 3)])
def test_it_ends_where_they_were_fine_if_less_weight_decay_does_not_help(
    words, dying, read_log, tmp_path, monkeypatch, weight_decay, lowered, looks
):
    # before training and after 1, 2 and 4 epochs they are fine, and never again
    fine, seen = iter([Spread(20.0, 0.5)] * 4), []

    def measure(self, enough):
        seen.append(next(fine, Spread(1.0, 0.5)))
        return seen[-1]

    monkeypatch.setattr(Watch, "_measure", measure)
    method = dying()
    train = settings.Train(epochs=20, weight_decay=weight_decay)
    outcome = training.train(method, words, train, folder=tmp_path)
    assert outcome == training.Outcome(
        "ok", 4, outcome.seconds, Watched(pytest.approx(lowered), 4 if lowered else 0, stopped=True), outcome.losses
    )
    assert outcome.losses == pytest.approx(read_log(tmp_path).losses, rel=1e-5)
    assert "training stopped at the last epoch where they were not" in str(outcome.watched)
    assert len(seen) == 4 + looks
    assert read_log(tmp_path).epochs == [1, 2, 3, 4]
    twin = dying()
    twin.prepare(words)
    training.Steps([twin], words, train).run(4)
    same_state(method, twin)


@pytest.mark.parametrize(
    ("now", "beats", "dies"),
    [
        (Spread(6.0, 0.5), False, False),
        (Spread(3.1, 0.5), False, False),
        (Spread(2.9, 0.5), False, True),
        (Spread(2.9, 0.5), True, False),
        (Spread(1.9, 0.5), True, True),  # a line, whatever the loss
        (Spread(20.0, 0.002), False, True),
        (Spread(20.0, 0.002), True, False),
        (Spread(20.0, 1e-7), True, True),
        (None, False, False),
    ],
)
def test_what_dying_is(words, dying, monkeypatch, now, beats, dies):
    spreads = iter([Spread(23.0, 0.5), now])
    monkeypatch.setattr(Watch, "_measure", lambda self, enough: next(spreads))
    monkeypatch.setattr(Watch, "_beats_untrained", lambda self, loss: beats)
    outcome = training.train(dying(), words, settings.Train(epochs=1, weight_decay=0.0))
    assert (outcome.watched is not None) == dies


def test_few_columns_are_not_a_line(graph, build):
    """The rank of two columns is never above 2, and no reason to step in."""
    method = build(name="costa-sv", **{"encoder.width": 2})
    assert training.train(method, graph, settings.Train(epochs=8)).watched is None


def test_the_untrained_encoder_has_its_loss_on_the_same_draws(words, dying):
    method = dying()
    method.prepare(words)
    steps = training.Steps([method], words, STRONG)
    watching = Watch(method, method.hidden, steps.optimizers[0], words)
    losses = []

    def loss():
        losses.append(steps.loss(0))
        return losses[-1]

    assert not watching._beats_untrained(loss)
    assert torch.equal(*losses)  # nothing is trained yet
    steps.run(64)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    assert not watching._beats_untrained(loss)
    assert losses[2] > losses[3]
    assert all(torch.equal(value, before[key]) for key, value in method.state_dict().items())
    assert torch.equal(steps.loss(0), losses[2])


def test_a_cheap_bound_of_the_rank_serves_where_it_is_enough(words, dying, monkeypatch):
    """Only vectors that may not be fine are worth a spectrum."""
    method = dying()
    method.prepare(words)
    steps = training.Steps([method], words, STRONG)
    watching = Watch(method, method.hidden, steps.optimizers[0], words)
    exact = effective_rank(method.embed(words))
    assert watching._measure(100.0).rank == pytest.approx(exact)
    monkeypatch.setattr(watch, "effective_rank", None)
    assert 5 < watching._measure(5.0).rank < exact


# --- it leaves no trace ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{"encoder.norm": "batch", "encoder.activation": "prelu"}, HOPS])
@pytest.mark.parametrize("suspicious", [False, True])
def test_a_training_that_it_leaves_alone_has_the_same_bits_without_it(graph, build, monkeypatch, values, suspicious):
    train, kind = settings.Train(epochs=9, batch=20), values.get("encoder.kind", "gcn")
    watched = build(**{"encoder.kind": kind} | values)
    with monkeypatch.context() as patch:
        if suspicious:
            beats = Watch._beats_untrained
            patch.setattr(watch, "_is_above", lambda *_: False)
            patch.setattr(Watch, "_beats_untrained", lambda self, loss: beats(self, loss) or True)
        assert training.train(watched, graph, train).watched is None
    monkeypatch.setattr(Watch, "__init__", lambda self, *_: None)
    monkeypatch.setattr(Watch, "check", lambda *_: True)
    monkeypatch.setattr(Watch, "changed", None, raising=False)
    alone = build(**{"encoder.kind": kind} | values)
    training.train(alone, graph, train)
    same_state(watched, alone)


# --- interruptions and several seeds --------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [10, 40, 64, 90, 112, 120])
def test_resuming_is_the_same_as_never_having_stopped(words, dying, after, read_log, tmp_path, epochs):
    """Stopped before the vectors die, while they do, right after going back to epoch 16, later, and the same again."""
    straight, places = dying(), [tmp_path / name for name in ("straight", "stopped")]
    for place in places:
        place.mkdir()
    expected = training.train(straight, words, STRONG, folder=places[0])
    stopped = training.train(dying(), words, STRONG, folder=places[1], should_stop=after(epochs))
    assert stopped.status == "interrupted"
    assert (stopped.watched is not None) == (epochs >= 64)
    assert read_log(places[1]).epochs == list(range(1, stopped.epochs + 1))
    resumed = dying()
    outcome = training.train(resumed, words, STRONG, folder=places[1], resume=True)
    assert (outcome.status, outcome.epochs, outcome.watched) == ("ok", 70, expected.watched)
    same_state(resumed, straight)
    assert read_log(places[1]) == read_log(places[0])


def test_each_of_several_is_watched_as_if_it_were_alone(words, dying, folders, read_log):
    """One seed dies earlier than the others, which never notice."""
    values = [{}, {"loss.tau": 0.5}, {"loss.tau": 3.0}]
    methods = [dying(seed, **each) for seed, each in zip(SEEDS, values, strict=True)]
    outcomes = training.train_together(methods, words, STRONG, folders=folders)
    assert {outcome.watched is None for outcome in outcomes} == {True, False}
    for seed, each, method, outcome, folder in zip(SEEDS, values, methods, outcomes, folders, strict=True):
        alone, place = dying(seed, **each), folder / "alone"
        place.mkdir()
        expected = training.train(alone, words, STRONG, folder=place)
        assert (outcome.status, outcome.epochs, outcome.watched) == ("ok", expected.epochs, expected.watched)
        same_state(method, alone)
        assert read_log(folder) == read_log(place)


def test_several_are_interrupted_wherever_each_is(words, dying, after, folders, read_log):
    values = [{}, {"loss.tau": 0.5}, {"loss.tau": 3.0}]
    several = lambda: [dying(seed, **each) for seed, each in zip(SEEDS, values, strict=True)]  # noqa: E731
    stopped = training.train_together(several(), words, STRONG, folders=folders, should_stop=after(66))
    straight = several()
    expected = training.train_together(straight, words, STRONG)
    assert {outcome.status for outcome in stopped} == {"interrupted"}
    assert len({outcome.epochs for outcome in stopped}) == 2
    for before, folder, method, one, end in zip(stopped, folders, several(), straight, expected, strict=True):
        assert training.read_progress(folder) == before.epochs
        assert read_log(folder).epochs == list(range(1, before.epochs + 1))
        outcome = training.train(method, words, STRONG, folder=folder, resume=True)
        assert (outcome.status, outcome.epochs, outcome.watched) == (end.status, end.epochs, end.watched)
        same_state(method, one)


def test_captured_steps_that_go_on_with_a_seed_do_not_count(words, dying, monkeypatch):
    """On CUDA a replay trains every seed, those that have left too."""
    methods = [dying(2), dying(3, **{"loss.tau": 0.5})]
    with monkeypatch.context() as patch:
        patch.setattr(training.Steps, "leave", lambda self, seed: None)
        outcomes = training.train_together(methods, words, STRONG)
    assert [outcome.watched is None for outcome in outcomes] == [False, True]
    for seed, values, method in zip((2, 3), ({}, {"loss.tau": 0.5}), methods, strict=True):
        alone = dying(seed, **values)
        training.train(alone, words, STRONG)
        same_state(method, alone)
