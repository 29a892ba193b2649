"""Captured epochs against the same epochs one by one, of one seed and of several; what they cost and leave alone."""

import pytest
import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.training.capture import BRANCHES, WARM_UP

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
METHODS = ["costa-sv", "costa-mv"]
# What draws and multiplies in a fixed order, and what adds atomically: there two runs differ by rounding, which Adam
# makes more of.
IN_ORDER = ["gaussian", "rademacher", "noise", "none"]
ATOMIC = ["sparse", "countsketch", "selection"]
CLOSE = dict.fromkeys(IN_ORDER, 1e-5) | dict.fromkeys(ATOMIC, 1e-3)
SEEDS = [0, 1, 7]
SMALL_STEPS = settings.Train(lr=1e-4)
PACKED = {"sketch__k": 301, "sketch__noise_std": 0.0}
"""Of a CountSketch with so many rows not all are contrasted."""


@pytest.fixture(scope="module")
def several(build):
    """The method with each seed; they share what is prepared."""

    def several(graph, name, kind="gaussian", seeds=SEEDS, **values):
        plain = {
            "encoder__width": 48,
            "head__width": 40,
            "sketch__kind": kind,
            "sketch__density": 0.05,
            "sketch__noise_std": 0.1,
            "augment__edge_rate": 0.2,
            "augment__mask_rate": 0.2,
        }
        plain |= {} if kind in ("noise", "none") else {"sketch__k": 77}
        methods = [build(name, graph, seed, **plain | values) for seed in seeds]
        training.prepare(methods, graph)
        return methods

    return several


@pytest.fixture(scope="module")
def prepared(several):
    def prepared(graph, name, kind="gaussian", seed=0, **values):
        return several(graph, name, kind, [seed], **values)[0]

    return prepared


def captured(methods, graph):
    steps = training.make_steps(methods, graph, SMALL_STEPS)
    assert steps.captures
    return steps


def one_by_one(methods, graph):
    """The same epochs, on the same streams and in the same precision, of which none is ever captured."""
    steps = captured(methods, graph)
    steps._warm_up = 10**9
    return steps


def relative(ours, exact):
    return float((ours.double() - exact.double()).norm() / exact.double().norm())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", CLOSE)
def test_captured_epochs_are_the_epochs(prepared, graph, name, kind):
    replayed, plain = prepared(graph, name, kind), prepared(graph, name, kind)
    steps = captured([replayed], graph)
    losses = torch.cat([steps.run(5), steps.run(7)])
    assert steps._captured is not None
    expected = one_by_one([plain], graph).run(12)
    torch.testing.assert_close(losses, expected, rtol=0, atol=CLOSE[kind])
    assert losses.diff(dim=0).abs().min() > 1e-7  # every epoch has draws of its own
    assert torch.equal(replayed.generator.get_state(), plain.generator.get_state())
    assert relative(replayed.embed(graph), plain.embed(graph)) < 10 * CLOSE[kind]


@pytest.mark.parametrize(
    "values",
    [
        {"encoder__norm": "batch"},
        {"encoder__activation": "prelu", "head__activation": "prelu"},
        {"sketch__fixed": True},
        {"loss__kind": "both"},
        {"head__width": 0},
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_captured_epochs_with_every_part(prepared, graph, name, values):
    losses = captured([prepared(graph, name, **values)], graph).run(12)
    expected = one_by_one([prepared(graph, name, **values)], graph).run(12)
    torch.testing.assert_close(losses, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "values"), [("gaussian", {}), ("sparse", {}), ("countsketch", {}), ("countsketch", PACKED)]
)
def test_captured_branches_are_the_branches(several, graph, kind, values):
    losses = captured(several(graph, "costa-mv", kind, **values), graph).run(12)
    expected = one_by_one(several(graph, "costa-mv", kind, **values), graph).run(12)
    torch.testing.assert_close(losses, expected, rtol=0, atol=CLOSE[kind])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", CLOSE)
def test_each_of_several_captured_branches_trains_as_it_would_alone(prepared, several, graph, name, kind):
    methods = several(graph, name, kind)
    steps = captured(methods, graph)
    losses = steps.run(8)
    assert steps._captured is not None
    assert losses.shape == (8, 3)
    close = CLOSE[kind] if kind == "selection" else 1e-4  # it takes its P from H, rounding included
    for index, seed in enumerate(SEEDS):
        single = prepared(graph, name, kind, seed)
        alone = captured([single], graph).run(8)
        torch.testing.assert_close(losses[:, index : index + 1], alone, rtol=close, atol=close)
        assert torch.equal(methods[index].generator.get_state(), single.generator.get_state())
        assert relative(methods[index].embed(graph), single.embed(graph)) < 1e-2


def test_more_seeds_than_branches_take_turns(prepared, several, graph):
    seeds = range(BRANCHES + 3)
    methods = several(graph, "costa-mv", seeds=seeds)
    losses = captured(methods, graph).run(8)
    assert losses.shape == (8, len(seeds))
    for seed in (0, BRANCHES - 1, BRANCHES, BRANCHES + 2):
        alone = captured([prepared(graph, "costa-mv", seed=seed)], graph).run(8)
        torch.testing.assert_close(losses[:, seed : seed + 1], alone, rtol=1e-4, atol=1e-4)


def test_one_that_diverges_leaves_the_others_alone(several, graph):
    methods, healthy = several(graph, "costa-mv"), several(graph, "costa-mv")
    methods[1].encoder.layers[0].weight.data[0, 0] = torch.inf
    outcomes = training.train_together(methods, graph, settings.Train(epochs=12))
    assert [(outcome.status, outcome.epochs) for outcome in outcomes] == [("ok", 12), ("diverged", 0), ("ok", 12)]
    training.train_together(healthy, graph, settings.Train(epochs=12))
    for index in (0, 2):
        assert relative(methods[index].embed(graph), healthy[index].embed(graph)) < 1e-2


@pytest.mark.parametrize("kind", ["gaussian", "sparse"])
def test_going_on_is_the_same_as_never_having_stopped(several, graph, tmp_path, kind):
    train = settings.Train(epochs=40, lr=1e-4)
    folders = [tmp_path / str(seed) for seed in SEEDS]
    for folder in folders:
        folder.mkdir()
    asked = iter(range(100))
    stopped = training.train_together(
        several(graph, "costa-mv", kind), graph, train, folders=folders, should_stop=lambda: next(asked) == 1
    )
    assert {outcome.status for outcome in stopped} == {"interrupted"}
    assert 0 < stopped[0].epochs < 40
    resumed, straight = several(graph, "costa-mv", kind), several(graph, "costa-mv", kind)
    training.train_together(resumed, graph, train, folders=folders, resume=True)
    training.train_together(straight, graph, train)
    for one, other in zip(resumed, straight, strict=True):
        assert relative(one.embed(graph), other.embed(graph)) < 1e-2


@pytest.mark.parametrize("loss", ["cross", "both", "self"])
@pytest.mark.parametrize("kind", CLOSE)
def test_fast_and_plain_are_the_same_numbers_up_to_rounding(prepared, graph, kind, loss):
    name = "costa-sv" if loss == "self" else "costa-mv"
    fast = prepared(graph, name, kind, loss__kind=loss).loss(graph)
    plain = prepared(graph, name, kind, loss__kind=loss, train__kernels="plain").loss(graph)
    torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-3)


# --- what they cost and leave alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", CLOSE)
@pytest.mark.parametrize("together", [False, True])
def test_nothing_waits_for_the_gpu(prepared, several, graph, name, kind, together):
    steps = captured(several(graph, name, kind) if together else [prepared(graph, name, kind)], graph)
    steps.run(WARM_UP + 2)
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.cuda.stream(steps._stream):
            for _ in range(3):
                steps._captured.replay()
            steps._all_seeds()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.current_stream().wait_stream(steps._stream)
    assert steps._fetch(4).isfinite().all()


def test_what_is_asked_to_be_plain_or_deterministic_is_not_captured(prepared, graph):
    method = prepared(graph, "costa-mv")
    assert not training.make_steps([method], graph, settings.Train(kernels="plain")).captures
    torch.use_deterministic_algorithms(True)
    try:
        assert not training.make_steps([method], graph, SMALL_STEPS).captures
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", METHODS)
def test_the_global_generators_and_precision_are_left_as_found(prepared, several, graph, name):
    before, on_cuda = torch.get_rng_state(), torch.cuda.get_rng_state()
    precision = torch.get_float32_matmul_precision()
    captured([prepared(graph, name)], graph).run(6)
    captured(several(graph, name), graph).run(6)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.cuda.get_rng_state(), on_cuda)
    assert torch.get_float32_matmul_precision() == precision


def peak_of_training(prepared, n, kind, k):
    """Bytes that training takes beyond the prepared graph."""
    large = planted_partition(n, 4, 32, seed=0)
    values = {"sketch__k": k, "sketch__density": 1e-3, "encoder__width": 64, "head__width": 64}
    method = prepared(large, "costa-sv", kind, **values)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    training.make_steps([method], large, SMALL_STEPS).run(6)
    return torch.cuda.max_memory_allocated() - before


@pytest.mark.parametrize("kind", ["gaussian", "rademacher", "sparse"])
def test_memory_is_linear_in_the_nodes_and_far_from_p_written_out(prepared, kind):
    n, k = 20_000, 16_384
    one, two = (peak_of_training(prepared, size, kind, k) for size in (n, 2 * n))
    assert two < 2.3 * one
    assert two < k * 2 * n * 4 / 4
    assert two < k * k * 4  # nor are the similarities
