"""Read a user's large files into a graph on disk, in chunks: the same graph as :mod:`costa.graphs.files` gives.

Nothing that has a number for each edge, or for each feature of each node, is ever in memory whole. What is made from
the files is kept in the user's cache, under a name made from their paths, sizes and dates, and is used again as long
as these stay as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs.assembly import logger, remedy
from costa.graphs.checks import check_count
from costa.graphs.chunked_roles import ChunkedCandidates, first_ends
from costa.graphs.chunks import Chunk, ChunkedTable, canonical
from costa.graphs.columns import Columns, Said, said_by
from costa.graphs.edges import Links, lay_out
from costa.graphs.features import in_doubt
from costa.graphs.identity import digest
from costa.graphs.kinds import ROLES
from costa.graphs.labels import as_labels, check_classes, check_once, label_column, sorted_labels
from costa.graphs.matrices import RAW, Matrix, TableMatrix, open_matrix
from costa.graphs.numbering import Numbering
from costa.graphs.roles import check_said, edge_columns, node_columns, others, unread
from costa.graphs.stages import Done, Report, begin, silent
from costa.graphs.storage import IDS, VERSION, StoredGraph, finish, is_stored, open_stored, store, write_columns
from costa.graphs.tables import KINDS, require_column
from costa.wording import counted
from costa.writing import locked

LARGE = 2**27
"""Bytes of edges and features from which a graph is read in chunks."""

FIRST = 2**23
"""Bytes of text that are read to see how long reading takes."""


def calls_for(edges: Path, features: Path, memory: int | None) -> bool:
    """Whether files are read in chunks: if they are large, or memory is limited. It takes pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        return False
    if {edges.suffix.lower(), features.suffix.lower()} & {".jsonl", ".ndjson"}:
        return False
    sizes = [path.stat().st_size for path in (edges, features) if path.is_file()]
    return len(sizes) == 2 and (memory is not None or sum(sizes) >= LARGE)


def read_stored(
    edges: Path,
    features: Path,
    nodes: Path | None,
    columns: Said = None,
    *,
    memory: int,
    report: Report = silent,
) -> StoredGraph:
    """The graph in these files, on disk.

    Args:
        edges: A table of edges.
        features: A matrix or a table of features.
        nodes: A table of ids and perhaps labels.
        columns: What the user says that columns are, or what a model has made of them.
        memory: The bytes that arrays in memory may take when the graph is used.
        report: Called as each stage begins and goes on, here and later.
    """
    folder = cached_folder(edges, features, nodes, columns)
    _remove_abandoned(folder.parent)
    if not is_stored(folder):
        with _built(folder) as building:
            _build(edges, features, nodes, columns, building, report)
    graph = open_stored(folder, memory, report)
    graph.name = edges.resolve().parent.name if edges.stem == "edges" else edges.stem
    return graph


def cached_folder(edges: Path, features: Path, nodes: Path | None, columns: Said = None) -> Path:
    """Where the arrays of the graph in these files are, if it was read before, or will be."""
    said = columns.to_dict() if isinstance(columns, Columns) else dict(columns or {})
    return _cache() / _key([path.resolve() for path in (edges, features, nodes) if path is not None], json.dumps(said))


def keep_on_disk(graph: Data, memory: int, report: Report = silent) -> StoredGraph:
    """A graph that was read into memory, as arrays on disk."""
    folder = _cache() / digest(graph, f"{VERSION}")
    _remove_abandoned(folder.parent)
    if not is_stored(folder):
        with _built(folder) as building:
            store(graph, building)
            if graph.get("columns") is not None:
                write_columns(building, graph.columns)
    stored = open_stored(folder, memory, report)
    stored.name, stored.node_ids = graph.name, graph.get("node_ids")
    return stored


def _cache() -> Path:
    folder = Path(platformdirs.user_cache_dir("costa")) / "graphs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _built(folder: Path) -> Iterator[Path]:
    """A new folder, which takes this one's place at the end; of several writers the last one wins."""
    building = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    with contextlib.ExitStack() as held:
        with locked(folder.parent):  # nobody sees the new folder before it is locked
            building.mkdir()
            held.enter_context(locked(building))
        try:
            yield building
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(building, folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _remove_abandoned(cache: Path) -> None:
    """Remove the folders that a process has not finished before it was killed: those whose lock nobody holds."""
    with locked(cache) as alone:
        for building in cache.glob(".*.*") if alone else []:
            with contextlib.suppress(OSError), locked(building, wait=False) as abandoned:
                if abandoned:
                    shutil.rmtree(building, ignore_errors=True)


def _key(files: Sequence[Path], about: str) -> str:
    digest = hashlib.blake2b(f"{VERSION} {about}".encode(), digest_size=12)
    for path in files:
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _build(
    edges: Path,
    features: Path,
    nodes: Path | None,
    columns: Said,
    folder: Path,
    report: Report,
) -> None:
    done = begin(report, f"Reading the features in {features} …")
    listed = ChunkedTable(edges, ())
    listed = listed.called(edge_columns(listed.names, listed.where)).reading(("source", "target"))
    said = said_by(columns)
    ends = first_ends(listed)
    tables = [path for path in (nodes, features) if path is not None and path.suffix.lower() in KINDS]
    if not isinstance(columns, Columns):
        check_said(said, [name for path in tables for name in ChunkedTable(path, ()).names])
    table = None if nodes is None else _with_roles(nodes, ends, listed.where, said)
    described: ChunkedTable | None = None
    if features not in tables:
        matrix = open_matrix(features, folder)
    else:
        known, known_from = (ends, listed.where) if table is None else (table.column("id"), table.where)
        described = _with_roles(features, known, known_from, said)
        matrix = TableMatrix(features, described, columns)
    numbering = _number(table, matrix)
    check_count(numbering.n)
    arrays = ["y", "crow", "col", *matrix.write(numbering, folder, done)]
    for unpacked in folder.glob(f"{RAW}*"):
        unpacked.unlink()
    y, label_names = _labels(table, described, matrix.place, numbering.n)
    np.save(folder / "y.npy", y)
    if numbering.ids is not None:
        _write_ids(numbering, folder / IDS)
    done = begin(report, f"Reading the edges in {edges} …")
    links = _read_links(listed, numbering, folder, done)
    if lay_out(links, numbering.n, folder, begin(report, "Laying out the edges …")) == 0:
        logger.warning("%s joins no two nodes; vectors will use each node's own features only.", repr(str(edges)))
    links.remove()
    arrays += ["weight"] if links.weighted else []
    in_place = None if any(name.startswith("x") for name in arrays) else features.resolve()
    finish(folder, arrays, numbering.n, matrix.columns, in_place, label_names)
    if matrix.fitted is not None:
        write_columns(folder, matrix.fitted)


def _number(nodes: ChunkedTable | None, matrix: Matrix) -> Numbering:
    """The nodes in the order of their table, else of the feature rows."""
    if nodes is not None:
        require_column("id", nodes.names, nodes.where)
        unread(nodes.where, others(nodes.names), f"{matrix.where} has the features")
        ids = nodes.column("id")
        numbering = Numbering(ids, len(ids), f"an id in {nodes.short}")
        numbering.check_unique(nodes)
        if matrix.ids is None and matrix.n != numbering.n:
            raise InputError(
                f"{matrix.where} has {matrix.n} rows, but {nodes.short} lists {numbering.n} nodes; "
                f"give one row for each node."
            )
        if matrix.ids is None and numbering.permutes_rows():
            raise in_doubt(matrix.where, nodes.where)
        return numbering
    if matrix.ids is not None:
        return Numbering(matrix.ids, matrix.n, f"an id in {matrix.short}")
    return Numbering(None, matrix.n, f"a row number of {matrix.short} (0 to {matrix.n - 1})")


def _with_roles(path: Path, known: Any, known_from: str, said: Mapping[str, str]) -> ChunkedTable:
    """A table of nodes or features with its columns of ids and labels, if it has them, called so."""
    table = ChunkedTable(path, ())
    ids, labels = node_columns(ChunkedCandidates(table, known), known_from, said)
    return table.called({"id": ids, "label": labels}).reading(ROLES)


def _labels(
    nodes: ChunkedTable | None, features: ChunkedTable | None, place: NDArray[np.int64] | None, n: int
) -> tuple[NDArray[np.int64], list[str]]:
    """The codes of the labels, −1 if unlabelled, and their names; those of the features stand in ``place``."""
    labelled = [table for table in (nodes, features) if table is not None and "label" in table.names]
    check_once([label_column(table) for table in labelled])
    if not labelled:
        return np.full(n, -1), []
    y, names = _codes(labelled[0])
    if labelled[0] is features and place is not None:
        y[place] = y.copy()
    return y, names


def _codes(nodes: ChunkedTable) -> tuple[NDArray[np.int64], list[str]]:
    import pyarrow

    parts = [
        canonical(chunk.columns["label"], nodes, "label", chunk.first, missing="").cast(pyarrow.string())
        for chunk in nodes.chunks(["label"])
    ]
    labels = pyarrow.chunked_array(parts).dictionary_encode().unify_dictionaries()
    texts = as_labels(labels.chunk(0).dictionary, f"the labels in {nodes.where}")
    names = sorted_labels(texts)
    code = {"": -1} | {name: number for number, name in enumerate(names)}
    codes = np.array([code[text] for text in texts])
    y = codes[np.concatenate([part.indices.to_numpy() for part in labels.chunks])]
    check_classes(names, int((y >= 0).sum()), f"the labels in {nodes.where}")
    return y, names


def _read_links(table: ChunkedTable, numbering: Numbering, folder: Path, done: Done) -> Links:
    """Spool the links between row numbers."""
    weighted = "weight" in table.names
    columns = ["source", "target", *(["weight"] if weighted else [])]
    with Links(folder, weighted=weighted) as links:
        for chunk in table.chunks(columns):
            source, target = (_rows(chunk, name, table, numbering) for name in ("source", "target"))
            links.append(source, target, _weights(chunk, table) if weighted else None)
            done(chunk.share)
    if links.dropped:
        logger.info("%s: %s dropped", table.where, counted(links.dropped, "self-loop"))
    return links


def first_links(edges: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ends of the links of the first chunk: ids that are whole numbers as they are, others numbered from 0."""
    import pyarrow

    table = ChunkedTable(edges, (), FIRST)
    table = table.called(edge_columns(table.names, table.where)).reading(("source", "target"))
    chunk = next(table.chunks(["source", "target"]))
    ends = [canonical(chunk.columns[name], table, name, chunk.first) for name in ("source", "target")]
    count = len(ends[0])
    if all(pyarrow.types.is_int64(each.type) for each in ends):
        numbers = pyarrow.concat_arrays(ends)
    else:
        numbers = pyarrow.concat_arrays([each.cast(pyarrow.string()) for each in ends]).dictionary_encode().indices
    both = np.abs(numbers.to_numpy().astype(np.int64))
    return both[:count], both[count:]


def _rows(chunk: Chunk, name: str, table: ChunkedTable, numbering: Numbering) -> NDArray[np.int64]:
    ids = canonical(chunk.columns[name], table, name, chunk.first)
    rows = numbering.rows(ids)
    if (rows < 0).any():
        row = int(np.flatnonzero(rows < 0)[0])
        unknown = str(ids[row].as_py())
        raise InputError(
            f"{table.where} has the {name} {unknown!r} in row {chunk.first + row}, which is not {numbering.known_as}"
            + remedy(unknown, numbering)
        )
    return rows


def _weights(chunk: Chunk, table: ChunkedTable) -> NDArray[np.float64]:
    import pyarrow

    column = chunk.columns["weight"]
    if not (pyarrow.types.is_floating(column.type) or pyarrow.types.is_integer(column.type)):
        raise InputError(f"{table.where} has {column.type} values in the column 'weight'; give numbers.")
    weight: NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64)
    bad = np.flatnonzero(~((weight >= 0) & (weight <= np.finfo(np.float32).max)))
    if bad.size:
        raise InputError(
            f"{table.where} has the weight {weight[bad[0]]:g} in row {chunk.first + bad[0]}; weights must be finite and"
            " 0 or more."
        )
    return weight


def _write_ids(numbering: Numbering, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": numbering.ids}), path)
