"""What a graph must satisfy, and the error message if it does not."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costa.errors import InputError
from costa.nn.sparse import rows_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


def check_graph(data: Data) -> None:
    """Raise ``InputError`` unless `data` is a graph that every method can be trained on.

    A graph without any edge is allowed (``edge_index`` of shape 2 × 0): with self-loops Â = I, so the
    encoder is an MLP on the features, a fair baseline and what isolated nodes see anyway. Each check is one pass
    over its tensor without a copy, so a dense x of a gigabyte costs a fraction of a second.

    Example:
        >>> from torch_geometric.data import Data
        >>> check_graph(Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 3]])))
        Traceback (most recent call last):
            ...
        costa.errors.InputError: edge_index names node 3, but the graph has only the nodes 0 to 2.
    """
    if not hasattr(data, "edge_index") or not hasattr(data, "x"):
        raise InputError(f"a graph is a torch_geometric.data.Data with x and edge_index, not {type(data).__name__}.")
    n = _check_features(data.x)
    check_edges(data.edge_index, n)
    if data.y is not None:
        _check_labels(data.y, n)
    if "edge_weight" in data and data.edge_weight is not None:
        _check_weights(data.edge_weight, data.edge_index.size(1))


def _check_features(x: Tensor | None) -> int:
    if x is None:
        raise InputError("the graph has no node features x; give one row of features for each node.")
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr):
        raise InputError("the node features x must be a dense tensor or a sparse one; convert them with .to_dense().")
    if x.dim() != 2:
        raise InputError(f"the node features x must have two dimensions, not the shape {tuple(x.shape)}.")
    if not x.is_floating_point():
        raise InputError(f"the node features x must be floating point, not {x.dtype}; call .float() on them.")
    check_count(x.size(0))
    if x.size(1) == 0:
        raise InputError("the node features x have no columns; give at least one feature.")
    values = x.detach()
    if x.layout == torch.sparse_csr:
        _check_csr(x)
        values = x.values()
        if not values.numel():
            return x.size(0)
    # min and max propagate NaN and infinity and, unlike isfinite, allocate nothing.
    low, high = values.aminmax()
    if not (low.isfinite() and high.isfinite()):
        bad = (~values.isfinite()).nonzero()[0, 0]
        node = int(rows_of(x)[bad] if x.layout == torch.sparse_csr else bad)
        raise InputError(f"the features of node {node} hold a NaN or an infinite value; replace or drop it.")
    return x.size(0)


def check_count(n: int) -> None:
    """Refuse a graph of fewer than two nodes."""
    if n < 2:
        raise InputError(f"a graph needs at least 2 nodes to contrast, but this one has {n}.")


def _check_csr(x: Tensor) -> None:
    parts = (x.crow_indices(), x.col_indices(), x.values())
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            torch.sparse_csr_tensor(*parts, x.shape, check_invariants=True)
    except RuntimeError:
        raise InputError(
            "the sparse node features x do not fit together as a CSR tensor: columns must be within range, in order"
            " and distinct in every row; build them again, or convert them from COO with .to_sparse_csr()."
        ) from None


def check_edges(edge_index: Tensor | None, n: int) -> None:
    """Raise ``InputError`` unless ``edge_index`` has the right shape, type and range for n nodes."""
    if edge_index is None:
        raise InputError("the graph has no edge_index; for a graph without edges give torch.empty(2, 0).long().")
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise InputError("edge_index must be a dense tensor of shape (2, edges).")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise InputError(f"edge_index must have the shape (2, edges), not {tuple(edge_index.shape)}.")
    if edge_index.dtype != torch.long:
        raise InputError(f"edge_index must be int64, not {edge_index.dtype}; call .long() on it.")
    if edge_index.numel() == 0:
        return
    low, high = (int(bound) for bound in edge_index.aminmax())
    if low < 0 or high >= n:
        node = low if low < 0 else high
        raise InputError(f"edge_index names node {node}, but the graph has only the nodes 0 to {n - 1}.")


def _check_labels(y: Tensor, n: int) -> None:
    if y.dim() != 1 or y.size(0) != n:
        raise InputError(f"the labels y must be one number for each of {n} nodes, not the shape {tuple(y.shape)}.")
    if y.dtype != torch.long:
        raise InputError(f"the labels y must be int64, not {y.dtype}; give class codes, and -1 for no label.")
    if int(y.min()) < -1:
        raise InputError(f"the labels y hold {int(y.min())}; give class codes from 0, and -1 for no label.")


def _check_weights(weight: Tensor, edges: int) -> None:
    if weight.dim() != 1 or weight.size(0) != edges:
        raise InputError(
            f"edge_weight must be one number for each of {edges} columns of edge_index, "
            f"not the shape {tuple(weight.shape)}."
        )
    if not weight.is_floating_point():
        raise InputError(f"edge_weight must be floating point, not {weight.dtype}; call .float() on it.")
    if edges == 0:
        return
    if not weight.isfinite().all():
        raise InputError("edge_weight holds a NaN or an infinite value; replace it or drop the edge.")
    if weight.min() < 0:
        raise InputError("edge_weight holds a negative value; D̂^-½ needs weights of zero or more.")
