"""A batched L-BFGS for :mod:`costa.evaluate.logistic`: all training sets × strengths at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from costa.nn import SparseMatrix

HISTORY = 10

MAX_ITERATIONS = 1000


def is_wide(rows: int, columns: int) -> bool:
    """Whether a training set has few enough rows for an eigenbasis of its own to pay off."""
    return 2 * rows < columns


class TrainingSets(Protocol):
    """What :func:`minimise` needs of T training sets of m rows aᵢ, whose last coordinate is the intercept's 1."""

    @property
    def real(self) -> Tensor:
        """1 for a row, 0 for padding, T × m."""

    @property
    def values(self) -> Tensor:
        """The diagonal of Σᵢ aᵢaᵢᵀ, T × r."""

    def along(self, w: Tensor) -> Tensor:
        """⟨w, aᵢ⟩ for every row, T × any × m, of parameters T × any × r."""

    def of_rows(self, p: Tensor) -> Tensor:
        """Σᵢ pᵢ aᵢ, T × any × r, of weights T × any × m."""


@dataclass(frozen=True)
class Coordinates:
    """Centred training sets in coordinates aᵢ; the last coordinate is the intercept's constant 1.

    Attributes:
        rows: The aᵢ, T × m × r; zero in the padding of a training set with fewer than m rows.
        values: λ, the diagonal of Σᵢ aᵢaᵢᵀ, T × r.
        mean: The features' mean, T × d.
        points: The centred features, T × m × d, if the coordinates are not these features; else None.
        axes: The coordinates' axes, as coefficients of the points, T × m × (r − 1); else None.
    """

    rows: Tensor
    values: Tensor
    mean: Tensor
    points: Tensor | None = None
    axes: Tensor | None = None

    @classmethod
    def of(cls, x: Tensor, real: Tensor) -> Coordinates:
        """The coordinates of padded training sets, T × m × d; ``real`` marks the rows that are not padding."""
        ones = real.to(x.dtype)[..., None]
        count = ones.sum(1)
        mean = (x * ones).sum(1) / count
        x = (x - mean[:, None]) * ones
        if not is_wide(x.shape[1], x.shape[2]):
            return cls(torch.cat([x, ones], -1), torch.cat([x.square().sum(1), count], -1), mean)
        values, vectors = torch.linalg.eigh(x @ x.mT)
        # Eigenvalues have an error of about 1e-16·λ_max; those below it are not directions of the rows.
        values = values.where(values > 1e-13 * values[:, -1:], 0.0)
        lengths = values.sqrt()[:, None]
        rows, axes = vectors * lengths, vectors / lengths.where(lengths > 0, torch.inf)
        return cls(torch.cat([rows, ones], -1), torch.cat([values, count], -1), mean, x, axes)

    @property
    def real(self) -> Tensor:
        """1 for a row, 0 for padding, T × m."""
        return self.rows[..., -1]

    def along(self, w: Tensor) -> Tensor:
        """⟨w, aᵢ⟩ for every row, T × any × m, of parameters T × any × r."""
        return w @ self.rows.mT

    def of_rows(self, p: Tensor) -> Tensor:
        """Σᵢ pᵢ aᵢ, T × any × r, of weights T × any × m."""
        return p @ self.rows

    def to_features(self, w: Tensor) -> Tensor:
        """Coefficients of coordinates (T × any × (r − 1)) as coefficients of features (T × any × d)."""
        # Computing the axes in feature space first would be a far larger product than these two.
        return w if self.points is None or self.axes is None else (w @ self.axes.mT) @ self.points


class SparseCoordinates:
    """One training set of sparse rows, in its own columns, centred without being written out.

    A sparse column has few neighbours in the Gram matrix, so that its diagonal serves without a rotation.

    Args:
        rows: m × d, CSR in float64.
    """

    def __init__(self, rows: Tensor) -> None:
        m, d = rows.shape
        column, stored = rows.col_indices(), rows.values()
        self.mean = torch.bincount(column, stored, d) / m
        squares = torch.bincount(column, stored.square(), d) - m * self.mean.square()
        self.values = torch.cat([squares.clamp_min(0), squares.new_tensor([m])])[None]
        self.real = torch.ones(1, m, dtype=rows.dtype, device=rows.device)
        self._centred = SparseMatrix.from_csr(rows, shift=self.mean)

    def along(self, w: Tensor) -> Tensor:
        """⟨w, aᵢ⟩ for every row, 1 × any × m."""
        return ((self._centred @ w[0, :, :-1].mT) + w[0, :, -1]).mT.contiguous()[None]

    def of_rows(self, p: Tensor) -> Tensor:
        """Σᵢ pᵢ aᵢ, 1 × any × r."""
        return torch.cat([self._centred.transposed_product(p[0].mT).mT, p[0].sum(-1, keepdim=True)], -1)[None]


class _History:
    """The last steps s of T × G problems with the gradient's changes y along them: L-BFGS' inverse Hessian H.

    With S and Y the steps and changes as rows, R the upper triangle of S Yᵀ, E its diagonal, and a diagonal B,

        H = Vᵀ B⁻¹ V + Sᵀ R⁻ᵀ E R⁻¹ S,    V = I − Yᵀ R⁻¹ S,

    which is what the usual two loops over the pairs compute one after the other. R is triangular in the order of
    age. So a new pair adds a column to R⁻¹, and the oldest pair, whose column is zero off the diagonal, is removed with
    its row. This holds in any order of storage, so the new pair takes the oldest one's slot.
    """

    def __init__(self, like: Tensor) -> None:
        sets, strengths = like.shape[:2]
        self.steps = like.new_empty(sets, strengths, HISTORY, like[0, 0].numel())
        self.changes = torch.empty_like(self.steps)
        self.inverse = like.new_zeros(sets, strengths, HISTORY, HISTORY)
        self.curvatures = like.new_zeros(sets, strengths, 1, HISTORY)
        self.pushed = 0

    def push(self, length: Tensor, direction: Tensor, gradient: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Store s = length · direction if its curvature ⟨s, y⟩ > 0; return y and the curvature."""
        slot = self.pushed % HISTORY
        self.pushed += 1
        change = self.changes[:, :, slot].view_as(gradient)
        torch.sub(gradient, previous, out=change)
        torch.mul(length, direction, out=self.steps[:, :, slot].view_as(gradient))
        self.inverse[:, :, slot] = 0
        steps, changes, inverse, curvatures = self._used()
        products = changes[:, slot, None] @ steps.mT
        curvature = products[..., slot, None]
        column = products @ inverse.mT
        column[..., slot] = -1
        torch.div(column, torch.where(curvature > 0, -curvature, -torch.inf), out=inverse[..., slot, None].mT)
        curvatures[..., slot, None] = curvature
        return change, curvature.view_as(length)

    def apply(self, gradient: Tensor, diagonal: Tensor) -> Tensor:
        """H∇ for the diagonal B."""
        if not self.pushed:
            return gradient / diagonal
        steps, changes, inverse, curvatures = self._used()
        given = gradient.view(len(steps), 1, -1)
        factors = given @ steps.mT @ inverse.mT
        scaled = torch.baddbmm(given, factors, changes, alpha=-1) / diagonal.reshape_as(given)
        added = (curvatures * factors - scaled @ changes.mT) @ inverse
        return torch.baddbmm(scaled, added, steps).view_as(gradient)

    def keep(self, strengths: Tensor) -> None:
        """Keep only these strengths."""
        used = slice(0, min(self.pushed, HISTORY))
        for name in ("steps", "changes"):
            old = getattr(self, name)
            new = old.new_empty(len(old), len(strengths), *old.shape[2:])
            new[:, :, used] = old[:, strengths, used]
            setattr(self, name, new)
        self.inverse, self.curvatures = self.inverse[:, strengths], self.curvatures[:, strengths]

    def _used(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The slots that hold a pair, with the problems in one dimension."""
        used = slice(0, min(self.pushed, HISTORY))
        parts = (self.steps[:, :, used], self.changes[:, :, used], self.inverse[..., used, used])
        steps, changes, inverse, curvatures = (part.flatten(0, 1) for part in (*parts, self.curvatures[..., used]))
        return steps, changes, inverse, curvatures


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """The inner product of each problem's matrices, as a 1 × 1 matrix that broadcasts over them."""
    return (a * b).sum((-1, -2), keepdim=True)


def _losses(logits: Tensor, target: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Σᵢ −log pᵢ[yᵢ] of each problem, p − target, and Σᵢ pᵢ(1 − pᵢ) of each class."""
    p = logits.softmax(2)
    loss = -p.gather(2, index.expand(-1, p.shape[1], -1, -1)).log_().sum(-1, keepdim=True)
    norm = torch.linalg.vector_norm(p, dim=-1, keepdim=True)
    spread = torch.addcmul(p.sum(-1, keepdim=True), norm, norm, value=-1)
    return loss, p.sub_(target), spread


@dataclass
class _Problems:
    """The state of T training sets × G strengths after a pass of L-BFGS; the objective is divided by C.

    Attributes:
        ridge: 1/C for every coordinate, 0 for the intercept's; T × G × 1 × r.
        theta, gradient: The parameters and the objective's gradient, T × G × K × r.
        logits, residual: The logits of every row and p − target, T × G × K × m.
        objective, penalty, without, reference: The objective, its part ½‖W‖², its value for W = 0 and its running
            mean; T × G × 1 × 1, like the fields below except ``spread``.
        spread: Σᵢ pᵢ(1 − pᵢ) of each class, T × G × K × 1.
        step: The length of the next step to try.
        scale: The scale of the diagonal that the history starts from.
        done: Whether the problem has converged; it then stays where it is.
    """

    ridge: Tensor
    theta: Tensor
    gradient: Tensor
    logits: Tensor
    residual: Tensor
    objective: Tensor
    penalty: Tensor
    without: Tensor
    reference: Tensor
    spread: Tensor
    step: Tensor
    scale: Tensor
    done: Tensor

    def keep(self, strengths: Tensor) -> None:
        """Keep only these strengths."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name)[:, strengths])


class _Data:
    """The rows and the targets of T training sets, and what depends on them alone."""

    def __init__(self, coordinates: TrainingSets, target: Tensor) -> None:
        self.coordinates, values, target = coordinates, coordinates.values[:, None, None], target[:, None]
        real, count = coordinates.real[:, None, None], values[..., -1:]
        self.classes = target.shape[2]
        # The optimum for W = 0 is the class frequencies. An absent class gets e⁻¹⁰⁰⁰, which no sum notices.
        self.prior = (target.sum(-1, keepdim=True) / count).log().clamp_min(-1000)
        # A shift common to all classes changes no p and is 0 at the optimum, so directions do not include it.
        present = target.any(-1, keepdim=True).to(target.dtype)
        self.share = present / present.sum(2, keepdim=True)
        # A padding row counts as certainly of the first class: no loss, no residual, no spread.
        self.target = torch.cat([target[:, :, :1] + (1 - real), target[:, :, 1:]], 2)
        self.index = self.target.argmax(2, keepdim=True)
        self.values = values / count
        self.first_logits = torch.where(real > 0, self.prior, 1000 * (self.target - 1))

    def start(self, c: Tensor) -> _Problems:
        """The problems at W = 0."""
        (sets, strengths), width = c.shape, self.values.shape[-1]
        ridge = (1 / c)[..., None, None].repeat(1, 1, 1, width)
        ridge[..., -1] = 0
        theta = self.values.new_zeros(sets, strengths, self.classes, width)
        theta[..., -1:] = self.prior
        logits = self.first_logits.expand(-1, strengths, -1, -1)
        objective, residual, spread = _losses(logits, self.target, self.index)
        one = torch.ones_like(objective)
        return _Problems(
            ridge=ridge,
            theta=theta,
            gradient=self.of_rows(residual),
            logits=logits,
            residual=residual,
            objective=objective,
            penalty=torch.zeros_like(objective),
            without=objective,
            reference=objective,
            spread=spread,
            step=one,
            scale=one,
            done=torch.zeros_like(objective, dtype=torch.bool),
        )

    def of_rows(self, residual: Tensor) -> Tensor:
        """Σᵢ residualᵢ aᵢᵀ of each problem: the gradient of its losses."""
        return self.coordinates.of_rows(residual.flatten(1, 2)).unflatten(1, (-1, self.classes))

    def along(self, direction: Tensor) -> Tensor:
        """The logits that a direction of the parameters adds to every row."""
        return self.coordinates.along(direction.flatten(1, 2)).unflatten(1, (-1, self.classes))


def minimise(coordinates: TrainingSets, target: Tensor, c: Tensor, tolerance: float) -> tuple[Tensor, int]:
    """L-BFGS on T × G problems; returns their parameters (T × G × K × r) and the number of passes.

    No problem's path depends on the others in the batch: a converged one stays where it is. A step is too long if it
    violates Armijo's condition on a running mean of the objectives: at a large C many steps overshoot a little, and
    the next ones make up for it sooner than a shorter step would.
    """
    data = _Data(coordinates, target)
    now = data.start(c)
    solution = now.theta.clone()
    history = _History(now.theta)
    live = torch.arange(c.shape[1], device=c.device)
    iterations = 0
    while iterations < MAX_ITERATIONS:
        diagonal = torch.addcmul(now.ridge / now.scale, now.spread.clamp_min(1e-4) / now.scale, data.values)
        direction = history.apply(now.gradient, diagonal).neg_()
        direction.addcmul_(data.share, direction.sum(2, keepdim=True), value=-1)
        slope = _dot(direction, now.gradient)
        # What W has gained or, if that is nothing, the rounding error of the objective.
        gain = torch.sub(now.without, now.objective, alpha=1 - 1e-16 / tolerance)
        now.done = now.done | (slope >= -2 * tolerance * torch.minimum(now.objective, gain))
        finished = now.done.all(0).flatten().tolist()
        if all(finished):
            break
        if sum(finished) >= 0.2 * len(finished):  # removing them one by one would cost more than it saves
            keep = torch.tensor([place for place, over in enumerate(finished) if not over], device=c.device)
            solution[:, live] = now.theta
            live = live[keep]
            now.keep(keep)
            history.keep(keep)
            direction, diagonal, slope = (part[:, keep] for part in (direction, diagonal, slope))
        _step(now, data, history, direction, diagonal, slope)
        iterations += 1
    else:
        message = f"{int((~now.done).sum())} logistic regressions did not converge in {MAX_ITERATIONS} iterations."
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    solution[:, live] = now.theta
    return solution, iterations


def _step(now: _Problems, data: _Data, history: _History, direction: Tensor, diagonal: Tensor, slope: Tensor) -> None:
    """Try one step along the direction for each problem; if it is too long, stay and shorten the next one."""
    # ½‖W‖² along the direction is penalty + step·(linear + ½·step·square).
    linear, square = (_dot(part[..., :-1], direction[..., :-1]) for part in (now.theta, direction))
    along = data.along(direction)
    tried = torch.addcmul(now.logits, now.step, along)
    loss, residual, spread = _losses(tried, data.target, data.index)
    penalty = torch.addcmul(now.penalty, now.step, torch.addcmul(linear, now.step, square, value=0.5))
    ridge = now.ridge[..., :1]
    objective = torch.addcmul(loss, ridge, penalty)
    slope_there = torch.addcmul(_dot(residual, along), ridge, torch.addcmul(linear, now.step, square))
    long = objective * (1 - 1e-12) > torch.addcmul(now.reference, now.step, slope, value=1e-4)
    moves = ~(long | now.done)

    now.logits, now.residual = tried.where(moves, now.logits), residual.where(moves, now.residual)
    now.objective, now.penalty = objective.where(moves, now.objective), penalty.where(moves, now.penalty)
    now.reference, now.spread = now.reference.lerp(now.objective, 0.15), spread.where(moves, now.spread)
    length = now.step.where(moves, 0.0)
    now.theta = torch.addcmul(now.theta, length, direction)
    previous = now.gradient
    now.gradient = torch.addcmul(data.of_rows(now.residual), now.ridge, now.theta)
    change, curvature = history.push(length, direction, now.gradient, previous)
    now.scale = torch.where(curvature > 0, now.scale * curvature / _dot(change / diagonal, change), now.scale)
    # The slope of a convex function only grows along a line, so the secant method finds its zero.
    now.step = torch.where(long, now.step * (slope / (slope - slope_there)).clamp(0.1, 0.5), 1.0)
