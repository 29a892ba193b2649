"""Feature augmentation H̃ = PH + E: every sketch of the paper's framework, as modules for any training loop.

H is n × d (one row per node), P is k × n, E is k × d noise. A good sketch keeps the second-order statistics,
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

* ``sketch(h)`` or ``sketch(h1, h2)`` returns H̃ (of both views, with the same P) *without the empty rows of P*. Those
  rows of PH are exactly zero, and a loss that scales rows to length one would give them a gradient of 1e12. The number
  of rows varies from call to call for ``sparse`` and ``countsketch``.
* ``draw = sketch.draw(h)``, then ``draw.apply(h)`` returns all k rows, and ``draw.occupied`` is the mask of the rows
  to count in the loss (``None``: all of them). The shape is the same in every call.

Example:
    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> h = torch.randn(100, 16, generator=generator)
    >>> sketch = RandomProjection(ratio=0.25, generator=generator)
    >>> sketch(h).shape
    torch.Size([25, 16])
    >>> u, v = sketch(h, h + 0.1)  # two views, one P
    >>> draw = CountSketch(k=25, generator=generator).draw(h)
    >>> draw.apply(h).shape, draw.occupied.shape
    (torch.Size([25, 16]), torch.Size([25]))
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import ClassVar, TypedDict, Unpack

import torch
from torch import Tensor, nn

from costa.augment.implicit import Implicit, ImplicitDense, ImplicitSparse
from costa.augment.projection import Buckets, Dense, Projection
from costa.errors import InputError
from costa.nn.ranks import Ranks


class Draw:
    """One draw of a sketch: P and, with every `apply`, a fresh E."""

    def __init__(self, p: Projection, *, center: bool, noise_std: float, generator: torch.Generator) -> None:
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
        """Mask of the k rows of P that hold a non-zero, the rows a loss should count; None if all do by construction.

        The other rows of H̃ are zero, or E alone with ``noise_std > 0``, which says nothing about H either.
        """
        return self._p.occupied

    def packed(self) -> Draw:
        """The same draw with fewer empty rows, for a loss that costs k².

        The number of rows depends on k and n alone, and occupied rows keep their order. A CountSketch with as many
        rows as nodes keeps two thirds of them on a large graph and all below 125 nodes. Other sketches keep all rows,
        and so does every sketch with ``noise_std > 0``.
        """
        if self._noise_std > 0:
            return self
        return Draw(self._p.packed(), center=self._center, noise_std=0.0, generator=self._generator)

    def split(self, held: Tensor, ranks: Ranks) -> SplitDraw:
        """The same draw, to be applied to the rows ``held`` of an H whose rows are spread over ranks."""
        return SplitDraw(self, held, ranks)

    def apply(self, h: Tensor) -> Tensor:
        """H̃ = PH + E (P(H − mean) + E if the sketch centres), all k rows, with gradients to `h`."""
        _check_features(h)
        if h.shape[0] != self.shape[1]:
            raise InputError(
                f"this P was drawn for {self.shape[1]} rows, but this H has {h.shape[0]}: two views must hold the same "
                "nodes, and another H needs another draw."
            )
        return self._noisy(self._p.product(_centred(h) if self._center else h))

    def apply_all(self, views: Sequence[Tensor]) -> list[Tensor]:
        """`apply` to all views side by side, so that P is drawn or read only once."""
        if len({len(view) for view in views}) > 1:
            shapes = " and ".join(str(tuple(view.shape)) for view in views)
            raise InputError(f"two views must hold the same nodes, but their shapes are {shapes}.")
        widths = [view.shape[1] for view in views]
        return list(self.apply(torch.cat(list(views), dim=1)).split(widths, dim=1))

    def _noisy(self, sketch: Tensor) -> Tensor:
        if self._noise_std == 0:
            return sketch
        generator = self._generator
        noise = torch.randn(sketch.shape, generator=generator, device=generator.device, dtype=sketch.dtype)
        return sketch + self._noise_std * noise.to(sketch.device)

    def matrix(self) -> Tensor:
        """P written out, k × n, with its scale: without centring and noise, apply(h) equals matrix() @ h."""
        return self._p.dense()

    def __repr__(self) -> str:
        return f"Draw({type(self._p).__name__}, k={self.shape[0]}, n={self.shape[1]})"


class SplitDraw(Draw):
    """A draw for an H whose rows are spread over ranks, P H = Σ_r P_r H_r with P_r the columns of P for rank r's rows.

    One sum over the ranks gives all that is needed, the column means μ included:

        [P; 1ᵀ]·[H, 1] = Σ_r [P_r; 1ᵀ]·[H_r, 1] = [PH, P1; nμᵀ, n],    P(H − 1μᵀ) = PH − (P1)μᵀ.

    E is added after the sum, the same on all ranks, and what is `occupied` are the rows of the whole P. The result is
    the same on all ranks.
    """

    def __init__(self, whole: Draw, held: Tensor, ranks: Ranks) -> None:
        super().__init__(whole._p, center=whole._center, noise_std=whole._noise_std, generator=whole._generator)
        self._held, self._ranks = held, ranks

    def packed(self) -> SplitDraw:
        """The same draw with fewer empty rows."""
        return super().packed().split(self._held, self._ranks)

    def apply(self, h: Tensor) -> Tensor:
        """H̃ of the whole H; `h` are the rows that this rank holds, perhaps none."""
        p = self._p.columns(self._held)
        if not self._center:
            return self._noisy(self._ranks.common_total(p.product(h)))
        h = torch.cat([h, h.new_ones(len(h), 1)], dim=1)
        total = self._ranks.common_total(torch.cat([p.product(h), h.sum(0, keepdim=True)]))
        sketch, sums = total[:-1], total[-1:]
        return self._noisy(sketch[:, :-1] - sketch[:, -1:] * (sums[:, :-1] / self.shape[1]))


def _centred(h: Tensor) -> Tensor:
    return h - h.mean(dim=0, keepdim=True)


def _check_features(h: Tensor) -> None:
    if h.ndim != 2 or h.shape[0] < 1 or not h.is_floating_point():
        raise InputError(f"H must be a floating-point matrix, n × d, not {h.dtype} of shape {tuple(h.shape)}.")


class SketchSettings(TypedDict, total=False):
    """The settings of every sketch, as `Sketch` documents them."""

    ratio: float | None
    k: int | None
    noise_std: float
    fixed: bool
    center: bool
    stored: bool
    generator: torch.Generator | None


class Sketch(nn.Module):
    """H̃ = PH + E: the base of all sketches; a subclass samples P.

    Two views share one P. If P depends on H (`depends_on_h`), it is drawn from the first view, detached. Each view
    gets its own, independent E.

    Randomness never touches torch's global generator. The generator is the one given to the call, else the one given
    here, else one that the sketch makes on the device of H, seeded from entropy. Random numbers are drawn on the
    *generator's* device and moved to that of H, so a CPU generator gives the same P on either device. ``gaussian``,
    ``rademacher`` and ``sparse`` draw only a seed: their P is a function of it (:mod:`costa.nn.philox`). It is not
    stored, except that a CPU keeps a small ``gaussian`` or ``rademacher`` P (:mod:`costa.augment.implicit`).

    Args:
        ratio: k/n; k = max(1, round(ratio·n)). Above 1 it up-samples. 0.5 when neither `ratio` nor `k` is given.
        k: The number of rows of H̃, instead of `ratio`.
        noise_std: Standard deviation of the entries of E (absolute).
        fixed: Keep the first P for every later call with the same n (the paper's ran_proj_fix), on the device and in
            the dtype of H. Another n draws and keeps a new P.
        center: Subtract the column mean of H before P.
        stored: Write out a P that would be drawn tile by tile: the same P, for the plain form.
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
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if ratio is not None and k is not None:
            raise InputError(f"sketch {self.name!r} was given ratio={ratio!r} and k={k!r}: give one of the two.")
        if ratio is not None and not (_finite(ratio) and ratio > 0):
            raise InputError(f"the sketch's ratio, k/n, must be a finite number above 0, not {ratio!r}.")
        if k is not None and not (_finite(k) and isinstance(k, numbers.Integral) and k >= 1):
            raise InputError(f"the sketch's k must be a whole number of rows, at least 1, not {k!r}.")
        if not (_finite(noise_std) and noise_std >= 0):
            raise InputError(f"noise_std, a standard deviation, must be finite and at least 0, not {noise_std!r}.")
        self.ratio: float | None = 0.5 if ratio is None and k is None else ratio
        self.k = k if k is None else int(k)
        self.noise_std = noise_std
        self.fixed = fixed
        self.center = center
        self.stored = stored
        self.generator = generator
        self._default_generator: torch.Generator | None = None
        self._kept: Projection | None = None

    def rows(self, n: int) -> int:
        """The number of rows k of H̃ for an H of n rows."""
        if self.k is not None:
            return self.k
        assert self.ratio is not None
        return max(1, round(self.ratio * n))

    def draw(self, h: Tensor, generator: torch.Generator | None = None) -> Draw:
        """Draw P for the shape, device and dtype of `h` (n × d), and for its values if `depends_on_h`."""
        _check_features(h)
        generator = self._generator_for(h, generator)
        n = h.shape[0]
        p = self._kept if self.fixed else None
        if p is None or p.shape[1] != n:
            source = _centred(h.detach()) if self.center and self.depends_on_h else h.detach()
            p = self._sample(source, self.rows(n), generator)
        p = p.to(h)
        if self.stored and isinstance(p, Implicit):
            p = Dense(p.dense(), p.occupied)
        if self.fixed:
            self._kept = p
        return Draw(p, center=self.center, noise_std=self.noise_std, generator=generator)

    def forward(
        self, h1: Tensor, h2: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """H̃, or (H̃₁, H̃₂) from one P, without the empty rows of P; a very sparse P can leave no row at all."""
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

    def _generator_for(self, h: Tensor, generator: torch.Generator | None) -> torch.Generator:
        generator = generator or self.generator
        if generator is not None:
            return generator
        if self._default_generator is None or self._default_generator.device != h.device:
            self._default_generator = torch.Generator(device=h.device)
            self._default_generator.seed()
        return self._default_generator

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        """P for `h`, which is detached, and centred if P depends on it; on any device."""
        raise NotImplementedError


class RandomProjection(Sketch):
    """Gaussian random projection, P ~ N(0, 1)/√k: the paper's default. E[PᵀP] = I."""

    name = "gaussian"

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        return ImplicitDense(_seed(generator), k, h.shape[0], 1 / math.sqrt(k), h.new_empty(0), gaussian=True)


class RademacherProjection(Sketch):
    """Random signs, P = ±1/√k. E[PᵀP] = I, and the diagonal of PᵀP is exactly one."""

    name = "rademacher"

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        return ImplicitDense(_seed(generator), k, h.shape[0], 1 / math.sqrt(k), h.new_empty(0), gaussian=False)


class SparseProjection(Sketch):
    """Very sparse random projection: P = ±√s/√k, each with probability 1/(2s), else 0. E[PᵀP] = I.

    Entries are i.i.d.; drawing and applying P cost O(k·n/s) and O(k·n·d/s). Rows can be empty.

    Args:
        density: 1/s, 0 < density ≤ 1. At 1 P has the distribution of `rademacher`.
        settings: As for every `Sketch`.
    """

    name = "sparse"

    def __init__(self, *, density: float = 0.01, **settings: Unpack[SketchSettings]) -> None:
        super().__init__(**settings)
        if not (_finite(density) and 0 < density <= 1):
            raise InputError(f"the density of a sparse sketch must be a number above 0 and at most 1, not {density!r}.")
        self.density = density

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        scale = 1 / math.sqrt(self.density * k)
        return ImplicitSparse(_seed(generator), k, h.shape[0], scale, h.new_empty(0), density=self.density)

    def extra_repr(self) -> str:
        """The settings, as `repr` shows them."""
        return f"density={self.density}, {super().extra_repr()}"


class CountSketch(Sketch):
    """CountSketch: each column of P holds one ±1, in a row drawn uniformly. E[PᵀP] = I, and PH costs O(n·d).

    A row stays empty with probability (1 − 1/k)ⁿ: 13.5% of the rows at ratio 0.5.
    """

    name = "countsketch"

    def _sample(self, h: Tensor, k: int, generator: torch.Generator) -> Projection:
        n = h.shape[0]
        buckets = _integers(generator, k, n)
        return Buckets(buckets, _integers(generator, 2, n).to(h.dtype).mul_(2).sub_(1), k)


def _finite(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def _integers(generator: torch.Generator, high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape, generator=generator, device=generator.device)


def _seed(generator: torch.Generator) -> Tensor:
    """The seed of an implicit P."""
    return _integers(generator, 2**63 - 1)
