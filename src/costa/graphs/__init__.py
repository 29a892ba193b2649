"""Where graphs come from: the benchmarks by name, a user's own folder by path."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from costa.errors import InputError
from costa.graphs.benchmarks import BENCHMARKS, load_benchmark

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["BENCHMARKS", "load_graph"]


def load_graph(name_or_path: str | os.PathLike[str], *, data_dir: str | os.PathLike[str] | None = None) -> Data:
    """A graph, by the name of a benchmark or the path of a folder, exactly as its source has it.

    Names win: ``"cora"`` is the benchmark, ``"./cora"`` the folder (whose graph is then named ``cora-folder``). A path
    object is always a folder, because ``Path("./cora")`` and ``Path("cora")`` cannot be told apart.

    The graph carries ``x`` (n × features, float32, unscaled), ``edge_index`` (both directions of every
    edge, no duplicates), ``y`` (int64, −1 where unlabelled) and ``name``; where the source has them also
    ``edge_weight`` and ``train_mask``, ``val_mask``, ``test_mask``. A user's own graph carries ``node_ids``
    and ``label_names`` too (see :mod:`costa.graphs.files`).

    Args:
        name_or_path: One of the names in ``BENCHMARKS``, or a folder with ``edges`` and ``features`` files.
        data_dir: A folder that holds benchmark data; it is searched first and never written to. Then come
            the folder that the environment variable ``COSTA_DATA`` names (read-only too), the user's cache,
            and a download into that cache.

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
    given = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and name_or_path in known:
        graph = load_benchmark(known[name_or_path], data_dir=data_dir)
    elif Path(given).expanduser().is_dir():
        from costa.graphs.files import read_folder

        graph = read_folder(Path(given).expanduser())
        # Its runs and results must not pass for the benchmark's.
        graph.name += "-folder" if graph.name in known else ""
    elif Path(given).expanduser().exists():
        raise InputError(f"the graph {given!r} is a file; give the folder that holds edges.csv and features.")
    else:
        raise InputError(_unknown(given))

    from costa.graphs.checks import check_graph

    check_graph(graph)
    return graph


def _unknown(given: str) -> str:
    """The sentence for a graph that is neither a name nor a folder, with the nearest name if one is near."""
    spellings = {spelling.lower(): b.name for b in BENCHMARKS for spelling in (b.folder, b.title, b.name)}
    near = difflib.get_close_matches(given.lower(), spellings, n=1)
    hint = f" (did you mean {spellings[near[0]]!r}?)" if near else ""
    names = ", ".join(benchmark.name for benchmark in BENCHMARKS)
    return f"unknown graph {given!r}{hint}: give an existing folder or one of the names {names}."
