"""Labels, in every way in."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs import as_graph
from costa.graphs.labels import as_labels, classes_of, encode_labels, label_text

PAIR = np.array([[0, 1, 2], [1, 2, 3]])
WAYS = {
    "a list": list,
    "an array": np.array,
    "a tensor": torch.tensor,
    "NumPy's numbers": lambda labels: list(np.array(labels)),
    "tensors of one": lambda labels: list(torch.tensor(labels)),
    "text": lambda labels: [str(label) for label in labels],
    "objects": lambda labels: np.array(labels, dtype=object),
}


def test_classes_are_sorted_and_unlabelled_nodes_have_none() -> None:
    assert classes_of(torch.tensor([7, -1, 3, 7, 0])).tolist() == [0, 3, 7]
    assert classes_of(torch.tensor([-1, -2])).tolist() == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("labels", [[2, -1, 10, 2], [2.0, -1.0, 10.0, 2.0], [2.0, float("nan"), 10.0, 2.0]])
def test_no_label_is_no_class_in_every_way_in(way: str, labels: list[float]) -> None:
    graph = as_graph(PAIR, np.eye(4), labels=WAYS[way](labels))
    assert (graph.y.tolist(), graph.label_names) == ([0, -1, 1, 0], ["2", "10"])


@pytest.mark.parametrize(
    "nothing", ["", " ", "nan", "NaN", "<NA>", "NA", "null", "None", "-1", "-1.0", None, float("nan"), -1, -1.0]
)
def test_what_no_label_is(nothing: Any) -> None:
    assert as_labels(["a", nothing, "b"]) == ["a", "", "b"]


def test_a_whole_number_is_one_label() -> None:
    assert as_labels([1, 1.0, "1", " 1.0 ", "1.00", np.int64(1), np.float32(1), torch.tensor(1)]) == ["1"] * 8
    assert as_labels(["1.5", "01", True]) == ["1.5", "01", "True"]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, -2, 1], "the labels hold -2; only −1 means no label, so number the classes from 0 or name them."),
        (["0", "-7", "1"], "the labels hold -7; only −1 means no label"),
        ([[0], [1]], "the labels hold a list; give one label for each node"),
    ],
)
def test_what_is_refused(labels: list[Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        as_labels(labels)


def test_minus_one_and_one_other_class_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert as_labels([-1, 1, -1]) == ["", "1", ""]
    assert "the labels are −1 or 1, and −1 means no label; if it is a class, give it a name." in caplog.text


def test_measurements_are_no_classes() -> None:
    amounts = [f"{i}.25" for i in range(30)] * 10
    with pytest.raises(InputError, match=r"hold 30 different values on 300 nodes, which are no classes"):
        encode_labels(amounts)
    with pytest.raises(InputError, match=r"hold 40 different values on 60 nodes"):
        encode_labels([str(i % 40) for i in range(60)])
    assert len(encode_labels([str(i % 30) for i in range(60)])[1]) == 30
    assert encode_labels(["0.5", "1.5", ""])[1] == ["0.5", "1.5"]


def test_a_label_is_written_as_the_user_wrote_it():
    named = Data(label_names=["cat", "dog"])
    assert [label_text(named, code) for code in (1, 0, -1)] == ["dog", "cat", ""]
    assert [label_text(Data(), code) for code in (7, -1)] == ["7", ""]


def test_labels_by_id_are_found_by_id() -> None:
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})
    features = pandas.DataFrame({"id": ["a", "b", "c", "d"], "age": [1.0, 2, 3, 4]})
    by_id = {"d": "y", "c": "x", "b": "y"}
    for labels in (by_id, pandas.Series(by_id)):
        graph = as_graph(edges, features, labels=labels)
        assert (graph.y.tolist(), graph.label_names) == ([-1, 1, 0, 1], ["x", "y"])
    in_order = pandas.Series(["x", "y", "x", None])
    assert as_graph(edges, features, labels=in_order).y.tolist() == [0, 1, 0, -1]
    with pytest.raises(InputError, match=r"the labels have one for '7', which is not a node"):
        as_graph(edges, features, labels=pandas.Series(["x"] * 4, index=[7, 8, 9, 10]))
    shuffled = pandas.Series({2: "y", 0: "x", 1: "y"})
    assert as_graph(np.array([[0, 1], [1, 2]]), np.eye(3), labels=shuffled).y.tolist() == [0, 1, 1]
