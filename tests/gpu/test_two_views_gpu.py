"""Methods without negatives on CUDA: captured epochs against the same epochs one by one, seeds against each alone."""

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
METHODS = ["gbt", "cca-ssg", "bgrl"]
SEEDS = [0, 1, 7]
# few epochs, and a target that moves far: a schedule that stood still in the captured epoch would show
SMALL = {"encoder__width": 48, "encoder__hidden": 40, "train__epochs": 12}
TARGET = {"predictor__width": 40, "target__decay": 0.5}


@pytest.fixture(scope="module")
def build(build):
    return lambda name, graph, seed=0: build(name, graph, seed, **SMALL, **(TARGET if name == "bgrl" else {}))


@pytest.mark.parametrize("name", METHODS)
def test_captured_epochs_are_the_epochs(build, steps_of, graph, name):
    replayed, plain = (build(name, graph) for _ in range(2))
    captured, one_by_one = steps_of([replayed], graph), steps_of([plain], graph)
    one_by_one._warm_up = 10**9
    losses, expected = torch.cat([captured.run(5), captured.run(7)]), one_by_one.run(12)
    assert captured._captured is not None
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
    assert losses.diff(dim=0).abs().min() > 1e-7  # every epoch has draws of its own
    state, wanted = replayed.state_dict(), plain.state_dict()
    for key in wanted:
        torch.testing.assert_close(state[key], wanted[key], rtol=1e-3, atol=1e-3, msg=lambda m, k=key: f"{k}: {m}")
    if name == "bgrl":
        assert int(replayed.epoch) == 12


@pytest.mark.parametrize("name", METHODS)
def test_each_of_several_captured_branches_trains_as_it_would_alone(build, steps_of, graph, name):
    methods = [build(name, graph, seed) for seed in SEEDS]
    steps = steps_of(methods, graph)
    losses = steps.run(8)
    assert steps._captured is not None
    assert all(method.inputs(graph) is methods[0].inputs(graph) for method in methods)
    for index, seed in enumerate(SEEDS):
        alone = build(name, graph, seed)
        single = steps_of([alone], graph).run(8)
        torch.testing.assert_close(losses[:, index : index + 1], single, rtol=1e-3, atol=1e-3)
        assert torch.equal(methods[index].generator.get_state(), alone.generator.get_state())
