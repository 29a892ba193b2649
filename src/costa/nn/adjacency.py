"""The graph as the GCN sees it: D̂^-½ Â D̂^-½ with Â = A + I."""

from __future__ import annotations

import torch
from torch import Tensor

from costa.nn.sparse import SparseMatrix, csr, entries_of, row_pointer


class Adjacency:
    """Â = A + I, laid out once, normalised for any subset of the edges.

    Row i gathers from the sources of the edges into i, so Â_ij is the weight of the edge j → i; D̂ is the diagonal of
    Â's row sums. A self-loop of the graph adds to the one of I. Dropped edges stay in the layout as zeros and do not
    count in the degrees: the same numbers as without them, and shapes that never change.

    Args:
        edge_index: 2 × e, sources and targets; undirected edges appear in both directions.
        num_nodes: n.
        edge_weight: e weights, 0 or more; all 1 by default.
        dtype: The dtype of the normalised matrix.
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        n = self.num_nodes = num_nodes
        self.num_edges = edge_index.size(1)
        device = edge_index.device
        loops = torch.arange(n, device=device)
        row = torch.cat([edge_index[1], loops])
        col = torch.cat([edge_index[0], loops])
        weight = torch.ones(self.num_edges, device=device) if edge_weight is None else edge_weight.to(device)
        weight = torch.cat([weight.to(dtype), torch.ones(n, dtype=dtype, device=device)])
        self._order = torch.argsort(row * n + col, stable=True)
        self._row, self._col, self._weight = row[self._order], col[self._order], weight[self._order]
        # Aᵀ has the same values in another order; a symmetric graph has equal layouts, but perhaps not equal values.
        self._back = torch.argsort(self._col * n + self._row, stable=True)
        self._crow = row_pointer(self._row, n)
        self._crow_t = row_pointer(self._col[self._back], n)
        self._col_t = self._row[self._back]

    def normalized(self, keep: Tensor | None = None) -> SparseMatrix:
        """D̂^-½ Â D̂^-½ of the edges in ``keep`` (one boolean for each column of ``edge_index``; all by default)."""
        n, weight = self.num_nodes, self._weight
        if keep is not None:
            weight = weight * torch.cat([keep, keep.new_ones(n)])[self._order]
        scale = weight.new_zeros(n).index_add_(0, self._row, weight).rsqrt()
        values = weight * scale[self._row] * scale[self._col]
        return SparseMatrix(
            csr(self._crow, self._col, values, (n, n)),
            csr(self._crow_t, self._col_t, values[self._back], (n, n)),
        )

    def between(self, nodes: Tensor) -> Tensor:
        """The columns of ``edge_index`` whose edges join two of these nodes, in order.

        Memory is linear in the edges into the nodes, whatever the size of the graph.

        Args:
            nodes: Different nodes in ascending order, at least one.

        >>> path = Adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> path.between(torch.tensor([1, 2]))
        tensor([2, 3])
        """
        place, _ = entries_of(self._crow, nodes)
        source, edge = self._col[place], self._order[place]
        nearest = nodes[torch.searchsorted(nodes, source).clamp(max=len(nodes) - 1)]
        return edge[(nearest == source) & (edge < self.num_edges)].sort().values  # Â's own loops come after the edges

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_nodes} nodes, {self.num_edges} directed edges)"
