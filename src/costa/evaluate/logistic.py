"""Many l2-regularised logistic regressions at once: one batched L-BFGS over training sets × strengths C.

For a training set of rows xᵢ with classes yᵢ and a strength C, each problem is that of scikit-learn,

    min over W, b of  C·Σᵢ −log softmax(W xᵢ + b)[yᵢ] + ½‖W‖²_F,

with the intercept b unpenalised. A class without a row in the training set is never predicted (b = −∞). For two
classes scikit-learn penalises the one vector W₁ − W₀ instead, which is the objective above at C/2; so does this.

What makes it fast:

- The objective does not change when the rows are rotated or, because b is free, shifted. So the rows are rotated
  into the eigenbasis of all rows that have a class, once for all training sets. There a training set's Gram matrix is
  close to its diagonal λ, and the Hessian's diagonal to 1 + C·h·λ, with h the mean of p(1 − p): L-BFGS starts every
  direction from its inverse. A training set with far fewer rows than columns gets an eigenbasis of its own instead,
  which has only as many directions as rows.
- Logits are linear in the parameters: one product gives them along a whole search direction.
- There is no line search to wait for. Every pass tries one step for each problem; if it is too long, the problem
  stays, and the next pass tries a shorter one while the others continue.
- The history is applied to a gradient by a few batched products, not pair by pair.
- A strength leaves the batch once all its problems have converged, which takes a few passes for a small C.

Sparse embeddings that would take much memory dense are fitted one training set after the other, in the columns that its
rows have, without a rotation (:func:`fit_predict_sparse`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

from costa.evaluate.lbfgs import HISTORY, Coordinates, SparseCoordinates, is_wide, minimise
from costa.nn.sparse import from_scipy, to_scipy

TOLERANCE = 1e-8
"""At 1e-6, one split in 40 chose another C than the exact minima would; at 1e-8, one in 200."""

MEMORY = 2**23
"""Float64 numbers (64 MiB) that a batch of training sets may take, unless a single set needs more. On CUDA, where a
large batch costs little more than a small one, it is an eighth of the free memory if that is more."""

Embeddings = Tensor | list[Tensor]
"""S embeddings of the same rows: S × n × d, or a list of S sparse ones, n × d CSR tensors."""

FitPredict = Callable[[Embeddings, Tensor, Sequence[Tensor], Sequence[Tensor], Tensor], Tensor]
"""(x, y, fit_on, predict_on, c) → the predicted classes, training sets × strengths × rows, as :func:`fit_predict`
returns them."""


class Solver(Protocol):
    """A :data:`FitPredict` that can also fit each training set in one embedding only."""

    def __call__(
        self,
        x: Embeddings,
        y: Tensor,
        fit_on: Sequence[Tensor],
        predict_on: Sequence[Tensor],
        c: Tensor,
        *,
        within: Sequence[int] | None = None,
    ) -> Tensor:
        """What :func:`fit_predict` returns."""
        ...


@dataclass(frozen=True)
class LogisticModels:
    """The fitted models of T training sets × G strengths, for K classes.

    Attributes:
        weight: W, T × G × K × d.
        bias: b, T × G × K; −∞ if the class has no row in the training set.
        iterations: Number of passes of the slowest problem.
    """

    weight: Tensor
    bias: Tensor
    iterations: int

    def predict(self, x: Tensor) -> Tensor:
        """The classes (T × G × m) that each training set's models predict for its rows of ``x`` (T × m × d)."""
        logits = (self.weight.flatten(1, 2) @ x.to(self.weight.dtype).mT).unflatten(1, self.bias.shape[1:])
        # not argmax, which takes five times as long on a CPU
        return (logits + self.bias[..., None]).max(2).indices


def fit(x: Tensor, y: Tensor, fit_on: Sequence[Tensor], c: Tensor, *, tolerance: float = TOLERANCE) -> LogisticModels:
    """Fit a model to every training set for each of its strengths, all at once and in float64.

    A problem has converged when its next direction promises a decrease below ``tolerance`` times its objective and
    times the gain of W over the class frequencies alone (the gain is tiny at a small C, but it decides).

    Args:
        x: Features of all rows, n × d.
        y: Classes 0 … K − 1 of all rows; negative if unknown.
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

    coordinates = Coordinates.of(x[rows].double(), real)
    theta, iterations = minimise(coordinates, target, strength, tolerance)
    weight = coordinates.to_features(theta[..., :-1].flatten(1, 2))
    bias = theta[..., -1] - (weight @ coordinates.mean[..., None]).view(theta.shape[:-1])
    bias = bias.masked_fill(~present[:, None], -torch.inf)
    return LogisticModels(weight.unflatten(1, theta.shape[1:3]), bias, iterations)


def fit_predict(
    x: Embeddings,
    y: Tensor,
    fit_on: Sequence[Tensor],
    predict_on: Sequence[Tensor],
    c: Tensor,
    *,
    within: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """Fit as :func:`fit` does, in batches within ``MEMORY``, and predict.

    Args:
        x: Features, n × d; or S embeddings of the same rows: every training set is fitted in each.
        y: Classes of the n rows; negative if unknown.
        fit_on: The T training sets, on the CPU.
        predict_on: The rows to predict with each training set's models, on the CPU; their numbers may differ.
        c: Strengths, T × G or S × T × G.
        within: The one embedding that each training set is fitted in, instead of all; ``c`` is then T × G.
        tolerance: As for :func:`fit`.

    Returns:
        The predicted classes, T × G × m or S × T × G × m, on the device of ``x``; m is the largest number of rows to
        predict, and shorter ones are padded with −1.
    """
    if isinstance(x, list):
        return fit_predict_sparse(x, y, fit_on, predict_on, c, within=within, tolerance=tolerance)
    embeddings = x.reshape(-1, *x.shape[-2:])
    count, nodes, columns = embeddings.shape
    longest = max(len(part) for part in fit_on)
    if not is_wide(longest, columns):
        embeddings = _rotated(embeddings.double(), (y >= 0).to(x.device))
    # For the solver, further embeddings are further rows, and their training sets further training sets.
    features, classes = embeddings.flatten(0, 1), y.repeat(count)
    problems, shape = _problems(x, len(fit_on), within)
    sets = [fit_on[number] + nodes * index for index, number in problems]
    padded = pad_sequence(list(predict_on), batch_first=True, padding_value=-1).to(x.device)
    index, number = torch.tensor(problems, device=x.device).T
    wanted = padded[number].clamp_min(0) + nodes * index[:, None]
    c = c.reshape(len(sets), -1)

    memory = _memory(x.device)
    width, models = (longest if is_wide(longest, columns) else columns) + 1, c.shape[1] * (int(y.max()) + 1)
    solving = models * (8 * longest + (4 * HISTORY + 10) * width)
    batch = max(1, memory // (2 * longest * (columns + width) + solving))
    at_once = max(1, memory // 16 // (min(batch, len(sets)) * (columns + 2 * models)))  # what a CPU's cache holds
    predicted = []
    for start in range(0, len(sets), batch):
        part = slice(start, start + batch)
        fitted = fit(features, classes, sets[part], c[part], tolerance=tolerance)
        predicted.append(torch.cat([fitted.predict(features[some]) for some in wanted[part].split(at_once, 1)], -1))
    classes = torch.cat(predicted)
    return classes.masked_fill_(padded[number, None] < 0, -1).view(*shape, *classes.shape[1:])


def fit_predict_sparse(
    x: list[Tensor],
    y: Tensor,
    fit_on: Sequence[Tensor],
    predict_on: Sequence[Tensor],
    c: Tensor,
    *,
    within: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """What :func:`fit_predict` returns, for S sparse embeddings that are never written out."""
    device, classes = x[0].device, int(y.max()) + 1
    matrices = [to_scipy(each.cpu()).astype(np.float64) for each in x]
    problems, shape = _problems(x, len(fit_on), within)
    c = c.reshape(len(problems), -1).to(device, torch.float64)
    longest = max(len(part) for part in predict_on)
    predicted = torch.full((*c.shape, longest), -1, device=device)
    for result, strengths, (index, number) in zip(predicted, c, problems, strict=True):
        train, wanted = matrices[index][fit_on[number].numpy()], matrices[index][predict_on[number].numpy()]
        used = np.unique(train.indices)  # a weight of any other column is 0
        coordinates = SparseCoordinates(from_scipy(train[:, used]).to(device))
        target = one_hot(y[fit_on[number]], classes).T.double().to(device)
        present = target.any(-1)
        strengths = strengths * (0.5 if int(present.sum()) == 2 else 1.0)
        size = classes * (8 * len(fit_on[number]) + (4 * HISTORY + 10) * (len(used) + 1))
        together = max(1, _memory(device) // size)
        rows_at_once = max(1, _memory(device) // 16 // (together * classes))
        for start in range(0, len(strengths), together):
            part = slice(start, start + together)
            theta, _ = minimise(coordinates, target[None], strengths[None, part], tolerance)
            weight, bias = theta[0, ..., :-1], theta[0, ..., -1] - theta[0, ..., :-1] @ coordinates.mean
            bias = bias.masked_fill(~present, -torch.inf)
            for row in range(0, wanted.shape[0], rows_at_once):
                some = slice(row, min(row + rows_at_once, wanted.shape[0]))
                logits = from_scipy(wanted[some][:, used]).to(device) @ weight.flatten(0, 1).mT
                result[part, some] = (logits.unflatten(1, bias.shape) + bias).max(-1).indices.mT
    return predicted.view(*shape, *predicted.shape[1:])


def fit_predict_sklearn(
    x: Embeddings,
    y: Tensor,
    fit_on: Sequence[Tensor],
    predict_on: Sequence[Tensor],
    c: Tensor,
    *,
    within: Sequence[int] | None = None,
) -> Tensor:
    """The reference for :func:`fit_predict`: scikit-learn's ``LogisticRegression``, one after the other."""
    from sklearn.linear_model import LogisticRegression

    classes = y.cpu().numpy()
    embeddings: Any = (
        [to_scipy(each.cpu()).astype(np.float64) for each in x]
        if isinstance(x, list)
        else x.double().cpu().reshape(-1, *x.shape[-2:]).numpy()
    )
    problems, shape = _problems(x, len(fit_on), within)
    c = c.reshape(len(problems), -1)
    predicted = np.full((*c.shape, max(len(part) for part in predict_on)), -1)
    for rows, strengths, (index, number) in zip(predicted, c.tolist(), problems, strict=True):
        features, train, wanted = embeddings[index], fit_on[number].cpu().numpy(), predict_on[number].cpu().numpy()
        known, unknown, target = features[train], features[wanted], classes[train]
        for row, strength in zip(rows[:, : len(wanted)], strengths, strict=True):
            if (target == target[0]).all():  # scikit-learn refuses a single class
                row[:] = target[0]
            else:
                model = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000)
                row[:] = model.fit(known, target).predict(unknown)
    device = x[0].device
    return torch.from_numpy(predicted).to(device).view(*shape, *predicted.shape[1:])


def _problems(x: Embeddings, sets: int, within: Sequence[int] | None) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """(embedding, training set) of each problem, and the shape of the result."""
    if within is not None:
        return list(zip(within, range(sets), strict=True)), (sets,)
    several = (len(x),) if isinstance(x, list) else x.shape[:-2]
    return list(itertools.product(range(math.prod(several)), range(sets))), (*several, sets)


def _memory(device: torch.device) -> int:
    """Float64 numbers that a batch may take on a device."""
    return max(MEMORY, torch.cuda.mem_get_info(device)[0] // 64) if device.type == "cuda" else MEMORY


def _rotated(x: Tensor, known: Tensor) -> Tensor:
    """Embeddings (S × n × d), each in the eigenbasis of its centred known rows."""
    rows = x[:, known]
    rows -= rows.mean(1, keepdim=True)
    gram = rows.mT @ rows
    del rows  # as large as x, and so is the result
    return x @ torch.linalg.eigh(gram).eigenvectors
