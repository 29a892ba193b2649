"""The hops of a graph on disk, in as much memory as there is.

    B_p = Âᵖ X,    B_R = K steps of H ← (1 − α) Â H + α X,    Â = D̂^-½ (A + I) D̂^-½

Columns of X do not mix, so they are propagated a few at a time: so many that three arrays of n rows fit into memory. Of
Â only the neighbours of some rows are read at once; D̂^-½ scales the rows of H before and after, so that its values are
never written out. One chain of products gives the powers and, as a sum over them, PageRank:

    G = D̂^-½ H,    Â H = D̂^-½ (A G + G)
    B_R = α Σ_{k<K} (1 − α)ᵏ Âᵏ X + (1 − α)ᴷ Âᴷ X

The hops are written beside the graph (:mod:`costa.graphs.hop_files`), under a name made from how X was prepared, and
are used again. Columns that are done are noted, so that after a kill the others follow.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from costa.graphs.hop_files import HopFiles, StoredHop, create_hop, open_hop, write_columns
from costa.graphs.storage import Growing, StoredGraph, mapped, open_array
from costa.nn import FeatureScaling, Preparation
from costa.nn.held_out import ITERATIONS, PAGERANK, columns_of
from costa.nn.reduction import right_singular_vectors
from costa.nn.sparse import Features, is_csr
from costa.wording import counted
from costa.writing import locked, replacing

EDGES = 2**22
"""Edges that are multiplied at a time."""
ENTRIES = 2**24
"""Entries of X that are prepared at a time."""
FITTED, FITTED_ENTRIES = 2**18, 2**26
"""The most rows that scaling and reduction are fitted to, and the most entries of them if they are dense."""


class DiskAdjacency:
    """Â of a graph on disk, times arrays of n rows.

    >>> from costa.graphs import load_graph
    >>> graph = load_graph("digits", memory="1GiB")
    >>> adjacency, h = DiskAdjacency(graph), torch.ones(1797, 2)
    >>> adjacency.multiply(h * adjacency.scale, out=torch.empty_like(h)).shape
    torch.Size([1797, 2])
    """

    def __init__(self, graph: StoredGraph) -> None:
        self._crow, self._col, self._weight = graph.crow, graph.col, graph.get("edge_weight")
        self.n = graph.num_nodes
        self._parts = self._cut()
        degree = self._crow.diff().float() if self._weight is None else self._weighted_degree()
        self.scale = (degree + 1).rsqrt_()[:, None]
        """D̂^-½, as a column."""

    def multiply(self, g: Tensor, out: Tensor) -> Tensor:
        """Â H, written to ``out``, for G = D̂^-½ H."""
        for start, stop in self._parts:
            rows = slice(start, stop)
            col, ends, weight = self._edges(start, stop)
            if len(col):
                sums = F.embedding_bag(col, g, ends, mode="sum", per_sample_weights=weight, include_last_offset=True)
                torch.add(sums, g[rows], out=out[rows])
            else:
                out[rows] = g[rows]
            out[rows] *= self.scale[rows]
        return out

    def _edges(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The neighbours of these rows, where each row's begin, and their weights."""
        ends = self._crow[start : stop + 1]
        inside = slice(int(ends[0]), int(ends[-1]))
        weight = None if self._weight is None else self._weight[inside]
        return self._col[inside], (ends - ends[0]).int(), weight

    def _cut(self) -> list[tuple[int, int]]:
        """Ranges of rows with about EDGES edges each."""
        cuts = torch.searchsorted(self._crow.contiguous(), torch.arange(0, int(self._crow[-1]), EDGES))
        bounds = torch.cat([torch.tensor([0]), cuts, torch.tensor([self.n])]).clamp(max=self.n).unique().tolist()
        return list(itertools.pairwise(bounds))

    def _weighted_degree(self) -> Tensor:
        degree = torch.zeros(self.n)
        for start, stop in self._parts:
            _, ends, weight = self._edges(start, stop)
            assert weight is not None
            degree[start:stop] = torch.segment_reduce(weight, "sum", offsets=ends.long(), initial=0)
        return degree


def propagate_columns(
    adjacency: DiskAdjacency,
    width: int,
    columns_of_x: Callable[[int, int], Tensor],
    powers: Sequence[int],
    steps: int,
    teleport: float,
    at_once: int,
) -> Iterator[tuple[int, int, Tensor]]:
    """Some columns of a hop at a time: its power (:data:`PAGERANK`), the first column, and n rows of them.

    The rows are valid until the next ones are asked for.

    Args:
        adjacency: Â.
        width: The columns of X.
        columns_of_x: The columns from one number to another, n rows; they are copied.
        powers: The powers of Â, above 0.
        steps: K; 0 leaves PageRank out.
        teleport: α.
        at_once: The most columns at a time.
    """
    last = max([*powers, steps])
    arrays = [empty(adjacency.n * min(width, at_once)) for _ in range(3)]
    for start in range(0, width, at_once):
        stop = min(width, start + at_once)
        x, g, hop = (array[: adjacency.n * (stop - start)].view(-1, stop - start) for array in arrays)
        x.copy_(columns_of_x(start, stop))
        torch.mul(x, adjacency.scale, out=g)
        pagerank = x.mul_(teleport)
        for power in range(1, last + 1):
            adjacency.multiply(g, out=hop)
            if power <= steps:
                walks = (1 - teleport) ** power  # the share of PageRank's walks that get so far
                pagerank.add_(hop, alpha=walks if power == steps else teleport * walks)
            if power in powers:
                yield power, start, hop
            if power < last:
                torch.mul(hop, adjacency.scale, out=g)
        if steps:
            yield PAGERANK, start, pagerank


def empty(size: int) -> Tensor:
    """An array from NumPy, which asks the system for huge pages: rows that are read in no order come sooner."""
    return torch.from_numpy(np.empty(size, dtype=np.float32))


def columns_at_once(n: int, memory: int) -> int:
    """How many columns fit, if three arrays of them and some edges do."""
    return max(1, int(0.8 * memory) // (3 * 4 * n))


def fitted_rows(graph: Data) -> Tensor:
    """The rows of X that scaling and reduction are fitted to: all or, of a large graph on disk, evenly spaced ones."""
    if not isinstance(graph, StoredGraph):
        x: Tensor = graph.x
        return x
    return graph.some_rows_of_x(
        FITTED if is_csr(graph.x) else max(1, min(FITTED, FITTED_ENTRIES // graph.num_features))
    )


def row_chunks(graph: StoredGraph) -> Iterator[tuple[int, Tensor]]:
    """The rows of X a few at a time, with the number of the first."""
    step = max(1, ENTRIES // (2**10 if is_csr(graph.x) else graph.num_features))
    for start in range(0, graph.num_nodes, step):
        yield start, graph.rows_of_x(start, min(graph.num_nodes, start + step))


def stored_hops(
    graph: StoredGraph,
    preparation: Preparation,
    powers: Sequence[int],
    steps: int,
    teleport: float,
    kind: str = "float32",
) -> tuple[StoredHop, ...]:
    """The hops of a prepared X, as :func:`costa.nn.hops.propagate` orders them, mapped from the graph's folder.

    ``kind`` is the type of their files; X itself is float32 in any case.
    """
    files = HopFiles.of(graph.folder, preparation, steps, teleport, kind)
    wanted = [*powers, *([PAGERANK] if steps else [])]
    with locked(files.folder):
        if any(map(files.lacks, wanted)) and files.lacks(0):
            graph.report("Preparing the features …")
            _write_x(graph, preparation, files.path(0))
        missing = [key for key in wanted if files.lacks(key)]
        if missing:
            _write_hops(graph, preparation.out_features, files, missing)
    return tuple(open_hop(files.path(key)) for key in wanted)


def _write_x(graph: StoredGraph, preparation: Preparation, path: Path) -> None:
    with replacing(path) as temporary, Growing(temporary, np.dtype(np.float32), preparation.out_features) as file:
        for _, rows in row_chunks(graph):
            file.append(_dense(preparation.apply(rows)).numpy())


def _write_hops(graph: StoredGraph, width: int, files: HopFiles, missing: Sequence[int]) -> None:
    """Write these hops; columns that an earlier try has finished are not computed again."""
    n = graph.num_nodes
    at_once = min(width, columns_at_once(n, graph.memory))
    note = files.folder / f"progress-{'-'.join(map(str, missing))}-{at_once}-{files.kind}.json"
    partial = {key: files.path(key).with_suffix(f".{at_once}.partial") for key in missing}
    done = 0
    if note.exists() and all(path.exists() for path in partial.values()):
        done = int(json.loads(note.read_text()))
    else:
        for path in partial.values():
            create_hop(path, n, width, files.kind)

    # X is mapped only while it is read: pages that were touched count as memory of the process
    def columns(start: int, stop: int) -> Tensor:
        return mapped(open_array(files.path(0))[:, done + start : done + stop])

    left, powers = width - done, sorted(key for key in missing if key != PAGERANK)
    last = PAGERANK if PAGERANK in missing else powers[-1]
    if left:
        graph.report(f"Propagating {counted(left, 'column')}, {min(at_once, left)} at a time …")
    steps = files.steps if PAGERANK in missing else 0
    for key, start, hop in propagate_columns(
        DiskAdjacency(graph), left, columns, powers, steps, files.teleport, at_once
    ):
        end = done + start + hop.shape[1]
        write_columns(partial[key], done + start, hop)
        if key == last:
            with replacing(note) as temporary:
                temporary.write_text(json.dumps(end))
            if end < width:
                graph.report(f"  {end} of {counted(width, 'column')} done")
    for key, path in partial.items():
        path.replace(files.path(key))
    note.unlink()


class OnDisk:
    """X and Â of a graph on disk, for :func:`costa.nn.held_out.held_out_scores`.

    Args:
        graph: The graph.
        scaling: Feature scaling, fitted.
    """

    def __init__(self, graph: StoredGraph, scaling: FeatureScaling) -> None:
        graph.report("Comparing hops by how well they predict features that are held out …")
        self._graph, self._scaling, self._adjacency = graph, scaling, DiskAdjacency(graph)
        self.shape = (graph.num_nodes, graph.num_features)

    def at(self, nodes: Tensor, columns: Tensor) -> Tensor:
        """These rows and columns of X, dense."""
        return _dense(columns_of(self._scaling(self._graph.x_at(nodes)), columns))

    def reduced(self, columns: Tensor, rank: int) -> Tensor:
        """These columns, reduced to what evenly spaced rows have most of."""
        basis = None
        if len(columns) > rank:
            some = columns_of(self._scaling(fitted_rows(self._graph)), columns)
            basis = right_singular_vectors(some, rank, ITERATIONS)
        part = torch.empty(self.shape[0], min(rank, len(columns)))
        for start, rows in row_chunks(self._graph):
            chosen = columns_of(self._scaling(rows), columns)
            part[start : start + rows.shape[0]] = _dense(chosen) if basis is None else chosen @ basis
        return part

    def hops(self, part: Tensor, powers: Sequence[int], steps: int, teleport: float, nodes: Tensor) -> list[Tensor]:
        """The hops of an n × r matrix at these nodes."""
        keys = [*powers, *([PAGERANK] if steps else [])]
        found = {key: torch.empty(len(nodes), part.shape[1]) for key in keys}
        if 0 in found:
            found[0] = part[nodes]
        at_once = columns_at_once(len(part), self._graph.memory - part.nbytes)
        for key, start, hop in propagate_columns(
            self._adjacency, part.shape[1], lambda a, b: part[:, a:b], powers, steps, teleport, at_once
        ):
            found[key][:, start : start + hop.shape[1]] = hop[nodes]
        return [found[key] for key in keys]


def _dense(x: Features) -> Tensor:
    return x if isinstance(x, Tensor) else x.to_dense()
