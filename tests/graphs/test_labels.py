import torch

from costa.graphs.labels import classes_of


def test_classes_are_sorted_and_unlabelled_nodes_have_none():
    assert classes_of(torch.tensor([7, -1, 3, 7, 0])).tolist() == [0, 3, 7]
    assert classes_of(torch.tensor([-1, -2])).tolist() == []
