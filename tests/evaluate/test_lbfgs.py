"""The history of L-BFGS against BFGS written out."""

import torch

from costa.evaluate import lbfgs


def test_the_history_is_the_inverse_hessian_of_bfgs():
    generator = torch.Generator().manual_seed(0)
    sets, strengths, shape = 2, 3, (2, 4)
    history = lbfgs._History(torch.zeros(sets, strengths, *shape, dtype=torch.float64))
    root = torch.randn(8, 8, generator=generator, dtype=torch.float64)
    hessian = root @ root.T + torch.eye(8)
    pairs = []
    for number in range(lbfgs.HISTORY + 4):
        direction, previous = torch.randn(2, sets, strengths, *shape, generator=generator, dtype=torch.float64)
        length = 0.5 + torch.rand(sets, strengths, 1, 1, generator=generator, dtype=torch.float64)
        if number in (5, 11):
            length[0, 1] = 0
        step = length * direction
        change = (step.flatten(2) @ hessian).view_as(step)
        if number == 12:
            change[1, 1] *= -1
        given, curvature = history.push(length, direction, previous + change, previous)
        torch.testing.assert_close(given, change)
        torch.testing.assert_close(curvature, (step * change).sum((-1, -2), keepdim=True))
        pairs.append((step.flatten(2), change.flatten(2)))
        if number == 6:
            history.keep(torch.tensor([1, 2]))
            pairs = [(step[:, 1:], change[:, 1:]) for step, change in pairs]
            strengths = 2
    gradient = torch.randn(sets, strengths, *shape, generator=generator, dtype=torch.float64)
    diagonal = 1 + torch.rand(sets, strengths, *shape, generator=generator, dtype=torch.float64)
    found = history.apply(gradient, diagonal).flatten(2)
    for t in range(sets):
        for g in range(strengths):
            inverse = torch.diag(1 / diagonal[t, g].flatten())
            for steps, changes in pairs[-lbfgs.HISTORY :]:
                s, y = steps[t, g], changes[t, g]
                if s @ y > 0:
                    v = torch.eye(8) - torch.outer(y, s) / (s @ y)
                    inverse = v.T @ inverse @ v + torch.outer(s, s) / (s @ y)
            torch.testing.assert_close(found[t, g], inverse @ gradient[t, g].flatten())
