"""Write a synthetic graph of any size to a folder that :func:`costa.load_graph` reads, in memory that does not grow.

The graph is that of :mod:`costa.graphs.communities`. Files are written from front to back: the pages of a memory map
would count as memory of the process.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import get_index_dtype

from costa.errors import InputError
from costa.graphs.communities import BLOCK, ENTRIES, Communities, blocks
from costa.writing import replacing

CHUNK = 128
"""Blocks in a row group of a table: about a million rows."""


def stream_communities(
    folder: Path,
    nodes: int,
    edges: int | None = None,
    *,
    columns: int = 128,
    classes: int = 10,
    exponent: float = 2.5,
    sparse: bool = False,
    seed: int = 0,
    announce: Callable[[str], None] = lambda text: None,
) -> None:
    """Write ``features.npy`` or ``features.npz``, then ``nodes.parquet`` and ``edges.parquet``.

    The same seed gives the same bytes. Each edge is listed once, in no order; self-loops and repeated edges, a few per
    cent, are left to the reader.

    Args:
        folder: A folder that is new or empty.
        nodes: The number of nodes, at least a hundred for each class; their ids are the numbers of their rows.
        edges: The number of undirected edges, ten for each node by default.
        columns: The number of feature columns.
        classes: The number of classes.
        exponent: γ, the exponent of the degrees' power law, above 2.
        sparse: Whether the features are sparse, ones and zeros, instead of dense.
        seed: Random seed; global generators are not touched.
        announce: Called with a line as each file begins.

    Example:
        >>> import tempfile
        >>> from costa import load_graph
        >>> folder = Path(tempfile.mkdtemp()) / "small"
        >>> stream_communities(folder, 1000)
        >>> graph = load_graph(folder)
        >>> graph.x.shape, len(graph.label_names)
        (torch.Size([1000, 128]), 10)
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError("writing Parquet needs pyarrow; run pip install 'costa-gcl[tables]'.")
    edges = 10 * nodes if edges is None else edges
    graph = Communities(nodes, edges, columns=columns, classes=classes, exponent=exponent, seed=seed)
    if sparse and columns <= ENTRIES:
        raise InputError(f"sparse features need more than {ENTRIES} columns, not {columns}.")
    _make_empty(folder)
    matrix = "features.npz" if sparse else "features.npy"
    announce(f"Writing {matrix} …")
    with replacing(folder / matrix) as temporary, temporary.open("wb") as file:
        (_write_sparse if sparse else _write_dense)(file, graph)
    announce("Writing nodes.parquet …")
    _write_table(folder / "nodes.parquet", ("id", "label"), graph.nodes, blocks(nodes))
    announce("Writing edges.parquet …")
    _write_table(folder / "edges.parquet", ("source", "target"), graph.edges, blocks(edges))


def _make_empty(folder: Path) -> None:
    """Make the folder; refuse one that holds anything, because a file left in it would be read too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {str(folder)!r} cannot be made ({error.strerror}); give another.") from None
    if any(folder.iterdir()):
        raise InputError(f"the folder {str(folder)!r} is not empty; give a new one.")


def _write_dense(file: IO[bytes], graph: Communities) -> None:
    _write_array(file, (graph.num_nodes, graph.columns), map(graph.dense, blocks(graph.num_nodes)))


def _write_sparse(file: IO[bytes], graph: Communities) -> None:
    """The arrays of :func:`scipy.sparse.save_npz`; each row has as many entries as any other."""
    n = graph.num_nodes
    kind = get_index_dtype(maxval=max(n * ENTRIES, graph.columns))
    arrays: dict[str, tuple[tuple[int, ...], Iterable[NDArray[Any]]]] = {
        "format": ((), [np.array(b"csr")]),
        "shape": ((2,), [np.array([n, graph.columns])]),
        "indptr": ((n + 1,), (ENTRIES * np.arange(*span, dtype=kind) for span in _spans(n + 1))),
        "indices": ((n * ENTRIES,), (graph.sparse(block).astype(kind) for block in blocks(n))),
        "data": ((n * ENTRIES,), (np.ones(last - first, np.float32) for first, last in _spans(n * ENTRIES))),
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, (shape, pieces) in arrays.items():
            # without a date, which would make two files differ
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                _write_array(member, shape, pieces)


def _spans(total: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + BLOCK, total)) for first in range(0, total, BLOCK))


def _write_array(file: IO[bytes], shape: tuple[int, ...], pieces: Iterable[NDArray[Any]]) -> None:
    """A ``.npy`` file of pieces one below the other."""
    for number, piece in enumerate(pieces):
        if number == 0:
            header = {"descr": npy.dtype_to_descr(piece.dtype), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
        file.write(piece.tobytes())


def _write_table(path: Path, names: tuple[str, str], draw: Callable[[int], NDArray[np.int64]], parts: range) -> None:
    """A Parquet file of two columns; the rows of :data:`CHUNK` blocks are a row group."""
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, pyarrow.int64()) for name in names])
    # a dictionary of numbers that hardly repeat would only grow
    options = {"use_dictionary": False, "compression": "zstd"}
    with replacing(path) as temporary, parquet.ParquetWriter(temporary, schema, **options) as writer:
        for first in range(0, len(parts), CHUNK):
            rows = np.concatenate([draw(part) for part in parts[first : first + CHUNK]], axis=1)
            writer.write_table(pyarrow.table(list(rows), schema=schema))
