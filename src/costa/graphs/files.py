"""Read a user's own graph from a folder, from files named one by one, or from one file that holds everything.

A folder holds

- ``edges.csv``, ``edges.tsv`` or ``edges.parquet`` with the columns ``source``, ``target`` and perhaps ``weight``;
- perhaps ``features.npy``, ``features.npz`` (one dense array, or a sparse matrix as ``scipy.sparse.save_npz`` writes
  it), ``features.csv``, ``features.tsv`` or ``features.parquet``, one row per node; tables may have an ``id`` column;
- perhaps ``nodes.csv``, ``nodes.tsv`` or ``nodes.parquet`` with the columns ``id`` and perhaps ``label``.

Files that are named one by one may have any name and place. One file that holds everything is a bundle
(:mod:`costa.graphs.arrays`) or GraphML, whose node attributes are read like NetworkX's (:mod:`costa.graphs.memory`);
features and nodes named with it replace its own.

Other columns are features in ``features`` and ignored elsewhere; :mod:`costa.graphs.tables` documents how tables are
read and :mod:`costa.graphs.assembly` what nodes, edges, weights and labels mean.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from costa.errors import InputError
from costa.graphs import arrays, streaming, tables
from costa.graphs.arrays import Features
from costa.graphs.assembly import assemble
from costa.graphs.stages import Report, silent
from costa.graphs.tables import Table
from costa.memory import workspace

if TYPE_CHECKING:
    from torch_geometric.data import Data

EDGES = tables.KINDS
WHOLE = (".npz", ".graphml")
FEATURES = (".npy", ".npz", *tables.KINDS)
NODES = tables.KINDS


def read_folder(folder: Path, memory: int | None = None, report: Report = silent) -> Data:
    """The graph in `folder`, with ``node_ids`` and ``label_names`` to translate rows and codes back.

    Args:
        folder: A folder with the layout above; its name becomes the graph's.
        memory: As in :func:`read_files`.
        report: As in :func:`read_files`.

    Raises:
        InputError: A file is missing, ambiguous or malformed; the message says where and why.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "edges.csv").write_text("source,target\\nann,bob\\nbob,ann\\nbob,cy\\n")
        >>> _ = (folder / "features.csv").write_text("id,age\\nann,31\\nbob,40\\ncy,29\\n")
        >>> graph = read_folder(folder)
        >>> graph.node_ids, graph.edge_index.tolist()
        (['ann', 'bob', 'cy'], [[0, 1, 1, 2], [1, 0, 2, 1]])
    """
    graph = read_files(*files_in(folder), memory, report)
    graph.name = folder.resolve().name
    return graph


def files_in(folder: Path) -> tuple[Path, Path | None, Path | None]:
    """The files of edges, features and nodes in a folder."""
    edges = _find(folder, "edges", EDGES)
    if edges is None:
        names = ", ".join(f"edges{kind}" for kind in EDGES)
        raise InputError(f"the folder {str(folder)!r} has no edges file; put one of {names} there.")
    return edges, _find(folder, "features", FEATURES), _find(folder, "nodes", NODES)


def read_files(
    edges: Path,
    features: Path | None = None,
    nodes: Path | None = None,
    memory: int | None = None,
    report: Report = silent,
) -> Data:
    """The graph in the given files, named after the first file, or after its folder if the file is called ``edges``.

    Args:
        edges: A table of edges, a bundle or a GraphML file.
        features: A matrix or a table of features.
        nodes: A table of ids and perhaps labels.
        memory: The bytes that the graph may take; tables of edges beside features are then read in chunks and stay on
            disk, as large ones do in any case (:mod:`costa.graphs.streaming`).
        report: Called as each stage of reading in chunks begins and goes on.
    """
    tables.check_file(edges)
    kind = _kind(edges, (*EDGES, *WHOLE), "edges")
    if nodes is not None:
        _kind(nodes, NODES, "nodes")
    if features is not None and kind in EDGES and streaming.calls_for(edges, features, memory):
        _kind(features, FEATURES, "features")
        return streaming.read_stored(edges, features, nodes, memory=workspace(memory), report=report)
    matrix = None if features is None else _read_features(features)
    table = None if nodes is None else tables.read_table(nodes)
    if kind == ".npz":
        graph = _assemble_bundle(edges, matrix, table)
    elif kind == ".graphml":
        graph = _assemble_graphml(edges, matrix, table)
    else:
        graph = assemble(tables.read_table(edges), matrix, table)
    graph.name = edges.resolve().parent.name if edges.stem == "edges" else edges.stem
    return graph


def _find(folder: Path, stem: str, kinds: tuple[str, ...]) -> Path | None:
    # includes broken links, which are reported when they are opened
    paths = [folder / f"{stem}{kind}" for kind in kinds if os.path.lexists(folder / f"{stem}{kind}")]
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths)
        raise InputError(f"the folder {str(folder)!r} has {names}; keep one of them.")
    return paths[0] if paths else None


def _kind(path: Path, kinds: tuple[str, ...], what: str) -> str:
    kind = path.suffix.lower()
    if kind not in kinds:
        endings = ", ".join(kinds[:-1]) + f" or {kinds[-1]}"
        raise InputError(f"{str(path)!r} is not a file of {what} that costa reads; its name must end in {endings}.")
    return kind


def _read_features(path: Path) -> Table | Features:
    kind = _kind(path, FEATURES, "features")
    return arrays.read_features(path) if kind in (".npy", ".npz") else tables.read_table(path)


def _assemble_bundle(path: Path, features: Table | Features | None, nodes: Table | None) -> Data:
    bundle = arrays.read_bundle(path)
    if nodes is None and bundle.ids is not None:
        where = f"node_ids in {str(path)!r}"
        nodes = Table(where, where, {"id": bundle.ids}, len(bundle.ids))
    labelled = nodes is not None and "label" in nodes.columns
    graph = assemble(bundle.links, features or bundle.features, nodes, None if labelled else bundle.labels)
    if bundle.notes is not None:
        if len(bundle.notes) != graph.num_nodes:
            raise InputError(
                f"node_notes in {str(path)!r} has {len(bundle.notes)} lines for {graph.num_nodes} nodes; give one each."
            )
        graph.node_notes = bundle.notes
    return graph


def _assemble_graphml(path: Path, features: Table | Features | None, nodes: Table | None) -> Data:
    from xml.etree.ElementTree import ParseError

    import networkx  # type: ignore[import-untyped]

    from costa.graphs.memory import networkx_tables

    try:
        graph = networkx.read_graphml(path)
    except (networkx.NetworkXException, ParseError, LookupError, ValueError, TypeError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as GraphML ({type(error).__name__}); "
            f"write it again with networkx.write_graphml."
        ) from error
    edges, node_features, node_table = networkx_tables(graph, repr(str(path)))
    return assemble(edges, features or node_features, nodes or node_table)
