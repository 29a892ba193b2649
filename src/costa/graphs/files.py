"""A user's own graph from files: a folder of them, some named one by one, or one that holds all.

A folder holds

- ``edges.csv``, ``edges.tsv`` or ``edges.parquet`` with the columns ``source``, ``target`` and perhaps ``weight``;
- perhaps ``features.npy``, ``features.npz`` (one dense array, or a sparse matrix as ``scipy.sparse.save_npz`` writes
  it), ``features.csv``, ``features.tsv`` or ``features.parquet``, one row a node; the tables may have an ``id`` column;
- perhaps ``nodes.csv``, ``nodes.tsv`` or ``nodes.parquet`` with the columns ``id`` and perhaps ``label``.

The same files may have any name and place when they are named one by one. One file that holds all is a bundle
(:mod:`costa.graphs.arrays`) or GraphML, whose nodes' attributes are read as NetworkX's are
(:mod:`costa.graphs.memory`); features and nodes named beside it come before its own.

Columns not named here are features in ``features`` and ignored elsewhere; :mod:`costa.graphs.tables` says how tables
are read and :mod:`costa.graphs.assembly` what nodes, edges, weights and labels mean.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from costa.errors import InputError
from costa.graphs import arrays, tables
from costa.graphs.arrays import Features
from costa.graphs.assembly import assemble
from costa.graphs.tables import Table

if TYPE_CHECKING:
    from torch_geometric.data import Data

EDGES = tables.KINDS
WHOLE = (".npz", ".graphml")
FEATURES = (".npy", ".npz", *tables.KINDS)
NODES = tables.KINDS


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
    edges = _find(folder, "edges", EDGES)
    if edges is None:
        names = ", ".join(f"edges{kind}" for kind in EDGES)
        raise InputError(f"the folder {str(folder)!r} has no edges file; put one of {names} there.")
    graph = read_files(edges, _find(folder, "features", FEATURES), _find(folder, "nodes", NODES))
    graph.name = folder.resolve().name
    return graph


def read_files(edges: Path, features: Path | None = None, nodes: Path | None = None) -> Data:
    """The graph in the named files; it is called as the first of them, or as that one's folder if it is ``edges``.

    Args:
        edges: A table of edges, a bundle or a GraphML file.
        features: A matrix or a table of features.
        nodes: A table of ids and perhaps labels.
    """
    tables.check_file(edges)
    kind = _kind(edges, (*EDGES, *WHOLE), "edges")
    matrix = None if features is None else _read_features(features)
    table = None
    if nodes is not None:
        _kind(nodes, NODES, "nodes")
        table = tables.read_table(nodes)
    if kind == ".npz":
        graph = _assemble_bundle(edges, matrix, table)
    elif kind == ".graphml":
        graph = _assemble_graphml(edges, matrix, table)
    else:
        graph = assemble(tables.read_table(edges), matrix, table)
    graph.name = edges.resolve().parent.name if edges.stem == "edges" else edges.stem
    return graph


def _find(folder: Path, stem: str, kinds: tuple[str, ...]) -> Path | None:
    # a link that leads nowhere is found too, and gets its sentence when it is opened
    found = [folder / f"{stem}{kind}" for kind in kinds if os.path.lexists(folder / f"{stem}{kind}")]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise InputError(f"the folder {str(folder)!r} has {names}; keep one of them.")
    return found[0] if found else None


def _kind(path: Path, kinds: tuple[str, ...], what: str) -> str:
    kind = path.suffix.lower()
    if kind not in kinds:
        endings = ", ".join(kinds[:-1]) + f" or {kinds[-1]}"
        raise InputError(f"{str(path)!r} is no file of {what} that costa reads; its name must end in {endings}.")
    return kind


def _read_features(path: Path) -> Table | Features:
    kind = _kind(path, FEATURES, "features")
    return arrays.read_features(path) if kind in (".npy", ".npz") else tables.read_table(path)


def _assemble_bundle(path: Path, features: Table | Features | None, nodes: Table | None) -> Data:
    bundle = arrays.read_bundle(path)
    if nodes is None and bundle.ids is not None:
        where = f"node_ids in {str(path)!r}"
        nodes = Table(where, where, {"id": bundle.ids}, len(bundle.ids))
    named = nodes is not None and "label" in nodes.columns
    return assemble(bundle.links, features or bundle.features, nodes, None if named else bundle.labels)


def _assemble_graphml(path: Path, features: Table | Features | None, nodes: Table | None) -> Data:
    from xml.etree.ElementTree import ParseError

    import networkx  # type: ignore[import-untyped]

    from costa.graphs.memory import networkx_tables

    try:
        graph = networkx.read_graphml(path)
    except (networkx.NetworkXException, ParseError, LookupError, ValueError, TypeError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as GraphML ({type(error).__name__}); "
            f"write it anew with networkx.write_graphml."
        ) from error
    edges, own_features, own_nodes = networkx_tables(graph, repr(str(path)))
    return assemble(edges, features or own_features, nodes or own_nodes)
