"""Graphs that stay on disk: arrays in a folder, mapped into memory, which reads only what is used.

    crow.npy, col.npy                   Â's pattern: the neighbours of node i are col[crow[i] : crow[i + 1]]
    weight.npy                          the weights of these edges, if they have any
    x.npy                               the features, n × d
    x-crow.npy, x-col.npy, x-values.npy     the same as CSR, if they are sparse
    y.npy                               class codes, −1 if unlabelled
    ids.parquet                         the nodes' ids, unless they are the row numbers
    graph.json                          everything else; written last, so a folder without it is not finished

:mod:`costa.graphs.streaming` writes such a folder from a user's files.
"""

from __future__ import annotations

import copy
import hashlib
import json
import mmap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from costa.graphs.stages import Report, silent
from costa.memory import beside
from costa.nn.sparse import csr, is_csr, row_pointer

if TYPE_CHECKING:
    from costa.graphs.columns import Columns

ABOUT = "graph.json"
COLUMNS, COLUMN_ARRAYS = "columns.json", "columns.safetensors"
"""How the columns of a table became the features, and the arrays of it."""
VERSION = 3
"""Raised whenever a folder would be written differently."""
IDS = "ids.parquet"
HASHED = 2**24
"""Bytes that are hashed at a time."""


class Growing:
    """A ``.npy`` file that rows are appended to; memory holds only what is being written.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.npy"
    >>> with Growing(path, np.dtype("float32"), 2) as file:
    ...     file.append(np.ones((3, 2)))
    >>> np.load(path).shape
    (3, 2)
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], columns: int | None = None) -> None:
        self._path, self._dtype = path, dtype
        self._row: tuple[int, ...] = () if columns is None else (columns,)
        self._file: BinaryIO
        self.rows = 0

    def __enter__(self) -> Growing:
        self._file = self._path.open("wb")
        self._write_header()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
        finally:
            self._file.close()

    def append(self, rows: NDArray[Any]) -> None:
        """Write more rows."""
        np.ascontiguousarray(rows, dtype=self._dtype).tofile(self._file)
        self.rows += len(rows)

    def _write_header(self) -> None:
        # NumPy leaves room for the first number to grow
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self.rows, *self._row),
        }
        np.lib.format.write_array_header_1_0(self._file, header)


def open_array(path: Path) -> NDArray[Any]:
    """A ``.npy`` file, mapped read-only."""
    mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def open_rows(path: Path, rows: range) -> NDArray[Any]:
    """These rows of a ``.npy`` file in row-major order, mapped read-only, by themselves."""
    whole = open_array(path)
    assert isinstance(whole, np.memmap)
    offset = whole.offset + rows.start * whole.strides[0]
    return np.memmap(path, whole.dtype, "r", offset, (len(rows), *whole.shape[1:]))


def mapped(array: NDArray[Any]) -> Tensor:
    """A mapped array as a tensor that must not be written to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def drop_pages(array: NDArray[Any]) -> None:
    """Let go of what was read of a mapped array; it counts as memory of the process, and is read again if need be."""
    if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        array.base.madvise(mmap.MADV_DONTNEED)


class Ids(Sequence[str]):
    """Node ids as Arrow keeps them, read as text."""

    def __init__(self, ids: Any) -> None:
        self._ids = ids

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [str(each) for each in self._ids[index].to_pylist()]
        return str(self._ids[index].as_py())

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        for chunk in self._ids.chunks:
            yield from map(str, chunk.to_pylist())


class RowNumbers(Sequence[str]):
    """Node ids that are the row numbers, as text."""

    def __init__(self, n: int) -> None:
        self._rows = range(n)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        found = self._rows[index]
        return str(found) if isinstance(found, int) else [str(row) for row in found]

    def __len__(self) -> int:
        return len(self._rows)


class StoredGraph(Data):
    """A graph on disk. ``crow`` and ``col`` are its edges; ``edge_index`` is written out whenever it is asked for.

    Attributes:
        crow: Where the neighbours of each node begin in ``col``; both directions of an edge are there, no self-loop.
        col: The neighbours, in order for each node, int32.
        folder: Where the arrays are, and what is computed from them may be kept.
        fingerprint: A digest of the edges, the features and the labels.
        content: The same without the labels.
        memory: The bytes that arrays in memory may take.
        report: Called as each stage of work on the graph begins and goes on.
        maps: The mapped arrays.
    """

    report: Report
    maps: Sequence[NDArray[Any]]

    @property
    def edge_index(self) -> Tensor:
        """Both directions of every edge, 2 × e, in memory."""
        return torch.stack([torch.repeat_interleave(self.crow.diff()), self.col.long()])

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.col.numel()

    def drop_pages(self) -> None:
        """Let go of what was read of the arrays."""
        for array in self.maps:
            drop_pages(array)

    def beside(self, processes: int) -> StoredGraph:
        """The same graph for one of several processes on this machine, while the others wait."""
        graph = copy.copy(self)
        graph.memory = beside(self.memory, processes)
        return graph

    def rows_of_x(self, start: int, stop: int) -> Tensor:
        """These rows of the features, read into memory; CSR if they are sparse."""
        if not is_csr(self.x):
            return self.x[start:stop].clone()
        crow, col, values = self.x.crow_indices(), self.x.col_indices(), self.x.values()
        inside = slice(int(crow[start]), int(crow[stop]))
        return csr(crow[start : stop + 1] - crow[start], col[inside], values[inside], (stop - start, self.x.shape[1]))

    def some_rows_of_x(self, most: int) -> Tensor:
        """At most so many rows, evenly spaced, in memory."""
        return self.x_at(torch.arange(0, self.num_nodes, max(1, -(-self.num_nodes // most))))

    def x_at(self, rows: Tensor) -> Tensor:
        """These rows of the features, read into memory; CSR if they are sparse."""
        if not is_csr(self.x):
            return self.x[rows]
        counts, places = _entries(self.x.crow_indices(), rows)
        pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return csr(pointer, self.x.col_indices()[places], self.x.values()[places], (len(rows), self.x.shape[1]))

    def links_of(self, nodes: Tensor) -> Tensor:
        """The edges of these nodes, 2 × e: an index into ``nodes``, and the neighbour."""
        counts, places = _entries(self.crow, nodes)
        return torch.stack([torch.repeat_interleave(counts), self.col[places].long()])


def _entries(crow: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """How many entries each of these rows of a CSR matrix has, and where they are."""
    begin = crow[rows].long()
    counts = crow[rows + 1] - begin
    before = counts.cumsum(0) - counts
    return counts, torch.arange(int(counts.sum())) + torch.repeat_interleave(begin - before, counts)


def store(graph: Data, folder: Path) -> None:
    """Write a checked graph that is in memory into an empty folder, but for its name and ids."""
    order = torch.argsort(graph.edge_index[0] * graph.num_nodes + graph.edge_index[1])
    source, target = graph.edge_index[:, order]
    apart = source != target
    arrays = {
        "crow": row_pointer(source[apart], graph.num_nodes),
        "col": target[apart].int(),
        "y": graph.y if graph.get("y") is not None else torch.full((graph.num_nodes,), -1),
    }
    if graph.get("edge_weight") is not None:
        arrays["weight"] = graph.edge_weight[order][apart].float()
    if is_csr(graph.x):
        parts = (graph.x.crow_indices(), graph.x.col_indices(), graph.x.values().float())
        arrays |= dict(zip(("x-crow", "x-col", "x-values"), parts, strict=True))
    else:
        arrays["x"] = graph.x.float()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.contiguous().numpy())
    finish(folder, list(arrays), graph.num_nodes, graph.num_features, None, graph.get("label_names"))


def finish(
    folder: Path, arrays: Sequence[str], nodes: int, columns: int, features: Path | None, label_names: list[str] | None
) -> None:
    """Write ``graph.json`` when all arrays are there; ``features`` is where they are if they were not copied."""
    files = [folder / f"{name}.npy" for name in arrays if name != "y"] + ([] if features is None else [features])
    content, fingerprint = _fingerprints([*files, folder / "y.npy"])
    about = {
        "version": VERSION,
        "nodes": nodes,
        "columns": columns,
        "arrays": list(arrays),
        "features": None if features is None else str(features),
        "label_names": label_names,
        "content": content,
        "fingerprint": fingerprint,
    }
    (folder / ABOUT).write_text(json.dumps(about))


def _fingerprints(files: Sequence[Path]) -> tuple[str, str]:
    """A digest of all files but the last, and one of all."""
    digest, before = hashlib.blake2b(digest_size=16), ""
    for path in files:
        before = digest.hexdigest()
        with path.open("rb") as file:
            while part := file.read(HASHED):
                digest.update(part)
    return before, digest.hexdigest()


def write_columns(folder: Path, columns: Columns) -> None:
    """Keep how a table's columns became the features."""
    (folder / COLUMNS).write_text(json.dumps(columns.to_dict()))
    columns.save_arrays(folder / COLUMN_ARRAYS)


def _read_columns(folder: Path) -> Columns | None:
    from costa.graphs.columns import Columns

    if not (folder / COLUMNS).exists():
        return None
    return Columns.load(json.loads((folder / COLUMNS).read_text()), folder / COLUMN_ARRAYS)


def is_stored(folder: Path) -> bool:
    """Whether a folder holds a finished graph of this version."""
    try:
        return bool(json.loads((folder / ABOUT).read_text())["version"] == VERSION)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def open_stored(folder: Path, memory: int, report: Report = silent) -> StoredGraph:
    """The graph in a folder, mapped."""
    about = json.loads((folder / ABOUT).read_text())
    arrays = {name: open_array(folder / f"{name}.npy") for name in about["arrays"]}
    if about["features"] is not None:
        arrays["x"] = open_array(Path(about["features"]))
    parts = {name: mapped(array) for name, array in arrays.items()}
    n = about["nodes"]
    if "x-values" in parts:
        x = csr(parts["x-crow"], parts["x-col"], parts["x-values"], (n, about["columns"]))
    else:
        x = parts["x"]
    graph = StoredGraph(x=x, y=parts["y"], crow=parts["crow"], col=parts["col"])
    if "weight" in parts:
        graph.edge_weight = parts["weight"]
    graph.fingerprint, graph.content, names = about["fingerprint"], about["content"], about["label_names"]
    if names is not None:
        graph.label_names = names
    graph.folder, graph.memory, graph.report = str(folder), memory, report
    graph.maps = list(arrays.values())
    if (columns := _read_columns(folder)) is not None:
        graph.columns, graph.feature_names = columns, columns.names
    ids = folder / IDS
    graph.node_ids = _open_ids(ids) if ids.exists() else RowNumbers(n)
    return graph


def _open_ids(path: Path) -> Ids:
    from pyarrow import parquet

    return Ids(parquet.read_table(path, memory_map=True).column("id"))
