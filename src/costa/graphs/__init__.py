"""Load graphs: benchmarks by name, a user's own graph by path or from memory."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costa.errors import InputError
from costa.graphs.benchmarks import BENCHMARKS, load_benchmark
from costa.graphs.stages import Report, silent
from costa.memory import parse_size
from costa.wording import did_you_mean

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from costa.graphs.columns import Said
    from costa.graphs.held_edges import hold_out_edges
    from costa.graphs.memory import as_graph
    from costa.graphs.sizes import Sizes

__all__ = [
    "BENCHMARKS",
    "as_graph",
    "graph_sizes",
    "graph_words",
    "hold_out_edges",
    "is_name",
    "load_graph",
    "name_files",
    "named_files",
]

LATER = {"as_graph": "memory", "hold_out_edges": "held_edges"}
"""What is imported on first use, because `costa --help` should not wait for PyTorch, and the module that has it."""

Location = str | os.PathLike[str]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"costa.graphs.{LATER[name]}"), name)


def load_graph(
    name_or_path: Location,
    *,
    features: Location | None = None,
    nodes: Location | None = None,
    columns: Said = None,
    data_dir: Location | None = None,
    memory: str | None = None,
    report: Report = silent,
) -> Data:
    """Load a graph by a benchmark's name or by the path of a folder or file, exactly as its source has it.

    Names win: ``"cora"`` is the benchmark, ``"./cora"`` the folder (whose graph is then named ``cora-folder``). A path
    object is never a name, because ``Path("./cora")`` and ``Path("cora")`` cannot be told apart.

    The graph carries ``x`` (n × features, float32, unscaled), ``edge_index`` (both directions of every
    edge, no duplicates), ``y`` (int64, −1 if unlabelled) and ``name``; if the source has them, also
    ``edge_weight`` and ``train_mask``, ``val_mask``, ``test_mask``. A user's own graph and ``"words"`` carry
    ``node_ids`` and ``label_names`` too (see :mod:`costa.graphs.files`), and may carry ``node_notes``.
    Sparse features stay sparse: ``x`` is a CSR tensor if its source is a sparse matrix with fewer than a tenth of its
    entries stored; ``x.to_dense()`` is dense in either case.

    Args:
        name_or_path: One of the names in ``BENCHMARKS``; a folder with an ``edges`` file; a file of edges, a bundle
            (``.npz``), a GraphML or a GEXF file; or several files joined by :func:`name_files`.
        features: The file of features that goes with a file of edges.
        nodes: The file of ids and labels that goes with a file of edges.
        columns: What columns of tables are that would be taken for something else, such as ``{"customer": "id"}``; or
            the ``columns`` of another graph, to have its features.
        data_dir: A folder that holds benchmark data; it is searched first and never written to. The
            folder in the environment variable ``COSTA_DATA`` (read-only too) comes next, then the user's cache,
            then a download into that cache.
        memory: What a run on the graph may take, such as ``"4GiB"``; the graph's arrays then stay on disk, as those of
            large files do in any case, with half of the memory there is (:mod:`costa.graphs.streaming`).
        report: Called with a line as each stage of reading a large graph, and later of its propagation, begins, and
            with the same line and the share that is done as it goes on.

    Raises:
        InputError: The graph is unknown, incomplete, malformed, or could not be fetched.

    Example:
        >>> graph = load_graph("digits")
        >>> graph.num_nodes, graph.num_features, graph.name
        (1797, 64, 'digits')
    """
    if data_dir is not None and not Path(data_dir).expanduser().is_dir():
        raise InputError(f"the data folder {os.fspath(data_dir)!r} does not exist; give a folder that does.")
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    limit = None if memory is None else parse_size(memory)
    given = os.fspath(name_or_path)
    path = Path(given).expanduser()
    named = is_name(name_or_path)
    if (features is not None or nodes is not None) and (named or path.is_dir()):
        raise InputError(f"features and nodes go with a file of edges, which {given!r} is not; leave them out.")
    if named and isinstance(columns, Mapping) and columns:
        raise InputError(f"columns say what a table's columns are, and {given} is no table; leave them out.")
    if named:
        graph = load_benchmark(known[given], data_dir=data_dir)
    else:
        graph = _read_path(path, given, features, nodes, columns, limit, report)
        # Its runs and results must not pass for the benchmark's.
        kind = "-folder" if path.is_dir() else "-file"
        graph.name += kind if graph.name in known else ""

    from costa.graphs.checks import check_graph
    from costa.graphs.storage import StoredGraph

    if isinstance(graph, StoredGraph):
        return graph  # it was checked as it was written

    check_graph(graph)
    if limit is None:
        return graph
    from costa.graphs.streaming import keep_on_disk
    from costa.memory import workspace

    return keep_on_disk(graph, workspace(limit), report)


def is_name(name_or_path: Location) -> bool:
    """Whether :func:`load_graph` takes this for a benchmark's name, not for a path.

    >>> is_name("words"), is_name("./words"), is_name(Path("words"))
    (True, False, False)
    """
    return isinstance(name_or_path, str) and any(name_or_path == benchmark.name for benchmark in BENCHMARKS)


def _read_path(
    path: Path,
    given: str,
    features: Location | None,
    nodes: Location | None,
    columns: Said,
    memory: int | None,
    report: Report,
) -> Data:
    from costa.graphs.files import read_files, read_folder

    if path.is_dir():
        return read_folder(path, memory, report, columns)
    return read_files(*_files(path, given, features, nodes), memory, report, columns)


def _files(
    path: Path, given: str, features: Location | None, nodes: Location | None
) -> tuple[Path, Path | None, Path | None]:
    """The files of edges, features and nodes that are named one by one or joined."""
    from costa.graphs.files import EDGES, WHOLE

    edges, *joined = named_files(given)
    if not path.exists() and any(joined):
        path, (features, nodes) = Path(edges), joined
    elif not os.path.lexists(path) and path.suffix.lower() not in EDGES + WHOLE:
        raise InputError(_unknown(given))
    joined_features, joined_nodes = (None if name is None else Path(name).expanduser() for name in (features, nodes))
    return path.expanduser(), joined_features, joined_nodes


def graph_sizes(name_or_path: Location, *, memory: str | None = None) -> Sizes | None:
    """How large the graph is that :func:`load_graph` would read, from its files' headers.

    None if these do not say, and for a benchmark's name.
    """
    from costa.graphs.files import files_in
    from costa.graphs.sizes import sizes_of_files

    if is_name(name_or_path):
        return None
    given = os.fspath(name_or_path)
    path = Path(given).expanduser()
    files = files_in(path) if path.is_dir() else _files(path, given, None, None)
    return sizes_of_files(*files, None if memory is None else parse_size(memory))


def name_files(
    graph: str | None, edges: Location | None, features: Location | None = None, nodes: Location | None = None
) -> str:
    """Join a GRAPH argument into one string for ``load_graph``: a name or a path as it is, or several files.

    >>> name_files(None, "/data/links.csv", features="/data/words.npz")
    '/data/links.csv + features /data/words.npz'
    """
    if graph is not None and edges is not None:
        raise InputError(f"the graph {graph!r} and a file of edges were both given; give one of them.")
    named = graph if edges is None else os.path.abspath(edges)
    if named is None:
        raise InputError("no graph was given; give a name, a folder, or a file of edges with --edges.")
    for what, path in (("features", features), ("nodes", nodes)):
        if path is not None:
            if graph is not None:
                raise InputError(f"--{what} goes with --edges; a GRAPH brings its own.")
            named += f" + {what} {os.path.abspath(path)}"
    return named


def named_files(graph: str) -> tuple[str, str | None, str | None]:
    """Split what :func:`name_files` joined into files of edges, features and nodes; a name or a path comes first.

    >>> named_files("/data/links.csv + features /data/words.npz")
    ('/data/links.csv', '/data/words.npz', None)
    """
    joined = re.fullmatch(r"(.+?)(?: \+ features (.+?))?(?: \+ nodes (.+))?", graph, re.DOTALL)
    return (joined[1], joined[2], joined[3]) if joined else (graph, None, None)


def graph_words(graph: str) -> list[str]:
    """How a command line names a graph: as GRAPH, or the files that :func:`name_files` joined as options.

    >>> graph_words("cora"), graph_words("/data/links.csv + features /data/words.npz")
    (['cora'], ['--edges', '/data/links.csv', '--features', '/data/words.npz'])
    """
    edges, features, nodes = named_files(graph)
    named = (("--features", features), ("--nodes", nodes))
    joined = [word for option, file in named if file is not None for word in (option, file)]
    return ["--edges", edges, *joined] if joined else [edges]


def _unknown(given: str) -> str:
    """The error for a graph that is neither a name nor a path, with the most similar name if there is one."""
    spellings = {spelling.lower(): b.name for b in BENCHMARKS for spelling in (b.folder, b.title, b.name)}
    hint = did_you_mean(given, spellings)
    names = ", ".join(benchmark.name for benchmark in BENCHMARKS)
    return f"unknown graph {given!r}{hint}: give an existing folder or file, or one of the names {names}."
