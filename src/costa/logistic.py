"""Many l2-regularised logistic regressions at once: one batched L-BFGS over training sets × strengths C.

For a training set of rows xᵢ with classes yᵢ, and a strength C, each problem is scikit-learn's

    min over W, b of  C·Σᵢ −log softmax(W xᵢ + b)[yᵢ] + ½‖W‖²_F,

the intercept b unpenalised. A class without a row in the training set is never predicted (b = −∞). For two
classes scikit-learn penalises the one vector W₁ − W₀ instead, which is the objective above at C/2; so does this.

What makes it quick:

- The objective stays the same when the rows are rotated and, b being free, when they are shifted. So the rows are
  turned into the eigenbasis of all that have a class, once for all training sets. There a training set's Gram
  matrix is close to its diagonal λ, and 1 + C·h·λ, with h the mean of p(1 − p), to the Hessian's: L-BFGS starts every
  direction from its inverse. A training set of far fewer rows than columns gets an eigenbasis of its own instead,
  which has only as many directions as rows.
- Logits are linear in the parameters: one product gives them along a whole search direction.
- There is no line search to wait for. Every pass tries one step for each problem; where it is too long the problem
  stays, and the next pass tries a shorter one while the others go on.
- The last steps act on a gradient through a few batched products, not one after the other.
- A strength leaves the batch once all its problems have converged, which for a small C takes a few passes.
"""

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

TOLERANCE = 1e-8
"""At 1e-6 one split in forty chose another C than the exact minima would, and another path to them yet another one; at
1e-8 it was one in two hundred."""

HISTORY = 10
MAX_ITERATIONS = 1000
MEMORY = 2**23
"""Float64 numbers (64 MiB) that a batch of training sets may take, unless a single one needs more; on CUDA, where
a large batch costs little more than a small one, an eighth of the free memory if that is more."""

FitPredict = Callable[[Tensor, Tensor, Sequence[Tensor], Sequence[Tensor], Tensor], Tensor]
"""(x, y, fit_on, predict_on, c) → the classes found, training sets × strengths × the rows wanted, as
:func:`fit_predict` has them."""


class Solver(Protocol):
    """A :data:`FitPredict` that can fit each training set in one embedding alone."""

    def __call__(
        self,
        x: Tensor,
        y: Tensor,
        fit_on: Sequence[Tensor],
        predict_on: Sequence[Tensor],
        c: Tensor,
        *,
        within: Sequence[int] | None = None,
    ) -> Tensor:
        """What :func:`fit_predict` gives."""
        ...


@dataclass(frozen=True)
class LogisticModels:
    """The fitted models of T training sets × G strengths, for K classes.

    Attributes:
        weight: W, T × G × K × d.
        bias: b, T × G × K; −∞ where the class had no row in the training set.
        iterations: The passes that the slowest problem took.
    """

    weight: Tensor
    bias: Tensor
    iterations: int

    def predict(self, x: Tensor) -> Tensor:
        """The classes (T × G × m) that each training set's models give to its rows of ``x`` (T × m × d)."""
        logits = (self.weight.flatten(1, 2) @ x.to(self.weight.dtype).mT).unflatten(1, self.bias.shape[1:])
        # Not argmax, which takes five times as long on a CPU.
        return (logits + self.bias[..., None]).max(2).indices


def fit(x: Tensor, y: Tensor, fit_on: Sequence[Tensor], c: Tensor, *, tolerance: float = TOLERANCE) -> LogisticModels:
    """Fits a model to every training set for each of its strengths, all at once and in float64.

    A problem has converged when its next direction promises a decrease below ``tolerance`` times its objective and
    times what W has gained over the class frequencies alone (at a small C next to nothing, yet it decides).

    Args:
        x: Features of all rows, n × d.
        y: Classes 0 … K − 1 of all rows; negative where unknown.
        fit_on: The T training sets, each an index tensor into the rows; their lengths may differ.
        c: Strengths C, T × G.
        tolerance: Relative precision of the objective and of the gain.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> models = fit(x, torch.tensor([0, 0, 1, 1]), [torch.arange(4)], torch.tensor([[0.5, 8.0]]))
        >>> models.predict(torch.tensor([[[1.4], [1.6]]])).tolist()
        [[[0, 1], [0, 1]]]
    """
    classes, y = int(y.max()) + 1, y.to(x.device)
    rows = pad_sequence(list(fit_on), batch_first=True, padding_value=-1).to(x.device)
    real = rows >= 0
    rows = rows.clamp_min(0)
    target = one_hot(y[rows].clamp_min(0), classes).mT.double() * real[:, None]
    present = target.any(-1)
    strength = c.to(x.device, torch.float64) * torch.where(present.sum(-1) == 2, 0.5, 1.0)[:, None]

    coordinates = _Coordinates.of(x[rows].double(), real)
    theta, iterations = _minimise(coordinates, target, strength, tolerance)
    weight = coordinates.to_features(theta[..., :-1].flatten(1, 2))
    bias = theta[..., -1] - (weight @ coordinates.mean[..., None]).view(theta.shape[:-1])
    bias = bias.masked_fill(~present[:, None], -torch.inf)
    return LogisticModels(weight.unflatten(1, theta.shape[1:3]), bias, iterations)


def fit_predict(
    x: Tensor,
    y: Tensor,
    fit_on: Sequence[Tensor],
    predict_on: Sequence[Tensor],
    c: Tensor,
    *,
    within: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """Fits as :func:`fit` does, in batches within ``MEMORY``, and predicts the rows wanted.

    Args:
        x: Features, n × d; or S × n × d, S embeddings of the same rows, in each of which every training set is fitted.
        y: Classes of the n rows; negative where unknown.
        fit_on: The T training sets, on the CPU.
        predict_on: The rows wanted of each training set, on the CPU; their numbers may differ.
        c: Strengths, T × G or S × T × G.
        within: The one embedding that each training set is fitted in, in place of every one; ``c`` is then T × G.
        tolerance: As for :func:`fit`.

    Returns:
        The classes found, T × G × m or S × T × G × m, on the device of ``x``; m is the largest number of rows wanted,
        and −1 stands where there are fewer.
    """
    embeddings = x.reshape(-1, *x.shape[-2:])
    count, nodes, columns = embeddings.shape
    longest = max(len(part) for part in fit_on)
    if not _wide(longest, columns):
        embeddings = _turned(embeddings.double(), (y >= 0).to(x.device))
    # To the solver the embeddings are more rows, and their training sets more training sets.
    features, classes = embeddings.flatten(0, 1), y.repeat(count)
    problems, shape = _problems(x, len(fit_on), within)
    sets = [fit_on[number] + nodes * index for index, number in problems]
    padded = pad_sequence(list(predict_on), batch_first=True, padding_value=-1).to(x.device)
    index, number = torch.tensor(problems, device=x.device).T
    wanted = padded[number].clamp_min(0) + nodes * index[:, None]
    c = c.reshape(len(sets), -1)

    memory = _memory(x.device)
    width, models = (longest if _wide(longest, columns) else columns) + 1, c.shape[1] * (int(y.max()) + 1)
    solving = models * (8 * longest + (4 * HISTORY + 10) * width)
    batch = max(1, memory // (2 * longest * (columns + width) + solving))
    at_once = max(1, memory // 16 // (min(batch, len(sets)) * (columns + 2 * models)))  # what a CPU's cache holds
    predicted = []
    for start in range(0, len(sets), batch):
        part = slice(start, start + batch)
        fitted = fit(features, classes, sets[part], c[part], tolerance=tolerance)
        predicted.append(torch.cat([fitted.predict(features[some]) for some in wanted[part].split(at_once, 1)], -1))
    found = torch.cat(predicted)
    return found.masked_fill_(padded[number, None] < 0, -1).view(*shape, *found.shape[1:])


def fit_predict_sklearn(
    x: Tensor,
    y: Tensor,
    fit_on: Sequence[Tensor],
    predict_on: Sequence[Tensor],
    c: Tensor,
    *,
    within: Sequence[int] | None = None,
) -> Tensor:
    """The reference for :func:`fit_predict`: scikit-learn's ``LogisticRegression``, one after the other."""
    from sklearn.linear_model import LogisticRegression

    embeddings, classes = x.double().cpu().reshape(-1, *x.shape[-2:]).numpy(), y.cpu().numpy()
    problems, shape = _problems(x, len(fit_on), within)
    c = c.reshape(len(problems), -1)
    predicted = np.full((*c.shape, max(len(part) for part in predict_on)), -1)
    for own, strengths, (index, number) in zip(predicted, c.tolist(), problems, strict=True):
        features, train, wanted = embeddings[index], fit_on[number].cpu().numpy(), predict_on[number].cpu().numpy()
        known, asked, target = features[train], features[wanted], classes[train]
        for found, strength in zip(own[:, : len(asked)], strengths, strict=True):
            if (target == target[0]).all():  # scikit-learn refuses a single class
                found[:] = target[0]
            else:
                model = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000)
                found[:] = model.fit(known, target).predict(asked)
    return torch.from_numpy(predicted).to(x.device).view(*shape, *predicted.shape[1:])


def _problems(x: Tensor, sets: int, within: Sequence[int] | None) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """(embedding, training set) for each that is fitted, and the shape they come back in."""
    if within is not None:
        return list(zip(within, range(sets), strict=True)), (sets,)
    shape = (*x.shape[:-2], sets)
    return list(itertools.product(range(math.prod(x.shape[:-2])), range(sets))), shape


def _memory(device: torch.device) -> int:
    """Float64 numbers that a batch may take on a device."""
    return max(MEMORY, torch.cuda.mem_get_info(device)[0] // 64) if device.type == "cuda" else MEMORY


def _wide(rows: int, columns: int) -> bool:
    """Whether a training set has so few rows that an eigenbasis of its own pays."""
    return 2 * rows < columns


def _turned(x: Tensor, known: Tensor) -> Tensor:
    """Embeddings (S × n × d), each in the eigenbasis of its known rows about their mean."""
    rows = x[:, known]
    rows -= rows.mean(1, keepdim=True)
    return x @ torch.linalg.eigh(rows.mT @ rows).eigenvectors


@dataclass(frozen=True)
class _Coordinates:
    """Training sets about their mean, in coordinates aᵢ; the last coordinate is the intercept's constant.

    Attributes:
        rows: The aᵢ, T × m × r; zero where a training set has fewer than m rows.
        values: λ, the diagonal of Σᵢ aᵢaᵢᵀ, T × r.
        mean: The features' mean, T × d.
        points: The centred features, T × m × d, where the coordinates are others; else None.
        axes: Those coordinates' axes, as their coefficients in the points, T × m × (r − 1); else None.
    """

    rows: Tensor
    values: Tensor
    mean: Tensor
    points: Tensor | None = None
    axes: Tensor | None = None

    @classmethod
    def of(cls, x: Tensor, real: Tensor) -> "_Coordinates":
        ones = real.to(x.dtype)[..., None]
        count = ones.sum(1)
        mean = (x * ones).sum(1) / count
        x = (x - mean[:, None]) * ones
        if not _wide(x.shape[1], x.shape[2]):
            return cls(torch.cat([x, ones], -1), torch.cat([x.square().sum(1), count], -1), mean)
        values, vectors = torch.linalg.eigh(x @ x.mT)
        # They carry an error of about 1e-16·λ_max, and what lies below it is no direction of the rows.
        values = values.where(values > 1e-13 * values[:, -1:], 0.0)
        lengths = values.sqrt()[:, None]
        rows, axes = vectors * lengths, vectors / lengths.where(lengths > 0, torch.inf)
        return cls(torch.cat([rows, ones], -1), torch.cat([values, count], -1), mean, x, axes)

    def to_features(self, w: Tensor) -> Tensor:
        """Coefficients of coordinates (T × any × (r − 1)) as coefficients of features (T × any × d)."""
        # The axes in the features would be a far larger product than these two.
        return w if self.points is None or self.axes is None else (w @ self.axes.mT) @ self.points


class _History:
    """The last steps s of T × G problems with the gradient's changes y along them: L-BFGS' inverse Hessian H.

    With S and Y the steps and changes as rows, R the upper triangle of S Yᵀ, E its diagonal, and a diagonal B,

        H = Vᵀ B⁻¹ V + Sᵀ R⁻ᵀ E R⁻¹ S,    V = I − Yᵀ R⁻¹ S,

    which is what the usual two loops over the pairs compute one after the other. R is triangular in the order of
    age. So a new pair adds a column to R⁻¹, and the oldest one, whose column has nothing but its diagonal, leaves with
    its row; this holds wherever the pairs stand, and the new one takes the oldest one's slot.
    """

    def __init__(self, like: Tensor) -> None:
        sets, strengths = like.shape[:2]
        self.steps = like.new_empty(sets, strengths, HISTORY, like[0, 0].numel())
        self.changes = torch.empty_like(self.steps)
        self.inverse = like.new_zeros(sets, strengths, HISTORY, HISTORY)
        self.curvatures = like.new_zeros(sets, strengths, 1, HISTORY)
        self.pushed = 0

    def push(self, length: Tensor, direction: Tensor, gradient: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Remembers s = length · direction, unless it has no curvature ⟨s, y⟩ > 0; gives y and the curvature."""
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
        """H∇, begun from the diagonal B."""
        if not self.pushed:
            return gradient / diagonal
        steps, changes, inverse, curvatures = self._used()
        given = gradient.view(len(steps), 1, -1)
        factors = given @ steps.mT @ inverse.mT
        scaled = torch.baddbmm(given, factors, changes, alpha=-1) / diagonal.reshape_as(given)
        added = (curvatures * factors - scaled @ changes.mT) @ inverse
        return torch.baddbmm(scaled, added, steps).view_as(gradient)

    def keep(self, strengths: Tensor) -> None:
        """Goes on with some of the strengths."""
        used = slice(0, min(self.pushed, HISTORY))
        for name in ("steps", "changes"):
            old = getattr(self, name)
            new = old.new_empty(len(old), len(strengths), *old.shape[2:])
            new[:, :, used] = old[:, strengths, used]
            setattr(self, name, new)
        self.inverse, self.curvatures = self.inverse[:, strengths], self.curvatures[:, strengths]

    def _used(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The slots that hold a pair, one problem after the other."""
        used = slice(0, min(self.pushed, HISTORY))
        parts = (self.steps[:, :, used], self.changes[:, :, used], self.inverse[..., used, used])
        steps, changes, inverse, curvatures = (part.flatten(0, 1) for part in (*parts, self.curvatures[..., used]))
        return steps, changes, inverse, curvatures


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """The inner product of each problem's matrices, kept as 1 × 1 so that it multiplies them."""
    return (a * b).sum((-1, -2), keepdim=True)


def _losses(logits: Tensor, target: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Σᵢ −log pᵢ[yᵢ] of each problem, p − target, and Σᵢ pᵢ(1 − pᵢ) of each class."""
    p = logits.softmax(2)
    loss = -p.gather(2, index.expand(-1, p.shape[1], -1, -1)).log_().sum(-1, keepdim=True)
    norm = torch.linalg.vector_norm(p, dim=-1, keepdim=True)
    spread = torch.addcmul(p.sum(-1, keepdim=True), norm, norm, value=-1)
    return loss, p.sub_(target), spread


def _minimise(coordinates: _Coordinates, target: Tensor, c: Tensor, tolerance: float) -> tuple[Tensor, int]:
    """L-BFGS on T × G problems; gives their parameters (T × G × K × r) and the number of passes.

    The objective is divided by C. No problem's path depends on the others in the batch: one that has converged
    stands still. A step is too long when it misses Armijo's condition on a running mean of the objectives: at a large
    C many steps overshoot a little, and those that follow make up for it sooner than a shorter step would.
    """
    rows, values, target = coordinates.rows, coordinates.values[:, None, None], target[:, None]
    (sets, strengths), classes = c.shape, target.shape[2]
    real, count = rows[:, None, None, :, -1], values[..., -1:]
    ridge = (1 / c)[..., None, None].repeat(1, 1, 1, rows.shape[2])
    ridge[..., -1] = 0

    # The optimum for W = 0: the classes' frequencies. That of an absent class, e⁻¹⁰⁰⁰, is zero to every sum.
    prior = (target.sum(-1, keepdim=True) / count).log().clamp_min(-1000)
    # What all classes have in common changes no p, and is 0 at the optimum: the directions leave it alone.
    present = target.any(-1, keepdim=True).to(target.dtype)
    share = present / present.sum(2, keepdim=True)
    # A row that only fills up counts as one that is certainly of the first class: no loss, no residual, no spread.
    target = torch.cat([target[:, :, :1] + (1 - real), target[:, :, 1:]], 2)
    index = target.argmax(2, keepdim=True)
    solution = rows.new_zeros(sets, strengths, classes, rows.shape[2])
    solution[..., -1:] = prior
    theta = solution.clone()
    logits = torch.where(real > 0, prior, 1000 * (target - 1)).expand(-1, strengths, -1, -1)
    objective, residual, spread = _losses(logits, target, index)
    without = reference = objective
    gradient = (residual.flatten(1, 2) @ rows).unflatten(1, (-1, classes))
    penalty, step, scale = torch.zeros_like(objective), torch.ones_like(objective), torch.ones_like(objective)
    done = torch.zeros_like(objective, dtype=torch.bool)
    values = values / count
    history = _History(theta)
    live = torch.arange(strengths, device=rows.device)
    iterations = 0

    while iterations < MAX_ITERATIONS:
        diagonal = torch.addcmul(ridge / scale, spread.clamp_min(1e-4) / scale, values)
        direction = history.apply(gradient, diagonal).neg_()
        direction.addcmul_(share, direction.sum(2, keepdim=True), value=-1)
        slope = _dot(direction, gradient)
        # What W has gained, or where that is nothing, what rounding leaves of the objective.
        gain = torch.sub(without, objective, alpha=1 - 1e-16 / tolerance)
        done = done | (slope >= -2 * tolerance * torch.minimum(objective, gain))
        finished = done.all(0).flatten().tolist()
        if all(finished):
            break
        if sum(finished) >= 0.2 * len(finished):  # to leave one by one would cost more than it saves
            keep = torch.tensor([place for place, over in enumerate(finished) if not over], device=rows.device)
            solution[:, live] = theta
            live = live[keep]
            large = (ridge, theta, logits, residual, gradient, direction, diagonal)
            ridge, theta, logits, residual, gradient, direction, diagonal = (part[:, keep] for part in large)
            small = (objective, reference, without, penalty, slope, spread, step, scale, done)
            objective, reference, without, penalty, slope, spread, step, scale, done = (p[:, keep] for p in small)
            history.keep(keep)

        # ½‖W‖² along the direction is penalty + step·(linear + ½·step·square).
        linear, square = (_dot(part[..., :-1], direction[..., :-1]) for part in (theta, direction))
        along = (direction.flatten(1, 2) @ rows.mT).unflatten(1, (-1, classes))
        tried = torch.addcmul(logits, step, along)
        loss, residual_there, spread_there = _losses(tried, target, index)
        penalty_there = torch.addcmul(penalty, step, torch.addcmul(linear, step, square, value=0.5))
        objective_there = torch.addcmul(loss, ridge[..., :1], penalty_there)
        slope_there = torch.addcmul(_dot(residual_there, along), ridge[..., :1], torch.addcmul(linear, step, square))
        long = objective_there * (1 - 1e-12) > torch.addcmul(reference, step, slope, value=1e-4)
        moves = ~(long | done)

        logits, residual = tried.where(moves, logits), residual_there.where(moves, residual)
        objective, penalty = objective_there.where(moves, objective), penalty_there.where(moves, penalty)
        reference, spread = reference.lerp(objective, 0.15), spread_there.where(moves, spread)
        length = step.where(moves, 0.0)
        theta = torch.addcmul(theta, length, direction)
        previous = gradient
        gradient = torch.addcmul((residual.flatten(1, 2) @ rows).unflatten(1, (-1, classes)), ridge, theta)
        change, curvature = history.push(length, direction, gradient, previous)
        scale = torch.where(curvature > 0, scale * curvature / _dot(change / diagonal, change), scale)
        # Along a convex function the slope only grows: the secant of the slopes finds its zero.
        step = torch.where(long, step * (slope / (slope - slope_there)).clamp(0.1, 0.5), 1.0)
        iterations += 1
    else:
        message = f"{int((~done).sum())} logistic regressions had not converged after {MAX_ITERATIONS} iterations."
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    solution[:, live] = theta
    return solution, iterations
