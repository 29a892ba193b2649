"""P of buckets against P written out: the product, its gradient, and the rows that are packed."""

import pytest
import torch
from torch import Tensor

from costa.augment import projection
from costa.augment.projection import Buckets, most_occupied

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def buckets(k: int, n: int, seed: int = 0) -> Buckets:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(k, (n,), generator=generator)
    return Buckets(rows, torch.randint(2, (n,), generator=generator).double() * 2 - 1, k)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_buckets_multiply_as_the_matrix_with_its_gradient() -> None:
    p, h, upstream = buckets(7, 20), random(20, 4).requires_grad_(), random(7, 4, seed=1)
    assert p.shape == (7, 20)
    torch.testing.assert_close(p.product(h), p.dense() @ h, **CLOSE)
    (gradient,) = torch.autograd.grad(p.product(h), h, upstream)
    torch.testing.assert_close(gradient, p.dense().T @ upstream, **CLOSE)
    assert torch.equal(p.occupied, (p.dense() != 0).any(1))


@pytest.mark.parametrize(("k", "n"), [(300, 300), (400, 200), (150, 160)])
@pytest.mark.parametrize("seed", range(3))
def test_packed_buckets_are_the_occupied_rows_in_their_order(k: int, n: int, seed: int) -> None:
    p = buckets(k, n, seed)
    packed, count = p.packed(), int(p.occupied.sum())
    assert packed.shape == (most_occupied(k, n), n)
    assert packed.shape[0] < k
    fewer = packed.dense()
    assert torch.equal(fewer[:count], p.dense()[p.occupied])
    assert not fewer[count:].any()
    assert torch.equal(packed.occupied, (fewer != 0).any(1))


def test_what_has_hardly_an_empty_row_is_not_packed() -> None:
    full = buckets(20, 300)
    assert full.packed() is full


@pytest.mark.parametrize(("k", "n"), [(200, 200), (1000, 1000), (3000, 1000), (2000, 4000)])
def test_no_draw_occupies_more_rows_than_its_bound(k: int, n: int) -> None:
    counts = torch.tensor([int(buckets(k, n, seed=seed).occupied.sum()) for seed in range(200)]).double()
    bound = most_occupied(k, n)
    assert counts.max() < bound < k
    # four √k is generous: at least eight standard deviations of what is seen
    assert bound - counts.mean() > 8 * counts.std()


def test_beyond_the_bound_the_last_rows_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    p = buckets(50, 80)
    monkeypatch.setattr(projection, "most_occupied", lambda k, n: 10)
    packed, rows = p.packed().dense(), p.dense()[p.occupied]
    assert torch.equal(packed[:9], rows[:9])
    assert torch.equal(packed[9], rows[9:].sum(0))
