"""Features from files larger than memory: a ``.npy`` array in its place, others written beside the graph in chunks.

A ``.npz`` file is unpacked, member by member, into ``.npy`` files, which can be mapped; a table is read in chunks.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from costa.errors import InputError
from costa.graphs.arrays import check_size, unreadable
from costa.graphs.assembly import logger
from costa.graphs.chunks import ChunkedTable
from costa.graphs.columns import Columns, Said, fit_columns, warn_of_unseen
from costa.graphs.entries import write_rows
from costa.graphs.kinds import ROLES, said_of
from costa.graphs.numbering import Numbering
from costa.graphs.roles import others
from costa.graphs.stages import Done
from costa.graphs.storage import Growing, open_array
from costa.graphs.tables import Table, check_file, from_arrow, not_finite
from costa.nn.sparse import SPARSE_BELOW

ENTRIES = 2**24
"""Entries of a dense array that are handled at a time."""
RAW = "raw"
"""How the names of files begin that are not needed once a matrix is written."""
PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
"""What is saved of a sparse matrix of each format, beside its values and its shape."""

Floats = NDArray[np.float32]


class Matrix:
    """Features in a file: n × columns, in the file's order.

    Args:
        path: The file.
        shape: Its rows and columns.
    """

    ids: Any = None
    """The ids of its rows, an Arrow array; None if it has none."""
    fitted: Columns | None = None
    """What becomes of the columns of a table."""
    place: NDArray[np.int64] | None = None
    """The node of each row, once it is written; None if they are in the nodes' order."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.where, self.short = repr(str(path)), path.name
        if len(shape) != 2:
            raise InputError(f"{self.where} has the shape {tuple(shape)}; give one row of features for each node.")
        check_size(shape, self.where)
        self.n, self.columns = shape

    def write(self, numbering: Numbering, folder: Path, done: Done) -> list[str]:
        """Write the arrays of :mod:`costa.graphs.storage` into a folder, in the nodes' order; return their names."""
        raise NotImplementedError


class DenseMatrix(Matrix):
    """A ``.npy`` file; float32 is used where it is, anything else is converted."""

    def __init__(self, path: Path, named: Path | None = None) -> None:
        check_file(path)
        try:
            self.array = open_array(path)
        except (OSError, EOFError, ValueError) as error:
            raise unreadable(repr(str(named or path)), error) from error
        super().__init__(named or path, self.array.shape)
        if self.array.dtype.kind not in "biuf":
            raise InputError(f"{self.where} holds {self.array.dtype} values; give real numbers.")
        usable = self.array.dtype == np.float32 and self.array.flags.c_contiguous and named is None
        self.in_place = path.resolve() if usable else None

    def write(self, numbering: Numbering, folder: Path, done: Done) -> list[str]:
        """Check the values; copy them only if they are not float32."""
        check = Check(self, done)
        if self.in_place is not None:
            for start, rows in self._chunks():
                check(rows, start)
        else:
            with Growing(folder / "x.npy", np.dtype(np.float32), self.columns) as file:
                for start, rows in self._chunks():
                    check(rows, start)
                    file.append(rows)
        check.end()
        return [] if self.in_place is not None else ["x"]

    def _chunks(self) -> Iterator[tuple[int, Floats]]:
        step = max(1, ENTRIES // self.columns)
        for start in range(0, self.n, step):
            with np.errstate(over="ignore"):
                yield start, np.asarray(self.array[start : start + step], dtype=np.float32)


class SparseMatrix(Matrix):
    """A matrix as ``scipy.sparse.save_npz`` writes it, unpacked into a folder and brought into CSR form there."""

    def __init__(self, path: Path, kind: str, folder: Path) -> None:
        self._kind, parts = kind, dict[str, NDArray[Any]]()
        for part in (*PARTS[kind], "data", "shape"):
            unpacked = folder / f"{RAW}-{part}.npy"
            _unpack(path, f"{part}.npy", unpacked)
            parts[part] = open_array(unpacked)
        super().__init__(path, tuple(np.array(parts["shape"]).tolist()))
        if parts["data"].dtype.kind not in "biuf":
            raise InputError(f"{self.where} holds {parts['data'].dtype} values; give real numbers.")
        try:
            if kind != "csr":
                rows = write_rows(kind, parts, (self.n, self.columns), folder)
                parts |= {part: open_array(path) for part, path in rows.items()}
        except (IndexError, TypeError, ValueError):
            raise self._torn() from None
        self._data, self._indices, self._indptr = (parts[part] for part in ("data", "indices", "indptr"))
        stored, ends = len(self._data), self._indptr
        if len(ends) != self.n + 1 or ends[0] != 0 or ends[-1] != stored or len(self._indices) != stored:
            raise self._torn()

    def write(self, numbering: Numbering, folder: Path, done: Done) -> list[str]:
        """Its rows, chunk by chunk, without duplicates or stored zeros; dense if they are rather full."""
        dense = len(self._data) >= SPARSE_BELOW * self.n * self.columns
        return self._write_dense(folder, done) if dense else self._write_sparse(folder, done)

    def _write_dense(self, folder: Path, done: Done) -> list[str]:
        check = Check(self, done)
        with Growing(folder / "x.npy", np.dtype(np.float32), self.columns) as file:
            for start, rows in self._chunks(max(1, ENTRIES // self.columns)):
                dense = rows.toarray()
                check(dense, start)
                file.append(dense)
        check.end()
        return ["x"]

    def _write_sparse(self, folder: Path, done: Done) -> list[str]:
        check = Check(self, done)
        crow, total = [np.zeros(1, dtype=np.int64)], 0
        wide = np.dtype(np.int32 if len(self._data) < 2**31 else np.int64)
        with (
            Growing(folder / "x-col.npy", wide) as col,
            Growing(folder / "x-values.npy", np.dtype(np.float32)) as values,
        ):
            for start, rows in self._chunks(ENTRIES // 16):
                check(rows, start)
                crow.append(rows.indptr[1:] + total)
                total += rows.nnz
                col.append(rows.indices)
                values.append(rows.data)
        check.end()
        np.save(folder / "x-crow.npy", np.concatenate(crow))
        return ["x-crow", "x-col", "x-values"]

    def _chunks(self, step: int) -> Iterator[tuple[int, csr_array]]:
        for start in range(0, self.n, step):
            ends = np.array(self._indptr[start : start + step + 1], dtype=np.int64)
            inside = slice(int(ends[0]), int(ends[-1]))
            try:
                with np.errstate(over="ignore"):
                    parts = (np.array(self._data[inside], dtype=np.float32), np.array(self._indices[inside]))
                rows = csr_array((*parts, ends - ends[0]), shape=(len(ends) - 1, self.columns))
                rows.check_format(full_check=True)
            except (TypeError, ValueError):
                raise self._torn() from None
            rows.sum_duplicates()
            rows.eliminate_zeros()
            yield start, rows

    def _torn(self) -> InputError:
        return InputError(
            f"the parts of {self.where} do not fit together as a {self._kind.upper()} matrix; save it again with"
            " scipy.sparse.save_npz."
        )


class TableMatrix(Matrix):
    """A table, whose columns but ids and labels are features (:mod:`costa.graphs.columns`).

    What they are and how they become numbers is decided by the rows of its first chunk.

    Args:
        path: The file.
        table: The same in chunks, its columns of ids and labels called so.
        columns: What the user says that columns are, or what a model has decided.
    """

    def __init__(self, path: Path, table: ChunkedTable, columns: Said) -> None:
        if isinstance(columns, Columns):
            columns.check_names(table.where, others(table.names))
            self.fitted = columns
        else:
            some = table.reading(table.names).first().without(*ROLES)
            self.fitted = fit_columns(some, said_of(table.names, columns or {}))
        numbers = {column.name for column in self.fitted.columns if column.kind == "number"}
        self._table = table.reading([name for name in table.names if name not in numbers])
        self._names = [column.name for column in self.fitted.columns if column.names]
        if "id" in self._table.names:
            self.ids = self._table.column("id")
        rows = len(self.ids) if self.ids is not None else _count(self._table)
        super().__init__(path, (rows, len(self.fitted.names)))
        if self.ids is not None:
            Numbering(self.ids, rows, "an id").check_unique(self._table)

    def write(self, numbering: Numbering, folder: Path, done: Done) -> list[str]:
        """Its rows in the nodes' order."""
        check = Check(self, done)
        self.place = None if self.ids is None else self._places(numbering)
        shape = (numbering.n, self.columns)
        x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=shape)
        fitted, unseen = self.fitted, list[str]()
        assert fitted is not None
        for chunk in self._table.chunks(self._names):
            start, count = chunk.first - 1, len(next(iter(chunk.columns.values())))
            some = {name: from_arrow(column) for name, column in chunk.columns.items()}
            made, strange = fitted.matrix(Table(self.where, self.short, some, count))
            rows: Floats = made if isinstance(made, np.ndarray) else made.toarray()
            unseen = unseen or strange
            check(rows, start)
            place = slice(start, start + count) if self.place is None else self.place[start : start + count]
            x[place] = rows
        check.end()
        warn_of_unseen(self.where, unseen)
        return ["x"]

    def _places(self, numbering: Numbering) -> NDArray[np.int64] | None:
        """The node of each row; None if they are in the nodes' order."""
        place = numbering.rows(self.ids)
        if (place < 0).any():
            extra = str(self.ids[int(np.flatnonzero(place < 0)[0])].as_py())
            raise InputError(f"{self.where} has a row for {extra!r}, which is not {numbering.known_as}; drop the row.")
        if self.n < numbering.n:
            there = np.zeros(numbering.n, dtype=bool)
            there[place] = True
            node = numbering.name(int(np.flatnonzero(~there)[0]))
            raise InputError(f"{self.where} has no row for the node {node!r}; add it.")
        return None if np.array_equal(place, np.arange(self.n)) else place


def open_matrix(path: Path, folder: Path) -> Matrix:
    """The features in a NumPy file.

    Args:
        path: The file.
        folder: Where an archive is unpacked, into files whose names begin with RAW.
    """
    if path.suffix.lower() == ".npy":
        return DenseMatrix(path)
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise unreadable(repr(str(path)), error) from error
    if "format.npy" in names:
        return SparseMatrix(path, _format(path, names, folder), folder)
    if len(names) != 1:
        keys = ", ".join(name.removesuffix(".npy") for name in names) or "nothing"
        raise InputError(f"{str(path)!r} holds {keys}; save exactly one array or sparse matrix in it.")
    unpacked = folder / f"{RAW}.npy"
    _unpack(path, names[0], unpacked)
    return DenseMatrix(unpacked, path)


def _format(path: Path, names: list[str], folder: Path) -> str:
    """The format of a sparse matrix in an archive, one of those in PARTS."""
    unpacked = folder / f"{RAW}-format.npy"
    _unpack(path, "format.npy", unpacked)
    saved = open_array(unpacked).tobytes().rstrip(b"\0")
    kind = saved.decode("ascii", "replace")
    if kind not in PARTS:
        raise InputError(
            f"{str(path)!r} holds a sparse matrix of the format {kind}; save it as CSR, with"
            " scipy.sparse.save_npz(path, matrix.tocsr())."
        )
    lacks = {"data.npy", "shape.npy", *(f"{part}.npy" for part in PARTS[kind])} - set(names)
    if lacks:
        raise InputError(
            f"{str(path)!r} lacks {min(lacks).removesuffix('.npy')}; save it again with scipy.sparse.save_npz."
        )
    return kind


def _unpack(path: Path, member: str, to: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed, to.open("wb") as file:
            shutil.copyfileobj(packed, file, 2**24)
    except (OSError, EOFError, LookupError, zipfile.BadZipFile) as error:
        raise unreadable(repr(str(path)), error) from error


def _count(table: ChunkedTable) -> int:
    return sum(len(chunk.columns[table.names[0]]) for chunk in table.chunks(table.names[:1]))


class Check:
    """What is refused in features, and what is worth a warning, seen chunk by chunk; reports how many were seen."""

    def __init__(self, matrix: Matrix, done: Done) -> None:
        self._where, self._n, self._done = matrix.where, matrix.n, done
        self._low, self._high = np.full(matrix.columns, np.inf), np.full(matrix.columns, -np.inf)
        self._rows = 0

    def __call__(self, rows: Any, start: int) -> None:
        """Look at some rows, dense or a ``csr_array``, the first of which has this number."""
        dense = rows if isinstance(rows, np.ndarray) else None
        if not np.isfinite(rows.data if dense is None else dense).all():
            row, column = np.argwhere(~np.isfinite(rows.toarray() if dense is None else dense))[0].tolist()
            raise InputError(
                f"{self._where} has {not_finite(float(rows[row, column]))} in row {start + row}, column {column} (both"
                " from 0); replace it, or drop the row or the column."
            )
        low, high = rows.min(axis=0), rows.max(axis=0)
        if dense is None:
            low, high = low.toarray(), high.toarray()
        self._low, self._high = np.minimum(self._low, low.ravel()), np.maximum(self._high, high.ravel())
        self._rows += rows.shape[0]
        self._done(self._rows / self._n)

    def end(self) -> None:
        """Refuse features that are all 0; warn if all nodes have the same."""
        if not self._low.any() and not self._high.any():
            raise InputError(
                f"{self._where} holds nothing but zeros; give features, or leave them out to have them made from the"
                " edges."
            )
        if self._rows > 1 and (self._low == self._high).all():
            logger.warning(
                "%s has the same features for every node, so they cannot tell nodes apart; leave them out to have them"
                " made from the edges.",
                self._where,
            )
