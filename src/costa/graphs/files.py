"""A user's own graph, from a folder of plain files.

The folder holds

- ``edges.csv``, ``edges.tsv`` or ``edges.parquet`` with the columns ``source``, ``target`` and perhaps ``weight``;
- ``features.npy``, ``features.npz`` (one dense array, or a sparse matrix as ``scipy.sparse.save_npz`` writes it),
  ``features.csv`` or ``features.parquet``, one row a node; the tables may have an ``id`` column;
- perhaps ``nodes.csv`` or ``nodes.parquet`` with the columns ``id`` and perhaps ``label``.

Tables have a header line, and messages count the rows below it from 1. Columns not named here are features in
``features`` and ignored elsewhere. Ids are compared as text, blanks around them removed.

**Nodes.** Their order is that of ``nodes`` if it is there, else of the feature rows. Features with an ``id`` column
are matched by it; without one their rows follow ``nodes``, or the ids are the row numbers 0 … n − 1. A node
without an edge is kept.

**Edges.** The graph is undirected whichever way an edge is listed. Rows that repeat source and target are one edge
and their weights add up; of the two directions the larger weight counts, so listing an undirected edge both ways
does not double it: w_{ij} = max(Σ w(i→j), Σ w(j→i)). Self-loops are dropped, because the encoders add their own.

**Labels.** Text becomes codes 0, 1, … in sorted order (numbers by value), with the text in ``label_names``; an
empty label is −1, unlabelled.
"""

from __future__ import annotations

import csv
import logging
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from costa.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Table:
    """The columns of a CSV, TSV or Parquet file, in order: all text, but typed values from Parquet."""

    path: Path
    columns: dict[str, Sequence[Any]]
    rows: int

    def text(self, name: str) -> list[str]:
        """A column as text; a missing value is the empty string."""
        if name not in self.columns:
            found = ", ".join(self.columns)
            raise InputError(f"{str(self.path)!r} has no column {name!r}, only {found}; name it in the first line.")
        return ["" if cell is None or cell != cell else str(cell).strip() for cell in self.columns[name]]

    def ids(self, name: str) -> list[str]:
        """A column of ids: text, none of it empty."""
        cells = self.text(name)
        if "" in cells:
            row = cells.index("") + 1
            raise InputError(f"{str(self.path)!r} has an empty {name} in row {row}; give an id or drop the row.")
        return cells

    def numbers(self, name: str) -> NDArray[np.float32]:
        """A column as float32; whether the values are finite is the caller's question."""
        cells = self.columns[name]
        try:
            # A value beyond float32 becomes infinite here and gets its sentence with the other infinities.
            with np.errstate(over="ignore"):
                return np.asarray(cells, dtype=np.float64).astype(np.float32)
        except (TypeError, ValueError):
            row = next(i for i, cell in enumerate(cells) if not _is_number(cell))
            raise InputError(
                f"{str(self.path)!r} has {cells[row]!r} in row {row + 1} of the column {name!r}, "
                f"which is not a number; replace it, or drop the row or the column."
            ) from None


def read_folder(folder: Path) -> Data:
    """The graph in `folder`, with ``node_ids`` (and ``label_names``) so that ids come back out.

    Args:
        folder: A folder laid out as this module's text says; its name becomes the graph's.

    Raises:
        InputError: A file is missing, ambiguous or malformed, with where and why.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "edges.csv").write_text("source,target\\nann,bob\\nbob,ann\\nbob,cy\\n")
        >>> _ = (folder / "features.csv").write_text("id,age\\nann,31\\nbob,40\\ncy,29\\n")
        >>> graph = read_folder(folder)
        >>> graph.node_ids, graph.edge_index.tolist()
        (['ann', 'bob', 'cy'], [[0, 1, 1, 2], [1, 0, 2, 1]])
    """
    from torch_geometric.data import Data

    edges_path = _require(folder, "edges", ("csv", "tsv", "parquet"))
    features_path = _require(folder, "features", ("npy", "npz", "csv", "parquet"))
    nodes_path = _find(folder, "nodes", ("csv", "parquet"))
    nodes = None if nodes_path is None else _read_table(nodes_path)
    x, feature_ids = _read_features(features_path)
    if nodes is not None:
        ids = _unique(nodes.ids("id"), nodes.path)
        x = _match(x, features_path, feature_ids, ids, nodes.path)
    else:
        ids = [str(row) for row in range(len(x))] if feature_ids is None else feature_ids
    if not np.isfinite(x).all():
        node = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise InputError(
            f"{str(features_path)!r} has a value for node {ids[node]!r} that is missing, NaN, infinite "
            f"or too large for float32; replace it or drop the node."
        )

    if nodes is None and feature_ids is None:
        known_as = f"a row number of {features_path.name} (0 to {len(ids) - 1})"
    else:
        known_as = f"an id in {(nodes_path or features_path).name}"
    edge_index, edge_weight = _read_edges(edges_path, ids, known_as)
    y, label_names = _codes(nodes.text("label") if nodes and "label" in nodes.columns else [""] * len(ids))
    data = Data(x=torch.from_numpy(x), edge_index=edge_index, y=y, name=folder.resolve().name)
    if edge_weight is not None:
        data.edge_weight = edge_weight
    data.node_ids = ids
    data.label_names = label_names
    return data


def _find(folder: Path, stem: str, kinds: tuple[str, ...]) -> Path | None:
    found = [folder / f"{stem}.{kind}" for kind in kinds if (folder / f"{stem}.{kind}").is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise InputError(f"the folder {str(folder)!r} has {names}; keep one of them.")
    return found[0] if found else None


def _require(folder: Path, stem: str, kinds: tuple[str, ...]) -> Path:
    path = _find(folder, stem, kinds)
    if path is None:
        names = ", ".join(f"{stem}.{kind}" for kind in kinds)
        raise InputError(f"the folder {str(folder)!r} has no {stem} file; put one of {names} there.")
    return path


def _read_table(path: Path) -> _Table:
    table = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    # What pandas makes of an index nobody asked for, which would pass for a feature.
    if any(name == "" or name.startswith("__index_level_") for name in table.columns):
        raise InputError(f"{str(path)!r} has a column without a name; name it, or leave it out (pandas: index=False).")
    return table


def _read_csv(path: Path) -> _Table:
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
            header = [name.strip() for name in next(reader, [])]
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as UTF-8 text ({type(error).__name__}); save it as such."
        ) from error
    if not header:
        raise InputError(f"{str(path)!r} is empty or begins so; give it a first line with the names of its columns.")
    while rows and not rows[-1]:
        rows.pop()
    for i, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                f"{str(path)!r} has {len(row)} cells in row {i}, but its first line has {len(header)}; "
                f"give every row the same number."
            )
    if len(set(header)) != len(header):
        name = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{str(path)!r} has two columns named {name!r}; rename one of them.")
    # Names that are numbers are fine (0, 1, 2 is what pandas writes); a row of measurements is a lost first row.
    if all(map(_is_number, header)) and header != [str(i) for i in range(len(header))]:
        raise InputError(f"the first line of {str(path)!r} is all numbers; put a line of column names above it.")
    columns: dict[str, Sequence[Any]] = dict(
        zip(header, zip(*rows, strict=True) if rows else ((),) * len(header), strict=True)
    )
    return _Table(path, columns, len(rows))


def _read_parquet(path: Path) -> _Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"{str(path)!r} needs pyarrow, which is not installed; run pip install 'costa-gcl[tables]'."
        ) from error
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{str(path)!r} cannot be read as Parquet ({type(error).__name__}); write it anew.") from error
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        # Python objects keep text and whole numbers apart from floats, which a NumPy column with a gap does not.
        number = pyarrow.types.is_floating(column.type)
        columns[name.strip()] = column.to_numpy() if number else column.to_pylist()
    return _Table(path, columns, table.num_rows)


def _read_features(path: Path) -> tuple[NDArray[np.float32], list[str] | None]:
    """The n × features matrix in the file's order, and the ids of its rows if it has them."""
    ids = None
    if path.suffix in (".npy", ".npz"):
        x = _read_array(path)
    else:
        table = _read_table(path)
        ids = _unique(table.ids("id"), path) if "id" in table.columns else None
        names = [name for name in table.columns if name != "id"]
        x = np.empty((table.rows, len(names)), dtype=np.float32)
        for column, name in enumerate(names):
            x[:, column] = table.numbers(name)
    if 0 in x.shape:
        raise InputError(f"{str(path)!r} holds {x.shape[0]} rows of {x.shape[1]} features; give at least one of each.")
    return x, ids


def _read_array(path: Path) -> NDArray[np.float32]:
    try:
        found: Any = np.load(path, allow_pickle=False)
        if isinstance(found, np.lib.npyio.NpzFile):
            with found as archive:
                if "format" in archive.files:
                    from scipy.sparse import load_npz

                    found = load_npz(path).toarray()
                elif len(archive.files) == 1:
                    found = archive[archive.files[0]]
                else:
                    keys = ", ".join(archive.files) or "nothing"
                    raise InputError(f"{str(path)!r} holds {keys}; save exactly one array or sparse matrix in it.")
    except InputError:
        raise
    except (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as a NumPy file of numbers ({type(error).__name__}); "
            f"save it anew with numpy.save, numpy.savez or scipy.sparse.save_npz."
        ) from error
    if found.dtype.kind not in "biuf":
        raise InputError(f"{str(path)!r} holds {found.dtype} values; save numbers.")
    if found.ndim != 2:
        raise InputError(f"{str(path)!r} has the shape {found.shape}; save one row for each node.")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(found, dtype=np.float32)


def _match(
    x: NDArray[np.float32], path: Path, feature_ids: list[str] | None, ids: list[str], nodes_path: Path
) -> NDArray[np.float32]:
    """The feature rows in the order of the nodes."""
    if len(x) != len(ids):
        raise InputError(
            f"{str(path)!r} has {len(x)} rows, but {nodes_path.name} lists {len(ids)} nodes; "
            f"give one row for each node."
        )
    if feature_ids is None or feature_ids == ids:
        return x
    row_of = {node: row for row, node in enumerate(feature_ids)}
    missing = next((node for node in ids if node not in row_of), None)
    if missing is not None:
        raise InputError(f"{str(path)!r} has no row for the node {missing!r} of {nodes_path.name}; add it.")
    return x[[row_of[node] for node in ids]]


def _read_edges(path: Path, ids: list[str], known_as: str) -> tuple[torch.Tensor, torch.Tensor | None]:
    """``edge_index`` with both directions of each edge, and the weights if the file has them."""
    from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

    table = _read_table(path)
    number = {node: i for i, node in enumerate(ids)}
    ends = []
    for name in ("source", "target"):
        cells = table.ids(name)
        try:
            ends.append([number[cell] for cell in cells])
        except KeyError as error:
            unknown = error.args[0]
            raise InputError(
                f"{str(path)!r} has the {name} {unknown!r} in row {cells.index(unknown) + 1}, which is not {known_as}; "
                f"add that node or drop the row."
            ) from None
    edge_index = torch.tensor(ends, dtype=torch.long).view(2, -1)
    weight = None
    if "weight" in table.columns:
        values = table.numbers("weight")
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(bad):
            raise InputError(
                f"{str(path)!r} has the weight {table.columns['weight'][bad[0]]} in row {bad[0] + 1}; "
                f"weights must be finite and zero or more."
            )
        weight = torch.from_numpy(values)
    edge_index, weight = remove_self_loops(edge_index, weight)
    if edge_index.size(1) < table.rows:
        logger.info("%s: %d self-loops dropped", path, table.rows - edge_index.size(1))
    if weight is None:
        return to_undirected(edge_index, num_nodes=len(ids)), None
    edge_index, weight = coalesce(edge_index, weight, num_nodes=len(ids), reduce="sum")
    edge_index, weight = to_undirected(edge_index, weight, num_nodes=len(ids), reduce="max")
    return edge_index, weight


def _codes(labels: list[str]) -> tuple[torch.Tensor, list[str]]:
    """Labels as codes in sorted order, −1 where empty, and the sorted labels."""
    given = set(labels) - {""}
    numeric = all(_is_number(label) and math.isfinite(float(label)) for label in given)
    names = sorted(given, key=lambda label: (float(label), label)) if numeric else sorted(given)
    code = {"": -1} | {name: i for i, name in enumerate(names)}
    return torch.tensor([code[label] for label in labels], dtype=torch.long), names


def _unique(ids: list[str], path: Path) -> list[str]:
    seen: set[str] = set()
    for node in ids:
        if node in seen:
            raise InputError(f"{str(path)!r} lists the id {node!r} twice; ids must be unique.")
        seen.add(node)
    return ids


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
