"""One seed, one P: the same on a CPU and on a GPU, written out or multiplied."""

import pytest
import torch

from costa.augment import make_sketch
from costa.nn import philox

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
KINDS = ["gaussian", "rademacher", "sparse"]


def generator(device="cpu"):
    return torch.Generator(device).manual_seed(3)


@pytest.fixture(scope="module")
def h():
    return torch.randn(1501, 24, generator=generator()) + 0.7


def draws(kind, h):
    sketch = make_sketch(kind, k=333, **({"density": 0.01} if kind == "sparse" else {}))
    return [sketch.draw(source, generator()) for source in (h, h.cuda())]


@pytest.mark.parametrize("kind", KINDS)
def test_p_is_the_same_on_both_devices(kind, h):
    on_cpu, on_cuda = draws(kind, h)
    tolerance = 1e-5 if kind == "gaussian" else 0
    torch.testing.assert_close(on_cuda.matrix().cpu(), on_cpu.matrix(), rtol=0, atol=tolerance)
    if kind == "sparse":
        assert torch.equal(on_cuda.occupied.cpu(), on_cpu.occupied)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sketch_is_the_same_on_both_devices_with_its_gradient(kind, h):
    results = []
    for draw, device in zip(draws(kind, h), ("cpu", "cuda"), strict=True):
        source = h.to(device).requires_grad_()
        h_tilde = draw.apply(source)
        upstream = torch.randn(h_tilde.shape, generator=generator()).to(device)
        results.append([h_tilde.detach().cpu(), torch.autograd.grad(h_tilde, source, upstream)[0].cpu()])
    for exact, ours in zip(*results, strict=True):
        assert float((ours - exact).norm() / exact.norm()) < (1e-5 if kind == "sparse" else 1e-3)


@pytest.mark.parametrize("seed", [0, 2**31, 2**40 + 3, 2**63 - 2])
def test_words_are_the_same_on_both_devices(seed):
    group, row = torch.arange(50)[None, :], torch.tensor([0, 1, 2**20, 2**31])[:, None]
    assert torch.equal(philox.words(seed, group.cuda(), row.cuda()).cpu(), philox.words(seed, group, row))
