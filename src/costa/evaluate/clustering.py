"""k-means on the vectors, scored against the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from costa.evaluate.inputs import checked_labels, unit_rows
from costa.nn.sparse import SPARSE_BELOW, is_csr, to_scipy


@dataclass(frozen=True)
class Clustering:
    """Agreement of k-means clusters with the classes: normalised mutual information and adjusted Rand index."""

    nmi: float
    ari: float


def cluster(
    z: Tensor | np.ndarray,
    y: Tensor | np.ndarray | None,
    *,
    seed: int = 0,
) -> Clustering:
    """k-means on the rows of Z scaled to length one, k the number of classes, best of ten starts.

    All nodes are clustered; the labelled ones are scored.

    Example:
        >>> import torch
        >>> cluster(torch.eye(3).repeat(10, 1), torch.arange(30) % 3)
        Clustering(nmi=1.0, ari=1.0)
    """
    from scipy.sparse import csr_matrix
    from sklearn.cluster import KMeans

    label = checked_labels(y)
    x = unit_rows(z, len(label), "cpu")
    labelled = label >= 0
    truth = label[labelled].numpy()
    # Raw features are mostly zeros: k-means on a sparse matrix takes seconds instead of minutes.
    if is_csr(x):
        points: Any = to_scipy(x)
    else:
        points = csr_matrix(x.numpy()) if x.count_nonzero() < SPARSE_BELOW * x.numel() else x.numpy()
    clusters = KMeans(len(np.unique(truth)), n_init=10, random_state=seed).fit_predict(points)[labelled.numpy()]
    return _agreement(truth, clusters)


def _agreement(truth: np.ndarray, clusters: np.ndarray) -> Clustering:
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return Clustering(float(normalized_mutual_info_score(truth, clusters)), float(adjusted_rand_score(truth, clusters)))
