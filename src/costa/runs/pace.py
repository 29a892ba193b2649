"""How fast this machine is at what a run will do: c of each stage (:mod:`costa.runs.costs`), in about a second.

Each piece of a stage is done for real on a part of the graph, or on random numbers of the graph's shapes: the first
links of the file are numbered and laid out, Â of as many nodes as make :data:`EDGES` edges is multiplied by columns
taken from an array large enough to miss the caches, and a small graph of :data:`costa.nn.hops.ROWS` nodes is trained
on, embedded and written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from operator import matmul
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import training
from costa.graphs.edges import Links, lay_out
from costa.graphs.propagation import FITTED, FITTED_ENTRIES, DiskAdjacency, columns_at_once, empty
from costa.graphs.sizes import Sizes
from costa.graphs.storage import Growing, StoredGraph, open_array
from costa.graphs.streaming import first_links
from costa.methods.base import GradientMethod, Method
from costa.methods.encoding import EncoderMethod
from costa.nn import Adjacency, Preparation
from costa.nn.held_out import ITERATIONS, compared
from costa.nn.hops import ROWS
from costa.nn.reduction import right_singular_vectors
from costa.nn.sparse import from_coo
from costa.runs.costs import AS_TEXT_SECONDS, ENTRY, Shape, compared_columns, compared_products
from costa.runs.vectors import write_rows, write_vectors

EDGES = 2**21
"""Edges, each in one direction, that a product is timed with."""
TABLE = 2**27
"""Bytes of the array that it reads from, if the graph's is not smaller."""
BLOCKS = 16
"""Places of a graph on disk from which they are taken."""
STEPS = 8
"""Steps of training."""
ENOUGH = 0.03
"""Seconds that a piece is repeated for."""


def seconds_of_stages(
    method: type[Method],
    values: Any,
    shape: Shape,
    sizes: Sizes,
    workspace: int | None,
    device: torch.device,
    place: Path,
    *,
    propagated: bool = False,
    chosen: bool = True,
) -> dict[str, float]:
    """Seconds of each stage of a method with hops.

    Args:
        method: The method.
        values: Its settings.
        shape: What the work depends on.
        sizes: Those of the graph.
        workspace: The bytes that arrays of a graph on disk may take; None for a graph in memory.
        device: Device of training.
        place: A folder for files that are written, on the disk where the graph's are.
        propagated: Whether the hops are there.
        chosen: Whether the graph chooses the hops.
    """
    sample = sample_graph(sizes)
    built = training.build(method, values, sample, 0, device)
    assert isinstance(built, EncoderMethod)
    assert isinstance(built, GradientMethod)
    seconds, ends = dict[str, float](), _ends_in(sizes.folder)
    if not sizes.read:
        seconds["read"], ends = _read(sizes, place)
    at_once = shape.columns if workspace is None else min(shape.columns, columns_at_once(shape.nodes, workspace))
    fitting, applying = _prepared(built.preparation, sample, shape)
    if chosen or not propagated:
        each = _product(sizes, at_once, workspace, ends)
    if chosen:
        seconds["choose"] = _choose(sizes, workspace, sample.x, applying, each)
    if not propagated:
        seconds["propagate"] = fitting + applying + each * shape.columns * shape.products
        if workspace is not None:
            seconds["propagate"] += _copied(shape, at_once, place) * -(-shape.columns // at_once) * shape.files
    training.prepare([built], sample)
    step, _ = training.step_seconds(built, sample, values.train, STEPS)
    batches = values.train.batches(shape.nodes)
    larger = 1.0 if values.train.batch else shape.nodes / sample.num_nodes
    seconds["train"] = step * larger * batches * values.train.epochs
    seconds |= _write(built, sample, shape.nodes, place, table=sizes.named)
    return seconds


def sample_graph(sizes: Sizes) -> Data:
    """A small graph of random numbers with the graph's columns, and as many of them stored."""
    n, generator = min(sizes.nodes, ROWS), torch.Generator().manual_seed(0)
    edges = min(sizes.edges * n // sizes.nodes, 2 * n)
    x = torch.rand(n, sizes.columns, generator=generator)
    if sizes.entries is not None:
        share = sizes.entries / (sizes.nodes * sizes.columns)
        x = torch.where(torch.rand(x.shape, generator=generator) < share, x, 0)
        x = from_coo(x.to_sparse())
    ends = torch.randint(n, (2, edges), generator=generator)
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=n)


def _timed(work: Callable[[], Any]) -> float:
    """Seconds of the fastest of some times, of one if it takes long; another before them warms up."""
    work()
    taken = list[float]()
    while sum(taken) < ENOUGH:
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def _read(sizes: Sizes, place: Path) -> tuple[float, Tensor | None]:
    """Number and lay out the first links, weighted ones twice as slowly; :data:`ENTRY` says what an entry of X takes.

    Of a graph that is read into memory, the seconds are typical ones.

    Returns:
        Seconds, and the ends of the links.
    """
    if not sizes.on_disk:
        return AS_TEXT_SECONDS * sizes.edges, None
    each, ends = 0.0, None
    if sizes.edges and sizes.edge_file is not None:
        began = time.perf_counter()
        source, target = first_links(sizes.edge_file)
        # as many nodes as the links' share of all
        nodes = max(2, sizes.nodes * len(source) // sizes.edges)
        with Links(place, weighted=False) as links:
            links.append(source % nodes, target % nodes, None)
        lay_out(links, nodes, place)
        each = (time.perf_counter() - began) / len(source) * (2 if sizes.weighted else 1)
        ends = torch.from_numpy(np.concatenate([target, source]))
    entries = sizes.nodes * sizes.columns if sizes.entries is None else sizes.entries
    # what is not float32 in a file of its own is unpacked or parsed, and written
    return each * (sizes.edges + (4 if sizes.copied else 1) * ENTRY * entries), ends


def _ends_in(folder: Path | None) -> Tensor | None:
    """Neighbours from all over a graph on disk, :data:`EDGES` of them if there are so many."""
    if folder is None or not (folder / "col.npy").exists():
        return None
    col = open_array(folder / "col.npy")
    blocks = [col[start : start + EDGES // BLOCKS] for start in range(0, len(col), max(1, len(col) // BLOCKS))]
    return torch.from_numpy(np.concatenate(blocks)).long() if blocks else None


def _prepared(preparation: Preparation, sample: Data, shape: Shape) -> tuple[float, float]:
    """Seconds of fitting scaling and reduction to some rows of X, and of applying them to all."""
    rows, fitted = sample.num_nodes, min(shape.nodes, FITTED, max(1, FITTED_ENTRIES // sample.num_features))
    fit = _timed(lambda: preparation.fit(sample.x)) / rows * fitted
    return fit, _timed(lambda: preparation.apply(sample.x)) / rows * shape.nodes


def _choose(sizes: Sizes, workspace: int | None, x: Tensor, applying: float, each: float) -> float:
    """Each half of the columns is reduced to its leading directions, which are propagated.

    Args:
        sizes: Those of the graph.
        workspace: None for a graph in memory.
        x: Some rows of X.
        applying: Seconds of preparing X once.
        each: Seconds of a product with Â for each column.
    """
    n, rows = sizes.nodes, x.shape[0]
    rank, halves = compared(n)
    half, reduced = x.to_dense()[:, : sizes.columns // 2], 0.0
    if half.shape[1] > rank:
        fitted = n if workspace is None else min(n, FITTED, max(1, FITTED_ENTRIES // sizes.columns))
        basis = right_singular_vectors(half, rank, ITERATIONS)
        reduced = _timed(lambda: right_singular_vectors(half, rank, ITERATIONS)) / rows * fitted
        reduced += _timed(lambda: half @ basis) / rows * n
    products = compared_products(on_disk=workspace is not None)
    return halves * (applying + reduced) + each * compared_columns(n, sizes.columns) * products


def _product(sizes: Sizes, columns: int, workspace: int | None, ends: Tensor | None = None) -> float:
    """Seconds of a product with Â for each column, with the neighbours that ``ends`` are, or random ones.

    Rows cost something whether they have edges or not, so a product of a graph with hardly any is subtracted.
    """
    degree = max(1, round(2 * sizes.edges / sizes.nodes))
    columns = max(1, min(columns, TABLE // (4 * ROWS)))
    rows = max(2, min(sizes.nodes, TABLE // (4 * columns)))
    generator = torch.Generator().manual_seed(0)
    if ends is None or len(ends) == 0:
        ends = torch.randint(rows, (EDGES,), generator=generator)
    edges = min(EDGES, rows * degree, len(ends))
    col = ends[:edges] % rows  # hubs, which stay in the caches, are as frequent as in the graph
    row = torch.arange(edges) // degree
    if workspace is None:
        h = torch.rand(rows, columns, generator=generator)
        matrices = [
            Adjacency(ends, rows).normalized()
            for ends in (torch.stack([col, row]), torch.empty(2, 0, dtype=torch.int64))
        ]
        with_edges, without = (_timed(partial(matmul, matrix, h)) for matrix in matrices)
    else:
        g, out = (empty(rows * columns).view(rows, columns).zero_() for _ in range(2))
        parts = [_on_disk(row[:count], col[:count], rows) for count in (edges, 1)]
        with_edges, without = (_timed(partial(part.multiply, g, out)) for part in parts)
    of_edges = max(0.0, with_edges - without) / edges * 2 * sizes.edges
    return (of_edges + without / rows * sizes.nodes) / columns


def _on_disk(row: Tensor, col: Tensor, n: int) -> DiskAdjacency:
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(row, minlength=n).cumsum(0)])
    return DiskAdjacency(StoredGraph(crow=crow, col=col.int(), num_nodes=n))


def _copied(shape: Shape, at_once: int, place: Path) -> float:
    """Seconds of copying some columns of all rows out of a file, or into it."""
    rows = max(1, min(shape.nodes, TABLE // 2 // (4 * shape.columns)))
    path = place / "columns.npy"
    with Growing(path, np.dtype(np.float32), shape.columns) as file:
        file.append(np.ones((rows, shape.columns), dtype=np.float32))
    return _timed(lambda: np.ascontiguousarray(open_array(path)[:, :at_once])) / rows * shape.nodes


def _write(built: EncoderMethod, sample: Data, n: int, place: Path, *, table: bool) -> dict[str, float]:
    """Seconds of making and writing all vectors."""
    rows, path = sample.num_nodes, place / "vectors.npy"
    seconds = {"embed": _timed(lambda: write_rows(path, built.embed_rows(sample), rows)) / rows * n}
    if table:
        vectors, ids = open_array(path), list(map(str, range(rows)))
        seconds["parquet"] = _timed(lambda: write_vectors(place / "vectors.parquet", vectors, ids)) / rows * n
    return seconds
