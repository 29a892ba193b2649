"""How long a training will take is told from one step of a copy."""

import torch

from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings.presets import resolve
from costa.training import expected
from costa.training.expected import expected_seconds

CPU = torch.device("cpu")


def test_the_second_step_counts_for_all_steps_of_all_epochs(monkeypatch):
    # a clock that only steps move: the first takes a minute, every other one two seconds
    clock, taken = [0.0], []

    class Timed(expected.Steps):
        def run(self, count):
            taken.append(count)
            clock[0] += 60.0 if len(taken) == 1 else 2.0 * count
            return super().run(count)

    monkeypatch.setattr(expected, "Steps", Timed)
    monkeypatch.setattr(expected.time, "perf_counter", lambda: clock[0])
    method, graph = get_method("costa-mv"), planted_partition(90, 3, 12, seed=0)
    settings = resolve(method, graph, given={"train.batch": 30, "train.epochs": 7}).values
    assert expected_seconds(method, settings, graph, CPU) == 2.0 * 3 * 7


def test_nothing_is_left_behind():
    method, graph = get_method("costa-mv"), planted_partition(60, 3, 12, seed=0)
    settings = resolve(method, graph).values
    before, keys = torch.random.get_rng_state(), set(graph.keys())
    assert expected_seconds(method, settings, graph, CPU) > 0
    assert torch.equal(torch.random.get_rng_state(), before)
    assert set(graph.keys()) == keys
