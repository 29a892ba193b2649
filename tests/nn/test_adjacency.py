"""The ends of the range of edge masks; what others give is tested with the encoder."""

import pytest
import torch

from costa.nn import Adjacency


@pytest.fixture
def layout():
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(9, (2, 30), generator=generator)  # directed, with repeats and self-loops
    return Adjacency(edges, 9, torch.rand(30, generator=generator) + 0.5, dtype=torch.float64)


def test_masks_of_every_edge_and_of_none(layout):
    whole = layout.normalized().a.to_dense()
    assert torch.equal(layout.normalized(torch.ones(30, dtype=torch.bool)).a.to_dense(), whole)
    nothing = layout.normalized(torch.zeros(30, dtype=torch.bool)).a.to_dense()
    assert torch.equal(nothing, torch.eye(9, dtype=torch.float64))


@pytest.mark.parametrize("nodes", [[0, 3, 4, 7], [8], list(range(9))])
def test_the_edges_between_nodes_are_those_whose_ends_are_both_among_them(nodes):
    edges = torch.randint(9, (2, 60), generator=torch.Generator().manual_seed(1))
    between = Adjacency(edges, 9).between(torch.tensor(nodes))
    assert between.tolist() == [i for i, (u, v) in enumerate(edges.T.tolist()) if u in nodes and v in nodes]


def test_repr(layout):
    assert repr(layout) == "Adjacency(9 nodes, 30 directed edges)"
