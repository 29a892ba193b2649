"""The sketches that are not random projections: row selection and the SVD, whose P depends on H, and noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Unpack

import torch
from torch import Tensor

from costa.augment.projection import Dense, Projection
from costa.augment.sketches import Sketch, SketchSettings
from costa.errors import InputError


class RowSelection(Sketch):
    """Row selection: k rows of H with replacement, pᵢ = ‖hᵢ‖²/‖H‖²_F, scaled by 1/√(k·pᵢ). E[H̃ᵀH̃] = HᵀH.

    A zero row is never drawn, and a row drawn twice stays twice. If H is all zero, rows are drawn uniformly, and
    H̃ is zero. P depends on H; no gradient goes through pᵢ.

    Args:
        scaling: ``"unbiased"`` as above, or ``"printed"``: pᵢ ∝ ‖hᵢ‖ and rows not rescaled, as the paper prints it
            (up to the sum of its pᵢ, which is not one). E[H̃ᵀH̃] = HᵀH then fails.
        settings: As for every `Sketch`.
    """

    name = "selection"
    depends_on_h = True

    def __init__(
        self, *, scaling: Literal["unbiased", "printed"] = "unbiased", **settings: Unpack[SketchSettings]
    ) -> None:
        super().__init__(**settings)
        if scaling not in ("unbiased", "printed"):
            raise InputError(f"the scaling of row selection is 'unbiased' or 'printed', not {scaling!r}.")
        self.scaling = scaling

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        norms = torch.linalg.vector_norm(h, dim=1, dtype=torch.float64)
        weights = norms if self.scaling == "printed" else norms.square()
        weights = torch.where(weights.sum() > 0, weights, torch.ones_like(weights))
        cumulative = weights.cumsum(0)
        total = cumulative[-1]
        # u < total, and the first sum *above* u ends a row of positive weight: a zero row cannot be hit.
        # torch.multinomial guarantees less, and raises an internal error on a NaN.
        u = torch.rand(k, generator=generator, device=generator.device, dtype=torch.float64).to(h.device) * total
        chosen = torch.searchsorted(cumulative, u, right=True).clamp_(max=h.shape[0] - 1)
        unbiased = (k * weights[chosen] / total).rsqrt()
        return Selection(chosen, torch.ones_like(u) if self.scaling == "printed" else unbiased, h.shape[0])

    def extra_repr(self) -> str:
        return f"scaling={self.scaling!r}, {super().extra_repr()}"


class SVDSketch(Sketch):
    """P = U_kᵀ of H = UΣVᵀ: deterministic, ‖HᵀH − H̃ᵀH̃‖₂ = σ²_{k+1} exactly, the least possible with k rows.

    k ≤ min(n, d). The entry of largest modulus of each u is made positive. No gradient goes through U: P is a constant
    of the backward pass.
    """

    name = "svd"
    depends_on_h = True

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        n, d = h.shape
        most = min(n, d)
        if k > most:
            requested = f"k={k}" if self.k is not None else f"the k={k} of ratio={self.ratio}"
            raise InputError(
                f"the svd sketch of a {n} × {d} H has at most min(n, d) = {most} rows, fewer than {requested}: "
                f"use k ≤ {most} or ratio ≤ {most / n:.6g}."
            )
        if not h.isfinite().all():
            raise InputError("H holds NaN or infinite values and has no SVD: look for a diverged encoder.")
        # LAPACK and cuSOLVER have no half precision.
        q, r = torch.linalg.qr(h.to(torch.promote_types(h.dtype, torch.float32)))
        # The left singular vectors of R, orthonormal at any rank: 8 ms on an H200, the SVD of H (2,708 × 512) takes 21.
        r = r.double()
        u = q @ torch.linalg.eigh(r @ r.T).eigenvectors.flip(1).to(q.dtype)
        p = u[:, :k].T
        largest = p.gather(1, p.abs().argmax(dim=1, keepdim=True))
        return Dense(torch.where(largest < 0, -p, p))


class NoiseInjection(Sketch):
    """Gaussian noise injection: P = I, E ~ N(0, noise_std²), k = n. E[H̃ᵀH̃] = HᵀH + n·noise_std²·I.

    `noise_std` is 1 by default, as in the paper's table; it is absolute, not relative to the scale of H.

    The settings are those of every `Sketch`, except that `ratio` and `k` are refused (all n rows stay) and that
    `fixed` changes nothing (P is always I, and E always fresh).
    """

    name = "noise"

    def __init__(
        self,
        *,
        ratio: None = None,
        k: None = None,
        noise_std: float = 1.0,
        fixed: bool = False,
        center: bool = True,
        stored: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        if ratio is not None or k is not None:
            raise InputError("the noise sketch keeps all n rows (P = I): leave out ratio and k.")
        super().__init__(noise_std=noise_std, fixed=fixed, center=center, stored=stored, generator=generator)
        self.ratio = None

    def rows(self, n: int) -> int:
        return n

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        return Identity(h.new_ones(k))

    def extra_repr(self) -> str:
        return f"noise_std={self.noise_std}" + ("" if self.center else ", center=False")


@dataclass(frozen=True, eq=False)
class Selection(Projection):
    """P with one entry in each row: row r holds `scales[r]` at column `chosen[r]`."""

    chosen: Tensor
    scales: Tensor
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.chosen.numel(), self.n

    def product(self, h: Tensor) -> Tensor:
        return self.scales[:, None] * h.index_select(0, self.chosen)

    def dense(self) -> Tensor:
        p = self.scales.new_zeros(self.shape)
        p[torch.arange(self.shape[0], device=p.device), self.chosen] = self.scales
        return p


@dataclass(frozen=True, eq=False)
class Identity(Projection):
    """P = I, n × n; the diagonal is kept as n ones for its device and dtype."""

    diagonal: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.diagonal.numel(), self.diagonal.numel()

    def product(self, h: Tensor) -> Tensor:
        return h

    def dense(self) -> Tensor:
        return self.diagonal.diag()
