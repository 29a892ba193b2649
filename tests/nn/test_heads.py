import pytest
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


@pytest.mark.parametrize("activation", ["elu", "prelu"])
def test_a_stack_of_weights_is_each_of_them_alone(activation):
    alone = [ProjectionHead(4, 6, activation, torch.Generator().manual_seed(seed)) for seed in range(3)]
    for index, head in enumerate(alone):
        for parameter in head.parameters():
            parameter.data = parameter.data + 0.1 * index
    together = ProjectionHead(4, 6, activation, torch.Generator())
    for name, parameter in together.named_parameters():
        parameter.data = torch.stack([head.state_dict()[name] for head in alone])
    h = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1))
    z = together(h)
    z.square().sum().backward()
    for index, head in enumerate(alone):
        own = head(h[index])
        own.square().sum().backward()
        torch.testing.assert_close(z[index], own)
        for parameter, one in zip(together.parameters(), head.parameters(), strict=True):
            torch.testing.assert_close(parameter.grad[index], one.grad, rtol=1e-4, atol=1e-5)
