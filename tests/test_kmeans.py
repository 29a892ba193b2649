import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from costa.graphs import load_graph
from costa.kmeans import kmeans

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
def test_it_finds_clusters_that_lie_apart(device):
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(300) % 6
    x = 10 * torch.randn(6, 8, generator=generator)[truth] + torch.randn(300, 8, generator=generator)
    label, inertia = kmeans(x.to(device), 6)
    assert adjusted_rand_score(truth, label.cpu()) == 1.0
    centres = torch.stack([x[truth == k].mean(0) for k in range(6)])
    assert inertia == pytest.approx(float((x - centres[truth]).square().sum()), rel=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_its_inertia_is_that_of_scikit_learn(device):
    x = load_graph("digits").x
    label, inertia = kmeans(x.to(device), 10)
    reference = KMeans(10, n_init=10, random_state=0).fit(x.numpy())
    assert inertia == pytest.approx(reference.inertia_, rel=0.005)
    assert adjusted_rand_score(reference.labels_, label.cpu()) > 0.8
    own = torch.stack([x[label.cpu() == k].mean(0) for k in range(10)])
    assert inertia == pytest.approx(float((x - own[label.cpu()]).square().sum()), rel=1e-3)


def test_a_seed_is_a_result_and_leaves_the_global_generator():
    x = torch.randn(100, 3, generator=torch.Generator().manual_seed(1))
    before = torch.get_rng_state()
    first, again, other = kmeans(x, 8, starts=1), kmeans(x, 8, starts=1), kmeans(x, 8, starts=1, seed=1)
    assert torch.equal(first[0], again[0])
    assert first[1] == again[1] != other[1]
    assert torch.equal(torch.get_rng_state(), before)


def test_more_starts_are_not_worse():
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(2))
    assert kmeans(x, 12, starts=20)[1] <= kmeans(x, 12, starts=1)[1]


def test_rows_that_are_all_the_same():
    label, inertia = kmeans(torch.ones(5, 3), 2)
    assert inertia == 0
    assert label.shape == (5,)
