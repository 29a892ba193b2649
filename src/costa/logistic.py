"""Many l2-regularised logistic regressions at once: one batched L-BFGS over training sets × strengths C.

For a training set of rows xᵢ with classes yᵢ, and a strength C, each problem is scikit-learn's

    min over W, b of  C·Σᵢ −log softmax(W xᵢ + b)[yᵢ] + ½‖W‖²_F,

the intercept b unpenalised. A class without a row in the training set is never predicted (b = −∞). For two
classes scikit-learn penalises the one vector W₁ − W₀ instead, which is the objective above at C/2; so does this.

What makes it quick:

- The objective stays the same when the rows are rotated and, b being free, when they are shifted. So each
  training set is centred and turned into its own eigenbasis, where 1 + C·h·λ, with h the mean of p(1 − p), is
  close to the Hessian's diagonal: L-BFGS starts every direction from its inverse. A training set with fewer rows
  than columns has only as many directions as rows.
- Logits are linear in the parameters: one product gives them along a whole search direction, and the trial steps
  of a line search need no other.
- A strength leaves the batch once all its problems have converged, which for a small C takes five iterations.
"""

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

TOLERANCE = 1e-6
HISTORY = 10
MAX_ITERATIONS = 1000
MAX_TRIALS = 40
MEMORY = 2**25
"""Float64 numbers (256 MiB) that a batch of training sets may take, unless a single one needs more."""

FitPredict = Callable[[Tensor, Tensor, Sequence[Tensor], Sequence[Tensor], Tensor], list[Tensor]]
"""(x, y, fit_on, predict_on, c) → for each training set the classes found, its strengths × the rows wanted."""


@dataclass(frozen=True)
class LogisticModels:
    """The fitted models of T training sets × G strengths, for K classes.

    Attributes:
        weight: W, T × G × K × d.
        bias: b, T × G × K; −∞ where the class had no row in the training set.
        iterations: The L-BFGS iterations that the slowest problem took.
    """

    weight: Tensor
    bias: Tensor
    iterations: int

    def predict(self, index: int, x: Tensor) -> Tensor:
        """The classes (G × m) which the models of training set ``index`` give to the rows of ``x`` (m × d)."""
        weight, bias = self.weight[index], self.bias[index]
        logits = (weight.flatten(0, 1) @ x.to(weight.dtype).T).unflatten(0, bias.shape)
        return (logits + bias[..., None]).argmax(1)


def fit(x: Tensor, y: Tensor, fit_on: Sequence[Tensor], c: Tensor, *, tolerance: float = TOLERANCE) -> LogisticModels:
    """Fits a model to every training set for each of its strengths, all at once and in float64.

    A problem has converged when its next direction promises a decrease below ``tolerance`` times its objective and
    times what W has gained over the class frequencies alone (at a small C next to nothing, yet it decides).

    Args:
        x: Features of all rows, n × d.
        y: Classes 0 … K − 1 of all rows.
        fit_on: The T training sets, each an index tensor into the rows; their lengths may differ.
        c: Strengths C, T × G.
        tolerance: Relative precision of the objective and of the gain.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> models = fit(x, torch.tensor([0, 0, 1, 1]), [torch.arange(4)], torch.tensor([[0.5, 8.0]]))
        >>> models.predict(0, torch.tensor([[1.4], [1.6]])).tolist()
        [[0, 1], [0, 1]]
    """
    y = y.to(x.device)
    rows = pad_sequence(list(fit_on), batch_first=True, padding_value=-1).to(x.device)
    real = rows >= 0
    rows = rows.clamp_min(0)
    target = one_hot(y[rows], int(y.max()) + 1).mT.double() * real[:, None]
    present = target.any(-1)
    strength = c.to(x.device, torch.float64) * torch.where(present.sum(-1) == 2, 0.5, 1.0)[:, None]

    basis = _Eigenbasis.of(x[rows].double(), real)
    theta, iterations = _minimise(basis, target, strength, tolerance)
    weight = basis.to_features(theta[..., :-1].flatten(1, 2))
    bias = theta[..., -1] - (weight @ basis.mean[..., None]).view(theta.shape[:-1])
    bias = bias.masked_fill(~present[:, None], -torch.inf)
    return LogisticModels(weight.unflatten(1, theta.shape[1:3]), bias, iterations)


def fit_predict(
    x: Tensor, y: Tensor, fit_on: Sequence[Tensor], predict_on: Sequence[Tensor], c: Tensor
) -> list[Tensor]:
    """Fits as :func:`fit` does, in batches within ``MEMORY``, and predicts the rows wanted (given on the CPU)."""
    rows, columns = max(len(part) for part in fit_on), x.shape[1]
    width, models = min(rows, columns) + 1, c.shape[1] * (int(y.max()) + 1)
    features = rows * (2 * columns + width) + width * (columns + width)
    problems = models * (6 * rows + (2 * HISTORY + 8) * width)
    batch = max(1, MEMORY // (features + problems))
    at_once = max(1, MEMORY // (columns + 2 * models))
    predicted = []
    for start in range(0, len(fit_on), batch):
        part = slice(start, start + batch)
        fitted = fit(x, y, fit_on[part], c[part])
        for index, wanted in enumerate(predict_on[part]):
            found = [fitted.predict(index, x[some]) for some in wanted.to(x.device).split(at_once)]
            predicted.append(torch.cat(found, -1).cpu())
    return predicted


def fit_predict_sklearn(
    x: Tensor, y: Tensor, fit_on: Sequence[Tensor], predict_on: Sequence[Tensor], c: Tensor
) -> list[Tensor]:
    """The reference for :func:`fit_predict`: scikit-learn's ``LogisticRegression``, one after the other."""
    from sklearn.linear_model import LogisticRegression

    features, classes = x.double().cpu().numpy(), y.cpu().numpy()
    predicted = []
    for train, wanted, strengths in zip(fit_on, predict_on, c.tolist(), strict=True):
        known, asked = features[train.cpu()], features[wanted.cpu()]
        target = classes[train.cpu()]
        if (target == target[0]).all():  # scikit-learn refuses a single class
            found = [np.full(len(asked), target[0])] * len(strengths)
        else:
            models = (LogisticRegression(C=strength, tol=1e-8, max_iter=10_000) for strength in strengths)
            found = [model.fit(known, target).predict(asked) for model in models]
        predicted.append(torch.from_numpy(np.stack(found)))
    return predicted


@dataclass(frozen=True)
class _Eigenbasis:
    """Training sets in coordinates aᵢ where Σᵢ aᵢaᵢᵀ = diag(λ); the last coordinate is the intercept's constant.

    Attributes:
        rows: The aᵢ, T × m × r; zero where a training set has fewer than m rows.
        values: λ, T × r.
        axes: T × d × (r − 1), which leads from coordinates back to features; where there are fewer rows than columns,
            their coefficients in the rows, T × m × (r − 1).
        points: The centred features, T × m × d, where ``axes`` are coefficients in them; else None.
        mean: The features' mean, T × d.
    """

    rows: Tensor
    values: Tensor
    axes: Tensor
    points: Tensor | None
    mean: Tensor

    @classmethod
    def of(cls, x: Tensor, real: Tensor) -> "_Eigenbasis":
        ones = real.to(x.dtype)[..., None]
        count = ones.sum(1)
        mean = (x * ones).sum(1) / count
        x = (x - mean[:, None]) * ones
        if x.shape[1] < x.shape[2]:
            values, vectors = torch.linalg.eigh(x @ x.mT)
            # They carry an error of about 1e-16·λ_max, and what lies below it is no direction of the rows.
            values = values.where(values > 1e-13 * values[:, -1:], 0.0)
            lengths = values.sqrt()[:, None]
            # The axes would be points.mT @ coefficients, a far larger product than any that is needed.
            rows, axes, points = vectors * lengths, vectors / lengths.where(lengths > 0, torch.inf), x
        else:
            values, axes = torch.linalg.eigh(x.mT @ x)
            rows, points = x @ axes, None
        values = torch.cat([values.clamp_min(0), count], -1)
        return cls(torch.cat([rows, ones], -1), values, axes, points, mean)

    def to_features(self, w: Tensor) -> Tensor:
        """Coefficients of coordinates (T × any × (r − 1)) as coefficients of features (T × any × d)."""
        w = w @ self.axes.mT
        return w if self.points is None else w @ self.points


_Pair = tuple[Tensor, Tensor, Tensor]
"""A step s, the gradient's change y along it, and 1/⟨s, y⟩."""


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """The inner product of each problem's matrices, kept as 1 × 1 so that it multiplies them."""
    return (a * b).sum((-1, -2), keepdim=True)


def _losses(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Σᵢ −log pᵢ[yᵢ] of each problem, and p − target; ``target`` is zero where there is no row."""
    real = target.sum(2, keepdim=True)
    log_p = logits.log_softmax(2)
    # Not a product with the target: an absent class has log p = −∞, and 0·∞ is no number.
    picked = log_p.gather(2, target.argmax(2, keepdim=True).expand(-1, logits.shape[1], -1, -1))
    return -picked.where(real > 0, 0.0).sum((-1, -2), keepdim=True), (log_p.exp() - target) * real


def _minimise(basis: _Eigenbasis, target: Tensor, c: Tensor, tolerance: float) -> tuple[Tensor, int]:
    """L-BFGS on T × G problems; gives their parameters (T × G × K × r) and the number of iterations.

    No problem's path depends on the others in the batch: one that has converged stands still.
    """
    rows, values, target = basis.rows, basis.values[:, None, None], target[:, None]
    (sets, strengths), classes = c.shape, target.shape[2]
    penalty = torch.ones_like(values[0])
    penalty[..., -1] = 0
    c = c[..., None, None]

    solution = rows.new_zeros(sets, strengths, classes, rows.shape[2])
    live = torch.arange(strengths, device=rows.device)
    # The optimum for W = 0: the classes' frequencies, which keep absent classes at a logit of −∞.
    prior = (target.sum(-1, keepdim=True) / values[..., -1:]).log()
    theta = solution.clone()
    theta[..., -1:] = prior.where(prior.isfinite(), 0.0)
    logits = prior.expand(sets, strengths, classes, rows.shape[1])
    loss, residual = _losses(logits, target)
    objective = without = c * loss
    gradient = c * (residual.flatten(1, 2) @ rows).unflatten(1, (-1, classes))
    done = torch.zeros_like(c, dtype=torch.bool)
    history: deque[_Pair] = deque(maxlen=HISTORY)
    iterations = 0

    while iterations < MAX_ITERATIONS:
        p = residual + target
        h = ((p * (1 - p)).sum(-1, keepdim=True) / values[..., -1:]).clamp_min(1e-6)
        direction = -_inverse_hessian(gradient, history, penalty + c * h * values)
        slope = _dot(direction, gradient)
        done = done | (-0.5 * slope <= tolerance * torch.minimum(objective, without - objective))
        finished = done.all(0).flatten()
        if finished.all():
            break
        if finished.any():
            solution[:, live[finished]] = theta[:, finished]
            keep = ~finished
            live = live[keep]
            state = (c, theta, logits, objective, without, gradient, done, direction, slope)
            c, theta, logits, objective, without, gradient, done, direction, slope = (part[:, keep] for part in state)
            history = deque(((s[:, keep], y[:, keep], r[:, keep]) for s, y, r in history), maxlen=HISTORY)

        along = (direction.flatten(1, 2) @ rows.mT).unflatten(1, (-1, classes))
        penalties = (
            0.5 * _dot(theta * penalty, theta),
            _dot(theta * penalty, direction),
            0.5 * _dot(direction * penalty, direction),
        )
        step, value, residual, stuck = _line_search(logits, along, target, c, penalties, objective, slope, done)
        done = done | stuck
        step = step.masked_fill(done, 0.0)

        moved = step * direction
        theta = theta + moved
        logits = logits + step * along
        objective = value.where(~done, objective)
        previous = gradient
        gradient = c * (residual.flatten(1, 2) @ rows).unflatten(1, (-1, classes)) + penalty * theta
        change = gradient - previous
        curvature = _dot(moved, change)
        history.append((moved, change, torch.where(curvature > 0, 1 / curvature, 0.0)))
        iterations += 1
    else:
        message = f"{int((~done).sum())} logistic regressions had not converged after {MAX_ITERATIONS} iterations."
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    solution[:, live] = theta
    return solution, iterations


def _inverse_hessian(gradient: Tensor, history: deque[_Pair], diagonal: Tensor) -> Tensor:
    """L-BFGS' two loops: about H⁻¹∇, begun from the inverse diagonal scaled to the curvature of the last step."""
    q = gradient
    factors = []
    for moved, change, inverse in reversed(history):
        factors.append(inverse * _dot(moved, q))
        q = torch.addcmul(q, factors[-1], change, value=-1)
    q = q / diagonal
    if history:
        _, change, inverse = history[-1]
        scale = 1 / (inverse * _dot(change / diagonal, change))
        q = q * scale.where(inverse > 0, 1.0)
    for (moved, change, inverse), factor in zip(history, reversed(factors), strict=True):
        q = torch.addcmul(q, factor - inverse * _dot(change, q), moved)
    return q


def _line_search(
    logits: Tensor,
    along: Tensor,
    target: Tensor,
    c: Tensor,
    penalties: tuple[Tensor, Tensor, Tensor],
    objective: Tensor,
    slope: Tensor,
    done: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A step for each problem that meets Armijo's condition and leaves a slope in [0.9, −0.5] × the slope at 0.

    Along a convex function the slope only grows, so its zero is bracketed and the secant of the slopes finds it.
    ``penalties`` are the coefficients of ½‖W‖² along the direction.

    Returns:
        The step, the objective and p − target there, and which problems found none: the limit of rounding.
    """
    constant, linear, square = penalties
    step, low, high = torch.ones_like(slope), torch.zeros_like(slope), torch.full_like(slope, torch.inf)
    slope_low, slope_high = slope, torch.zeros_like(slope)
    for _ in range(MAX_TRIALS):
        loss, residual = _losses(logits + step * along, target)
        value = c * loss + constant + step * (linear + step * square)
        slope_here = c * _dot(residual, along) + linear + 2 * step * square
        long = (value > objective + 1e-4 * step * slope + 1e-12 * objective) | (slope_here > -0.5 * slope)
        short = ~long & (slope_here < 0.9 * slope)
        wrong = (long | short) & ~done
        if not wrong.any():
            break
        high, slope_high = step.where(long, high), slope_here.where(long, slope_high)
        low, slope_low = step.where(short, low), slope_here.where(short, slope_low)
        crossing = low + (high - low) * (slope_low / (slope_low - slope_high)).clamp(0.1, 0.9)
        step = torch.where(wrong, torch.where(high.isinf(), 4 * step, crossing), step)
    return step, value, residual, wrong
