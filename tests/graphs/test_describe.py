import pytest
import torch
from torch_geometric.data import Data

from costa.graphs.describe import describe, is_labelled


def graph(**others) -> Data:
    edges = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])  # two edges, both ways, and a self-loop
    return Data(x=torch.ones(3, 1), edge_index=edges, name="mine", **others)


@pytest.mark.parametrize(
    ("others", "line"),
    [
        ({}, "mine: 3 nodes, 3 edges, 1 feature, no labels"),
        ({"y": torch.tensor([-1, -1, -1])}, "mine: 3 nodes, 3 edges, 1 feature, no labels"),
        ({"y": torch.tensor([4, -1, 4])}, "mine: 3 nodes, 3 edges, 1 feature, 1 class on 2 of the nodes"),
        ({"y": torch.tensor([0, 4, -1])}, "mine: 3 nodes, 3 edges, 1 feature, 2 classes on 2 of the nodes"),
        ({"edge_weight": torch.ones(5)}, "mine: 3 nodes, 3 edges (weighted), 1 feature, no labels"),
    ],
)
def test_a_graph_in_one_line(others, line):
    assert describe(graph(**others)) == line
    assert is_labelled(graph(**others)) == ("classes" in line)
