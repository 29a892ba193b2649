import torch

from costa.nn import ProjectionHead


def test_is_the_formula():
    head = ProjectionHead(4, 6, "elu", torch.Generator().manual_seed(0))
    h = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    w1, w2 = head.first.weight, head.second.weight
    twin = torch.nn.functional.elu(h.double() @ w1.double().T) @ w2.double().T
    torch.testing.assert_close(head(h).double(), twin, rtol=1e-5, atol=1e-6)


def test_is_drawn_from_its_generator_alone():
    before = torch.random.get_rng_state()
    a, b = (ProjectionHead(4, 6, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(a.first.weight, b.first.weight)
    assert torch.equal(a.second.weight, b.second.weight)
