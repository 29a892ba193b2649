"""Groups of parts: every part once an epoch, whole, in an order of the seed, the epoch and p alone."""

import pytest
import torch

from costa.training.groups import Groups


@pytest.fixture
def part():
    """Nine parts of 100 nodes."""
    return torch.cat([torch.arange(9), torch.randint(9, (91,), generator=torch.Generator().manual_seed(0))])


def epoch_of(groups, epoch, count):
    return [groups.rows(epoch * count + step) for step in range(count)]


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_every_node_once_an_epoch_with_all_of_its_part_in_ascending_order(part, count):
    groups = Groups(part, count, seed=3)
    for epoch in range(3):
        steps = epoch_of(groups, epoch, count)
        assert torch.equal(torch.cat(steps).sort().values, torch.arange(100))
        visited = [set(part[rows].tolist()) for rows in steps]
        assert sum(map(len, visited)) == 9  # so no part is in two groups
        assert max(map(len, visited)) - min(map(len, visited)) <= 1
        assert all(torch.equal(rows, rows.sort().values) for rows in steps)


def test_an_order_is_of_the_seed_and_the_epoch_alone(part):
    straight, backwards = Groups(part, 3, seed=7), Groups(part, 3, seed=7)
    epochs = [epoch_of(straight, epoch, 3) for epoch in range(3)]
    for epoch in (2, 0, 1):
        assert all(map(torch.equal, epoch_of(backwards, epoch, 3), epochs[epoch]))
    assert torch.equal(Groups(part, 3, seed=7).rows(4), epochs[1][1])  # as when training resumes there
    assert not torch.equal(epochs[0][0], epochs[1][0])
    assert not torch.equal(Groups(part, 3, seed=8).rows(0), epochs[0][0])
