import pytest
import torch

from costa.augment import streams
from costa.augment.topology import keep_mask, mask_attributes

DRAWS = {
    "uniform": lambda source: streams.uniform(source, 4, 3),
    "normal": lambda source: streams.normal(source, 4, 3, dtype=torch.float64),
    "integers": lambda source: streams.integers(source, 2**63 - 1, 4, 3),
    "a seed": lambda source: streams.integers(source, 2**63 - 1),
    "kept edges": lambda source: keep_mask(torch.arange(12) % 6, 0.5, source),
    "a mask": lambda source: mask_attributes(12, 0.5, generator=source, rescale=True),
}


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("name", DRAWS)
def test_several_generators_draw_what_each_would_alone(name):
    draw, seeds = DRAWS[name], (5, 6, 5)
    together, alone = generators(*seeds), generators(*seeds)
    for _ in range(2):  # and go on as each would
        stacked = draw(together)
        assert torch.equal(stacked, torch.stack([draw(generator) for generator in alone]))
    assert torch.equal(stacked[0], stacked[2])
    assert not torch.equal(stacked[0], stacked[1])


def test_the_laws():
    (generator,) = generators(1)
    u, x, i = (
        draw(generator, 4000) for draw in (streams.uniform, streams.normal, lambda g, n: streams.integers(g, 5, n))
    )
    assert 0 <= float(u.min()) < float(u.max()) < 1
    assert abs(float(u.mean()) - 0.5) < 6 * (1 / 12 / 4000) ** 0.5
    assert abs(float(x.mean())) < 6 / 4000**0.5
    assert abs(float(x.var()) - 1) < 6 * (2 / 4000) ** 0.5
    assert sorted(set(i.tolist())) == [0, 1, 2, 3, 4]


def test_from_the_start_is_the_same_stream_again_and_touches_nothing():
    (used,) = generators(3)
    first = streams.uniform(used, 5)
    before = used.get_state()
    again = streams.from_the_start(used)
    assert torch.equal(streams.uniform(again, 5), first)
    assert torch.equal(used.get_state(), before)
    several = streams.from_the_start([used, *generators(4)])
    assert torch.equal(streams.uniform(several, 5)[0], first)


def test_the_global_generator_is_left_as_found():
    before = torch.get_rng_state()
    for draw in DRAWS.values():
        draw(generators(1, 2))
    assert torch.equal(torch.get_rng_state(), before)
