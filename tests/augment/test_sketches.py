"""The sketches against their laws (fixed seeds, tolerances from the variance) and against P written out."""

import copy
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from costa.augment import SKETCHES, Sketch, implicit, make_sketch
from costa.errors import InputError

NAMES = list(SKETCHES)
PROJECTIONS = ["gaussian", "rademacher", "sparse", "countsketch"]  # those with E[PᵀP] = I
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
# Six standard deviations: for a normal average, a false alarm in 1e-9 an entry.
SIGMAS = 6.0


def generator(seed: int = 0, device: str = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def features(n: int, d: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """An n × d matrix with a mean that is not zero."""
    return (torch.randn(n, d, generator=generator(seed), dtype=torch.float64) + 0.7).to(dtype)


def build(name: str, k: int | None = None, **options: object) -> Sketch:
    """The sketch with k rows, or its default; a sparse one dense enough for small matrices."""
    options = {"noise_std": 0.0, **options} if name == "noise" else {"k": k, **options}
    return make_sketch(name, **({"density": 0.2} if name == "sparse" else {}), **options)


def centred(h: Tensor) -> Tensor:
    return h - h.mean(dim=0, keepdim=True)


# --- P, apply and gradients -----------------------------------------------------------------------------------


@given(
    name=st.sampled_from(NAMES),
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    k=st.integers(1, 20),
    center=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=150, deadline=None)
def test_apply_is_the_written_out_product_with_its_gradient(
    name: str, n: int, d: int, k: int, center: bool, seed: int
) -> None:
    k = min(k, n, d) if name == "svd" else k
    h = features(n, d, seed).requires_grad_()
    draw = build(name, k, center=center).draw(h, generator(seed))
    p = draw.matrix()
    assert p.shape == draw.shape == (n if name == "noise" else k, n)

    h_tilde = draw.apply(h)
    torch.testing.assert_close(h_tilde, p @ (centred(h) if center else h), rtol=1e-12, atol=1e-12)

    upstream = torch.randn(h_tilde.shape, generator=generator(seed + 1), dtype=h.dtype)
    (gradient,) = torch.autograd.grad(h_tilde, h, upstream)
    # P is a constant, and centring is the symmetric projection C = I − 11ᵀ/n: the adjoint of PC is CPᵀ.
    expected = centred(p.T @ upstream) if center else p.T @ upstream
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)

    nonzero_rows = (p != 0).any(dim=1)
    assert nonzero_rows.all() if draw.occupied is None else torch.equal(draw.occupied, nonzero_rows)


def test_sparse_product_passes_gradcheck_twice() -> None:
    h = features(7, 3).requires_grad_()
    draw = build("sparse", 5).draw(h, generator())
    assert torch.autograd.gradcheck(draw.apply, h)
    assert torch.autograd.gradgradcheck(draw.apply, h)


def test_sparse_product_takes_views_of_other_matrices() -> None:
    wide = features(6, 8).requires_grad_()
    draw = build("sparse", 4, center=False).draw(wide, generator())
    columns = wide.T[::2].T  # not contiguous, and .sum() gives a gradient that is not either
    draw.apply(columns).sum().backward()
    expected = torch.zeros_like(wide)
    expected[:, ::2] = draw.matrix().sum(dim=0)[:, None]
    torch.testing.assert_close(wide.grad, expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_sketch_keeps_the_dtype(name: str, dtype: torch.dtype) -> None:
    h = features(12, 4, dtype=dtype).requires_grad_()
    h_tilde = build(name, 3, noise_std=0.1)(h, generator=generator())
    assert h_tilde.dtype == dtype
    h_tilde.sum().backward()
    assert h.grad is not None
    assert h.grad.dtype == dtype


# --- laws -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROJECTIONS)
@pytest.mark.parametrize("k", [1, 4])
def test_expected_ptp_is_the_identity(name: str, k: int) -> None:
    """Mean of PᵀP over T draws, entry by entry, within six standard deviations.

    With P = X/√k, X of i.i.d. entries with mean 0 and variance 1, (PᵀP)ᵢⱼ is a mean of k products: its variance is
    1/k off the diagonal and (E x⁴ − 1)/k on it, where E x⁴ is 3 (gaussian), 1 (rademacher), s (sparse).
    For countsketch it is 1/k off the diagonal (a sign, if the two columns share a row), and 0 on it.
    """
    n, draws = 5, 1500
    fourth = {"gaussian": 3.0, "rademacher": 1.0, "sparse": 1 / 0.2, "countsketch": 1.0}[name]
    sketch, source, h = build(name, k), generator(11), features(n, 2)
    matrices = torch.stack([sketch.draw(h, source).matrix() for _ in range(draws)])
    mean = torch.einsum("tki,tkj->ij", matrices, matrices) / draws

    variance = torch.full((n, n), 1 / k, dtype=h.dtype).fill_diagonal_((fourth - 1) / k)
    deviation = (mean - torch.eye(n, dtype=h.dtype)).abs()
    assert (deviation <= SIGMAS * (variance / draws).sqrt() + 1e-12).all()
    # The tolerance has teeth: the scale 1/√(k+1) would be seen.
    assert k / (k + 1) < 1 - SIGMAS * math.sqrt((fourth - 1) / k / draws)


def test_gaussian_entries_are_normal() -> None:
    p = build("gaussian", 40).draw(features(50, 2), generator(1)).matrix()
    assert stats.kstest((p * math.sqrt(40)).flatten().numpy(), "norm").pvalue > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_noise_std_adds_an_e_of_that_size(name: str) -> None:
    h = features(60, 50)
    draw = build(name, 40, noise_std=0.3).draw(h, generator(4))
    noise = draw.apply(h) - draw.matrix() @ centred(h)
    assert stats.kstest((noise / 0.3).flatten().numpy(), "norm").pvalue > 1e-4


# --- sparse and countsketch -----------------------------------------------------------------------------------


def test_sparse_entries_are_independent_with_the_stated_probabilities() -> None:
    """All 27 outcomes of a 1 × 3 P, counted: i.i.d. entries 0, +, − with probabilities 0.6, 0.2, 0.2."""
    draws, h, source = 2500, features(3, 1), generator(9)
    sketch = make_sketch("sparse", k=1, density=0.4)
    outcomes = torch.stack([sketch.draw(h, source).matrix()[0] for _ in range(draws)]).sign().long() + 1
    counts = torch.bincount(outcomes @ torch.tensor([9, 3, 1]), minlength=27)
    single = torch.tensor([0.2, 0.6, 0.2], dtype=torch.float64)
    expected = draws * torch.einsum("i,j,k->ijk", single, single, single).flatten()
    assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 1e-4


@pytest.mark.parametrize("density", [0.001, 0.05, 0.7])
def test_sparse_density_signs_and_scale(density: float) -> None:
    k, n = 120, 500
    p = make_sketch("sparse", k=k, density=density).draw(features(n, 1), generator(8)).matrix()
    nonzero = p[p != 0]
    assert stats.binomtest(nonzero.numel(), k * n, density).pvalue > 1e-4
    assert stats.binomtest(int((nonzero > 0).sum()), nonzero.numel(), 0.5).pvalue > 1e-4
    torch.testing.assert_close(nonzero.abs(), torch.full_like(nonzero, 1 / math.sqrt(density * k)))


def test_sparse_of_density_one_is_full_of_signs() -> None:
    p = make_sketch("sparse", k=30, density=1).draw(features(40, 1), generator()).matrix()
    assert torch.equal(p.abs(), torch.full_like(p, 1 / math.sqrt(30)))
    assert stats.binomtest(int((p > 0).sum()), p.numel(), 0.5).pvalue > 1e-4


def test_countsketch_holds_one_sign_in_each_column() -> None:
    n, k = 3000, 30
    p = make_sketch("countsketch", k=k).draw(features(n, 1), generator(6)).matrix()
    assert torch.equal(p.abs().sum(dim=0), torch.ones(n, dtype=p.dtype))
    assert torch.equal(p.abs().max(dim=0).values, torch.ones(n, dtype=p.dtype))
    assert stats.chisquare(p.abs().sum(dim=1).numpy()).pvalue > 1e-4
    assert stats.binomtest(int((p > 0).sum()), n, 0.5).pvalue > 1e-4


def test_countsketch_leaves_the_stated_share_of_rows_empty() -> None:
    """The share is (1 − 1/k)ⁿ; over rows it is negatively correlated, so the binomial variance is an upper bound."""
    n, k = 4000, 2000
    occupied = make_sketch("countsketch").draw(features(n, 1), generator(7)).occupied
    assert occupied is not None
    assert occupied.numel() == k
    share = (1 - 1 / k) ** n
    assert share == pytest.approx(0.135, abs=1e-3)
    assert abs((~occupied).sum() / k - share) <= SIGMAS * math.sqrt(share * (1 - share) / k)


@pytest.mark.parametrize(("name", "options"), [("countsketch", {"k": 40}), ("sparse", {"k": 40, "density": 0.02})])
def test_empty_rows_are_left_out_and_harmless(name: str, options: dict[str, float]) -> None:
    h = features(30, 6, dtype=torch.float32).requires_grad_()
    sketch = make_sketch(name, **options)
    draw = sketch.draw(h, generator(1))
    assert draw.occupied is not None
    assert not draw.occupied.all()

    u, v = sketch(h, 2 * h, generator=generator(1))
    torch.testing.assert_close(u, draw.apply(h)[draw.occupied])
    torch.testing.assert_close(v, draw.apply(2 * h)[draw.occupied])

    weights = torch.randn(u.shape, generator=generator(2))
    (left_out,) = torch.autograd.grad((F.normalize(u) * weights).sum(), h)
    assert left_out.abs().max() < 1e4
    # What it protects from: the zero rows themselves, normalised. (Any upstream gradient shows it.)
    zero = torch.zeros(1, 6, requires_grad=True)
    (kept_in,) = torch.autograd.grad(F.normalize(zero).sum(), zero)
    assert kept_in.abs().max() > 1e11


def test_a_sparse_p_can_be_empty_altogether() -> None:
    h = features(5, 3).requires_grad_()
    sketch = make_sketch("sparse", k=4, density=1e-12)
    assert sketch(h, generator=generator()).shape == (0, 3)
    draw = sketch.draw(h, generator())
    (gradient,) = torch.autograd.grad(draw.apply(h).sum(), h)
    assert torch.equal(gradient, torch.zeros_like(h))


# --- rows, views, generators, fixed ---------------------------------------------------------------------------


@given(ratio=st.floats(1e-6, 4), n=st.integers(1, 10**6))
def test_ratio_gives_the_rows(ratio: float, n: int) -> None:
    assert make_sketch("gaussian", ratio=ratio).rows(n) == max(1, round(ratio * n))


@pytest.mark.parametrize("name", [*PROJECTIONS, "selection"])
def test_rows_from_one_to_more_than_n(name: str) -> None:
    h = features(10, 4)
    assert build(name).rows(10) == 5
    assert build(name, ratio=2.5).draw(h).apply(h).shape == (25, 4)
    assert build(name, ratio=0.001).draw(h).apply(h).shape == (1, 4)
    assert build(name, 1).draw(h).apply(h).shape == (1, 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_a_p(name: str) -> None:
    h = features(20, 6)
    first, again, other = (build(name, 5).draw(h, generator(seed)).matrix() for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (name in ("svd", "noise"))


@pytest.mark.parametrize("name", NAMES)
def test_two_views_share_p_which_comes_from_the_first(name: str) -> None:
    h1, h2 = features(20, 6, seed=1), features(20, 6, seed=2)
    sketch = build(name, 5)
    p = sketch.draw(h1, generator(3)).matrix()
    p = p[(p != 0).any(dim=1)]
    u, v = sketch(h1, h2, generator=generator(3))
    torch.testing.assert_close(u, p @ centred(h1))
    torch.testing.assert_close(v, p @ centred(h2))
    torch.testing.assert_close(sketch(h1, generator=generator(3)), u)
    from_second = sketch.draw(h2, generator(3)).matrix()
    from_second = from_second[(from_second != 0).any(dim=1)]
    assert torch.equal(p, from_second) != sketch.depends_on_h


@pytest.mark.parametrize("name", NAMES)
def test_each_view_and_each_apply_has_its_own_noise(name: str) -> None:
    h = features(50, 40)
    u, v = build(name, 30, noise_std=0.5)(h, h, generator=generator(1))
    difference = (u - v) / (0.5 * math.sqrt(2))
    assert stats.kstest(difference.flatten().numpy(), "norm").pvalue > 1e-4
    draw = build(name, 30, noise_std=0.5).draw(h, generator(1))
    assert not torch.equal(draw.apply(h), draw.apply(h))


def test_views_side_by_side_are_each_by_itself() -> None:
    h1, h2 = features(20, 6, seed=1), features(20, 4, seed=2)
    draw = build("gaussian", 5).draw(h1, generator(1))
    u, v = draw.apply_all([h1, h2])
    torch.testing.assert_close(u, draw.apply(h1))
    torch.testing.assert_close(v, draw.apply(h2))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("svd", "noise")])
def test_fixed_keeps_the_first_p(name: str) -> None:
    h, other = features(20, 6), features(20, 6, seed=1)
    sketch = build(name, 5, fixed=True, noise_std=0.1, generator=generator(2))
    first = sketch.draw(h).matrix()
    assert torch.equal(sketch.draw(other, generator(9)).matrix(), first)
    assert not torch.equal(sketch(h), sketch(h))  # E is fresh
    torch.testing.assert_close(sketch.draw(h.float()).matrix(), first.float())

    assert sketch.draw(features(13, 6)).matrix().shape[1] == 13  # is the one kept from now on
    assert not torch.equal(sketch.draw(h).matrix(), first)

    fresh = build(name, 5, generator=generator(2))
    assert torch.equal(fresh.draw(h).matrix(), first)
    assert not torch.equal(fresh.draw(h).matrix(), first)


def test_a_fixed_p_that_is_stored_is_written_out_once() -> None:
    h = features(20, 6)
    sketch = build("sparse", 5, fixed=True, stored=True)
    draw, again = sketch.draw(h), sketch.draw(h)
    assert again._p is draw._p
    assert again.matrix() is draw.matrix()


def test_the_generator_of_the_call_comes_before_that_of_the_sketch() -> None:
    h = features(20, 6)
    sketch = build("gaussian", 5, generator=generator(1))
    explicit = sketch.draw(h, generator(7)).matrix()
    assert torch.equal(explicit, build("gaussian", 5).draw(h, generator(7)).matrix())
    assert torch.equal(sketch.draw(h).matrix(), build("gaussian", 5).draw(h, generator(1)).matrix())


def test_without_a_generator_sketches_are_seeded_from_entropy() -> None:
    h = features(20, 6)
    torch.manual_seed(0)
    first = build("gaussian", 5).draw(h).matrix()
    torch.manual_seed(0)
    sketch = build("gaussian", 5)
    assert not torch.equal(sketch.draw(h).matrix(), first)
    assert not torch.equal(sketch.draw(h).matrix(), sketch.draw(h).matrix())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", [None, generator(3)])
def test_the_global_generator_is_left_as_found(name: str, source: torch.Generator | None) -> None:
    h = features(20, 6)
    before = torch.get_rng_state()
    build(name, 5, noise_std=0.1)(h, h, generator=source)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_a_sketch_can_be_copied_and_pickled(name: str) -> None:
    h = features(20, 6)
    sketch = build(name, 5, noise_std=0.1, fixed=True, generator=generator(1))
    sketch(h)
    copies = [copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))]
    expected = sketch(h)
    for duplicate in copies:
        assert torch.equal(duplicate(h), expected)


# --- what is refused, and how things look ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("gaussian", {"ratio": 0}, "ratio, k/n, must be a finite number above 0, not 0"),
        ("gaussian", {"ratio": -0.5}, "ratio, k/n, must be a finite number above 0"),
        ("gaussian", {"ratio": math.nan}, "ratio, k/n, must be a finite number"),
        ("gaussian", {"ratio": math.inf}, "ratio, k/n, must be a finite number"),
        ("gaussian", {"ratio": "half"}, "ratio, k/n, must be a finite number above 0, not 'half'"),
        ("gaussian", {"ratio": True}, "ratio, k/n, must be a finite number"),
        ("gaussian", {"k": 0}, "k must be a whole number of rows, at least 1, not 0"),
        ("gaussian", {"k": 2.5}, "k must be a whole number"),
        ("gaussian", {"k": 10, "ratio": 0.5}, "give one of the two"),
        ("gaussian", {"noise_std": -1}, "noise_std, a standard deviation, must be finite and at least 0"),
        ("gaussian", {"noise_std": math.nan}, "noise_std, a standard deviation, must be finite"),
        ("sparse", {"density": 0}, "density of a sparse sketch must be a number above 0 and at most 1"),
        ("sparse", {"density": 1.01}, "density of a sparse sketch must be a number above 0 and at most 1"),
        ("sparse", {"density": math.nan}, "density of a sparse sketch must be a number above 0"),
    ],
)
def test_bad_settings_get_a_sentence(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make_sketch(name, **options)
    assert str(caught.value).endswith(".")


def test_bad_features_get_a_sentence() -> None:
    sketch = make_sketch("gaussian", k=2)
    for h in (torch.zeros(3), torch.zeros(0, 3), torch.zeros(3, 2, dtype=torch.long)):
        with pytest.raises(InputError, match="floating-point matrix"):
            sketch(h)
    with pytest.raises(InputError, match=r"same nodes, but their shapes are \(5, 2\) and \(4, 2\)"):
        sketch(torch.zeros(5, 2), torch.zeros(4, 2))
    with pytest.raises(InputError, match="drawn for 5 rows, but this H has 4"):
        sketch.draw(torch.zeros(5, 2)).apply(torch.zeros(4, 2))


def test_repr() -> None:
    assert repr(make_sketch("gaussian")) == "RandomProjection(ratio=0.5)"
    assert repr(make_sketch("rademacher", k=3, fixed=True, center=False)) == (
        "RademacherProjection(k=3, fixed=True, center=False)"
    )
    assert repr(make_sketch("sparse", noise_std=0.1)) == "SparseProjection(density=0.01, ratio=0.5, noise_std=0.1)"


# --- CUDA -----------------------------------------------------------------------------------------------------


def error(ours: Tensor, exact: Tensor) -> float:
    """‖ours − exact‖_F / ‖exact‖_F."""
    exact = exact.double().cpu()
    return float((ours.double().cpu() - exact).norm() / exact.norm())


# What a float64 H goes through is exact; a float32 one goes through float16 where P is dense and never stored.
CUDA_ERROR = {torch.float64: 1e-11, torch.float32: 1e-3}


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("dtype", CUDA_ERROR)
@pytest.mark.parametrize("name", NAMES)
def test_cuda_agrees_with_its_own_matrix(name: str, dtype: torch.dtype) -> None:
    h = features(200, 16, dtype=dtype).cuda().requires_grad_()
    draw = build(name, 12).draw(h, generator(1, "cuda"))
    p = draw.matrix()
    assert p.device == h.device
    assert p.dtype == dtype
    h_tilde = draw.apply(h)
    assert error(h_tilde, p.double() @ centred(h.double())) < CUDA_ERROR[dtype]
    upstream = torch.randn(h_tilde.shape, generator=generator(2)).to(h)
    (gradient,) = torch.autograd.grad(h_tilde, h, upstream)
    assert error(gradient, centred(p.double().T @ upstream.double())) < CUDA_ERROR[dtype]
    assert draw.occupied is None or torch.equal(draw.occupied, (p != 0).any(dim=1))


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("dtype", CUDA_ERROR)
@pytest.mark.parametrize("name", NAMES)
def test_a_cpu_generator_gives_the_same_sketch_on_cuda(name: str, dtype: torch.dtype) -> None:
    h = features(200, 16, dtype=dtype)
    sketch = build(name, 12, noise_std=0.1)
    on_cpu, on_cuda = sketch(h, generator=generator(1)), sketch(h.cuda(), generator=generator(1))
    assert error(on_cuda, on_cpu) < CUDA_ERROR[dtype]


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("name", NAMES)
def test_cuda_without_a_generator_and_moved(name: str) -> None:
    h = features(200, 16, dtype=torch.float32)
    sketch = build(name, 12, fixed=True)
    before_cpu, before_cuda = torch.get_rng_state(), torch.cuda.get_rng_state()
    on_cuda = sketch.draw(h.cuda()).matrix()
    assert torch.equal(torch.get_rng_state(), before_cpu)
    assert torch.equal(torch.cuda.get_rng_state(), before_cuda)
    torch.testing.assert_close(sketch.draw(h).matrix(), on_cuda.cpu(), rtol=0, atol=1e-6)
    sketch(h[:150], h[:150])  # another n: a new P, drawn on the CPU


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("name", NAMES)
def test_cuda_is_repeatable_in_deterministic_mode(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what torch asks for before it promises repeatability
    h = features(300, 16, dtype=torch.float32).cuda().requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        sketch = build(name, 12, noise_std=0.1)
        results = []
        for _ in range(2):
            h_tilde = sketch(h, generator=generator(1, "cuda"))
            results.append((h_tilde, *torch.autograd.grad(h_tilde.square().sum(), h)))
    finally:
        torch.use_deterministic_algorithms(False)
    for first, second in zip(*results, strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("kind", ["countsketch", "gaussian", "rademacher", "sparse"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("kept", [0, implicit.KEPT_BYTES])
def test_columns_of_p_multiply_their_rows_alone(kind, stored, kept, monkeypatch):
    """Also where a dense P is too large to be kept: then the other rows of H are zero."""
    monkeypatch.setattr(implicit, "KEPT_BYTES", kept)
    h = torch.randn(30, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    draw = make_sketch(kind, k=9, stored=stored).draw(h, torch.Generator().manual_seed(2))
    chosen = torch.tensor([20, 3, 4, 29])
    for some in (chosen, chosen[:0]):
        columns, rows = draw._p.columns(some), h[some].requires_grad_()
        assert columns.shape == (9, len(some))
        torch.testing.assert_close(columns.dense(), draw.matrix()[:, some])
        torch.testing.assert_close(columns.product(rows), draw.matrix()[:, some] @ rows)
        (gradient,) = torch.autograd.grad(columns.product(rows).square().sum() / 2, rows)
        torch.testing.assert_close(gradient, draw.matrix()[:, some].T @ columns.product(rows))
