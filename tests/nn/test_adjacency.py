"""A stack of edge masks; what one mask gives is tested with the encoder."""

import pytest
import torch

from costa.nn import Adjacency


@pytest.fixture
def layout():
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(9, (2, 30), generator=generator)  # directed, with repeats and self-loops
    return Adjacency(edges, 9, torch.rand(30, generator=generator) + 0.5, dtype=torch.float64)


def keep(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.5


@pytest.mark.parametrize("copies", [1, 3])
def test_a_stack_of_masks_is_each_of_them_along_the_diagonal(layout, copies):
    masks = keep(copies, 30)
    together = layout.normalized(masks)
    alone = [layout.normalized(mask) for mask in masks]
    assert together.copies == copies
    assert torch.equal(together.a.to_dense(), torch.block_diag(*(one.a.to_dense() for one in alone)))
    assert torch.equal(together.a_t.to_dense(), torch.block_diag(*(one.a_t.to_dense() for one in alone)))


@pytest.mark.parametrize("copies", [1, 3])
def test_it_multiplies_each_of_a_stack_by_its_own(layout, copies):
    generator = torch.Generator().manual_seed(3)
    masks = keep(copies, 30)
    h = torch.randn(copies, 9, 4, generator=generator, dtype=torch.float64).requires_grad_()
    upstream = torch.randn(copies, 9, 4, generator=generator, dtype=torch.float64)
    out = layout.normalized(masks) @ h
    (gradient,) = torch.autograd.grad(out, h, upstream)
    for index, mask in enumerate(masks):
        dense = layout.normalized(mask).a.to_dense()
        torch.testing.assert_close(out[index], dense @ h[index])
        torch.testing.assert_close(gradient[index], dense.T @ upstream[index])


def test_one_matrix_serves_a_whole_stack(layout):
    h = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    adjacency = layout.normalized()
    torch.testing.assert_close(adjacency @ h, adjacency.a.to_dense() @ h)


def test_masks_of_every_edge_and_of_none(layout):
    whole = layout.normalized().a.to_dense()
    assert torch.equal(layout.normalized(torch.ones(30, dtype=torch.bool)).a.to_dense(), whole)
    nothing = layout.normalized(torch.zeros(30, dtype=torch.bool)).a.to_dense()
    assert torch.equal(nothing, torch.eye(9, dtype=torch.float64))


def test_repr(layout):
    assert repr(layout) == "Adjacency(9 nodes, 30 directed edges)"
