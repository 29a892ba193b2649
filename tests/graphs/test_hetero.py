"""A HeteroData becomes one graph."""

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.transforms import ToUndirected

from costa import COSTA
from costa.errors import InputError
from costa.graphs import as_graph


def shop():
    """Three products, two customers, who buy some and rate some; products come first."""
    data = HeteroData()
    data["product"].x = torch.tensor([[5.0], [6.0], [7.0]])
    data["customer"].x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    data["customer"].y = torch.tensor([4, -1])
    data["customer", "buys", "product"].edge_index = torch.tensor([[0, 0, 1], [0, 1, 2]])
    return data


def with_ratings(weight=None):
    """A second relation, whose reverse direction is written too, on one edge that is there and one that is not."""
    data = shop()
    data["product", "rated_by", "customer"].edge_index = torch.tensor([[0, 0], [0, 1]])
    if weight is not None:
        data["product", "rated_by", "customer"].edge_weight = torch.tensor(weight)
    return data


def edges(graph):
    """Each edge once, with its weight."""
    weight = [1.0] * graph.num_edges if graph.get("edge_weight") is None else graph.edge_weight.tolist()
    return {(i, j): w for (i, j), w in zip(graph.edge_index.T.tolist(), weight, strict=True) if i < j}


def test_each_type_has_a_block_of_columns_and_a_column_that_says_so():
    graph = as_graph(shop())
    assert graph.x.tolist() == [[1, 2, 0, 1, 0], [3, 4, 0, 1, 0], [0, 0, 5, 0, 1], [0, 0, 6, 0, 1], [0, 0, 7, 0, 1]]
    assert graph.feature_names == ["customer[0]", "customer[1]", "product[0]", "type=customer", "type=product"]
    assert graph.node_ids == ["customer/0", "customer/1", "product/0", "product/1", "product/2"]
    assert edges(graph) == {(0, 2): 1, (0, 3): 1, (1, 4): 1}
    assert graph.get("edge_weight") is None
    assert (graph.y.tolist(), graph.label_names) == ([0, -1, -1, -1, -1], ["4"])


def test_the_order_of_the_types_does_not_matter():
    other = HeteroData()
    for kind in ("customer", "product"):
        other[kind].x = shop()[kind].x
    other["customer", "buys", "product"].edge_index = shop()["customer", "buys", "product"].edge_index
    assert torch.equal(as_graph(other).x, as_graph(shop()).x)
    assert torch.equal(as_graph(other).edge_index, as_graph(shop()).edge_index)


@pytest.mark.parametrize("weight", [None, [0.5, 2.0]])
def test_relations_are_merged_and_their_weights_added(weight, caplog):
    first, second = weight or (1.0, 1.0)
    expected = {(0, 2): 1 + first, (0, 3): 1, (1, 4): 1, (1, 2): second}
    assert edges(as_graph(with_ratings(weight))) == expected
    assert "the edges customer buys product, product rated_by customer are no longer told apart" in caplog.text
    assert "2 customer nodes and 3 product nodes" in caplog.text


@pytest.mark.parametrize("weight", [None, [0.5, 2.0]])
def test_reverse_edges_are_no_relation_of_their_own(weight):
    both = ToUndirected()(with_ratings(weight))
    assert len(both.edge_types) == 4
    assert edges(as_graph(both)) == edges(as_graph(with_ratings(weight)))


def test_ids_are_those_given_if_they_all_differ():
    given = {("customer", "node_ids"): ["ann", "bob"], ("product", "node_ids"): ["hat", "pan", "ann"]}
    data = shop()
    for (kind, name), ids in given.items():
        data[kind][name] = ids
    assert as_graph(data).node_ids == ["customer/ann", "customer/bob", "product/hat", "product/pan", "product/ann"]
    data["product"].node_ids[2] = "cup"
    assert as_graph(data).node_ids == ["ann", "bob", "hat", "pan", "cup"]


def test_masks_are_of_the_labelled_type_and_what_is_not_read_is_named(caplog):
    data = shop()
    data["customer"].train_mask = torch.tensor([True, False])
    data["product"].test_mask = torch.tensor([True, False, True])
    data["product"].colour = ["red", "blue", "red"]
    data["customer", "buys", "product"].edge_attr = torch.ones(3, 2)
    graph = as_graph(data)
    assert graph.train_mask.tolist() == [True, False, False, False, False]
    assert graph.get("test_mask") is None
    assert "colour of product, edge_attr of customer buys product, test_mask of product" in caplog.text


def test_a_type_without_features_has_its_own_column_alone(caplog):
    data = shop()
    del data["product"].x
    data["product"].num_nodes = 3
    graph = as_graph(data)
    assert graph.x.tolist() == [[1, 2, 1, 0], [3, 4, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert "product nodes have no features but their type" in caplog.text


def test_features_are_made_from_the_edges_if_no_type_has_any():
    data = shop()
    for kind, count in (("customer", 2), ("product", 3)):
        del data[kind].x
        data[kind].num_nodes = count
    assert as_graph(data).x_from_edges


def test_wide_sparse_features_stay_sparse():
    data = shop()
    data["customer"].x = torch.eye(2, 90)
    data["product"].x = torch.eye(3, 70).to_sparse()
    graph = as_graph(data)
    assert graph.x.layout == torch.sparse_csr
    dense = graph.x.to_dense()
    assert dense.shape == (5, 162)
    assert dense.nonzero().tolist() == [
        [0, 0],
        [0, 160],
        [1, 1],
        [1, 160],
        *[p for i in range(3) for p in ([2 + i, 90 + i], [2 + i, 161])],
    ]


def change(kind, name, value):
    data = shop()
    data[kind][name] = value
    return data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (change("product", "y", torch.tensor([0, 1, 0])), "customer and product both have labels y"),
        (change("customer", "y", torch.zeros(2, 1)), "y of customer has the shape (2, 1)"),
        (change("customer", "y", torch.zeros(3)), "y of customer has 3 rows for 2 nodes"),
        (change("shelf", "colour", "red"), "does not say how many shelf nodes there are"),
        (
            change(("customer", "buys", "product"), "edge_index", torch.tensor([[2], [0]])),
            "edge_index of customer buys product has a number that is no row of customer; those are 0 to 1",
        ),
        (change(("customer", "buys", "product"), "edge_index", torch.zeros(2, 1)), "needs an edge_index of shape"),
        (change(("customer", "buys", "product"), "edge_weight", torch.ones(2)), "edge_weight of customer buys product"),
        (change("product", "x", torch.full((3, 1), np.nan)), "x of product has NaN or no value in row 0, column 0"),
    ],
)
def test_what_does_not_fit_is_one_sentence(data, says):
    with pytest.raises(InputError) as refused:
        as_graph(data)
    assert says in str(refused.value)


def test_costa_takes_it_and_finds_a_node_by_its_id():
    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    data["customer"].x, data["product"].x = torch.randn(60, 5, generator=random), torch.randn(30, 3, generator=random)
    data["customer", "buys", "product"].edge_index = torch.stack(
        [torch.arange(60).repeat(3), torch.randint(30, (180,), generator=random)]
    )
    model = COSTA(epochs=2, settings={"encoder.width": 8, "encoder.powers": (0, 1, 2)}).fit(data)
    assert model.transform(data).shape[0] == 90
    assert len(model.most_similar("product/7", k=3)) == 3
