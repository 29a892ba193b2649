"""How large a graph is, before it is read: from the headers of its files, or from what was read before.

Parquet and NumPy files say how many rows they have. A text file has about as many as its size divided by the mean
length of a row, taken from its beginning, middle and end; a small file's rows are counted. Edges are those listed:
duplicates, both directions of one edge among them, are found only by reading.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costa.errors import InputError
from costa.graphs.files import EDGES, WHOLE
from costa.graphs.storage import ABOUT, StoredGraph, is_stored, open_array
from costa.graphs.streaming import cached_folder, calls_for
from costa.graphs.structure import COLUMNS
from costa.graphs.tables import read_header
from costa.nn.sparse import SPARSE_BELOW, is_csr

if TYPE_CHECKING:
    from torch_geometric.data import Data

SEEN = 2**18
"""Bytes of a text file that are looked at in each of three places."""


@dataclass(frozen=True)
class Sizes:
    """What time, memory and disk depend on.

    Attributes:
        nodes: n.
        edges: m, undirected: those of a graph that was read, or those that its files list.
        columns: d.
        entries: Stored entries of sparse features; None if they are dense.
        labels: Labelled nodes, at most; 0 if nobody will evaluate anything.
        weighted: Whether edges have weights.
        named: Whether the nodes have ids, so that vectors are written as a table too.
        on_disk: Whether the graph stays on disk.
        folder: Where its arrays are, or will be; None if it does not stay on disk.
        read: Whether it was read before, now or in another run.
        edge_file: The edges, if they are yet to be read.
        feature_file: The features, if they are yet to be read.
    """

    nodes: int
    edges: int
    columns: int
    entries: int | None = None
    labels: int = 0
    weighted: bool = False
    named: bool = False
    on_disk: bool = False
    folder: Path | None = None
    read: bool = True
    edge_file: Path | None = None
    feature_file: Path | None = None

    @property
    def copied(self) -> bool:
        """Whether features are written beside a graph on disk: unless they are float32 in a ``.npy`` file."""
        path = self.feature_file
        if path is None or path.suffix.lower() != ".npy":
            return True
        array = open_array(path)
        return not (array.dtype == np.float32 and array.flags.c_contiguous)


def sizes_of(graph: Data) -> Sizes:
    """Those of a graph that was read.

    >>> from costa.graphs import load_graph
    >>> sizes_of(load_graph("digits")).nodes
    1797
    """
    y, stored = graph.get("y"), isinstance(graph, StoredGraph)
    return Sizes(
        nodes=graph.num_nodes,
        edges=graph.num_edges // 2,
        columns=graph.num_features,
        entries=graph.x.values().numel() if is_csr(graph.x) else None,
        labels=0 if y is None else int((y >= 0).sum()),
        weighted=graph.get("edge_weight") is not None,
        named=graph.get("node_ids") is not None,
        on_disk=stored,
        folder=Path(graph.folder) if stored else None,
    )


def sizes_of_files(edges: Path, features: Path | None, nodes: Path | None, memory: int | None) -> Sizes | None:
    """Those of a graph in files, from their headers; None if they do not say, or cannot be read.

    Args:
        edges: A table of edges, a bundle or a GraphML file.
        features: A matrix or a table of features.
        nodes: A table of ids and perhaps labels.
        memory: As for :func:`costa.graphs.load_graph`, in bytes.
    """
    try:
        if edges.suffix.lower() not in EDGES:
            return _bundle(edges) if edges.suffix.lower() == WHOLE[0] and features is nodes is None else None
        return _tables(edges, features, nodes, memory)
    except (InputError, OSError, ValueError, LookupError, zipfile.BadZipFile, ImportError):
        return None  # whoever reads the files says what is wrong with them


def _tables(edges: Path, features: Path | None, nodes: Path | None, memory: int | None) -> Sizes | None:
    about = None if nodes is None else _table(nodes)
    if features is None:
        if about is None:
            return None  # the nodes are known only from the edges
        n, columns, entries = about.rows, COLUMNS, None
    else:
        n, columns, entries = _matrix(features)
    listed = _table(edges)
    on_disk = features is not None and calls_for(edges, features, memory)
    folder = cached_folder(edges, features, nodes) if on_disk and features is not None else None
    read = folder is not None and is_stored(folder)
    count = listed.rows
    if folder is not None and read:
        count = len(open_array(folder / "col.npy")) // 2
        n = json.loads((folder / ABOUT).read_text())["nodes"]
    return Sizes(
        nodes=n if about is None else about.rows,
        edges=count,
        columns=columns,
        entries=entries if entries is not None and entries < SPARSE_BELOW * n * columns else None,
        labels=n if about is not None and "label" in about.names else 0,
        weighted="weight" in listed.names,
        named=True,
        on_disk=on_disk,
        folder=folder,
        read=read,
        edge_file=edges,
        feature_file=features,
    )


@dataclass(frozen=True)
class _About:
    """The rows and the names of the columns of a table."""

    rows: int
    names: list[str]


def _table(path: Path) -> _About:
    if path.suffix.lower() == ".parquet":
        from pyarrow import parquet

        metadata = parquet.read_metadata(path)
        return _About(metadata.num_rows, [name.strip() for name in metadata.schema.to_arrow_schema().names])
    names = read_header(path, "\t" if path.suffix.lower() == ".tsv" else ",")
    return _About(_rows_of_text(path), [name.strip() for name in names])


def _rows_of_text(path: Path) -> int:
    """The lines below the first."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = len(file.readline())
        if size - head <= 3 * SEEN:
            text = file.read()
            return text.count(b"\n") + (len(text) > 0 and not text.endswith(b"\n"))
        seen = lines = 0
        for place in (head, size // 2, size - SEEN):
            file.seek(place)
            if place > head:
                file.readline()  # it begins somewhere inside a line
            whole, _, _ = file.read(SEEN).rpartition(b"\n")
            seen, lines = seen + len(whole) + 1, lines + whole.count(b"\n") + 1
    return round((size - head) * lines / seen)


def _matrix(path: Path) -> tuple[int, int, int | None]:
    """Rows, columns and, if they are sparse, the entries of a file of features."""
    kind = path.suffix.lower()
    if kind == ".npy":
        n, columns = open_array(path).shape
        return n, columns, None
    if kind != ".npz":
        about = _table(path)
        return about.rows, len([name for name in about.names if name != "id"]), None
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "format.npy" not in names:
            (name,) = names
            n, columns = _header(archive, name)
            return n, columns, None
        with archive.open("shape.npy") as file:
            n, columns = np.lib.format.read_array(file, allow_pickle=False).tolist()
        return n, columns, _header(archive, "data.npy")[0]


def _bundle(path: Path) -> Sizes | None:
    """A bundle (:mod:`costa.graphs.arrays`) is read whole, and needs no reading to know how much that is."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())

        def shape(name: str) -> tuple[int, ...]:
            return _header(archive, f"{name}.npy")

        if not {"edge_index.npy", "x.npy"} <= names:
            return None
        ends, (n, columns) = shape("edge_index"), shape("x")
        return Sizes(
            nodes=n,
            edges=max(ends),
            columns=columns,
            labels=n if names & {"y.npy", "labels.npy"} else 0,
            weighted="edge_weight.npy" in names,
            named=True,
            read=False,
        )


def _header(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    """The shape of an array in an archive."""
    read: Any = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    with archive.open(name) as file:
        shape: tuple[int, ...] = read[np.lib.format.read_magic(file)[0]](file)[0]
        return shape
