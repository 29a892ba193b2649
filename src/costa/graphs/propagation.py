"""The hops of a graph on disk, in as much memory as there is.

    B_p = Âᵖ X,    B_R = K steps of H ← (1 − α) Â H + α X,    Â = D̂^-½ (A + I) D̂^-½

Columns of X do not mix, so they are propagated a few at a time: so many that three arrays of n rows fit into memory,
and at most 32. A row of so many is whole lines of the processor's cache, and no more of them are wanted at once. Of Â
only the neighbours of some rows are read at a time, and its values are never written out. One chain of products gives
the powers and, as a sum over them, PageRank:

    G_0 = D̂^-½ X,    G_p = D̂⁻¹ (A G_{p−1} + G_{p−1}),    Âᵖ X = D̂^½ G_p
    B_R = D̂^½ (α Σ_{k<K} (1 − α)ᵏ G_k + (1 − α)ᴷ G_K)

The hops are written beside the graph (:mod:`costa.graphs.hop_files`), under a name made from how X was prepared, and
are used again. Columns that are done are noted, so that after a kill the others follow.

Of several processes each prepares, multiplies and writes the rows that it holds. A row of Â H is the same sum whoever
takes it, but of rows that others hold: before each product, all ranks get all rows of G. Of the three arrays only
that one then has n rows, and the other two have n/N. The memory is for all processes of a machine, and each takes its
share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from costa.graphs.hop_files import HopFiles, StoredHop, create_hop, write_columns
from costa.graphs.stages import Done, begin, unheard
from costa.graphs.storage import Growing, StoredGraph, mapped
from costa.memory import share
from costa.nn import FeatureScaling, Preparation
from costa.nn.held_out import ITERATIONS, PAGERANK, columns_of, compared
from costa.nn.ranks import ALONE, Ranks
from costa.nn.reduction import right_singular_vectors
from costa.nn.sparse import Features, is_csr
from costa.wording import counted
from costa.writing import replacing

EDGES = 2**22
"""Edges that are multiplied at a time."""
ENTRIES = 2**22
"""Entries of X that are prepared at a time."""
LINE = 16
"""Columns that are a line of the processor's cache."""
WIDEST = 2 * LINE
"""The most columns that are propagated at a time."""
FITTED, FITTED_ENTRIES = 2**18, 2**24
"""The most rows that scaling and reduction are fitted to, and the most entries of them."""
COPIES = 4
"""Arrays of as many entries as these rows have, which fitting takes; entries of sparse rows take four times as much."""
REDUCED = 256
"""Columns that sparse rows are multiplied by, about."""


class DiskAdjacency:
    """D̂⁻¹ (A + I) of a graph on disk, times arrays of n rows; or of those that a rank holds.

    >>> from costa.graphs import load_graph
    >>> graph = load_graph("digits", memory="1GiB")
    >>> adjacency, h = DiskAdjacency(graph), torch.ones(1797, 2)
    >>> adjacency.multiply(h * adjacency.scale, out=torch.empty_like(h)).shape
    torch.Size([1797, 2])
    """

    def __init__(self, graph: StoredGraph, ranks: Ranks = ALONE) -> None:
        self._crow, self._col, self._weight = graph.crow, graph.col, graph.get("edge_weight")
        self.n, self._ranks, self.held = graph.num_nodes, ranks, ranks.range(graph.num_nodes)
        self._parts = self._cut()
        if self._weight is None:
            degree = self._crow[self.held.start : self.held.stop + 1].diff().float()
        else:
            degree = self._weighted_degree()
        self.scale = (degree + 1).rsqrt_()[:, None]
        """The rows of D̂^-½ that are held, as a column."""

    def multiply(self, g: Tensor, out: Tensor, total: Tensor | None = None, share: float = 1.0) -> Tensor:
        """The rows of the next G that this rank holds, written to ``out``; a share of them is added to ``total``.

        ``g`` has room for all rows, of which this rank has written those that it holds.
        """
        self._ranks.complete(g)
        first = self.held.start
        for start, stop in self._parts:
            col, ends, weight = self._edges(start, stop)
            rows = slice(start - first, stop - first)
            place = out[rows]
            if len(col):
                sums = F.embedding_bag(col, g, ends, mode="sum", per_sample_weights=weight, include_last_offset=True)
                torch.add(sums, g[start:stop], out=place)
            else:
                place.copy_(g[start:stop])
            place *= self.scale[rows].square()
            if total is not None:
                total[rows].add_(place, alpha=share)
        return out

    def _edges(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The neighbours of these rows, where each row's begin, and their weights."""
        ends = self._crow[start : stop + 1]
        inside = slice(int(ends[0]), int(ends[-1]))
        weight = None if self._weight is None else self._weight[inside]
        return self._col[inside], (ends - ends[0]).int(), weight

    def _cut(self) -> list[tuple[int, int]]:
        """Ranges of the rows that are held, with about EDGES edges each."""
        start, stop = self.held.start, self.held.stop
        edges = torch.arange(int(self._crow[start]), int(self._crow[stop]), EDGES)
        cuts = torch.searchsorted(self._crow.contiguous(), edges)
        bounds = torch.cat([torch.tensor([start]), cuts, torch.tensor([stop])]).clamp(start, stop).unique().tolist()
        return list(itertools.pairwise(bounds))

    def _weighted_degree(self) -> Tensor:
        degree, first = torch.zeros(len(self.held)), self.held.start
        for start, stop in self._parts:
            _, ends, weight = self._edges(start, stop)
            assert weight is not None
            sums = torch.segment_reduce(weight, "sum", offsets=ends.long(), initial=0)
            degree[start - first : stop - first] = sums
        return degree


def propagate_columns(
    adjacency: DiskAdjacency,
    width: int,
    write_x: Callable[[int, int, Tensor], None],
    powers: Sequence[int],
    steps: int,
    teleport: float,
    at_once: int,
    done: Done = unheard,
) -> Iterator[tuple[int, int, Tensor]]:
    """Some columns of a hop at a time: its power (:data:`PAGERANK`), the first column, and the rows of them.

    The rows are valid until the next ones are asked for.

    Args:
        adjacency: D̂⁻¹ (A + I).
        width: The columns of X.
        write_x: Writes the columns of X from one number to another: n rows, or those that a rank holds.
        powers: The powers of Â, above 0.
        steps: K; 0 leaves PageRank out.
        teleport: α.
        at_once: The most columns at a time.
        done: Called with the share of the products that are done.
    """
    last = products(powers, steps)
    held = adjacency.held
    counts = (len(held), adjacency.n, len(held))
    arrays = [empty(count * min(width, at_once)) for count in counts]
    for start in range(0, width, at_once):
        stop = min(width, start + at_once)
        x, g, hop = (
            array[: count * (stop - start)].view(count, stop - start)
            for array, count in zip(arrays, counts, strict=True)
        )
        own = g[held.start : held.stop]
        write_x(start, stop, x)
        own.copy_(x.mul_(adjacency.scale))
        pagerank = x.mul_(teleport)
        for power in range(1, last + 1):
            walks = (1 - teleport) ** power  # the share of PageRank's walks that get so far
            total = pagerank if power <= steps else None
            adjacency.multiply(g, hop, total, walks if power == steps else teleport * walks)
            done((start * last + (stop - start) * power) / (width * last))
            if power in powers:
                yield power, start, torch.div(hop, adjacency.scale, out=own)
            if power == last:
                break
            if len(held) == adjacency.n:  # the arrays are alike, and nothing has to be copied
                g, hop = hop, g
                own = g
            else:
                own.copy_(hop)
        if steps:
            yield PAGERANK, start, pagerank.div_(adjacency.scale)


def products(powers: Sequence[int], steps: int) -> int:
    """How many products with Â all of this takes, for each column: one chain gives the powers and PageRank.

    >>> products((1, 4), 10), products((0, 4), 0)
    (10, 4)
    """
    return max([*powers, steps])


def empty(size: int) -> Tensor:
    """An array that begins with a line of the cache, from NumPy, which asks the system for huge pages.

    So rows that are read in no order come sooner.
    """
    whole = np.empty(size + LINE, dtype=np.float32)
    first = -whole.ctypes.data // whole.itemsize % LINE
    return torch.from_numpy(whole[first : first + size])


def columns_at_once(n: int, memory: int, ranks: Ranks = ALONE) -> int:
    """How many columns are propagated at a time: as many as fit with three arrays, and whole lines if one fits.

    The arrays are one of n rows, and two of those that a rank holds; some edges must fit too.

    >>> columns_at_once(10**6, 2**30), columns_at_once(10**7, 2**32), columns_at_once(10**7, 2**30)
    (32, 16, 7)
    """
    fitting = int(0.8 * memory) // (4 * (n + 2 * -(-n // ranks.size)))
    return max(1, min(WIDEST, fitting // LINE * LINE or fitting))


def fitted_rows(graph: Data) -> Tensor:
    """The rows of X that scaling and reduction are fitted to: all or, of a large graph on disk, evenly spaced ones.

    They and what is computed from them fit into the graph's memory. With 256 MiB or more the rows do not depend on it.
    """
    if not isinstance(graph, StoredGraph):
        x: Tensor = graph.x
        return x
    entries = min(FITTED_ENTRIES, graph.memory // (4 * COPIES))
    width = graph.num_features
    if is_csr(graph.x):
        width = 4 * -(-graph.x.values().numel() // graph.num_nodes) + REDUCED
    return graph.some_rows_of_x(max(1, min(FITTED, entries // width)))


def row_chunks(graph: StoredGraph, rows: range | None = None) -> Iterator[tuple[int, Tensor]]:
    """The rows of X, or these, a few at a time, with the number of the first."""
    step = max(1, ENTRIES // (2**10 if is_csr(graph.x) else graph.num_features))
    rows = range(graph.num_nodes) if rows is None else rows
    for start in range(rows.start, rows.stop, step):
        yield start, graph.rows_of_x(start, min(rows.stop, start + step))


def stored_hops(
    graph: StoredGraph,
    preparation: Preparation,
    powers: Sequence[int],
    steps: int,
    teleport: float,
    kind: str = "float32",
    ranks: Ranks = ALONE,
) -> tuple[StoredHop, ...]:
    """The hops of a prepared X, as :func:`costa.nn.hops.propagate` orders them, mapped from the graph's folder.

    Args:
        graph: The graph.
        preparation: Fitted, and the same on all ranks.
        powers: The powers of Â.
        steps: K of PageRank; 0 leaves it out.
        teleport: α of PageRank.
        kind: The type of the files, ``float32`` or ``float16``; X itself is float32 in any case.
        ranks: Who propagates. Each gets the rows that it holds.
    """
    files = HopFiles.of(graph.folder, preparation, steps, teleport, kind)
    wanted = [*powers, *([PAGERANK] if steps else [])]
    with files.locked(ranks):
        if ranks.size == 1:
            for key in {0, *wanted}:
                files.join(key)
        own = files.of_rank(ranks)
        missing = [key for key in wanted if ranks.any(own.lacks(key))]
        if missing and own.lacks(0):
            _write_x(graph, preparation, own.path(0), ranks)
        missing = [key for key in missing if key != 0]
        if missing:
            _write_hops(graph, preparation.out_features, own, missing, ranks)
        return tuple(own.open(key, ranks.range(graph.num_nodes)) for key in wanted)


def _write_x(graph: StoredGraph, preparation: Preparation, path: Path, ranks: Ranks) -> None:
    done, held = begin(graph.report, "Preparing the features …"), ranks.range(graph.num_nodes)
    with replacing(path) as temporary, Growing(temporary, np.dtype(np.float32), preparation.out_features) as file:
        for _, rows in row_chunks(graph, held):
            file.append(_dense(preparation.apply(rows)).numpy())
            done(file.rows / len(held))


def _write_hops(graph: StoredGraph, width: int, files: HopFiles, missing: Sequence[int], ranks: Ranks) -> None:
    """Write these hops; columns that an earlier try has finished on all ranks are not computed again.

    A column has the same bits however many are computed at a time, so that the earlier try may have had other memory.
    """
    n, rows = graph.num_nodes, ranks.range(graph.num_nodes)
    at_once = ranks.least(min(width, columns_at_once(n, share(graph.memory, ranks.sharing), ranks)))
    for key in missing:
        if not files.done(key):
            create_hop(files.partial(key), len(rows), width, files.kind)
    done = ranks.least(min(files.done(key) for key in missing))

    # X is mapped only while it is read: pages that were touched count as memory of the process
    def write_x(start: int, stop: int, x: Tensor) -> None:
        x.copy_(mapped(files.open(0, rows).array[:, done + start : done + stop]))

    left, powers = width - done, sorted(key for key in missing if key != PAGERANK)
    steps = files.steps if PAGERANK in missing else 0
    adjacency, report = DiskAdjacency(graph, ranks), unheard
    if left:
        report = begin(graph.report, f"Propagating {counted(left, 'column')}, {min(at_once, left)} at a time …")
    for key, start, hop in propagate_columns(adjacency, left, write_x, powers, steps, files.teleport, at_once, report):
        end = done + start + hop.shape[1]
        write_columns(files.partial(key), done + start, hop, ranks)
        files.note_done(key, end)
    ranks.wait()
    for key in missing:
        files.end(key)


class OnDisk:
    """X and Â of a graph on disk, for :func:`costa.nn.held_out.held_out_scores`.

    Args:
        graph: The graph.
        scaling: Feature scaling, fitted.
    """

    def __init__(self, graph: StoredGraph, scaling: FeatureScaling) -> None:
        self._report = begin(graph.report, "Comparing hops by how well they predict features that are held out …")
        self._graph, self._scaling, self._adjacency = graph, scaling, DiskAdjacency(graph)
        self.shape = (graph.num_nodes, graph.num_features)
        self._halves = 0  # those that were asked for

    def at(self, nodes: Tensor, columns: Tensor) -> Tensor:
        """These rows and columns of X, dense."""
        return _dense(columns_of(self._scaling(self._graph.x_at(nodes)), columns))

    def hops(
        self, columns: Tensor, rank: int, powers: Sequence[int], steps: int, teleport: float, nodes: Tensor
    ) -> list[Tensor]:
        """The hops of these columns, reduced to what evenly spaced rows have most of, at these nodes."""
        width, basis = min(rank, len(columns)), None
        if len(columns) > rank:
            some = columns_of(self._scaling(fitted_rows(self._graph)), columns)
            basis = right_singular_vectors(some, rank, ITERATIONS)

        def write_x(start: int, stop: int, x: Tensor) -> None:
            for first, rows in row_chunks(self._graph):
                chosen = columns_of(self._scaling(rows), columns if basis is not None else columns[start:stop])
                part = _dense(chosen) if basis is None else chosen @ basis[:, start:stop]
                x[first : first + len(part)] = part

        keys = [*powers, *([PAGERANK] if steps else [])]
        found = {key: torch.empty(len(nodes), width) for key in keys}
        if 0 in found:
            own = columns_of(self._scaling(self._graph.x_at(nodes)), columns)
            found[0] = _dense(own) if basis is None else own @ basis
        before, (_, halves) = self._halves, compared(self.shape[0])

        def done(share: float) -> None:
            self._report((before + share) / halves)

        at_once = min(width, columns_at_once(self.shape[0], self._graph.memory))
        for key, start, hop in propagate_columns(
            self._adjacency, width, write_x, powers, steps, teleport, at_once, done
        ):
            found[key][:, start : start + hop.shape[1]] = hop[nodes]
        self._halves += 1
        return [found[key] for key in keys]


def _dense(x: Features) -> Tensor:
    return x if isinstance(x, Tensor) else x.to_dense()
