import datetime
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from costa.graphs import load_graph
from costa.graphs.tables import Table
from costa.report.columns import columns_of, read_column


@pytest.mark.parametrize(
    ("cells", "kind", "values", "colours"),
    [
        (["1", "2.50", "", "-3e2"], "numbers", [1, 2.5, None, -300], True),
        ([1.0, float("nan"), 0.1234567891], "numbers", [1, None, 0.123457], True),
        ([2**53 - 1, 5], "numbers", [2**53 - 1, 5], True),
        (["7", "7", ""], "numbers", [7, 7, None], False),
        (["a", "b", "a", " "], "classes", ["a", "b", "a", ""], True),
        (["a", "a"], "classes", ["a", "a"], False),
        ([True, False, None], "classes", ["True", "False", ""], True),
        (["1", "inf", "1"], "classes", ["1", "inf", "1"], True),
        (["", None], "classes", ["", ""], False),
        (["a", "b", "c"], "text", ["a", "b", "c"], False),
        ([datetime.date(2024, 5, 17)], "text", ["2024-05-17"], False),
        ([str(i) + "x" for i in range(21)] * 2, "text", [str(i) + "x" for i in range(21)] * 2, False),
    ],
)
def test_what_a_column_is(cells, kind, values, colours):
    column = read_column("c", cells)
    assert (column.kind, list(column.values), column.colours) == (kind, values, colours)


def test_numbers_are_read_in_the_page_as_they_were():
    packed = json.loads(json.dumps(read_column("c", ["1", "", "0.5"]).packed()))
    assert packed == {"name": "c", "numbers": [1, None, 0.5]}


def test_long_text_is_cut():
    (value,) = read_column("c", ["x" * 1000]).values
    assert len(value) == 200
    assert value.endswith("…")


def graph_of(columns, rows):
    return Data(x=torch.zeros(rows, 1), num_nodes=rows, table=Table("the table", "the table", columns, rows))


def test_the_values_are_those_of_the_nodes_shown():
    graph = graph_of({"a": np.arange(5), "b": list("vwxyz")}, 5)
    a, b = columns_of(graph, np.array([1, 4])).kept
    assert (a.name, a.values, b.name, b.values) == ("a", [1, 4], "b", ["w", "z"])


def test_what_does_not_fit_is_left_out_by_name():
    graph = graph_of({"small": [1, 2], "large": ["x" * 150, "y" * 150], "last": [3, 4]}, 2)
    found = columns_of(graph, np.arange(2), most=100)
    assert [column.name for column in found.kept] == ["small", "last"]
    assert found.left_out == ["large"]


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_few_named_features_stand_in_for_a_table(memory, own_graph):
    graph = load_graph(str(own_graph), memory=memory)
    assert columns_of(graph, np.arange(3)).kept == []
    graph.feature_names = [f"f{i}" for i in range(6)]
    found = columns_of(graph, np.array([2, 59])).kept
    assert [column.name for column in found] == graph.feature_names
    assert found[1].values == pytest.approx(graph.x.to_dense()[[2, 59], 1].tolist(), rel=1e-5)


def test_many_features_are_no_table():
    graph = Data(x=torch.zeros(2, 21), feature_names=[f"f{i}" for i in range(21)])
    assert columns_of(graph, np.arange(2)).kept == []


def test_sparse_features_too():
    graph = Data(x=torch.eye(3).to_sparse_csr(), num_nodes=3, feature_names=["a", "b", "c"])
    assert [column.values for column in columns_of(graph, np.array([0, 2])).kept] == [[1, 0], [0, 0], [0, 1]]
