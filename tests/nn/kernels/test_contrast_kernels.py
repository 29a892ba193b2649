"""The kernels of the contrast against similarities written out in float64: on a GPU, or in Triton's interpreter."""

from unittest import mock

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("triton", reason="Triton is not installed")

from costa.nn import both_views_loss, cross_view_loss, kernels, self_contrast_loss
from costa.nn import contrast as tiles
from costa.nn.kernels import contrast, wide

# The interpreter's: what is not seen may be past float32's range before it is left out, and log₂ 0 = −∞ is meant.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|divide by zero) encountered in (exp2|log2):RuntimeWarning")
DEVICES = [
    pytest.param("cpu", marks=pytest.mark.skipif(not kernels.INTERPRETED, reason="Triton compiles for the GPU here")),
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")],
    ),
]
BOUNDED = [0.5, 0.05]
UNBOUNDED = [0.02, 0.01]
# (k, d, half): not multiples of a tile, of 16 columns or of each other; more rows and wider than one tile
SHAPES = [(70, 24, 0), (70, 24, 35), (5, 5, 0), (2, 5, 1), (33, 130, 0)]
FORMS = pytest.mark.parametrize("form", [contrast, wide], ids=["registers", "wide"])


def unit_rows(device, *shape, seed=0):
    """float16 rows; neighbours are alike, so that at a small τ no row is without company."""
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return F.normalize(rows + 2 * rows.roll(1, -2), dim=-1).half().to(device)


def scores(q, k, tau, counts, half):
    """s_ij of float16 rows in float64, −∞ where a pair is left out."""
    s = q.double().cpu() @ k.double().cpu().mT / tau
    i = torch.arange(s.shape[-1])
    apart = (i[:, None] - i[None, :]).abs()
    s = s.masked_fill((apart == 0) | ((apart == half) & (half > 0)), -torch.inf)
    return s if counts is None else s.masked_fill(~counts.cpu()[:, None, :], -torch.inf)


def some(device, copies, k, seed=3):
    """A mask of about half of the rows, different for each of a stack."""
    counts = torch.rand(copies, k, generator=torch.Generator().manual_seed(seed)) < 0.5
    counts[:, : k // 2 + 1 : 2] = True
    return counts.to(device)


def assert_sums(form, device, copies, k, d, tau, half, masked):
    q, other = unit_rows(device, copies, k, d), unit_rows(device, copies, k, d, seed=1)
    counts = some(device, copies, k) if masked else None
    s = scores(q, other, tau, counts, half)
    lse = form.logsumexp(q, other, tau, counts, half)
    assert lse.dtype == torch.float32
    exact = s.logsumexp(-1)
    assert torch.equal(lse.cpu().isinf(), exact.isinf())
    seen = exact.isfinite()
    # the products of float16s are exact, what is left is the rounding of float32 sums
    torch.testing.assert_close(lse.cpu().double()[seen], exact[seen], rtol=0, atol=2e-6 / tau)

    generator = torch.Generator().manual_seed(2)
    a, b = (
        (torch.logaddexp(part, torch.rand(part.shape, generator=generator).double() / tau)).float()
        for part in (exact, s.mT.logsumexp(-1))
    )
    out = form.weighted_sum(q, other, a.to(device), b.to(device), tau, counts, half)
    weights = (s - a.double()[..., None]).exp() + (s - b.double()[:, None, :]).exp()
    twin = weights @ other.double().cpu()
    if counts is not None:
        twin = torch.where(counts.cpu()[..., None], twin, 0)
        assert (out.cpu()[~counts.cpu()] == 0).all()
    assert out.shape == twin.shape
    # weights are rounded to float16, 2⁻¹¹; those of e^{s − a} inherit the rounding of s in float32
    assert float((out.cpu().double() - twin).norm()) <= 1e-3 * float(twin.norm())


@FORMS
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tau", BOUNDED + UNBOUNDED)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("k", "d", "half"), SHAPES)
def test_sums_equal_the_written_out_ones(form, device, k, d, half, masked, tau):
    assert_sums(form, device, 2, k, d, tau, half, masked)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tau", [0.5, 0.01])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("tile", [10, 210, 980, 2000, 3000])  # one row, several, one of the stack, two, all three
def test_wide_sums_of_many_tiles(device, tile, masked, tau, monkeypatch):
    monkeypatch.setattr(wide, "TILE", tile)
    assert_sums(wide, device, 3, 30, 24, tau, 15, masked)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("tau", [0.5, 0.01])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("form", "k", "d", "half"),
    [
        (contrast, 1001, 257, 0),
        (contrast, 602, 300, 301),
        (contrast, 777, 128, 0),
        (contrast, 515, 256, 0),
        (contrast, 301, tiles.WIDEST, 0),
        (wide, 301, 700, 0),
        (wide, 299, 1024, 0),
        (wide, 5002, 1500, 2501),
    ],
)
def test_sums_of_many_tiles(form, k, d, half, masked, tau):
    assert_sums(form, "cuda", 2, k, d, tau, half, masked)


def test_the_temperatures_cover_both_branches():
    assert all(tau * contrast.BOUNDED_BELOW > contrast.LOG2E for tau in BOUNDED)
    assert not any(tau * contrast.BOUNDED_BELOW > contrast.LOG2E for tau in UNBOUNDED)


@FORMS
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tau", [0.5, 0.01])
def test_opposite_and_equal_rows_stay_finite(form, device, tau):
    """Similarities of exactly −1/τ and 1/τ, the ends of the range."""
    row = unit_rows(device, 1, 1, 24)
    for q, k in ((torch.cat([row, -row, row], dim=1),) * 2, (row.repeat(1, 3, 1), -row.repeat(1, 3, 1))):
        lse = form.logsumexp(q, k, tau, None)
        exact = scores(q, k, tau, None, 0).logsumexp(-1)
        torch.testing.assert_close(lse.cpu().double(), exact, rtol=1e-5, atol=1e-5)
        assert form.weighted_sum(q, k, lse, lse, tau, None).isfinite().all()


@FORMS
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tau", [0.5, 0.01])
@pytest.mark.parametrize("counted", [0, 1])
def test_with_one_row_or_none_that_counts(form, device, tau, counted):
    q = unit_rows(device, 1, 6, 5)
    counts = (torch.arange(6, device=device) < counted)[None]
    lse = form.logsumexp(q, q, tau, counts)
    assert lse[0, :counted].isneginf().all()
    assert lse[0, counted:].isneginf().all() == (counted == 0)
    finite = torch.full((1, 6), 1 / tau, device=device)
    assert (form.weighted_sum(q, q, finite, finite, tau, counts) == 0).all()


@FORMS
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tau", [0.5, 0.01])
def test_one_of_a_stack_that_is_not_finite_is_nothing_to_the_others(form, device, tau):
    q = unit_rows(device, 2, 9, 5)
    lse = form.logsumexp(q, q, tau, None)
    out = form.weighted_sum(q, q, lse, lse, tau, None)
    q[0] = torch.nan
    bad = form.logsumexp(q, q, tau, None)
    assert bad[0].isnan().all()
    assert torch.equal(bad[1], lse[1])
    assert torch.equal(form.weighted_sum(q, q, bad, bad, tau, None)[1], out[1])


LOSSES = {
    "cross": cross_view_loss,
    "both": both_views_loss,
    "printed": lambda u, v, tau, mask, **form: both_views_loss(u, v, tau, mask, include_self=True, **form),
    "self": lambda u, v, tau, mask, **form: self_contrast_loss(u, tau, mask, **form),
}


class Interpreted(tiles._Tiles):
    """Tiles that are the kernels' without a GPU, too."""

    def __init__(self, like, *options):
        super().__init__(like, *options)
        self.fused = like.dtype == torch.float32


@FORMS
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tau", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_go_through_the_kernels_with_their_gradient(device, name, tau, form, monkeypatch):
    if device == "cpu":
        monkeypatch.setattr(tiles, "_Tiles", Interpreted)
    monkeypatch.setattr(tiles, "TILE", None)  # which only the way round the kernels reads
    k, d = 21, 24
    monkeypatch.setattr(tiles, "WIDEST", d if form is contrast else d - 1)
    asked = mock.Mock(wraps=form.weighted_sum)
    monkeypatch.setattr(form, "weighted_sum", asked)
    # within √τ of each other, or next to nothing would be left of the gradient
    u = unit_rows(device, 1, d).float() + 1.5 * tau**0.5 * unit_rows(device, k, d).float()
    v = (u + 0.3 * tau**0.5 * unit_rows(device, k, d, seed=1).float()).requires_grad_()
    u.requires_grad_()
    mask = some(device, 1, k)[0]
    ours = LOSSES[name](u, v, tau, mask)
    exact = LOSSES[name](u.double().cpu(), v.double().cpu(), tau, mask.cpu(), plain=True)
    assert ours.shape == ()
    torch.testing.assert_close(ours.detach().cpu().double(), exact.detach(), rtol=0, atol=1e-4 / tau)
    inputs = [u] if name == "self" else [u, v]
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(exact, inputs), strict=True):
        # float16 rows shift a similarity by up to 2⁻¹¹/τ, and their weights by that factor
        assert float((a - b).norm()) < (5e-4 + 6e-5 / tau) * float(b.norm())
    assert asked.called
