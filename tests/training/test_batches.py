"""Batches of rows: every row once an epoch, in an order of the seed, the epoch and n alone."""

import pytest
import torch

from costa import settings
from costa.training.batches import Batches


def epoch_of(batches, epoch):
    return [batches.rows(epoch * batches.count + part) for part in range(batches.count)]


@pytest.mark.parametrize(("n", "count"), [(10, 3), (10, 1), (7, 7), (4097, 2), (100, 9)])
def test_every_row_once_an_epoch_in_batches_of_about_one_size(n, count):
    batches = Batches(n, count, seed=3)
    for epoch in range(3):
        parts = epoch_of(batches, epoch)
        assert torch.equal(torch.cat(parts).sort().values, torch.arange(n))
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("n", "batch"), [(10, 4), (4097, 4096), (100, 33), (5, 2), (3, 2), (10, 0), (10, 100)])
def test_no_batch_is_a_single_row_nor_otherwise_larger_than_asked_for(n, batch):
    sizes = [len(part) for part in epoch_of(Batches(n, settings.Train(batch=batch).batches(n), seed=0), 0)]
    assert min(sizes) >= 2  # BatchNorm needs two
    assert max(sizes) <= max(batch or n, 3)


def test_an_order_is_of_the_seed_the_epoch_and_n_alone():
    straight = Batches(50, 4, seed=7)
    orders = [torch.cat(epoch_of(straight, epoch)) for epoch in range(3)]
    backwards = Batches(50, 4, seed=7)
    torch.manual_seed(1)
    torch.rand(3)
    for epoch in (2, 0, 1):
        assert torch.equal(torch.cat(epoch_of(backwards, epoch)), orders[epoch])
    assert not torch.equal(orders[0], orders[1])
    assert not torch.equal(torch.cat(epoch_of(Batches(50, 4, seed=8), 0)), orders[0])
    # the middle of an epoch, as when training resumes there
    assert torch.equal(Batches(50, 4, seed=7).rows(6), straight.rows(6))


def test_the_largest_seed_serves_too():
    assert len(Batches(10, 2, seed=2**63 - 1).rows(5)) == 5


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    Batches(10, 2, seed=0).rows(0)
    assert torch.equal(before, torch.random.get_rng_state())
