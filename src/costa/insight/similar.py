"""The nearest nodes of a node, by cosine, exactly.

    cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖),    0 if one of them is zero

All cosines are computed in float32, some rows at a time, which reads every vector once. A float32 dot product of d
numbers is off by at most about d·2⁻²⁴·‖a‖‖b‖, so every node that could be among the k nearest is known; theirs, and
those of vectors too short or too long for float32, are computed again in float64 and decide. Cosines that agree to
twelve decimals are ties, which keep the nodes' order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa.errors import InputError
from costa.wording import did_you_mean

BLOCK = 2**22
"""Bytes of vectors that are read at a time: they stay in a processor's cache for the second product."""
SHORT = 1e-15
"""The squares of a shorter vector may be too small for float32."""
ALIKE = 10_000
"""The most ids that are compared letter by letter with one that does not exist."""


def most_similar(z: Tensor, node: int, k: int) -> list[tuple[int, float]]:
    """The k other rows of Z of the largest cosine with this one, nearest first, and their cosines.

    >>> most_similar(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]), 0, 2)
    [(2, 1.0), (3, 0.7071067811865475)]
    """
    if k < 1:
        raise InputError(f"the number of nearest nodes, k, must be at least 1, not {k}.")
    k = min(k, len(z) - 1)
    if k == 0:
        return []
    unit = _unit(z[node][None])[0]
    rough = _rough_cosines(z, unit.float())
    rough[node] = -torch.inf
    least = rough.nan_to_num(nan=-torch.inf).topk(k).values[-1]
    margin = 2 * (z.shape[1] + 8) * torch.finfo(torch.float32).eps
    rows = (~(rough < least - margin)).nonzero().squeeze(1)
    rows = rows[rows != node]
    exact = torch.cat([(_unit(z[some]) * unit).sum(1) for some in rows.split(_rows_at_once(z))])
    order = exact.round(decimals=12).argsort(descending=True, stable=True)[:k]
    return list(zip(rows[order].tolist(), exact[order].tolist(), strict=True))


def ids_of(graph: Data) -> Sequence[Any]:
    """The nodes' ids; their row numbers if they have none."""
    ids: Sequence[Any] | None = graph.get("node_ids")
    return range(graph.num_nodes) if ids is None else ids


def find_node(ids: Sequence[Any], given: Any) -> int:
    """The row of the node with this id; if there is none, the error names one that is written alike."""
    wanted = str(given).strip()
    row = next((row for row, node in enumerate(ids) if str(node) == wanted), None)
    if row is None:
        raise InputError(f"there is no node {wanted!r}{_hint(wanted, ids)}; give one of the graph's {len(ids):,} ids.")
    return row


def _hint(wanted: str, ids: Sequence[Any]) -> str:
    """An id that differs in case only, else the most similar one; of very many, those with the same beginning."""
    lower, alike = wanted.lower(), dict[str, str]()
    for node in map(str, ids):
        if node.lower() == lower:
            return f" (did you mean {node!r}?)"
        if len(alike) < ALIKE and (len(ids) <= ALIKE or node[:2].lower() == lower[:2]):
            alike[node.lower()] = node
    return did_you_mean(wanted, alike)


def _rough_cosines(z: Tensor, unit: Tensor) -> Tensor:
    """⟨zᵢ, u⟩ / ‖zᵢ‖ in float32; NaN where float32 cannot tell."""
    dots, lengths = torch.empty(len(z)), torch.empty(len(z))
    step = _rows_at_once(z)
    for start in range(0, len(z), step):
        rows = z[start : start + step]
        torch.mv(rows, unit, out=dots[start : start + step])
        torch.linalg.vector_norm(rows, dim=1, out=lengths[start : start + step])
    sure = (lengths > SHORT) & lengths.isfinite() & dots.isfinite()
    return (dots / lengths).where(sure, torch.nan)


def _unit(rows: Tensor) -> Tensor:
    """The rows scaled to length one, in float64; zero rows stay zero."""
    rows = rows.double()
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / lengths.where(lengths > 0, 1.0)


def _rows_at_once(z: Tensor) -> int:
    return max(1, BLOCK // (z.shape[1] * z.element_size()))
