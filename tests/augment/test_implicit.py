"""P that is a function of a seed against P written out: products, gradients, what is kept and what is never made."""

import gc
import weakref

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from costa.augment import implicit, make_sketch
from costa.augment.implicit import Implicit, ImplicitDense, ImplicitSparse
from costa.augment.projection import Dense
from costa.augment.sketches import Draw
from costa.nn import philox

KINDS = ["gaussian", "rademacher", "sparse"]
DENSE = ["gaussian", "rademacher"]
FLOAT64 = torch.empty(0, dtype=torch.float64)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def form(kind: str, seed: int, k: int, n: int, like: Tensor = FLOAT64) -> Implicit:
    if kind == "sparse":
        return ImplicitSparse(torch.tensor(seed), k, n, 0.3, like, density=0.2)
    return ImplicitDense(torch.tensor(seed), k, n, 0.3, like, gaussian=kind == "gaussian")


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
    p = form(kind, seed, k, n)
    assert torch.equal(p.dense(), 0.3 * entries)
    assert p.shape == (k, n)
    occupied = (entries != 0).any(1)
    assert occupied.all() if p.occupied is None else torch.equal(p.occupied, occupied)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tile", [1, 700, 2**18])
@pytest.mark.parametrize("budget", [0, implicit.KEPT_BYTES])
@pytest.mark.parametrize(("k", "n", "d"), [(23, 150, 5), (1, 9, 1), (40, 3, 2)])
def test_product_and_gradient_are_those_of_the_matrix_whatever_the_tile(
    kind: str, tile: int, budget: int, k: int, n: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(implicit, "TILE", tile)
    monkeypatch.setattr(implicit, "KEPT_BYTES", budget)
    p = form(kind, 7, k, n)
    h, upstream = random(n, d).requires_grad_(), random(k, d, seed=1)
    out = p.product(h)
    torch.testing.assert_close(out, p.dense() @ h, **CLOSE)
    (gradient,) = torch.autograd.grad(out, h, upstream)
    torch.testing.assert_close(gradient, p.dense().T @ upstream, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [0, implicit.KEPT_BYTES])
def test_gradients_of_any_order(kind: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implicit, "TILE", 12)
    monkeypatch.setattr(implicit, "KEPT_BYTES", budget)
    p, h = form(kind, 3, 4, 6), random(6, 2).requires_grad_()
    assert torch.autograd.gradcheck(p.product, h)
    assert torch.autograd.gradgradcheck(p.product, h)


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_budget_nothing_as_large_as_p_is_ever_made(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tile = 2048
    k, n, d = 100, 512, 6
    monkeypatch.setattr(implicit, "TILE", tile)
    monkeypatch.setattr(implicit, "KEPT_BYTES", k * n * FLOAT64.itemsize - 1)
    p, h, upstream = form(kind, 7, k, n), random(n, d).requires_grad_(), random(k, d, seed=1)
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


@pytest.mark.parametrize("kind", DENSE)
@pytest.mark.parametrize("budget", [100 * 512 * 8 - 1, 100 * 512 * 8])
def test_within_the_budget_p_is_drawn_once_beyond_it_in_every_product(
    kind: str, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, n = 100, 512
    monkeypatch.setattr(implicit, "TILE", 40 * n)
    monkeypatch.setattr(implicit, "KEPT_BYTES", budget)
    tiles: list[tuple[int, int]] = []
    draw = ImplicitDense._rows

    def counted(self: ImplicitDense, seed: int, first: int, last: int) -> Tensor:
        tiles.append((first, last))
        return draw(self, seed, first, last)

    monkeypatch.setattr(ImplicitDense, "_rows", counted)
    p, h = form(kind, 7, k, n), random(n, 6).requires_grad_()
    (p.product(h).sum() + p.product(2 * h).sum()).backward()
    products = 1 if k * n * 8 <= budget else 4
    assert tiles == [(0, 40), (40, 80), (80, 100)] * products


@pytest.mark.parametrize("kind", DENSE)
def test_a_kept_p_is_the_redrawn_one_and_its_products_are_those_of_the_stored_one(kind: str) -> None:
    p, h, upstream = form(kind, 7, 100, 513), random(513, 6).requires_grad_(), random(100, 6, seed=1)
    redrawn = p.dense()
    out = p.product(h)
    assert torch.equal(p._written_out, redrawn)
    stored = Dense(redrawn).product(h)
    assert torch.equal(out, stored)
    (ours,), (theirs,) = (torch.autograd.grad(product, h, upstream) for product in (out, stored))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("kind", DENSE)
def test_a_kept_p_goes_with_its_draw_and_its_backward_pass(kind: str) -> None:
    h = random(40, 3).requires_grad_()
    p = form(kind, 7, 12, 40)
    loss = p.product(h).sum()
    kept = weakref.ref(p._written_out)
    gc.disable()  # nothing waits for the collector of cycles
    try:
        del p
        assert kept() is not None
        loss.backward()
        assert kept() is None  # though the loss, as in a loop of epochs, is still there
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", DENSE)
def test_a_fixed_sketch_keeps_its_p_and_follows_h_to_another_dtype(kind: str) -> None:
    sketch, h = make_sketch(kind, k=12, fixed=True), random(40, 3)
    sketch.draw(h).apply(h)
    first = sketch.draw(h)._p._written_out
    sketch.draw(h).apply(h)
    assert sketch.draw(h)._p._written_out is first
    single = sketch.draw(h.float())
    assert single.apply(h.float()).dtype == torch.float32
    torch.testing.assert_close(single._p._written_out.double(), first, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", DENSE)
def test_a_p_first_used_in_inference_mode_still_has_gradients(kind: str) -> None:
    p, h = form(kind, 7, 12, 40), random(40, 3).requires_grad_()
    with torch.inference_mode():
        p.product(h)
    p.product(h).sum().backward()
    torch.testing.assert_close(h.grad, p.dense().sum(0)[:, None].expand(40, 3), **CLOSE)


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
    p = form(kind, 7, 10, 30)
    assert p.to(FLOAT64) is p
    single = p.to(torch.empty(0))
    assert single.dense().dtype == torch.float32
    torch.testing.assert_close(single.dense().double(), p.dense(), rtol=1e-6, atol=1e-6)
    h = random(30, 4)
    assert single.product(h.float()).dtype == torch.float32
    torch.testing.assert_close(single.product(h.float()).double(), p.product(h), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_a_seed_is_not_packed(kind: str) -> None:
    p = form(kind, 3, 12, 40)
    assert p.packed() is p
