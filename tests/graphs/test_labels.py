import torch
from torch_geometric.data import Data

from costa.graphs.labels import classes_of, label_text


def test_classes_are_sorted_and_unlabelled_nodes_have_none():
    assert classes_of(torch.tensor([7, -1, 3, 7, 0])).tolist() == [0, 3, 7]
    assert classes_of(torch.tensor([-1, -2])).tolist() == []


def test_a_label_is_written_as_the_user_wrote_it():
    named = Data(label_names=["cat", "dog"])
    assert [label_text(named, code) for code in (1, 0, -1)] == ["dog", "cat", ""]
    assert [label_text(Data(), code) for code in (7, -1)] == ["7", ""]
