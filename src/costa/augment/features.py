"""Feature augmentation H̃ = PH + E: every sketch of the paper's framework, as modules for anybody's loop.

H is n × d (one row a node), P is k × n, E is k × d noise. A good sketch keeps the second-order statistics,
‖HᵀH − H̃ᵀH̃‖₂ ≤ ε·Tr(HᵀH), with far fewer rows. With ``center=True`` (the default) the column mean of H is
subtracted before P, and the statements are about the centred H.

============== =================================== ========= ============================================
name           P                                   scale     what holds
============== =================================== ========= ============================================
gaussian       N(0, 1)                             1/√k      E[PᵀP] = I
rademacher     ±1                                  1/√k      E[PᵀP] = I
sparse         ±√s, each w.p. 1/(2s), else 0       1/√k      E[PᵀP] = I; density 1/s
countsketch    one ±1 in each column, row uniform  1         E[PᵀP] = I
selection      rows eᵢ, pᵢ = ‖hᵢ‖²/‖H‖²_F          1/√(k·pᵢ) E[H̃ᵀH̃] = HᵀH
svd            U_kᵀ of H = UΣVᵀ                    1         ‖HᵀH − H̃ᵀH̃‖₂ = σ²_{k+1}
noise          I, E ~ N(0, std²)                   –         E[H̃ᵀH̃] = HᵀH + n·std²·I
============== =================================== ========= ============================================

A sketch is used in one of two ways.

* ``sketch(h)`` or ``sketch(h1, h2)`` returns H̃ (both views with one and the same P) *without the rows of P that
  hold no non-zero*. Those rows of PH are exactly zero, and a loss that scales rows to length one would give them a
  gradient of 1e12. How many rows come back varies from call to call for ``sparse`` and ``countsketch``.
* ``draw = sketch.draw(h)``, then ``draw.apply(h)`` returns all k rows, and ``draw.occupied`` is the mask of the rows
  to count in the loss (``None``: all of them). The shape is the same in every call. ``draw.packed()`` is the same with
  fewer of the others.

Example:
    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> h = torch.randn(100, 16, generator=generator)
    >>> sketch = make_sketch("gaussian", ratio=0.25, generator=generator)
    >>> sketch
    RandomProjection(ratio=0.25)
    >>> sketch(h).shape
    torch.Size([25, 16])
    >>> u, v = sketch(h, h + 0.1)  # two views, one P
    >>> draw = make_sketch("countsketch", k=25, generator=generator).draw(h)
    >>> draw.apply(h).shape, draw.occupied.shape
    (torch.Size([25, 16]), torch.Size([25]))
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import torch
from torch import Tensor, nn

from costa.augment import streams
from costa.augment.projection import (
    Buckets,
    Dense,
    Identity,
    Implicit,
    ImplicitDense,
    ImplicitSparse,
    Projection,
    Selection,
)
from costa.augment.streams import Streams
from costa.errors import InputError


def _number(what: str, value: object) -> float:
    """`value` as a float, or the sentence that says it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InputError(f"{what} must be a finite number, not {value!r}.")
    return float(value)


class Draw:
    """One draw of a sketch: P and, with every `apply`, a fresh E."""

    def __init__(self, p: Projection, *, center: bool, noise_std: float, generator: Streams) -> None:
        self._p = p
        self._center = center
        self._noise_std = noise_std
        self._generator = generator

    @property
    def shape(self) -> tuple[int, int]:
        """(k, n) of P."""
        return self._p.shape

    @property
    def occupied(self) -> Tensor | None:
        """Mask of the k rows of P that hold a non-zero: the rows a loss should count.

        None where all rows do by construction. The other rows of PH are zero; with ``noise_std > 0`` they are E
        alone, which says nothing of H, and they are to be left out all the same.
        """
        return self._p.occupied

    def packed(self) -> Draw:
        """The same draw with fewer of the rows that do not count, for a loss that costs k².

        How many are left depends on k and n alone; those that count keep their order. A CountSketch with as many rows
        as nodes keeps two thirds of them on a large graph and all below 125 nodes. Of the other sketches all stay
        (which rows of a ``sparse`` P are empty is known only once it is drawn), and so they do with ``noise_std > 0``,
        where E has k rows.
        """
        if self._noise_std > 0:
            return self
        return Draw(self._p.packed(), center=self._center, noise_std=self._noise_std, generator=self._generator)

    def apply(self, h: Tensor) -> Tensor:
        """H̃ = PH + E (P(H − mean) + E where the sketch centres), all k rows, with gradients to `h`."""
        _check_features(h)
        if h.shape[-2] != self.shape[1]:
            raise InputError(
                f"p was drawn for {self.shape[1]} rows, but this H has {h.shape[-2]}: two views must hold the same "
                "nodes, and another H needs another draw."
            )
        h_tilde = self._p.product(_centred(h) if self._center else h)
        if self._noise_std > 0:
            noise = streams.normal(self._generator, *h_tilde.shape[-2:], dtype=h.dtype)
            h_tilde = h_tilde + self._noise_std * noise.to(h.device)
        return h_tilde

    def apply_all(self, views: Sequence[Tensor]) -> list[Tensor]:
        """`apply` to each view, side by side: P is drawn, or read, once for all of them."""
        if len({view.shape[:-1] for view in views}) > 1:
            shapes = " and ".join(str(tuple(view.shape)) for view in views)
            raise InputError(f"two views must hold the same nodes, but their shapes are {shapes}.")
        widths = [view.shape[-1] for view in views]
        return list(self.apply(torch.cat(list(views), dim=-1)).split(widths, dim=-1))

    def matrix(self) -> Tensor:
        """P written out, k × n, with its scale: without noise, apply(h) equals matrix() @ (h, centred or not)."""
        return self._p.dense()

    def __repr__(self) -> str:
        return f"Draw({type(self._p).__name__}, k={self.shape[0]}, n={self.shape[1]})"


def _centred(h: Tensor) -> Tensor:
    return h - h.mean(dim=-2, keepdim=True)


def _check_features(h: Tensor) -> None:
    if h.ndim not in (2, 3) or h.shape[-2] < 1 or not h.is_floating_point():
        raise InputError(
            f"a sketch takes H as a floating-point matrix of one row a node, not {h.dtype} of shape {tuple(h.shape)}."
        )


class SketchSettings(TypedDict, total=False):
    """The settings that every sketch takes; `Sketch` says what they mean."""

    ratio: float | None
    k: int | None
    noise_std: float
    fixed: bool
    center: bool
    stored: bool
    generator: Streams | None


class Sketch(nn.Module):
    """H̃ = PH + E, what the sketches have in common; a subclass says how P is sampled.

    Two views share one P. Where P depends on H (`depends_on_h`), it is drawn from the first view, detached. E is
    drawn anew, and independently, for each view.

    Randomness never touches torch's global generator. The generator is the one given to the call, else the one
    given here, else one that the sketch makes on the device of H, seeded from entropy. Random numbers are drawn on
    the *generator's* device and moved to that of H, so a CPU generator gives the same P on either device. For
    ``gaussian``, ``rademacher`` and ``sparse`` that is one seed: their P is a function of it
    (:mod:`costa.augment.philox`) and never stored.

    Args:
        ratio: k/n; k = max(1, round(ratio·n)). Above 1 it up-samples. 0.5 when neither `ratio` nor `k` is given.
        k: The number of rows of H̃, instead of `ratio`.
        noise_std: Standard deviation of the entries of E (absolute).
        fixed: Keep the first P and use it in every later call with the same n (the paper's ran_proj_fix); it
            follows H to another device or dtype. Another n draws a new P, which is then the one kept.
        center: Subtract the column mean of H before P.
        stored: Write P out, k × n, where it would be drawn tile by tile: the same P, for the plain form of things.
        generator: The generator for calls that are not given one.

    Raises:
        InputError: A value is out of its range, or both `ratio` and `k` are given.
    """

    name: ClassVar[str]
    depends_on_h: ClassVar[bool] = False

    def __init__(
        self,
        *,
        ratio: float | None = None,
        k: int | None = None,
        noise_std: float = 0.0,
        fixed: bool = False,
        center: bool = True,
        stored: bool = False,
        generator: Streams | None = None,
    ) -> None:
        super().__init__()
        if ratio is not None and k is not None:
            raise InputError(f"sketch {self.name!r} was given ratio={ratio!r} and k={k!r}: give one of the two.")
        if ratio is not None and _number("the sketch's ratio", ratio) <= 0:
            raise InputError(f"the sketch's ratio is k/n and must be above 0, not {ratio!r}.")
        if k is not None and (isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1):
            raise InputError(f"the sketch's k must be a whole number of rows, at least 1, not {k!r}.")
        if _number("noise_std", noise_std) < 0:
            raise InputError(f"noise_std is a standard deviation and must be at least 0, not {noise_std!r}.")
        self.ratio: float | None = 0.5 if ratio is None and k is None else ratio
        self.k = k if k is None else int(k)
        self.noise_std = noise_std
        self.fixed = fixed
        self.center = center
        self.stored = stored
        self.generator = generator
        self._own_generator: torch.Generator | None = None
        self._kept: dict[tuple[int, int | None], Projection] = {}

    def rows(self, n: int) -> int:
        """The number of rows k of H̃ for an H of n rows."""
        if self.k is not None:
            return self.k
        assert self.ratio is not None
        return max(1, round(self.ratio * n))

    def draw(self, h: Tensor, generator: Streams | None = None) -> Draw:
        """Draw P for `h` (n × d): its shape, device and dtype; its values too where `depends_on_h`."""
        _check_features(h)
        generator = self._generator_for(h, generator)
        if h.ndim == 3 and (isinstance(generator, torch.Generator) or len(generator) != len(h)):
            raise InputError(f"a stack of {len(h)} H needs as many generators, one for each of them.")
        if h.ndim == 3 and self.depends_on_h:
            raise InputError(f"{self.name} takes its P from H itself, and from one at a time, not from a stack.")
        n = h.shape[-2]
        meant_for = n, None if isinstance(generator, torch.Generator) else len(generator)
        p = self._kept.get(meant_for) if self.fixed else None
        if p is None:
            source = _centred(h.detach()) if self.center and self.depends_on_h else h.detach()
            p = self._sample(source, self.rows(n), generator)
        p = p.to(h)
        if self.stored and isinstance(p, Implicit):
            p = Dense(p.dense(), p.occupied)
        if self.fixed:
            self._kept = {meant_for: p}
        return Draw(p, center=self.center, noise_std=self.noise_std, generator=generator)

    def reset(self) -> None:
        """Forget the P that `fixed=True` keeps; the next call draws a new one."""
        self._kept = {}

    def forward(
        self, h1: Tensor, h2: Tensor | None = None, generator: Streams | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """H̃, or (H̃₁, H̃₂) from one P, without the rows of P that are empty (the same rows for both views).

        A `sparse` P of very low density can be empty altogether; no row comes back then.
        """
        if h1.ndim == 3:
            raise InputError(
                "of a stacked H the rows that are empty differ; use draw() and apply(), which keep all rows."
            )
        draw = self.draw(h1, generator)
        views = draw.apply_all([h for h in (h1, h2) if h is not None])
        occupied = draw.occupied
        if occupied is not None:
            kept = occupied.nonzero().squeeze(1)
            views = [view.index_select(0, kept) for view in views]
        return views[0] if h2 is None else (views[0], views[1])

    def extra_repr(self) -> str:
        """The settings, as `repr` shows them."""
        parts = [f"k={self.k}" if self.k is not None else f"ratio={self.ratio}"]
        parts += [f"noise_std={self.noise_std}"] if self.noise_std else []
        parts += ["fixed=True"] if self.fixed else []
        parts += [] if self.center else ["center=False"]
        return ", ".join(parts)

    def _generator_for(self, h: Tensor, generator: Streams | None) -> Streams:
        generator = generator or self.generator
        if generator is not None:
            return generator
        if self._own_generator is None or self._own_generator.device != h.device:
            self._own_generator = torch.Generator(device=h.device)
            self._own_generator.seed()
        return self._own_generator

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        """P for `h`, which is detached, and centred where it matters; on whichever device is handy."""
        raise NotImplementedError


class RandomProjection(Sketch):
    """Gaussian random projection, P ~ N(0, 1)/√k: the paper's default. E[PᵀP] = I."""

    name = "gaussian"

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        return ImplicitDense(_seed(generator), k, h.shape[-2], 1 / math.sqrt(k), h.new_empty(0), gaussian=True)


class RademacherProjection(Sketch):
    """Random signs, P = ±1/√k. E[PᵀP] = I, and the diagonal of PᵀP is exactly one."""

    name = "rademacher"

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        return ImplicitDense(_seed(generator), k, h.shape[-2], 1 / math.sqrt(k), h.new_empty(0), gaussian=False)


class SparseProjection(Sketch):
    """Very sparse random projection: P = ±√s/√k, each with probability 1/(2s), else 0. E[PᵀP] = I.

    Entries are i.i.d.; drawing and applying P cost O(k·n/s) and O(k·n·d/s). Rows can be empty.

    Args:
        density: 1/s, 0 < density ≤ 1. At 1 this is `rademacher`, in law.
        settings: As for every `Sketch`.
    """

    name = "sparse"

    def __init__(self, *, density: float = 0.01, **settings: Unpack[SketchSettings]) -> None:
        super().__init__(**settings)
        if not 0 < _number("the density of a sparse sketch", density) <= 1:
            raise InputError(f"the density of a sparse sketch must be above 0 and at most 1, not {density!r}.")
        self.density = density

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        scale = 1 / math.sqrt(self.density * k)
        return ImplicitSparse(_seed(generator), k, h.shape[-2], scale, h.new_empty(0), density=self.density)

    def extra_repr(self) -> str:
        """The settings, as `repr` shows them."""
        return f"density={self.density}, {super().extra_repr()}"


class CountSketch(Sketch):
    """CountSketch: each column of P holds one ±1, in a row drawn uniformly. E[PᵀP] = I, and PH costs O(n·d).

    A row stays empty with probability (1 − 1/k)ⁿ: 13.5% of the rows at ratio 0.5.
    """

    name = "countsketch"

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        n = h.shape[-2]
        buckets = streams.integers(generator, k, n)
        return Buckets(buckets, streams.integers(generator, 2, n).to(h.dtype).mul_(2).sub_(1), k)


class RowSelection(Sketch):
    """Row selection: k rows of H with replacement, pᵢ = ‖hᵢ‖²/‖H‖²_F, scaled by 1/√(k·pᵢ). E[H̃ᵀH̃] = HᵀH.

    A zero row is never drawn, and a row drawn twice stays twice. If H is all zero, rows are drawn uniformly, and
    H̃ is zero. P depends on H; no gradient goes through pᵢ.

    Args:
        scaling: ``"unbiased"`` as above, or ``"printed"``: pᵢ ∝ ‖hᵢ‖ and rows not rescaled, as the paper prints it
            (up to the sum of its pᵢ, which is not one); E[H̃ᵀH̃] = HᵀH does not hold then.
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

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        norms = torch.linalg.vector_norm(h, dim=1, dtype=torch.float64)
        weights = norms if self.scaling == "printed" else norms.square()
        weights = torch.where(weights.sum() > 0, weights, torch.ones_like(weights))
        cumulative = weights.cumsum(0)
        total = cumulative[-1]
        # u < total, and the first sum *above* u ends a row of positive weight: a zero row cannot be hit.
        # torch.multinomial promises that less strictly, and stops with an error from inside on a NaN.
        u = streams.uniform(generator, k, dtype=torch.float64).to(h.device) * total
        chosen = torch.searchsorted(cumulative, u, right=True).clamp_(max=h.shape[0] - 1)
        unbiased = (k * weights[chosen] / total).rsqrt()
        return Selection(chosen, torch.ones_like(u) if self.scaling == "printed" else unbiased, h.shape[0])

    def extra_repr(self) -> str:
        """The settings, as `repr` shows them."""
        return f"scaling={self.scaling!r}, {super().extra_repr()}"


class SVDSketch(Sketch):
    """P = U_kᵀ of H = UΣVᵀ: deterministic, ‖HᵀH − H̃ᵀH̃‖₂ = σ²_{k+1} exactly, the least that k rows can do.

    k ≤ min(n, d). The sign of each u is fixed by making its entry of largest modulus positive. No gradient goes
    through U: P is a constant of the backward pass.
    """

    name = "svd"
    depends_on_h = True

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        n, d = h.shape
        most = min(n, d)
        if k > most:
            asked = f"k={k}" if self.k is not None else f"the k={k} of ratio={self.ratio}"
            raise InputError(
                f"the svd sketch of a {n} × {d} H has at most min(n, d) = {most} rows, fewer than {asked}: "
                f"use k ≤ {most} or ratio ≤ {most / n:.6g}."
            )
        if not h.isfinite().all():
            raise InputError("H holds NaN or infinite values and has no SVD: look for a diverged encoder.")
        # LAPACK and cuSOLVER know no half precision.
        q, r = torch.linalg.qr(h.to(torch.promote_types(h.dtype, torch.float32)))
        # The left singular vectors of R, orthonormal at any rank; on an H200 in 8 ms, the SVD of H (2,708 × 512) in 21.
        r = r.double()
        u = q @ torch.linalg.eigh(r @ r.T).eigenvectors.flip(1).to(q.dtype)
        p = u[:, :k].T
        largest = p.gather(1, p.abs().argmax(dim=1, keepdim=True))
        return Dense(torch.where(largest < 0, -p, p))


class NoiseInjection(Sketch):
    """Gaussian noise injection: P = I, E ~ N(0, noise_std²), k = n. E[H̃ᵀH̃] = HᵀH + n·noise_std²·I.

    Here E is all there is, so `noise_std` is 1 by default, as in the paper's table; it is absolute, not relative to
    the scale of H. Every view gets its own E.

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
        generator: Streams | None = None,
    ) -> None:
        if ratio is not None or k is not None:
            raise InputError("the noise sketch keeps all n rows (P = I): leave out ratio and k.")
        super().__init__(noise_std=noise_std, fixed=fixed, center=center, stored=stored, generator=generator)
        self.ratio = None

    def rows(self, n: int) -> int:
        """The number of rows of H̃: n, all of them."""
        return n

    def _sample(self, h: Tensor, k: int, generator: Streams) -> Projection:
        return Identity(h.new_ones(k))

    def extra_repr(self) -> str:
        """The settings, as `repr` shows them."""
        return f"noise_std={self.noise_std}" + ("" if self.center else ", center=False")


def _seed(generator: Streams) -> Tensor:
    """What a P that is never stored is a function of."""
    return streams.integers(generator, 2**63 - 1)


SKETCHES: dict[str, type[Sketch]] = {
    sketch.name: sketch
    for sketch in (
        RandomProjection,
        RademacherProjection,
        SparseProjection,
        CountSketch,
        RowSelection,
        SVDSketch,
        NoiseInjection,
    )
}


def make_sketch(name: str, **settings: Any) -> Sketch:
    """The sketch called `name` with these settings.

    Args:
        name: A key of `SKETCHES`.
        settings: Those of `Sketch`, and the sketch's own (`density` of ``sparse``, `scaling` of ``selection``).

    Raises:
        InputError: No such sketch, a setting that it does not have, or a value out of range.

    Example:
        >>> make_sketch("sparse", density=0.02, k=64)
        SparseProjection(density=0.02, k=64)
    """
    if name not in SKETCHES:
        raise InputError(f"there is no sketch {name!r}: choose one of {', '.join(SKETCHES)}.")
    cls = SKETCHES[name]
    own = [p.name for p in inspect.signature(cls).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [*own, *(s for s in SketchSettings.__annotations__ if s not in own)]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise InputError(
            f"the sketch {name!r} has no setting {', '.join(map(repr, unknown))}: it takes {', '.join(known)}."
        )
    return cls(**settings)
