"""Epochs: Adam's steps of the loss, and several seeds side by side train exactly as each would alone."""

import itertools
from pathlib import Path

import pytest
import torch

from costa import settings, training
from costa.errors import InputError
from costa.graphs import ahead
from costa.graphs.ahead import ReadAhead
from costa.graphs.hop_files import open_hop
from costa.graphs.streaming import keep_on_disk
from costa.graphs.synthetic import planted_partition
from costa.methods.encoding import HopInputs
from costa.nn import SparseMatrix

SEEDS = [0, 1, 7]
TRAIN = settings.Train(lr=1e-2, weight_decay=1e-3, batch=20)
CASES = {
    "gaussian": {"sketch.kind": "gaussian"},
    "rademacher, both views' negatives": {"sketch.kind": "rademacher", "loss.kind": "both"},
    "sparse": {"sketch.kind": "sparse", "sketch.density": 0.05},
    "countsketch": {"sketch.kind": "countsketch"},
    "selection": {"sketch.kind": "selection"},
    "svd": {"sketch.kind": "svd", "sketch.k": 4},
    "fixed": {"sketch.fixed": True},
    "fixed countsketch": {"sketch.kind": "countsketch", "sketch.fixed": True, "sketch.center": False},
    "noise on a sketch": {"sketch.noise_std": 0.3},
    "noise": {"sketch.kind": "noise", "sketch.noise_std": 0.3},
    "none": {"sketch.kind": "none"},
    "edges dropped": {"augment.edge_rate": 0.3},
    "edges rewired": {"augment.edge_rate": 0.3, "augment.edges": "permute"},
    "by degree": {"augment.edge_rate": 0.3, "augment.mask_rate": 0.3, "augment.centrality": "degree"},
    "attributes masked": {"augment.mask_rate": 0.3},
    "both": {"augment.edge_rate": 0.3, "augment.mask_rate": 0.3, "sketch.kind": "countsketch"},
    "batch norm": {"encoder.norm": "batch", "augment.edge_rate": 0.2},
    "prelu": {"encoder.activation": "prelu", "head.activation": "prelu", "augment.mask_rate": 0.2},
    "no head": {"head.width": 0},
    "hops": {"encoder.kind": "hops", "encoder.norm": "batch", "augment.mask_rate": 0.3},
    "written out": {"train.kernels": "plain"},
}
NOTHING_DROPPED = {"augment.edge_rate": 0.0, "augment.mask_rate": 0.0}


@pytest.fixture(scope="module")
def bag_of_words():
    """A graph whose X is kept sparse."""
    graph = planted_partition(60, 3, 40, seed=1)
    graph.x = (graph.x > graph.x.quantile(0.95)).float()
    return graph


def prepared(methods, graph):
    training.prepare(methods, graph)
    return methods


def steps_of(methods, graph):
    return training.Steps(prepared(methods, graph), graph, TRAIN)


def assert_each_trains_as_it_would_alone(graph, build):
    """``build`` gives the method with a seed."""
    methods = [build(seed) for seed in SEEDS]
    generators = [method.generator for method in methods]
    losses = steps_of(methods, graph).run(5)
    assert losses.shape == (5, len(SEEDS))
    assert losses.isfinite().all()
    for index, seed in enumerate(SEEDS):
        method, alone = methods[index], build(seed)
        assert torch.equal(losses[:, [index]], steps_of([alone], graph).run(5))
        own, expected = method.state_dict(), alone.state_dict()
        assert own.keys() == expected.keys()
        assert [key for key, tensor in expected.items() if not torch.equal(own[key], tensor)] == []
        assert torch.equal(method.embed(graph), alone.embed(graph))
        assert method.generator is generators[index]
        assert torch.equal(method.generator.get_state(), alone.generator.get_state())


# --- one seed -------------------------------------------------------------------------------------------------


def test_steps_are_adams_steps_of_the_loss(graph, build):
    method, twin = prepared([build()], graph)[0], prepared([build()], graph)[0]
    losses = training.Steps([method], graph, settings.Train(lr=0.01, weight_decay=1e-3)).run(3)
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


def test_steps_go_on_where_they_were(graph, build):
    at_once = steps_of([build()], graph).run(5)
    steps = steps_of([build()], graph)
    assert torch.equal(torch.cat([steps.run(2), steps.run(3)]), at_once)


@pytest.mark.parametrize("layout", ["in columns", "one number for all"])
def test_a_gradient_is_read_by_its_places_however_it_lies_in_memory(graph, build, monkeypatch, layout):
    """Adam's fused form takes each gradient for a tensor that lies in memory as the weight does."""
    method = build()
    weight = method.encoder.layers[0].weight
    slopes = torch.randn(weight.shape[::-1], generator=torch.Generator().manual_seed(0)).T
    slopes = slopes if layout == "in columns" else torch.tensor(0.5).expand(weight.shape)
    assert slopes.stride() != weight.stride()
    loss = {
        "in columns": lambda graph: (weight.T.contiguous() * slopes.T).sum(),
        "one number for all": lambda graph: 0.5 * weight.sum(),
    }
    monkeypatch.setattr(method, "loss", loss[layout])
    (gradient,) = torch.autograd.grad(method.loss(graph), weight)
    assert gradient.stride() == slopes.stride()
    before = weight.detach().clone()
    training.Steps([method], graph, settings.Train(lr=0.1)).run(1)
    torch.testing.assert_close(weight.detach(), before - 0.1 * slopes.sign())


def test_a_weight_that_the_loss_does_not_read_stays(graph, build):
    method = build()
    method.spare = torch.nn.Parameter(torch.ones(3))
    before = method.encoder.layers[0].weight.detach().clone()
    steps_of([method], graph).run(2)
    assert torch.equal(method.spare, torch.ones(3))
    assert not torch.equal(method.encoder.layers[0].weight, before)


def test_a_method_that_takes_no_parts_refuses_them(graph, build):
    with pytest.raises(InputError, match=r"gmi trains on the whole graph; set train.parts=0, or choose another"):
        training.Steps(prepared([build(0, "gmi")], graph), graph, settings.Train(parts=4))


# --- several seeds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
@pytest.mark.parametrize("case", CASES)
def test_each_trains_exactly_as_it_would_alone(graph, build, name, case):
    values = NOTHING_DROPPED | CASES[case]
    if name == "costa-mv" and values["augment.edge_rate"]:
        values |= {"augment.edge_rate": [0.0, 0.4]}  # views may differ
    assert_each_trains_as_it_would_alone(graph, lambda seed: build(seed, name, **values))


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
def test_sparse_features_serve_every_seed(bag_of_words, build, name):
    values = {"augment.edge_rate": 0.3, "augment.mask_rate": 0.3, "features.scaling": "none"}
    methods = prepared([build(seed, name, bag_of_words, **values) for seed in SEEDS], bag_of_words)
    inputs = [method.inputs(bag_of_words) for method in methods]
    assert isinstance(inputs[0].x, SparseMatrix)
    assert all(each is inputs[0] for each in inputs)
    assert_each_trains_as_it_would_alone(bag_of_words, lambda seed: build(seed, name, bag_of_words, **values))


def test_seeds_differ_and_a_repeated_one_does_not(graph, build):
    losses = steps_of([build(seed, "costa-sv") for seed in (3, 4, 3)], graph).run(5)
    assert torch.equal(losses[:, 0], losses[:, 2])
    assert (losses[:, 0] - losses[:, 1]).abs().min() > 1e-4


def test_one_that_diverges_keeps_its_weights_while_the_others_go_on(graph, build, monkeypatch):
    methods = [build(seed) for seed in SEEDS]
    loss, epochs = methods[1].loss, iter(range(1, 100))
    # once only: what is lost does not come back by fresh draws
    monkeypatch.setattr(methods[1], "loss", lambda graph: loss(graph) * (torch.inf if next(epochs) == 3 else 1))
    steps = steps_of(methods, graph)
    losses = torch.cat([steps.run(4), steps.run(2)])
    assert losses[:, [0, 2]].isfinite().all()
    assert losses[:, 1].isfinite().tolist() == [True, True, False, False, False, False]
    for method, seed, done in zip(methods, SEEDS, (6, 2, 6), strict=True):
        alone = build(seed)
        steps_of([alone], graph).run(done)
        for one, other in zip(method.parameters(), alone.parameters(), strict=True):
            assert torch.equal(one, other)


def test_the_global_generator_is_left_as_found(graph, build):
    before = torch.get_rng_state()
    values = {"augment.edge_rate": 0.2, "augment.mask_rate": 0.2, "sketch.noise_std": 0.1}
    steps_of([build(seed, **values) for seed in SEEDS], graph).run(5)
    assert torch.equal(torch.get_rng_state(), before)


# --- rows on disk ---------------------------------------------------------------------------------------------


@pytest.fixture
def on_disk(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    graph = graph.clone()
    graph.name = "made"
    return keep_on_disk(graph, 2**26)


@pytest.fixture
def asked(monkeypatch):
    """The rows that are asked for, of a disk that every batch waits for."""
    found, prefetch = [], ReadAhead.prefetch

    def recording(self, rows):
        found.append(rows)
        prefetch(self, rows)

    monkeypatch.setattr(ReadAhead, "prefetch", recording)
    monkeypatch.setattr(ahead, "page_faults", itertools.count(step=1000).__next__)
    return found


HOPS = {"encoder.kind": "hops", "encoder.norm": "batch", "augment.mask_rate": 0.3, "encoder.columns": 5}


def test_each_seed_asks_for_the_rows_of_its_next_step_in_the_next_epoch_too(on_disk, build, asked):
    steps = steps_of([build(seed, **HOPS) for seed in SEEDS], on_disk)
    assert steps.per_epoch == 3
    steps.run(7)
    expected = [batches.rows(step + 1) for step in range(7) for batches in steps._batches]
    # the first seed's first step has yet to find out that it waits
    assert len(asked) == len(expected) - 1
    assert all(torch.equal(*pair) for pair in zip(asked, expected[1:], strict=True))


def test_rows_that_are_asked_for_change_no_bit(on_disk, build, asked, monkeypatch):
    waiting = [build(seed, **HOPS) for seed in SEEDS]
    losses = steps_of(waiting, on_disk).run(7)
    count = len(asked)
    monkeypatch.setattr(ahead, "page_faults", lambda: 0)
    plain = [build(seed, **HOPS) for seed in SEEDS]
    assert torch.equal(steps_of(plain, on_disk).run(7), losses)
    assert len(asked) == count > 0
    for ours, theirs in zip(waiting, plain, strict=True):
        assert all(torch.equal(tensor, theirs.state_dict()[key]) for key, tensor in ours.state_dict().items())


def test_a_resumed_training_asks_for_rows_too_and_has_the_same_bits(on_disk, build, asked, after, tmp_path):
    train = settings.Train(epochs=4, batch=20)
    straight, stopped, resumed = (build(0, **HOPS) for _ in range(3))
    training.train(straight, on_disk, train)
    assert training.train(stopped, on_disk, train, folder=tmp_path, should_stop=after(4)).status == "interrupted"
    asked.clear()
    assert training.train(resumed, on_disk, train, folder=tmp_path, resume=True).epochs == 4
    assert len(asked) > 0
    assert torch.equal(resumed.embed(on_disk), straight.embed(on_disk))


def test_a_process_asks_for_the_rows_that_it_holds(on_disk, build, asked):
    (method,) = prepared([build(**HOPS)], on_disk)
    (path,) = Path(on_disk.folder).glob("hops/*/4.npy")
    part = HopInputs.on_disk([open_hop(path, range(10, 20))], first=10)
    (block,) = part.at(torch.tensor([11, 3])).blocks
    assert torch.equal(block, method.inputs(on_disk).at(torch.tensor([11])).blocks[1])
    part.prefetch(lambda: torch.tensor([40, 19, 3, 10, 20]))
    assert [rows.tolist() for rows in asked] == [[9, 0]]  # places among those that it holds


def test_rows_in_memory_are_not_even_drawn_ahead(graph, on_disk, build, monkeypatch):
    def fail():
        raise AssertionError

    monkeypatch.setattr(ahead, "page_faults", lambda: 0)
    for where, values in ((graph, HOPS), (graph, {}), (on_disk, HOPS)):
        (method,) = prepared([build(**values)], where)
        if values:
            method.loss(where, torch.arange(20))
        method.prefetch(fail)


def test_an_error_of_the_disk_ends_the_step(on_disk, build, asked, monkeypatch):
    steps = steps_of([build(**HOPS)], on_disk)
    steps.run(1)

    def broken(self, rows):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(ReadAhead, "prefetch", broken)
    with pytest.raises(OSError, match="Input/output error"):
        steps.run(1)
