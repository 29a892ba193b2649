"""How well a sketch keeps the covariance, and what the paper proves about it.

The measure is error(H, H̃) = ‖HᵀH − H̃ᵀH̃‖₂ against ε·Tr(HᵀH), where H̃ = PH. For a sketch with ``center=True`` the
statements are about the centred H: pass ``h - h.mean(0)`` here.

Each lemma has a domain, and outside it these functions refuse or return the trivial bound. There is no lemma for
`rademacher`, `sparse` and `countsketch`; in particular the Gaussian one does not carry over to a sparse P. (Density
0.01, one dominant row in H, k = 50, ε = 0.3: the sketch fails always, where the Gaussian lemma would say 0.57.)
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from costa.errors import InputError


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

    Where H is zero this is 0 if H̃ is zero too, and infinite otherwise.
    """
    error = covariance_error(h, h_tilde)
    return torch.where(error > 0, error / h.double().square().sum(), 0.0)


@torch.no_grad()
def svd_bound(h: Tensor, k: int) -> Tensor:
    """ε = σ_{k+1}/σ₁, with which H̃ = U_kᵀH satisfies ‖HᵀH − H̃ᵀH̃‖₂ ≤ ε·Tr(HᵀH). Holds always.

    The lemma is generous: the error itself is σ²_{k+1}. It is 0 for k at least the rank of H, judged as
    `torch.linalg.matrix_rank` does in float64.
    """
    _check_rows(k)
    sigma = torch.linalg.svdvals(_matrix("H", h))
    if k >= sigma.numel() or sigma[k] <= max(h.shape) * torch.finfo(torch.float64).eps * sigma[0]:
        return sigma.new_zeros(())
    return sigma[k] / sigma[0]


def gaussian_failure(eps: float, k: int) -> float:
    """e^{−ε²k/8}: at most how often ‖HᵀH − H̃ᵀH̃‖₂ > ε·Tr(HᵀH) for a Gaussian P of k rows, 0 < ε < 1.

    The printed proof fixes an eigenvector that depends on P, and bounds one of two tails; so it proves less than it
    states. The statement itself was not seen to fail: for H of rank one the exact failure probability
    is P(|χ²_k/k − 1| > ε), which stays below this bound (for k < 400, as far as it was computed).

    Example:
        >>> round(gaussian_failure(0.3, 256), 4)
        0.0561
    """
    _check_gaussian_eps(eps)
    _check_rows(k)
    return math.exp(-(eps**2) * k / 8)


def selection_failure(eps: float, k: int) -> float:
    """e^{−(ε√k−1)²/8} for ε√k > 1, else 1: how often at most ‖HᵀH − H̃ᵀH̃‖₂ > ε·Tr(HᵀH) for rescaled selection.

    It is about rows drawn with pᵢ = ‖hᵢ‖²/‖H‖²_F and scaled by 1/√(k·pᵢ), not about ``scaling="printed"``. The print
    gives no domain, but its proof sets ε = (1 + √(8·log 1/δ))/√k, which exceeds 1/√k; below that the printed
    expression rises again and cannot be meant (k = 16, ε = 0.02: it says 0.90, and every draw fails).

    Example:
        >>> selection_failure(0.02, 16)
        1.0
    """
    _check_selection_eps(eps)
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
    _check_selection_eps(eps)
    _check_delta(delta)
    return _smallest_k(selection_failure, eps, delta, ((1 + math.sqrt(-8 * math.log(delta))) / eps) ** 2)


def _smallest_k(failure: Callable[[float, int], float], eps: float, delta: float, estimate: float) -> int:
    """The smallest k with failure(ε, k) ≤ δ, from an estimate that is right up to rounding."""
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


def _check_selection_eps(eps: float) -> None:
    if not 0 < eps < math.inf:
        raise InputError(f"the selection lemma is stated for ε > 0, not for ε = {eps!r}.")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"the failure probability δ must lie between 0 and 1, not {delta!r}.")
