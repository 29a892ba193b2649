from collections.abc import Callable

import pytest
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.checks import check_graph
from costa.nn.sparse import csr


def csr_of(crow: list[int], col: list[int], last: float = 1.0) -> torch.Tensor:
    return csr(torch.tensor(crow), torch.tensor(col), torch.tensor([1.0, 1.0, last]), (3, 2))


def graph() -> Data:
    return Data(
        x=torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, -1.0]]),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([0, -1, 1]),
        edge_weight=torch.tensor([1.0, 1.0, 0.5, 0.5]),
    )


def test_what_is_allowed() -> None:
    check_graph(graph())
    check_graph(Data(x=torch.ones(2, 1, dtype=torch.float64), edge_index=torch.empty(2, 0, dtype=torch.long)))
    check_graph(
        Data(x=torch.ones(2, 1).half(), edge_index=torch.empty(2, 0, dtype=torch.long), edge_weight=torch.empty(0))
    )
    check_graph(Data(x=csr_of([0, 1, 1, 3], [1, 0, 1]), edge_index=torch.tensor([[0], [2]])))
    empty = torch.empty(0, dtype=torch.long)
    check_graph(Data(x=csr(torch.zeros(4), empty, torch.empty(0), (3, 2)), edge_index=torch.tensor([[0], [2]])))
    # The largest finite floats: their sum overflows, so a check by summing would refuse them.
    check_graph(Data(x=torch.full((4, 4), 3e38), edge_index=torch.tensor([[0], [0]])))


CASES: dict[str, tuple[Callable[[Data], object], str]] = {
    "no x": (lambda d: setattr(d, "x", None), "no node features x"),
    "sparse x": (lambda d: setattr(d, "x", d.x.to_sparse_csc()), "must be a dense tensor or a sparse one"),
    "1-D x": (lambda d: setattr(d, "x", d.x[:, 0]), r"two dimensions, not the shape \(3,\)"),
    "integer x": (lambda d: setattr(d, "x", d.x.long()), "floating point, not torch.int64"),
    "one node": (lambda d: setattr(d, "x", d.x[:1]), "at least 2 nodes to contrast, but this one has 1"),
    "no columns": (lambda d: setattr(d, "x", d.x[:, :0]), "have no columns"),
    "NaN": (lambda d: d.x[1:].fill_(torch.nan), "features of node 1 hold a NaN"),
    "inf": (lambda d: d.x[2].fill_(-torch.inf), "features of node 2 hold"),
    "no edge_index": (lambda d: setattr(d, "edge_index", None), "no edge_index"),
    "sparse edge_index": (lambda d: setattr(d, "edge_index", d.edge_index.to_sparse()), "edge_index must be a dense"),
    "edge shape": (lambda d: setattr(d, "edge_index", d.edge_index.T), r"\(2, edges\), not \(4, 2\)"),
    "edge type": (lambda d: setattr(d, "edge_index", d.edge_index.int()), "int64, not torch.int32"),
    "negative index": (lambda d: d.edge_index[0, 2].fill_(-4), "names node -4, but .* 0 to 2"),
    "index too large": (lambda d: d.edge_index[1, 0].fill_(3), "names node 3, but .* 0 to 2"),
    "labels": (lambda d: setattr(d, "y", d.y[:2]), r"for each of 3 nodes, not the shape \(2,\)"),
    "label column": (lambda d: setattr(d, "y", d.y[:, None]), r"not the shape \(3, 1\)"),
    "label type": (lambda d: setattr(d, "y", d.y.float()), "y must be int64"),
    "label value": (lambda d: d.y[0].fill_(-100), "y hold -100"),
    "weights": (lambda d: setattr(d, "edge_weight", d.edge_weight[1:]), r"each of 4 columns .* \(3,\)"),
    "weight type": (lambda d: setattr(d, "edge_weight", d.edge_weight.long()), "edge_weight must be floating"),
    "negative weight": (lambda d: d.edge_weight[3].fill_(-0.1), "holds a negative value"),
    "infinite weight": (lambda d: d.edge_weight[3].fill_(torch.inf), "edge_weight holds a NaN or an infinite"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_fault_has_its_sentence(case: str) -> None:
    spoil, sentence = CASES[case]
    data = graph()
    spoil(data)
    with pytest.raises(InputError, match=sentence) as error:
        check_graph(data)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_the_sentences_differ() -> None:
    sentences = [sentence for _, sentence in CASES.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (csr_of([0, 1, 2, 3], [0, 1, 2]), "do not fit together as a CSR"),  # a column out of range
        (csr_of([0, 1, 2, 4], [0, 1, 1]), "do not fit together as a CSR"),
        (csr_of([0, 2, 2, 3], [1, 0, 1]), "do not fit together as a CSR"),  # columns out of order
        (csr_of([0, 1, 1, 3], [0, 0, 1], torch.nan), "features of node 2 hold a NaN"),
    ],
)
def test_sparse_features_are_checked_whole(x: torch.Tensor, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_graph(Data(x=x, edge_index=torch.tensor([[0], [2]])))
