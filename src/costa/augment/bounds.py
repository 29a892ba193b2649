"""How well a sketch keeps the covariance: what the paper states, and what is proved.

The measure is error(H, H̃) = ‖HᵀH − H̃ᵀH̃‖₂ against ε·Tr(HᵀH), where H̃ = PH. For a sketch with ``center=True`` the
statements are about the centred H: pass ``h - h.mean(0)`` here.

The *lemmas* are the paper's, for `svd`, `gaussian` and `selection`; each has a domain, and outside it these functions
refuse or return the trivial bound. `rademacher`, `sparse` and `countsketch` have no lemma; in particular the Gaussian
one does not carry over to a sparse P. (Density 0.01, one dominant row in H, k = 50, ε = 0.3: the sketch always fails,
while the Gaussian lemma would say 0.57.)

The *theorems* are proved in docs/theory.md:

* every sketch: the exact :func:`second_moment` E‖HᵀH − H̃ᵀH̃‖²_F, and Markov's inequality with it;
* `gaussian`: :func:`gaussian_tail` for every H, and :func:`gaussian_spectral_tail`, which uses the stable rank of H;
* `selection`: :func:`selection_tail` and :func:`selection_spectral_tail`, likewise.

:class:`Guarantee` combines them for one sketch of one H; :func:`draw_errors` measures the errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from costa.augment.other_sketches import NoiseInjection, RowSelection, SVDSketch
from costa.augment.sketches import CountSketch, RademacherProjection, RandomProjection, Sketch, SparseProjection
from costa.errors import InputError

BATCH = 2**22
"""Entries of the d × d differences that exist at a time while errors are drawn."""
WIDE = 512
"""With at least this many columns, Lanczos' iteration finds the largest eigenvalue alone."""


@torch.no_grad()
def covariance_error(h: Tensor, h_tilde: Tensor) -> Tensor:
    """‖HᵀH − H̃ᵀH̃‖₂, the largest modulus of an eigenvalue, in float64.

    Args:
        h: H, n × d.
        h_tilde: H̃, k × d.

    Returns:
        A float64 scalar on the device of `h`.

    Example:
        >>> h = torch.diag(torch.tensor([3.0, 2.0, 1.0]))
        >>> covariance_error(h, h[:2])  # σ²₃ is missing
        tensor(1., dtype=torch.float64)
    """
    h, h_tilde = _matrix("H", h), _matrix("H̃", h_tilde)
    if h.shape[1] != h_tilde.shape[1]:
        raise InputError(f"H has {h.shape[1]} columns and H̃ has {h_tilde.shape[1]}: they must have the same.")
    return torch.linalg.eigvalsh(h.T @ h - h_tilde.T @ h_tilde).abs().max()


@torch.no_grad()
def relative_covariance_error(h: Tensor, h_tilde: Tensor) -> Tensor:
    """The smallest ε with ‖HᵀH − H̃ᵀH̃‖₂ ≤ ε·Tr(HᵀH): the error divided by the trace.

    If H is zero, this is 0 if H̃ is zero too, and infinite otherwise.
    """
    error = covariance_error(h, h_tilde)
    return torch.where(error > 0, error / h.double().square().sum(), 0.0)


@torch.no_grad()
def svd_bound(h: Tensor, k: int) -> Tensor:
    """ε = σ_{k+1}/σ₁, with which H̃ = U_kᵀH satisfies ‖HᵀH − H̃ᵀH̃‖₂ ≤ ε·Tr(HᵀH). Always holds.

    The lemma is generous: the error itself is σ²_{k+1}. It is 0 if k is at least the rank of H, as determined by
    `torch.linalg.matrix_rank` in float64.
    """
    _check_rows(k)
    sigma = torch.linalg.svdvals(_matrix("H", h))
    if k >= sigma.numel() or sigma[k] <= max(h.shape) * torch.finfo(torch.float64).eps * sigma[0]:
        return sigma.new_zeros(())
    return sigma[k] / sigma[0]


def gaussian_failure(eps: float, k: int) -> float:
    """e^{−ε²k/8}: the stated bound on P(‖HᵀH − H̃ᵀH̃‖₂ > ε·Tr(HᵀH)) for a Gaussian P of k rows, 0 < ε < 1.

    The printed proof fixes an eigenvector that depends on P, and bounds one of two tails; so it proves less than it
    states. The statement holds for every H if ε²k ≥ 2.87, by :func:`gaussian_tail` and the moments behind it; for
    smaller ε it is false in general: with d = 2 equal singular values and k = 1 every draw fails at ε < ½.

    Example:
        >>> round(gaussian_failure(0.3, 256), 4)
        0.0561
    """
    _check_gaussian_eps(eps)
    _check_rows(k)
    return math.exp(-(eps**2) * k / 8)


def selection_failure(eps: float, k: int) -> float:
    """e^{−(ε√k−1)²/8} if ε√k > 1, else 1: the stated bound on P(‖HᵀH − H̃ᵀH̃‖₂ > ε·Tr(HᵀH)) for rescaled selection.

    It is about rows drawn with pᵢ = ‖hᵢ‖²/‖H‖²_F and scaled by 1/√(k·pᵢ), not about ``scaling="printed"``. The paper
    gives no domain, but its proof sets ε = (1 + √(8·log 1/δ))/√k, which exceeds 1/√k; below that the printed
    expression rises again and is wrong (k = 16, ε = 0.02: it says 0.90, and every draw fails).

    Example:
        >>> selection_failure(0.02, 16)
        1.0
    """
    _check_eps(eps)
    _check_rows(k)
    excess = eps * math.sqrt(k) - 1
    return math.exp(-(excess**2) / 8) if excess > 0 else 1.0


def gaussian_rows(eps: float, delta: float) -> int:
    """The smallest k with gaussian_failure(ε, k) ≤ δ: about 8·log(1/δ)/ε², whatever n and d.

    Example:
        >>> gaussian_rows(0.3, 0.05)
        267
    """
    _check_gaussian_eps(eps)
    _check_delta(delta)
    return _smallest_k(gaussian_failure, eps, delta, -8 * math.log(delta) / eps**2)


def selection_rows(eps: float, delta: float) -> int:
    """The smallest k with selection_failure(ε, k) ≤ δ: about (1 + √(8·log 1/δ))²/ε².

    Example:
        >>> selection_rows(0.3, 0.05)
        387
    """
    _check_eps(eps)
    _check_delta(delta)
    return _smallest_k(selection_failure, eps, delta, ((1 + math.sqrt(-8 * math.log(delta))) / eps) ** 2)


def gaussian_tail(eps: float, k: int) -> float:
    """2·((1 + ε)·e^{−ε})^{k/2}: bounds the failure probability of a Gaussian P of k rows, for every H and ε > 0.

    For ε ≤ 1 it is at most 2·e^{−ε²k/8}. A theorem, and about ‖·‖_F, the larger norm: for every increasing convex φ,
    E φ(‖HᵀH − H̃ᵀH̃‖²_F/Tr²) ≤ E φ((χ²_k/k − 1)²): an H of rank one is the worst case. Take φ(x) = cosh(t√x).

    Example:
        >>> round(gaussian_tail(0.3, 256), 4)
        0.0162
    """
    _check_eps(eps)
    _check_rows(k)
    return min(1.0, 2 * math.exp(k * (math.log1p(eps) - eps) / 2))


def gaussian_spectral_tail(eps: float, k: int, stable_rank: float) -> float:
    """2·e^{−t²/2} with ε = 2η/√r + η², η = (1 + (1 + t)/√r)/√k: bounds a Gaussian P's failure probability.

    r = Tr(HᵀH)/‖HᵀH‖₂ is the stable rank. A theorem, from Gordon's comparison and the concentration of Lipschitz
    functions; for r well above 1 its ε is near 2/√(r·k) + 1/k, far below that of bounds for every H.

    Example:
        >>> round(gaussian_spectral_tail(0.2, 256, stable_rank=6.0), 4)
        0.0002
    """
    _check_eps(eps)
    _check_rows(k)
    root = math.sqrt(stable_rank)
    eta = math.sqrt(1 / stable_rank + eps) - 1 / root
    t = root * (eta * math.sqrt(k) - 1) - 1
    return min(1.0, 2 * math.exp(-(t**2) / 2)) if t > 0 else 1.0


def selection_tail(eps: float, k: int, concentration: float = 0.0) -> float:
    """e^{−(ε√k − √(1−ρ))²} if ε√k > √(1−ρ), else 1: bounds the failure probability of rescaled selection of k rows.

    ρ = ‖HᵀH‖²_F/Tr² (0 if H is not known). A theorem, and about ‖·‖_F: one row more or less changes ‖HᵀH − H̃ᵀH̃‖_F
    by at most √2·Tr/k, so McDiarmid's inequality holds around a mean of at most √((1−ρ)/k)·Tr. The exponent is eight
    times that of the lemma, which follows from it.
    """
    _check_eps(eps)
    _check_rows(k)
    excess = eps * math.sqrt(k) - math.sqrt(max(0.0, 1 - concentration))
    return math.exp(-(excess**2)) if excess > 0 else 1.0


def selection_spectral_tail(eps: float, k: int, stable_rank: float, columns: int) -> float:
    """2d·e^{−(k·ε²/2)/(1/r + ε/3)}: bounds the failure probability of rescaled selection of k rows (matrix Bernstein).

    r is the stable rank; d may be the rank of H instead of its number of columns.
    """
    _check_eps(eps)
    _check_rows(k)
    return min(1.0, 2 * columns * math.exp(-k * eps**2 / 2 / (1 / stable_rank + eps / 3)))


class Statistics:
    """The statistics of an H (n × d) that the bounds need, all invariant to its scale; in float64.

    Attributes:
        h: H.
        trace: Tr(HᵀH) = ‖H‖²_F.
    """

    def __init__(self, h: Tensor) -> None:
        self.h = _matrix("H", h.detach())
        self.trace = float(self.h.square().sum())
        if not self.trace > 0:
            raise InputError("H is zero and has no covariance to keep: give another H.")

    @cached_property
    def gram(self) -> Tensor:
        """HᵀH/Tr(HᵀH), d × d."""
        return self.h.T @ self.h / self.trace

    @cached_property
    def spectrum(self) -> Tensor:
        """The d values σ²ᵢ/Tr(HᵀH), largest first."""
        return torch.linalg.eigvalsh(self.gram).clamp(min=0).flip(0)

    @property
    def largest(self) -> float:
        """‖HᵀH‖₂/Tr(HᵀH): the error of H̃ = 0. A bound with a larger ε is vacuous."""
        return float(self.spectrum[0])

    @property
    def stable_rank(self) -> float:
        """r = Tr(HᵀH)/‖HᵀH‖₂, from 1 to d."""
        return 1 / self.largest

    @cached_property
    def concentration(self) -> float:
        """ρ = ‖HᵀH‖²_F/Tr(HᵀH)², from 1/d (flat spectrum) to 1 (rank one)."""
        return float(self.gram.square().sum())

    @cached_property
    def shares(self) -> Tensor:
        """‖hᵢ‖²/Tr(HᵀH) of each row."""
        return self.h.square().sum(1) / self.trace

    @cached_property
    def dominance(self) -> float:
        """κ = Σᵢ‖hᵢ‖⁴/Tr(HᵀH)², from 1/n (equal rows) to 1 (all in one row)."""
        return float(self.shares.square().sum())


def second_moment(statistics: Statistics, sketch: Sketch) -> float:
    """E‖HᵀH − H̃ᵀH̃‖²_F/Tr(HᵀH)², exactly; with ρ and κ of :class:`Statistics`, Tr = 1, k rows, density 1/s:

    ======================= =============================================================
    gaussian                (1 + ρ)/k
    rademacher, countsketch (1 + ρ − 2κ)/k
    sparse                  (1 + ρ + (s − 3)·κ)/k
    selection               (1 − ρ)/k
    selection as printed    ‖kM − HᵀH‖²_F + k·(Σ pᵢ‖hᵢ‖⁴ − ‖M‖²_F), M = Σ pᵢhᵢhᵢᵀ
    svd                     Σ_{i>k} σ⁴ᵢ
    noise                   2(d + 1)·std² + n·d·(n + d + 1)·std⁴, std² in units of Tr
    ======================= =============================================================

    Args:
        statistics: The statistics of H, centred if the sketch centres.
        sketch: A sketch without `noise_std`, or `noise`.

    Example:
        >>> from costa.augment import make_sketch
        >>> round(second_moment(Statistics(torch.eye(2)), make_sketch("gaussian", k=100)), 6)
        0.015
    """
    n, d = statistics.h.shape
    k, rho, kappa = sketch.rows(n), statistics.concentration, statistics.dominance
    if isinstance(sketch, NoiseInjection):
        variance = sketch.noise_std**2 / statistics.trace
        return 2 * (d + 1) * variance + n * d * (n + d + 1) * variance**2
    if sketch.noise_std > 0:
        raise InputError(
            f"the bounds are about PH alone: take noise_std = 0 for {sketch.name}, not {sketch.noise_std}."
        )
    if isinstance(sketch, RandomProjection):
        return (1 + rho) / k
    if isinstance(sketch, RademacherProjection | CountSketch):
        return max(0.0, 1 + rho - 2 * kappa) / k
    if isinstance(sketch, SparseProjection):
        return max(0.0, 1 + rho + (1 / sketch.density - 3) * kappa) / k
    if isinstance(sketch, SVDSketch):
        return float(statistics.spectrum[k:].square().sum())
    if isinstance(sketch, RowSelection):
        return max(0.0, 1 - rho) / k if sketch.scaling == "unbiased" else _printed_moment(statistics, k)
    raise InputError(f"there is no second moment for the sketch {sketch.name!r}.")


def _printed_moment(statistics: Statistics, k: int) -> float:
    """The moment for rows drawn with pᵢ ∝ ‖hᵢ‖ and not rescaled: the bias kM − HᵀH and the variance around kM."""
    p = statistics.shares.sqrt() / statistics.shares.sqrt().sum()
    mean = (statistics.h.T * p) @ statistics.h / statistics.trace
    bias = k * mean - statistics.gram
    variance = k * ((p * statistics.shares.square()).sum() - mean.square().sum())
    return max(0.0, float(bias.square().sum() + variance))


@dataclass(frozen=True)
class Guarantee:
    """What the paper states, and what is proved, about one sketch of one H.

    Args:
        statistics: The statistics of H, centred if the sketch centres.
        sketch: A sketch without `noise_std`, or `noise`.

    Example:
        >>> from costa.augment import make_sketch
        >>> h = torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
        >>> guarantee = Guarantee(Statistics(h), make_sketch("gaussian", k=256, center=False))
        >>> print(f"{guarantee.stated_eps(0.05):.3f} {guarantee.proved_eps(0.05):.3f}")
        0.306 0.183
    """

    statistics: Statistics
    sketch: Sketch

    @property
    def rows(self) -> int:
        """k."""
        return self.sketch.rows(len(self.statistics.h))

    @cached_property
    def moment(self) -> float:
        """The second moment of the error."""
        return second_moment(self.statistics, self.sketch)

    def stated(self, eps: float) -> float | None:
        """The failure probability that the paper's lemma states at ε; None without a lemma."""
        if isinstance(self.sketch, RandomProjection):
            return gaussian_failure(eps, self.rows) if eps < 1 else None
        if isinstance(self.sketch, RowSelection) and self.sketch.scaling == "unbiased":
            return selection_failure(eps, self.rows)
        if isinstance(self.sketch, SVDSketch):
            return float(eps < self._svd_eps)
        return None

    def proved(self, eps: float) -> float:
        """The least failure probability at ε that a theorem gives for this H: an upper bound."""
        k, known = self.rows, self.statistics
        if isinstance(self.sketch, SVDSketch):
            return float(eps < float(known.spectrum[k]) if k < len(known.spectrum) else 0.0)
        bounds = [1.0, self.moment / eps**2]
        if isinstance(self.sketch, RandomProjection):
            bounds += [gaussian_tail(eps, k), gaussian_spectral_tail(eps, k, known.stable_rank)]
        if isinstance(self.sketch, RowSelection) and self.sketch.scaling == "unbiased":
            bounds.append(selection_tail(eps, k, known.concentration))
            bounds.append(selection_spectral_tail(eps, k, known.stable_rank, min(known.h.shape)))
        return min(bounds)

    def stated_eps(self, delta: float) -> float | None:
        """The ε of the lemma for a failure probability δ; None if there is none (`gaussian`: none below 1)."""
        _check_delta(delta)
        if isinstance(self.sketch, RandomProjection):
            eps = math.sqrt(-8 * math.log(delta) / self.rows)
            return eps if eps < 1 else None
        if isinstance(self.sketch, RowSelection) and self.sketch.scaling == "unbiased":
            return (1 + math.sqrt(-8 * math.log(delta))) / math.sqrt(self.rows)
        return self._svd_eps if isinstance(self.sketch, SVDSketch) else None

    def proved_eps(self, delta: float) -> float:
        """The smallest ε whose failure probability is proved to be at most δ for this H."""
        _check_delta(delta)
        # Markov's ε is an upper end; if the error is surely zero, it is zero too.
        low, high = 0.0, math.sqrt(self.moment / delta)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if middle > 0 and self.proved(middle) <= delta else (middle, high)
        return high

    @cached_property
    def _svd_eps(self) -> float:
        return float(svd_bound(self.statistics.h, self.rows))


@torch.no_grad()
def draw_errors(
    statistics: Statistics, sketch: Sketch, draws: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """‖HᵀH − H̃ᵀH̃‖₂/Tr and ‖HᵀH − H̃ᵀH̃‖²_F/Tr² of independent draws, float64, on the CPU.

    One batch of differences exists at a time. H is sketched in float32, as in training.

    Args:
        statistics: The statistics of H; centre H first if needed.
        sketch: A sketch with ``center=False``.
        draws: The number of draws.
        generator: Draws P and E.
    """
    if sketch.center:
        raise InputError("errors are measured without centring: give center=False, and centre H first if needed.")
    h, gram = statistics.h.float(), statistics.gram
    d = h.shape[1]
    spectral, frobenius = [], []
    for first in range(0, draws, size := max(1, BATCH // d**2)):
        differences = gram.expand(min(size, draws - first), d, d).clone()
        for difference in differences:
            h_tilde = sketch.draw(h, generator).apply(h).double()
            difference.addmm_(h_tilde.T, h_tilde, alpha=-1 / statistics.trace)
        frobenius.append(differences.square().sum((1, 2)))
        spectral.append(_largest_moduli(differences))
    return torch.cat(spectral).cpu(), torch.cat(frobenius).cpu()


def _largest_moduli(differences: Tensor) -> Tensor:
    """‖D‖₂ of each symmetric D of a batch."""
    if differences.shape[1] < WIDE:
        return torch.linalg.eigvalsh(differences).abs().amax(1)
    from scipy.sparse.linalg import eigsh

    # A fixed start, as ARPACK's default comes from a global generator; and a random direction: centred features
    # whose rows sum to one have D·(1, …, 1) = 0.
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(differences.shape[1], dtype=torch.float64, generator=generator).numpy()
    largest = [
        eigsh(d.cpu().numpy(), k=1, which="LM", v0=start, tol=1e-6, return_eigenvectors=False) for d in differences
    ]
    return torch.tensor([abs(float(value[0])) for value in largest], dtype=torch.float64)


def _smallest_k(failure: Callable[[float, int], float], eps: float, delta: float, estimate: float) -> int:
    """The smallest k with failure(ε, k) ≤ δ, from an estimate that is exact up to rounding."""
    k = math.ceil(estimate)
    while k > 1 and failure(eps, k - 1) <= delta:
        k -= 1
    while failure(eps, k) > delta:
        k += 1
    return k


def _matrix(name: str, h: Tensor) -> Tensor:
    if h.ndim != 2 or h.numel() == 0:
        raise InputError(f"{name} must be a matrix with at least one entry, not of shape {tuple(h.shape)}.")
    if not h.isfinite().all():
        raise InputError(f"{name} holds NaN or infinite values: the covariance error is not defined for them.")
    return h.double()


def _check_rows(k: int) -> None:
    if not k >= 1:
        raise InputError(f"a sketch has at least k = 1 row, not {k!r}.")


def _check_gaussian_eps(eps: float) -> None:
    if not 0 < eps < 1:
        raise InputError(f"the Gaussian lemma is stated for 0 < ε < 1, not for ε = {eps!r}.")


def _check_eps(eps: float) -> None:
    if not 0 < eps < math.inf:
        raise InputError(f"ε must be above 0 and finite, not {eps!r}.")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"the failure probability δ must lie between 0 and 1, not {delta!r}.")
