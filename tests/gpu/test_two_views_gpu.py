"""Methods without negatives on CUDA: captured epochs against the same epochs one by one, seeds against each alone."""

import pytest
import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
CUDA = torch.device("cuda")
METHODS = ["gbt", "cca-ssg", "bgrl"]
SEEDS = [0, 1, 7]
SMALL_STEPS = settings.Train(lr=1e-4)


@pytest.fixture(scope="module")
def graph():
    return planted_partition(301, 3, 40, seed=0)


def resolve(graph, name):
    # few epochs, and a target that moves far: a schedule that stood still in the captured epoch would show
    values = {"encoder.width": 48, "encoder.hidden": 40, "train.epochs": 12}
    values |= {"predictor.width": 40, "target.decay": 0.5} if name == "bgrl" else {}
    method = get_method(name)
    return method, settings.merge(method.Settings, [("graph", method.choose(graph)), ("test", values)])[0]


def steps_of(methods, graph):
    for method in methods:
        method.share(methods[0])
        method.prepare(graph)
    steps = training.make_steps(methods, graph, SMALL_STEPS)
    assert steps.captures
    return steps


@pytest.mark.parametrize("name", METHODS)
def test_captured_epochs_are_the_epochs(graph, name):
    replayed, plain = (training.build(*resolve(graph, name), graph, 0, CUDA) for _ in range(2))
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
def test_each_of_several_captured_branches_trains_as_it_would_alone(graph, name):
    methods = [training.build(*resolve(graph, name), graph, seed, CUDA) for seed in SEEDS]
    steps = steps_of(methods, graph)
    losses = steps.run(8)
    assert steps._captured is not None
    assert all(method.inputs(graph) is methods[0].inputs(graph) for method in methods)
    for index, seed in enumerate(SEEDS):
        alone = training.build(*resolve(graph, name), graph, seed, CUDA)
        single = steps_of([alone], graph).run(8)
        torch.testing.assert_close(losses[:, index : index + 1], single, rtol=1e-3, atol=1e-3)
        assert torch.equal(methods[index].generator.get_state(), alone.generator.get_state())
