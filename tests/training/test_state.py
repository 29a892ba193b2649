"""A state: steps after it is loaded are the steps after it was taken, as often as one likes."""

import torch

from costa import settings, training
from costa.training.state import load_state, state_of

NINE = settings.Train(epochs=9, weight_decay=1e-3)


def test_going_back_gives_the_same_steps_again(graph, build):
    method = build(name="costa-sv", **{"encoder.norm": "batch", "encoder.activation": "prelu"})
    method.prepare(graph)
    steps = training.Steps([method], graph, NINE)
    first = state_of(method, steps.optimizers[0])  # an optimiser that has not made a step
    start = steps.run(2)
    later = state_of(method, steps.optimizers[0])
    end = steps.run(3)
    for _ in range(2):
        load_state(later, method, steps.optimizers[0])
        assert torch.equal(steps.run(3), end)
    load_state(first, method, steps.optimizers[0])
    assert torch.equal(torch.cat([steps.run(2), steps.run(3)]), torch.cat([start, end]))
