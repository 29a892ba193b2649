"""Who holds which rows; the sums themselves are tested with real processes, in tests/training/test_distributed.py."""

import pytest
import torch

from costa.nn.ranks import ALONE, Ranks


@pytest.mark.parametrize(("n", "size"), [(61, 3), (2, 4), (100, 1), (7, 7)])
def test_every_row_is_held_once(n, size):
    ranges = [Ranks(rank, size).range(n) for rank in range(size)]
    assert [row for rows in ranges for row in rows] == list(range(n))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    assert [rank for rank in range(size) if Ranks(rank, size).first] == [0]


def test_alone_every_sum_is_its_own_term():
    x = torch.ones(3, requires_grad=True)
    assert ALONE.total(x) is x
    assert ALONE.common_total(x) is x
    assert list(ALONE.gather(iter([x]), 3, 2)) == [x]
    assert ALONE.mean(x, [x, None], True) == (x, [x, None], True)
    assert ALONE.agree(0.1, True) == (0.1, True)
    assert ALONE.told(lambda: 7) == 7
    assert [ALONE.any(flag) for flag in (True, False)] == [True, False]
    assert ALONE.largest(x) is x
    assert ALONE.least(-7) == -7
    assert ALONE.complete(x) is x


def test_the_processes_of_a_machine_share_its_memory():
    assert (ALONE.sharing, Ranks(1, 4).sharing, Ranks(1, 4, local=(0, 2)).sharing) == (1, 4, 2)
