"""NumPy files: a matrix of features, and bundles, which hold a whole graph. No pickle is ever loaded.

A bundle is one ``.npz`` file with

- ``edge_index`` (2 × edges, row numbers) and perhaps ``edge_weight``; or an adjacency matrix, as in the public
  benchmarks (``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``) or as ``scipy.sparse.save_npz`` writes it;
- perhaps ``x``, or ``attr_data``, ``attr_indices``, ``attr_indptr``, ``attr_shape``: the features, unscaled;
- perhaps ``y`` or ``labels``, one per node, −1 or NaN if unlabelled; perhaps ``node_ids``;
- perhaps ``node_notes``, a line of text on each node that the report shows with it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from costa.errors import InputError
from costa.graphs.labels import as_labels
from costa.graphs.tables import check_file, not_finite
from costa.memory import available, size
from costa.nn.sparse import SPARSE_BELOW

_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class Features:
    """The n × features matrix in its source's order, and the ids of its rows if it has them.

    Attributes:
        where: Its name in error messages.
        short: Its name in messages about something else.
        x: float32, finite; a sparse matrix stays a ``csr_array`` unless it is rather full.
        ids: Text, unique; or None.
    """

    where: str
    short: str
    x: NDArray[np.float32] | csr_array
    ids: list[str] | None = None


@dataclass(frozen=True)
class Links:
    """Edges between row numbers.

    Attributes:
        where: Their name in error messages.
        index: 2 × e, int64, from source to target.
        weight: e numbers, float64; or None.
        num_nodes: The number of nodes, if the source gives it.
    """

    where: str
    index: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None
    num_nodes: int | None = None


@dataclass(frozen=True)
class Bundle:
    """A whole graph from one file."""

    links: Links
    features: Features | None
    labels: list[str] | None
    ids: list[Any] | None
    notes: list[str] | None


def read_features(path: Path) -> Features:
    """The matrix in a ``.npy`` or ``.npz`` file."""
    where, loaded = repr(str(path)), _load(path)
    if isinstance(loaded, Mapping):
        if "format" in loaded:
            matrix: Any = _scipy(path, where)
        elif len(loaded) == 1:
            matrix = _member(loaded, next(iter(loaded)), where)
        else:
            keys = ", ".join(loaded) or "nothing"
            raise InputError(f"{where} holds {keys}; save exactly one array or sparse matrix in it.")
    else:
        matrix = loaded
    return as_features(matrix, where, path.name)


def as_features(matrix: Any, where: str, short: str) -> Features:
    """A dense array or a scipy matrix as features, checked."""
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{where} holds {matrix.dtype} values; give real numbers.")
    if matrix.ndim != 2:
        raise InputError(f"{where} has the shape {tuple(matrix.shape)}; give one row of features for each node.")
    check_size(matrix.shape, where)
    with np.errstate(over="ignore"):
        x: Any = _narrow_sparse(matrix) if issparse(matrix) else np.ascontiguousarray(matrix, dtype=np.float32)
    finite = np.isfinite(x.data if issparse(x) else x)
    if not finite.all():
        place = np.argwhere(~finite)[0]
        row, column = (part[place].item() for part in x.tocoo().coords) if issparse(x) else place.tolist()
        value = (matrix.tocsr() if issparse(matrix) else matrix)[row, column]
        raise InputError(
            f"{where} has {not_finite(float(value))} in row {row}, column {column} (both from 0); "
            f"replace it, or drop the row or the column."
        )
    if issparse(x) and x.nnz >= SPARSE_BELOW * math.prod(x.shape):
        x = x.toarray()
    return Features(where, short, x)


def _narrow_sparse(matrix: Any) -> csr_array:
    """A copy in float32 without duplicates or stored zeros."""
    x = csr_array(matrix, dtype=np.float32, copy=True)
    x.sum_duplicates()
    x.eliminate_zeros()
    return x


def check_size(shape: tuple[int, ...], where: str) -> None:
    """Require at least one node and one feature."""
    if 0 in shape:
        raise InputError(f"{where} holds {shape[0]} rows of {shape[1]} features; give at least one of each.")


def as_links(index: NDArray[Any], weight: NDArray[Any] | None, where: str) -> Links:
    """An edge array, 2 × edges or edges × 2, as links; a 2 × 2 array is read as 2 × edges."""
    if index.ndim != 2 or 2 not in index.shape:
        raise InputError(f"{where} has the shape {tuple(index.shape)}; give a row of sources and a row of targets.")
    if index.dtype.kind not in "iu" and index.size:
        raise InputError(f"{where} holds {index.dtype} values; give row numbers, which are integers.")
    if weight is not None:
        if weight.dtype.kind not in "biuf":
            raise InputError(f"the weights of {where} are {weight.dtype} values; give real numbers.")
        if weight.shape != (index.size // 2,):
            raise InputError(
                f"the weights of {where} have the shape {tuple(weight.shape)}; give one for each of its"
                f" {index.size // 2} edges."
            )
        weight = weight.astype(np.float64)
    ends = index if index.shape[0] == 2 else index.T
    if ends.size and int(ends.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{where} holds {int(ends.max())}, too large for a row number; give row numbers from 0.")
    return Links(where, np.ascontiguousarray(ends, dtype=np.int64), weight)


def adjacency_links(adjacency: Any, where: str) -> Links:
    """A scipy sparse adjacency matrix as links from rows to columns, unweighted if all stored values are 1."""
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError(f"{where} has the shape {tuple(adjacency.shape)}; an adjacency matrix is square.")
    if adjacency.dtype.kind not in "biuf":
        raise InputError(f"{where} holds {adjacency.dtype} values; give real numbers.")
    # duplicate entries are summed, as scipy always does
    matrix = adjacency.tocsr().tocoo()
    weighted = matrix.dtype.kind != "b" and bool((matrix.data != 1).any())
    weight = matrix.data.astype(np.float64) if weighted else None
    return Links(where, np.stack([matrix.row, matrix.col]).astype(np.int64), weight, int(matrix.shape[0]))


def read_bundle(path: Path) -> Bundle:
    """The graph in a ``.npz`` file."""
    where, loaded = repr(str(path)), _load(path)
    if not isinstance(loaded, Mapping):
        raise InputError(f"{where} holds one array, not a graph; save edge_index and x with numpy.savez.")
    if "edge_index" in loaded:
        index, weight = _member(loaded, "edge_index", where), _optional(loaded, "edge_weight", where)
        links = as_links(index, weight, f"edge_index in {where}")
    elif "adj_data" in loaded:
        links = adjacency_links(_csr(loaded, "adj", where), f"the adjacency matrix in {where}")
    elif "format" in loaded:
        links = adjacency_links(_scipy(path, where), where)
    else:
        keys = ", ".join(loaded) or "nothing"
        raise InputError(f"{where} holds {keys} but no edges; save them as edge_index, or as the four adj_ parts.")
    x: Any = _csr(loaded, "attr", where) if "attr_data" in loaded else _optional(loaded, "x", where)
    y = _optional(loaded, "y" if "y" in loaded else "labels", where)
    if y is not None and y.ndim != 1:
        raise InputError(f"the labels in {where} have the shape {y.shape}; give one for each node.")
    ids, notes = (_optional(loaded, key, where) for key in ("node_ids", "node_notes"))
    x_where = f"x in {where}"
    return Bundle(
        links,
        None if x is None else as_features(x, x_where, x_where),
        None if y is None else as_labels(y, f"the labels in {where}"),
        None if ids is None else ids.tolist(),
        None if notes is None else [str(note) for note in notes.tolist()],
    )


def _load(path: Path) -> NDArray[Any] | Mapping[str, Any]:
    check_file(path)
    _check_members(path, repr(str(path)))
    try:
        loaded: NDArray[Any] | Mapping[str, Any] = np.load(path, allow_pickle=False)
    except (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise unreadable(repr(str(path)), error) from error
    return loaded


def _check_members(path: Path, where: str) -> None:
    """Refuse an archive whose arrays need more memory than there is, by their headers."""
    try:
        with zipfile.ZipFile(path) as archive:
            needed = sum(_bytes_of(archive, name) for name in archive.namelist() if name.endswith(".npy"))
    except (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile):
        return  # no archive, or a torn one, of which reading it says more
    check_room(needed, f"{where} unpacks to", "save fewer columns, a sparse matrix, or tables that are read in chunks")


def _bytes_of(archive: zipfile.ZipFile, name: str) -> int:
    """The size of an array in an archive, by its header."""
    with archive.open(name) as file:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, kind = read(file)
    return math.prod(shape) * kind.itemsize


def check_room(needed: int, what: str, remedy: str) -> None:
    """Refuse what needs more memory than this machine can give now."""
    there = available()
    if needed > there:
        raise InputError(f"{what} {size(needed)} of memory, and {size(there)} are available; {remedy}.")


def _member(loaded: Mapping[str, Any], key: str, where: str) -> NDArray[Any]:
    try:
        member: NDArray[Any] = loaded[key]
    except (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise unreadable(f"{key} in {where}", error) from error
    return member


def _optional(loaded: Mapping[str, Any], key: str, where: str) -> NDArray[Any] | None:
    return _member(loaded, key, where) if key in loaded else None


def unreadable(what: str, error: Exception) -> InputError:
    """The sentence about a NumPy file that cannot be read."""
    if str(error).startswith("Object arrays"):
        return InputError(f"{what} holds Python objects, which are never loaded; save an array of numbers.")
    return InputError(
        f"{what} cannot be read as a NumPy file ({type(error).__name__}); "
        f"save it again with numpy.save, numpy.savez or scipy.sparse.save_npz."
    )


def _scipy(path: Path, where: str) -> Any:
    from scipy.sparse import load_npz

    _check_members(path, where)
    try:
        matrix = load_npz(path)
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)  # an index out of range would be read from other memory
        return matrix
    except (OSError, EOFError, LookupError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        raise unreadable(where, error) from error


def _csr(loaded: Mapping[str, Any], name: str, where: str) -> Any:
    missing = next((part for part in _PARTS if f"{name}_{part}" not in loaded), None)
    if missing is not None:
        raise InputError(f"{where} has {name}_data but no {name}_{missing}; save all four parts of the matrix.")
    data, indices, indptr, shape = (_member(loaded, f"{name}_{part}", where) for part in _PARTS)
    try:
        matrix = csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
    except (TypeError, ValueError):
        raise InputError(
            f"the {name}_ arrays in {where} do not fit together as a CSR matrix; save the parts of one matrix."
        ) from None
    return matrix
