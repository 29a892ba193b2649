"""Read a user's own graph from a folder, from files named one by one, or from one file that holds everything.

A folder holds

- ``edges``, a table with the columns ``source``, ``target`` and perhaps ``weight``;
- perhaps ``features``, one row per node: a table, perhaps with ids, or ``features.npy`` or ``features.npz`` (one dense
  array, or a sparse matrix as ``scipy.sparse.save_npz`` writes it);
- perhaps ``nodes``, a table with the columns ``id``, perhaps ``label``, and features if there is no such file.

A table is a file whose name ends in ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` or ``.ndjson``. Any other file of
data in the folder is named in a warning. Files that are named one by one may have any name and place. One file that
holds everything is a bundle (:mod:`costa.graphs.arrays`), or GraphML or GEXF, whose node attributes are read like
NetworkX's (:mod:`costa.graphs.memory`); features and nodes named with it replace its own.

:mod:`costa.graphs.tables` documents how tables are read, :mod:`costa.graphs.roles` what their columns are taken for,
and :mod:`costa.graphs.assembly` what nodes, edges, weights and labels mean.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from costa.errors import InputError
from costa.graphs import arrays, streaming, tables
from costa.graphs.arrays import Features
from costa.graphs.assembly import assemble
from costa.graphs.columns import Said
from costa.graphs.roles import column_named
from costa.graphs.stages import Report, silent
from costa.graphs.tables import Table
from costa.memory import workspace

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)

EDGES = tables.KINDS
WHOLE = (".npz", ".graphml", ".gexf")
FEATURES = (".npy", ".npz", *tables.KINDS)
NODES = tables.KINDS
DATA = {*EDGES, *WHOLE, *FEATURES, ".json", ".xlsx", ".xls", ".ods", ".feather", ".txt", ".pkl", ".pt", ".mtx"}
"""How the names of files end that may well have been meant to be read."""


def read_folder(folder: Path, memory: int | None = None, report: Report = silent, columns: Said = None) -> Data:
    """The graph in `folder`, with ``node_ids`` and ``label_names`` to translate rows and codes back.

    Args:
        folder: A folder with the layout above; its name becomes the graph's.
        memory: As in :func:`read_files`.
        report: As in :func:`read_files`.
        columns: As in :func:`read_files`.

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
    found = files_in(folder)
    _name_others(folder, found)
    graph = read_files(*found, memory, report, columns)
    graph.name = folder.resolve().name
    return graph


def files_in(folder: Path) -> tuple[Path, Path | None, Path | None]:
    """The files of edges, features and nodes in a folder."""
    edges = _find(folder, "edges", EDGES)
    if edges is None:
        names = ", ".join(f"edges{kind}" for kind in EDGES)
        raise InputError(f"the folder {str(folder)!r} has no edges file; put one of {names} there.")
    return edges, _find(folder, "features", FEATURES), _find(folder, "nodes", NODES)


def _name_others(folder: Path, found: tuple[Path, Path | None, Path | None]) -> None:
    """Name the files of data that are not read; refuse what looks like the features if there are none."""
    others = sorted(path for path in folder.iterdir() if path.suffix.lower() in DATA and path not in found)
    meant = [path.name for path in others if "feature" in path.stem.casefold()]
    if meant and found[1] is None:
        endings = ", ".join(FEATURES[:-1]) + f" or {FEATURES[-1]}"
        raise InputError(
            f"the folder {str(folder)!r} has no features file but {meant[0]}; call it features and let its name end in"
            f" {endings}, or take it out of the folder."
        )
    if others:
        names = ", ".join(path.name for path in others)
        logger.warning(
            "%s: %s not read; only edges, features and nodes are.",
            folder,
            f"{names} {'is' if len(others) == 1 else 'are'}",
        )


def read_files(
    edges: Path,
    features: Path | None = None,
    nodes: Path | None = None,
    memory: int | None = None,
    report: Report = silent,
    columns: Said = None,
) -> Data:
    """The graph in the given files, named after the first file, or after its folder if the file is called ``edges``.

    Args:
        edges: A table of edges, a bundle, or a GraphML or GEXF file.
        features: A matrix or a table of features.
        nodes: A table of ids and perhaps labels.
        memory: The bytes that the graph may take; tables of edges beside features are then read in chunks and stay on
            disk, as large ones do in any case (:mod:`costa.graphs.streaming`).
        report: Called as each stage of reading in chunks begins and goes on.
        columns: What columns of the features and the nodes are, or what a model has made of them.
    """
    tables.check_file(edges)
    kind = _kind(edges, (*EDGES, *WHOLE), "edges")
    if nodes is not None:
        _kind(nodes, NODES, "nodes")
    if features is not None and kind in EDGES and streaming.calls_for(edges, features, memory):
        _kind(features, FEATURES, "features")
        return streaming.read_stored(edges, features, nodes, columns, memory=workspace(memory), report=report)
    matrix = None if features is None else _read_features(features)
    table = None if nodes is None else tables.read_table(nodes)
    if kind == ".npz":
        graph = _assemble_bundle(edges, matrix, table, columns)
    elif kind in WHOLE:
        graph = _assemble_xml(edges, matrix, table, columns)
    else:
        graph = assemble(tables.read_table(edges), matrix, table, columns=columns)
    graph.name = edges.resolve().parent.name if edges.stem == "edges" else edges.stem
    return graph


def _find(folder: Path, stem: str, kinds: tuple[str, ...]) -> Path | None:
    # includes broken links, which are reported when they are opened
    paths = sorted(path for path in folder.iterdir() if path.stem.casefold() == stem and path.suffix.lower() in kinds)
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


def _assemble_bundle(path: Path, features: Table | Features | None, nodes: Table | None, columns: Said) -> Data:
    bundle = arrays.read_bundle(path)
    if nodes is None and bundle.ids is not None:
        where = f"node_ids in {str(path)!r}"
        nodes = Table(where, where, {"id": bundle.ids}, len(bundle.ids))
    tables_given = [table for table in (nodes, features) if isinstance(table, Table)]
    labelled = any(column_named("label", table.where, list(table.columns)) for table in tables_given)
    labels = None if labelled else bundle.labels
    graph = assemble(bundle.links, features or bundle.features, nodes, labels, columns)
    if bundle.notes is not None:
        if len(bundle.notes) != graph.num_nodes:
            raise InputError(
                f"node_notes in {str(path)!r} has {len(bundle.notes)} lines for {graph.num_nodes} nodes; give one each."
            )
        graph.node_notes = bundle.notes
    return graph


def _assemble_xml(path: Path, features: Table | Features | None, nodes: Table | None, columns: Said) -> Data:
    from xml.etree.ElementTree import ParseError

    import networkx  # type: ignore[import-untyped]

    from costa.graphs.memory import networkx_tables

    name = {".graphml": "GraphML", ".gexf": "GEXF"}[path.suffix.lower()]
    read, write = f"read_{name.lower()}", f"networkx.write_{name.lower()}"
    try:
        graph = getattr(networkx, read)(path)
    except (networkx.NetworkXException, ParseError, LookupError, ValueError, TypeError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as {name} ({type(error).__name__}); write it again with {write}."
        ) from error
    names = networkx.get_node_attributes(graph, "label")
    if name == "GEXF" and len(set(names.values())) == len(graph):
        for _, node in graph.nodes(data=True):  # what Gephi writes beside a node, no class
            del node["label"]
    elif name == "GEXF" and names:
        logger.warning(
            "%r: the label of a node, which may be its name alone, is taken for its class; if it is not, say"
            " --columns label=ignore.",
            str(path),
        )
    edges, node_table = networkx_tables(graph, repr(str(path)))
    return assemble(edges, features, nodes or node_table, columns=columns)
