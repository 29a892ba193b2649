"""The kernels of P against P from its seed in float64: on a GPU, or without one in Triton's interpreter."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from costa.augment import implicit
from costa.augment.implicit import ImplicitDense, ImplicitSparse
from costa.nn import kernels
from costa.nn.kernels import projection

DEVICES = [
    pytest.param("cpu", marks=pytest.mark.skipif(not kernels.INTERPRETED, reason="Triton compiles for the GPU here")),
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")],
    ),
]
SEEDS = [5, 2**40 + 3]
SCALE, DENSITY = 0.3, 0.15
# float16 rounds to 2⁻¹¹; a sum of float32s of either sign to a few times 2⁻²⁴
ERROR = {"gaussian": 1e-3, "rademacher": 1e-3, "sparse": 1e-6}
FLOAT64 = torch.empty(0, dtype=torch.float64)


def form(kind, k, n, seed, density=DENSITY, like=FLOAT64):
    seed = torch.tensor(seed, device=like.device)
    if kind == "sparse":
        return ImplicitSparse(seed, k, n, SCALE, like, density=density)
    return ImplicitDense(seed, k, n, SCALE, like, gaussian=kind == "gaussian")


def written_out(kind, k, n, seeds=SEEDS, density=DENSITY):
    """P of every seed, S × k × n."""
    return torch.stack([form(kind, k, n, seed, density).dense() for seed in seeds])


def multiply(kind, source, k, n, transposed, seeds=SEEDS, density=DENSITY):
    """By the kernels."""
    seeds = torch.tensor(seeds, device=source.device)
    if kind == "sparse":
        return projection.sparse_product(seeds, source, k, n, SCALE, density, transposed=transposed)
    return projection.dense_product(seeds, source, k, n, SCALE, gaussian=kind == "gaussian", transposed=transposed)


def random(device, *shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(device)


def errors(ours, exact):
    """‖ours − exact‖_F / ‖exact‖_F of each of a stack; 0 where both are zero."""
    assert ours.dtype == torch.float32
    assert ours.shape == exact.shape
    sizes = exact.norm(dim=(1, 2)).clamp(min=1e-300)
    return ((ours.double().cpu() - exact).norm(dim=(1, 2)) / sizes).tolist()


def assert_products(kind, device, k, n, d, limit=None, scale_of_h=1.0, **options):
    p = written_out(kind, k, n, **options)
    for transposed in (False, True):
        source = random(device, len(p), k if transposed else n, d) * scale_of_h
        exact = (p.mT if transposed else p) @ source.double().cpu()
        ours = multiply(kind, source, k, n, transposed, **options)
        assert max(errors(ours, exact)) < (limit or ERROR[kind]), f"transposed: {transposed}"


# Neither rows, columns nor widths are multiples of a tile, of a counter's 8 or 128 columns, or of 16.
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
@pytest.mark.parametrize(("k", "n", "d"), [(13, 150, 24), (1, 1, 1), (19, 9, 5)])
def test_products_with_p_and_its_transpose(device, kind, k, n, d):
    assert_products(kind, device, k, n, d)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
@pytest.mark.parametrize("programs", [1, projection.PROGRAMS])
def test_however_the_sum_is_split(device, kind, programs, monkeypatch):
    monkeypatch.setattr(projection, "PROGRAMS", programs)
    assert_products(kind, device, 80, 150, 130, seeds=[11])


@pytest.mark.parametrize("device", DEVICES)
def test_more_columns_of_h_than_a_sparse_program_takes(device):
    assert_products("sparse", device, 3, 40, 130, seeds=[11])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", ERROR)
@pytest.mark.parametrize(("k", "n", "d"), [(301, 1999, 257), (129, 4097, 300), (1000, 77, 64)])
def test_products_of_many_tiles(kind, k, n, d):
    assert_products(kind, "cuda", k, n, d)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
@pytest.mark.parametrize("magnitude", [1e-9, 1e6])
def test_tiny_gradients_and_huge_features_lose_nothing(device, kind, magnitude):
    """float16 alone knows no number below 6e-8 and none above 65,504."""
    assert_products(kind, device, 9, 70, 5, scale_of_h=magnitude)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
def test_the_magnitude_of_one_of_a_stack_is_nothing_to_the_others(device, kind):
    k, n = 9, 70
    h = random(device, 2, n, 5) * torch.tensor([1.0, 1e-9], device=device)[:, None, None]
    exact = written_out(kind, k, n) @ h.double().cpu()
    assert max(errors(multiply(kind, h, k, n, False), exact)) < ERROR[kind]


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered:RuntimeWarning")  # of the interpreter
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ERROR)
def test_one_of_a_stack_that_is_not_finite_is_nothing_to_the_others(device, kind, bad):
    k, n = 9, 70
    h = random(device, 2, n, 5)
    alone = multiply(kind, h[1:], k, n, False, seeds=SEEDS[1:])
    h[0, 3, 2] = bad
    assert torch.equal(multiply(kind, h, k, n, False)[1:], alone)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
def test_a_zero_h_is_zero(device, kind):
    for transposed, lines in ((False, 70), (True, 9)):
        assert (multiply(kind, torch.zeros(2, lines, 5, device=device), 9, 70, transposed) == 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
def test_a_stack_is_each_of_them_alone(device, kind):
    k, n = 9, 70
    h = random(device, 2, n, 5)
    together = multiply(kind, h, k, n, False)
    for index, seed in enumerate(SEEDS):
        alone = multiply(kind, h[index][None], k, n, False, seeds=[seed])
        torch.testing.assert_close(together[index], alone[0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
def test_h_need_not_be_contiguous(device, kind):
    h = random(device, 70, 5, 2).movedim(-1, 0)
    assert torch.equal(multiply(kind, h, 9, 70, False), multiply(kind, h.contiguous(), 9, 70, False))


@pytest.mark.parametrize(
    ("device", "k", "n"),
    [
        pytest.param("cpu", 13, 140, marks=DEVICES[0].marks),
        pytest.param("cuda", 500, 2100, marks=DEVICES[1].marks),
    ],
)
@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_the_tiles_are_the_very_entries_of_p(device, k, n, kind):
    """PI = P, up to the rounding of a float16."""
    p = multiply(kind, torch.eye(n, device=device)[None], k, n, False, seeds=[2**62 + 9]).double().cpu() / SCALE
    exact = written_out(kind, k, n, seeds=[2**62 + 9]) / SCALE
    torch.testing.assert_close(p, exact, rtol=2**-11 if kind == "gaussian" else 1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "density"), [(200_000, 3.3e-5), (150, 1.0), (150, 1e-3)])
def test_sparse_entries_are_in_the_very_places(device, n, density):
    """A row's sum of ±(place + 1), whole numbers that float32 holds; long gaps need all of float64."""
    places = torch.arange(1.0, n + 1, device=device)[None, :, None]
    k = 20
    sums = multiply("sparse", places, k, n, False, seeds=[2**62 + 9], density=density).double().cpu() / SCALE
    p = form("sparse", k, n, 2**62 + 9, density)
    torch.testing.assert_close(sums[0], p.multiply(places[0].double().cpu(), False) / SCALE, rtol=1e-6, atol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("k", "n", "density"), [(300, 40, 0.02), (5, 1, 0.5), (3, 9, 1.0), (7, 30, 1e-12)])
def test_occupied_rows(device, k, n, density):
    ours = projection.occupied_rows(torch.tensor(SEEDS, device=device), k, n, density)
    assert torch.equal(ours.cpu(), torch.stack([form("sparse", k, n, seed, density).occupied for seed in SEEDS]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ERROR)
def test_a_form_of_p_goes_through_its_kernels_with_its_gradient(device, kind, monkeypatch):
    """What the sketches call."""
    if device == "cpu":
        monkeypatch.setattr(kernels, "usable", lambda rows: rows.dtype == torch.float32)
    k, n, d, seed = 9, 70, 5, SEEDS[1]
    p = form(kind, k, n, seed, like=torch.empty(0, device=device))
    exact = form(kind, k, n, seed).dense()
    monkeypatch.setattr(implicit, "TILE", None)  # which only the way round the kernels reads
    h, upstream = random(device, n, d).requires_grad_(), random(device, k, d, seed=1)
    out = p.product(h)
    (gradient,) = torch.autograd.grad(out, h, upstream)
    assert out.shape == (k, d)
    for ours, twin in ((out, exact @ h.double().cpu()), (gradient, exact.mT @ upstream.double().cpu())):
        assert max(errors(ours.detach()[None], twin.detach()[None])) < 1e-3
    if kind == "sparse":
        assert torch.equal(p.occupied.cpu(), form(kind, k, n, seed).occupied)
