"""GRACE, GCA and COSTA by centrality on CUDA: captured epochs against epochs one by one, seeds against each alone."""

import functools

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
CASES = [
    ("grace", {}),
    ("gca", {"encoder__activation": "rrelu"}),
    ("gca", {"augment__centrality": "pagerank", "augment__edge_rate": [0.0, 0.4]}),
    ("costa-mv", {"augment__centrality": "degree"}),
]
SEEDS = [0, 1, 7]


@pytest.fixture(scope="module")
def build(build):
    return functools.partial(build, encoder__width=48, encoder__hidden=40, head__width=40)


@pytest.mark.parametrize(("name", "values"), CASES)
def test_captured_epochs_are_the_epochs(build, steps_of, graph, name, values):
    replayed, plain = (build(name, graph, **values) for _ in range(2))
    captured, one_by_one = steps_of([replayed], graph), steps_of([plain], graph)
    one_by_one._warm_up = 10**9
    losses, expected = torch.cat([captured.run(5), captured.run(7)]), one_by_one.run(12)
    assert captured._captured is not None
    torch.testing.assert_close(losses, expected, rtol=0, atol=1e-4)
    assert losses.diff(dim=0).abs().min() > 1e-7  # every epoch has draws of its own


@pytest.mark.parametrize(("name", "values"), CASES)
def test_each_of_several_captured_branches_trains_as_it_would_alone(build, steps_of, graph, name, values):
    methods = [build(name, graph, seed, **values) for seed in SEEDS]
    steps = steps_of(methods, graph)
    losses = steps.run(8)
    assert steps._captured is not None
    assert all(method.inputs(graph) is methods[0].inputs(graph) for method in methods)
    for index, seed in enumerate(SEEDS):
        alone = build(name, graph, seed, **values)
        single = steps_of([alone], graph).run(8)
        torch.testing.assert_close(losses[:, index : index + 1], single, rtol=1e-3, atol=1e-3)
        assert torch.equal(methods[index].generator.get_state(), alone.generator.get_state())
