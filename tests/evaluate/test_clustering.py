"""k-means on vectors, scored against the classes."""

import pytest
import torch

from costa.errors import InputError
from costa.evaluate.clustering import Clustering, cluster
from costa.nn import SparseMatrix


def test_separate_classes_are_found_whatever_their_scale(blobs):
    z, y = blobs(noise=0.05)
    z = z * torch.logspace(0, 3, 400)[:, None]
    assert cluster(z, y + 5) == Clustering(nmi=1.0, ari=1.0)


def test_labelled_nodes_alone_are_scored_and_counted(blobs):
    z, y = blobs(noise=0.05)
    unlabelled = y == 2
    hidden = torch.where(unlabelled, -1, y)
    z = torch.where(unlabelled[:, None], torch.eye(3, 8)[1], z)  # they join a cluster and are not scored
    assert cluster(z, hidden) == Clustering(nmi=1.0, ari=1.0)


def test_the_seed_decides(blobs):
    z, y = blobs(noise=2.0)
    assert cluster(z, y, seed=3) == cluster(z.numpy(), y.numpy(), seed=3) != cluster(z, y, seed=0)
    assert -0.1 < cluster(z, y).ari < 0.9


def test_a_graph_without_labels_is_refused():
    with pytest.raises(InputError, match="no labels"):
        cluster(torch.ones(10, 2), torch.full((10,), -1))


def test_sparse_features_are_clustered_like_dense_ones():
    y = torch.arange(60) % 3
    z = torch.zeros(60, 200)
    z[torch.arange(60), y] = 1.0  # fewer than a tenth are non-zero
    assert cluster(z, y) == Clustering(nmi=1.0, ari=1.0)
    assert cluster(SparseMatrix.from_dense(z).a, y) == cluster(z, y)
