"""The forms of P against P written out: products, gradients, stacks, and what is never made."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from costa.augment import make_sketch, philox, projection
from costa.augment.features import Draw
from costa.augment.projection import Buckets, Dense, ImplicitDense, ImplicitSparse, most_occupied

KINDS = ["gaussian", "rademacher", "sparse"]
FLOAT64 = torch.empty(0, dtype=torch.float64)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def implicit(kind: str, seed: int | list[int], k: int, n: int, like: Tensor = FLOAT64) -> projection.Implicit:
    seeds = torch.tensor(seed)
    if kind == "sparse":
        return ImplicitSparse(seeds, k, n, 0.3, like, density=0.2)
    return ImplicitDense(seeds, k, n, 0.3, like, gaussian=kind == "gaussian")


def buckets(k: int, *shape: int, seed: int = 0) -> Buckets:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(k, shape, generator=generator)
    return Buckets(rows, torch.randint(2, shape, generator=generator).double() * 2 - 1, k)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that an operation gave."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, Tensor):
                self.numel = max(self.numel, tensor.numel())
        return out


@pytest.mark.parametrize("kind", KINDS)
def test_p_is_a_function_of_its_seed(kind: str) -> None:
    k, n, seed = 11, 150, 2**40 + 5
    if kind == "sparse":
        starts, columns, signs = philox.sparse(seed, 0, k, n, 0.2, FLOAT64)
        entries = torch.zeros(k, n, dtype=torch.float64)
        entries[torch.arange(k).repeat_interleave(starts.diff()), columns] = signs
    else:
        entries = getattr(philox, kind)(seed, 0, k, n, FLOAT64)
    p = implicit(kind, seed, k, n)
    assert torch.equal(p.dense(), 0.3 * entries)
    assert p.shape == (k, n)
    occupied = (entries != 0).any(1)
    assert occupied.all() if p.occupied is None else torch.equal(p.occupied, occupied)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tile", [1, 700, 2**18])
@pytest.mark.parametrize(("k", "n", "d"), [(23, 150, 5), (1, 9, 1), (40, 3, 2)])
def test_product_and_gradient_are_those_of_the_matrix_whatever_the_tile(
    kind: str, tile: int, k: int, n: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection, "TILE", tile)
    p = implicit(kind, 7, k, n)
    h, upstream = random(n, d).requires_grad_(), random(k, d, seed=1)
    out = p.product(h)
    torch.testing.assert_close(out, p.dense() @ h, **CLOSE)
    (gradient,) = torch.autograd.grad(out, h, upstream)
    torch.testing.assert_close(gradient, p.dense().T @ upstream, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_any_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "TILE", 12)
    p, h = implicit(kind, [3, 4], 4, 6), random(2, 6, 2).requires_grad_()
    assert torch.autograd.gradcheck(p.product, h)
    assert torch.autograd.gradgradcheck(p.product, h)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_is_each_of_them_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "TILE", 300)
    seeds = [5, 2**35, 5]
    p, h, upstream = implicit(kind, seeds, 9, 70), random(3, 70, 4).requires_grad_(), random(3, 9, 4, seed=1)
    out = p.product(h)
    (gradient,) = torch.autograd.grad(out, h, upstream)
    assert p.dense().shape == (3, 9, 70)
    for index, seed in enumerate(seeds):
        alone, own = implicit(kind, seed, 9, 70), h[index].detach().requires_grad_()
        assert torch.equal(p.dense()[index], alone.dense())
        assert torch.equal(out[index], alone.product(own))
        assert torch.equal(gradient[index], torch.autograd.grad(alone.product(own), own, upstream[index])[0])
        assert p.occupied is None or torch.equal(p.occupied[index], alone.occupied)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_as_large_as_p_is_ever_made(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tile = 2048
    monkeypatch.setattr(projection, "TILE", tile)
    k, n, d = 100, 512, 6
    p, h, upstream = implicit(kind, 7, k, n), random(n, d).requires_grad_(), random(k, d, seed=1)
    philox.gaussian(0, 0, 1, 1, FLOAT64)  # makes its tables of 2¹⁶ angles, once and for all
    dense = ImplicitDense._rows

    def of_a_block(self: ImplicitDense, seed: int, first: int, last: int) -> Tensor:
        assert (last - first) * n <= tile
        return dense(self, seed, first, last)

    def never(*arguments: object) -> Tensor:
        raise AssertionError("P was written out")

    monkeypatch.setattr(ImplicitDense, "_rows", of_a_block)
    monkeypatch.setattr(ImplicitSparse, "_rows", never)
    with Largest() as made:
        torch.autograd.grad(p.product(h), h, upstream)
    assert made.numel <= 2 * max(tile, n * d) < k * n / 5


@pytest.mark.parametrize("kind", KINDS)
def test_stored_is_the_same_p_written_out(kind: str) -> None:
    def drawn(**options: object) -> Draw:
        sketch = make_sketch(kind, k=12, **({"density": 0.03} if kind == "sparse" else {}), **options)
        return sketch.draw(h, torch.Generator().manual_seed(3))

    h = random(40, 3)
    stored, drawn_anew = drawn(stored=True), drawn()
    assert isinstance(stored._p, Dense)
    assert torch.equal(stored.matrix(), drawn_anew.matrix())
    torch.testing.assert_close(stored.apply(h), drawn_anew.apply(h), **CLOSE)
    if kind == "sparse":
        assert torch.equal(stored.occupied, drawn_anew.occupied)
        assert not stored.occupied.all()
    else:
        assert stored.occupied is None


@pytest.mark.parametrize("kind", KINDS)
def test_it_follows_h_to_another_dtype(kind: str) -> None:
    p = implicit(kind, 7, 10, 30)
    assert p.to(FLOAT64) is p
    single = p.to(torch.empty(0))
    assert single.dense().dtype == torch.float32
    torch.testing.assert_close(single.dense().double(), p.dense(), rtol=1e-6, atol=1e-6)
    h = random(30, 4)
    assert single.product(h.float()).dtype == torch.float32
    torch.testing.assert_close(single.product(h.float()).double(), p.product(h), rtol=1e-4, atol=1e-4)


def test_stacked_buckets_are_each_of_them_alone() -> None:
    p, h, upstream = buckets(7, 3, 20), random(3, 20, 4).requires_grad_(), random(3, 7, 4, seed=1)
    assert p.shape == (7, 20)
    torch.testing.assert_close(p.product(h), p.dense() @ h, **CLOSE)
    (gradient,) = torch.autograd.grad(p.product(h), h, upstream)
    torch.testing.assert_close(gradient, p.dense().mT @ upstream, **CLOSE)
    for index in range(3):
        alone = Buckets(p.buckets[index], p.signs[index], 7)
        assert torch.equal(p.dense()[index], alone.dense())
        assert torch.equal(p.occupied[index], alone.occupied)
        assert torch.equal(alone.occupied, (alone.dense() != 0).any(1))
        assert torch.equal(p.product(h)[index], alone.product(h[index]))


@pytest.mark.parametrize(("k", "n"), [(300, 300), (400, 200), (150, 160)])
def test_packed_buckets_are_the_occupied_rows_in_their_order(k: int, n: int) -> None:
    stack = buckets(k, 3, n)
    packed = stack.packed()
    assert packed.shape == (most_occupied(k, n), n)
    assert packed.shape[0] < k
    for index, (entries, filled, fewer) in enumerate(zip(stack.dense(), stack.occupied, packed.dense(), strict=True)):
        count = int(filled.sum())
        assert torch.equal(fewer[:count], entries[filled])
        assert not fewer[count:].any()
        assert torch.equal(packed.occupied[index], (fewer != 0).any(1))
        alone = Buckets(stack.buckets[index], stack.signs[index], k)
        assert torch.equal(alone.packed().dense(), fewer)


def test_what_has_hardly_an_empty_row_is_not_packed() -> None:
    full = buckets(20, 300)
    assert full.packed() is full
    for kind in KINDS:
        p = implicit(kind, 3, 12, 40)
        assert p.packed() is p


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
