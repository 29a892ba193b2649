"""Check labels and vectors for the probe and the clustering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costa.errors import InputError
from costa.graphs.labels import as_labels, classes_of, encode_labels
from costa.nn.sparse import is_csr, rows_of, with_values


def class_codes(label: Tensor) -> Tensor:
    """The labels as 0 … K − 1; −1 for an unlabelled node."""
    return torch.searchsorted(classes_of(label), label).masked_fill(label < 0, -1)


def checked_labels(y: Tensor | np.ndarray | Sequence[Any] | None) -> Tensor:
    """The labels as a checked integer tensor on the CPU; labels as text become codes, as in :func:`as_labels`."""
    if y is None:
        raise InputError("the graph has no labels (y is None), so there is nothing to score embeddings against.")
    label = y.detach().cpu() if isinstance(y, Tensor) else _as_tensor(np.asarray(y))
    if label.dim() != 1 or label.is_floating_point():
        raise _not_labels(str(label.dtype).removeprefix("torch."), label.shape)
    label = label.long()
    count = len(classes_of(label))
    if count < 2:
        raise InputError(
            "the graph has no labels, so there is nothing to score embeddings against."
            if count == 0
            else "all labelled nodes are of one class, so there is nothing to predict; label nodes of another class."
        )
    return label


def _as_tensor(y: np.ndarray) -> Tensor:
    """The labels as they are if they are numbers, and otherwise as codes."""
    if y.dtype.kind not in "OUST":
        return torch.tensor(y)
    if y.ndim != 1:
        raise _not_labels("text", y.shape)
    return encode_labels(as_labels(y))[0]


def _not_labels(kind: str, shape: Sequence[int]) -> InputError:
    return InputError(f"the labels must be one integer or text per node, not {kind} of shape {tuple(shape)}.")


DENSE = 2**26
"""A CSR embedding of at most so many entries, zeros included (256 MiB in float32), is written out: the dense solver is
faster."""


def stacked_rows(
    zs: Sequence[Tensor | np.ndarray] | Tensor | np.ndarray, nodes: int, device: torch.device | str | None
) -> Tensor | list[Tensor]:
    """The embeddings as :func:`unit_rows` makes them, S × n × d; or S large CSR tensors."""
    embeddings = [unit_rows(z, nodes, device) for z in zs]
    if len(widths := {x.shape[1] for x in embeddings}) != 1:
        given = " and ".join(str(width) for width in sorted(widths)) or "none"
        raise InputError(f"embeddings probed together must have one width, not {given}; probe them separately.")
    if all(is_csr(x) and x.numel() > DENSE for x in embeddings):
        return embeddings
    dense = [x.to_dense() for x in embeddings]
    return torch.stack(dense) if len(dense) > 1 else dense[0][None]  # a single one may be large


def unit_rows(z: Tensor | np.ndarray, nodes: int, device: torch.device | str | None) -> Tensor:
    """The embeddings, checked, with rows of length one (zero rows stay zero); a CSR tensor stays one."""
    x = z.detach() if isinstance(z, Tensor) else torch.tensor(np.asarray(z))
    if x.dim() != 2 or x.size(0) != nodes or x.shape[1] == 0:
        raise InputError(f"the embeddings must be {nodes} × d, a row for each label, not of shape {tuple(x.shape)}.")
    if device is not None and torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise InputError("the probe was asked to run on CUDA, which this machine does not have; use device='cpu'.")
    x = x.to(x.device if device is None else device)
    x = x if x.dtype == torch.float64 else x.float()
    if is_csr(x):
        return _unit_csr(x)
    if not (finite := x.isfinite().all(1)).all():
        raise _not_finite(int((~finite).nonzero()[0]))
    # Scaling by the largest entry first keeps the squares of very large and very small rows in range.
    largest = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True)
    x = x / largest.where(largest > 0, 1.0)
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x.div_(length.where(length > 0, 1.0))


def _unit_csr(x: Tensor) -> Tensor:
    values, rows = x.values(), rows_of(x)
    if not (finite := values.isfinite()).all():
        raise _not_finite(int(rows[~finite][0]))
    # Squares of float32 numbers are in the range of float64.
    length = torch.bincount(rows, values.double().square(), x.size(0)).sqrt()
    return with_values(x, (values / length.where(length > 0, 1.0)[rows]).to(x.dtype))


def _not_finite(row: int) -> InputError:
    return InputError(f"the embeddings are not finite, first in row {row}; the model that made them has diverged.")
