"""Do probabilities mean what they say?

A temperature T makes probabilities of logits, softmax(logits / T). It minimises the cross-entropy on nodes that the
classifier was not trained on (Guo et al., ICML 2017), with Platt's targets: of n nodes, a node's class has the target
1 − 1/(n + 2) and the others share the rest, so that a few nodes which are all right do not make every probability 1.

The expected calibration error is the mean distance between how sure predictions are and how often they are right,

    ECE = Σ_b (n_b / n) · |mean probability in b − share that is right in b|,

over ten equal ranges b of the probability.
"""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 10
DRAWS = 200
"""Draws from which the error by chance is known."""
COLDEST, HOTTEST = 1e-3, 1e3


def fit_temperature(logits: Tensor, truth: Tensor) -> float:
    """T of held-out logits (n × K, −∞ for a class that was not trained) and the nodes' classes.

    >>> logits = torch.tensor([[4.0, 0.0], [0.0, 4.0]]).repeat(50, 1)
    >>> truth = torch.tensor([0, 1]).repeat(50)
    >>> truth[:20] = 1 - truth[:20]  # 80% are right, and a logit of 4 says 98%
    >>> p = probabilities(logits, fit_temperature(logits, truth)).amax(1)
    >>> round(float(p.mean()), 1)
    0.8
    """
    from scipy.optimize import minimize_scalar

    known = logits.gather(1, truth[:, None]).squeeze(1).isfinite()
    logits, truth = logits[known].double(), truth[known]
    possible = logits.isfinite()
    others = possible.sum(1, keepdim=True) - 1
    if not len(truth) or not int(others.max()):
        return 1.0
    missed = (others > 0) / (len(truth) + 2.0)
    target = (missed / others.clamp_min(1)).expand_as(logits).scatter(1, truth[:, None], 1 - missed)
    target, finite = target * possible, logits.masked_fill(~possible, 0)

    def loss(log_temperature: float) -> float:
        scale = torch.tensor(log_temperature, dtype=torch.float64).exp()
        normaliser = (logits / scale).logsumexp(1)
        return float(normaliser.sum() - (target * finite).sum() / scale)

    bounds = torch.tensor([COLDEST, HOTTEST], dtype=torch.float64).log().tolist()
    return float(torch.tensor(minimize_scalar(loss, bounds=bounds, method="bounded").x).exp())


def probabilities(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / T), in float64."""
    return (logits.double() / temperature).softmax(1)


def calibration_error(sure: Tensor, right: Tensor) -> float:
    """The ECE of the probabilities of what was predicted, and of whether it was right.

    >>> round(calibration_error(torch.full((10,), 0.9), torch.arange(10) < 7), 6)
    0.2
    """
    place = (sure * BINS).long().clamp_max(BINS - 1)
    apart = torch.bincount(place, sure.double() - right.double(), BINS).abs()
    return float(apart.sum()) / len(sure)


def error_by_chance(sure: Tensor) -> float:
    """The ECE that so many nodes would have on average if every probability were exact."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(DRAWS, len(sure), generator=generator, dtype=torch.float64) < sure
    return sum(calibration_error(sure, draw) for draw in draws) / DRAWS
