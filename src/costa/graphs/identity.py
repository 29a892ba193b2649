"""What a graph's arrays are, as a short digest: the name of what is cached for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from torch_geometric.data import Data

from costa.graphs.storage import StoredGraph
from costa.nn.sparse import is_csr

ARRAYS = ("x", "edge_index", "edge_weight", "y", "train_mask", "val_mask", "test_mask")


def digest(graph: Data, about: str, arrays: Sequence[str] = ARRAYS) -> str:
    """A digest of these arrays of a graph, by default all that count, and of this text; a graph on disk has its own."""
    own = hashlib.blake2b(about.encode(), digest_size=16)
    if isinstance(graph, StoredGraph):
        own.update(graph.fingerprint.encode())
        return own.hexdigest()
    for name in arrays:
        value = graph.get(name)
        if value is not None:
            parts = (value.crow_indices(), value.col_indices(), value.values()) if is_csr(value) else (value,)
            own.update(f"{name} {tuple(value.shape)}".encode())
            for part in parts:
                array = np.ascontiguousarray(part.numpy())
                own.update(f"{array.dtype} {array.shape}".encode())
                own.update(array.data)
    return own.hexdigest()
