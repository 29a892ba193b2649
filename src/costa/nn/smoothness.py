"""Do edges join nodes whose features are alike?

For edges e = {i, j} of weight w_e between nodes with centred features x, and their covariance C = XᵀX/n,

    T = Σ_e w_e xᵢ·xⱼ,    z = (T − E T)/√(Σ_e w_e² · tr C²),    E T = −Σ_e w_e · tr C/(n − 1)

If the edges were drawn between nodes at random, z would be about standard normal. Features that are alike along a few
directions only are drowned by the others; weighting the directions by their variance finds those, so the larger of two
z counts: of xᵢ·xⱼ and of xᵢ·C xⱼ, whose variance is tr C⁴.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

EDGES = 2**16
"""Edges whose features are gathered at a time."""


@torch.no_grad()
def smoothness(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> float:
    """z of the edges; 0 without edges or without features that differ. Self-loops do not count.

    Args:
        x: The features, dense, n × d.
        edge_index: 2 × e; undirected edges appear in both directions.
        edge_weight: e weights; all 1 by default.

    >>> x = torch.tensor([[1., 0.], [1., 0.], [-1., 0.], [-1., 0.], [0., 1.], [0., -1.]])
    >>> alike, unlike = torch.tensor([[0, 2], [1, 3]]), torch.tensor([[0, 1, 4], [2, 3, 5]])
    >>> smoothness(x, alike) > 1, smoothness(x, unlike) < -1
    (True, True)
    """
    edge_index = edge_index.to(x.device)
    once = edge_index[0] < edge_index[1]
    source, target = edge_index[:, once]
    n = len(x)
    if n < 3 or not len(source):
        return 0.0
    weight = torch.ones(len(source), device=x.device) if edge_weight is None else edge_weight.to(x)[once]
    x = x - x.mean(0)
    covariance = (x.T @ x / n).double()
    squared = covariance @ covariance
    total, length = float(weight.sum()), float(weight.double().square().sum())
    products = [0.0, 0.0]
    weighted = x @ covariance.to(x)
    for i, j, w in zip(source.split(EDGES), target.split(EDGES), weight.split(EDGES), strict=True):
        for number, others in enumerate((x, weighted)):
            products[number] += float(((x[i] * others[j]).sum(1) * w).double().sum())
    expected = (float(covariance.trace()), float(squared.trace()))
    variance = (float(squared.trace()), float(squared.square().sum()))
    scores = [
        (product + total * mean / (n - 1)) / math.sqrt(length * spread)
        for product, mean, spread in zip(products, expected, variance, strict=True)
        if length * spread > 0
    ]
    return max(scores, default=0.0)
