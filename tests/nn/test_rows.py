"""Rows of a stack against each matrix's own."""

import torch

from costa.nn.rows import take_rows


def test_each_of_a_stack_gives_its_own_rows_gradients_included():
    generator = torch.Generator().manual_seed(0)
    # transposed, as the sparse product leaves a stack
    h = torch.randn(5, 3, 4, dtype=torch.float64, generator=generator).transpose(0, 1).requires_grad_()
    index = torch.randint(5, (3, 9), generator=generator)
    weight = torch.randn(3, 9, 4, dtype=torch.float64, generator=generator)
    taken = take_rows(h, index)
    (gradient,) = torch.autograd.grad((taken * weight).sum(), h)
    for s in range(3):
        assert torch.equal(taken[s], h[s][index[s]])
        assert torch.equal(taken[s], take_rows(h[s], index[s]))
        expected = torch.zeros(5, 4, dtype=torch.float64).index_add_(0, index[s], weight[s])
        torch.testing.assert_close(gradient[s], expected)
