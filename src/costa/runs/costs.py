"""What a run costs: the work of each stage, and bytes of memory and disk, from the sizes of graph and settings.

A stage takes t = c·W seconds. W is counted; c is measured, by ``benchmarks/scale.py`` or on the spot
(:mod:`costa.runs.pace`).

    stage        W
    read         m + n·d/16            links that are numbered and laid out; entries of X that are checked
    choose       m·c·K                 c columns of held-out features, four powers of Â and ten steps of PageRank
    propagate    m·d·K                 K products with Â of d columns
    train        v·d·B                 v rows that are visited, of B hops
    embed        n·d·B
    parquet      n                     vectors of at most 512 columns

d is the number of columns after reduction. In memory, X and hops are arrays of 4·n·d bytes, and edges are 32 bytes for
each of m. A graph on disk needs instead what its limit leaves, or three arrays of as many columns as that has room for,

    max(3·4·n·(columns at a time), 48·n + 2⁸·2²⁰)

beside 512 MiB of imports; several processes of a machine have imports each, and share the rest. Its disk has 8 bytes
for each of m (12 with weights, and 16 more while they are laid out), 16 for each node, X if it had to be copied,
prepared X and the hops with 4·n·d each; and 4·n·(columns of a vector) for the vectors, twice if they are also written
as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from costa.evaluate.baselines import LAID_OUT
from costa.graphs.hop_files import HALF
from costa.graphs.propagation import columns_at_once, products
from costa.graphs.sizes import Sizes
from costa.memory import IMPORTS, share
from costa.methods.reach import COMPARED
from costa.nn.held_out import compared
from costa.nn.ranks import ALONE, Ranks

ENTRY = 1 / 16
"""What an entry of X takes to be checked, in links that are laid out."""
CHUNK = 2**28
"""Bytes that reading takes for a chunk of links."""
AS_TEXT = 250
"""Bytes for each edge of a table that is read into memory, as text."""
AS_TEXT_SECONDS = 1.5e-6
"""Seconds for each of them, typically."""


@dataclass(frozen=True)
class Shape:
    """What W depends on.

    Attributes:
        nodes: n.
        edges: m, undirected.
        columns: d, those of a hop.
        powers: The powers of Â whose hops are encoded.
        steps: Steps of PageRank.
        epochs: How often each row is visited.
        on_disk: Whether the graph is on disk.
    """

    nodes: int
    edges: int
    columns: int
    powers: Sequence[int] = ()
    steps: int = 0
    epochs: int = 1
    on_disk: bool = True

    @property
    def products(self) -> int:
        """K."""
        return _products(self.powers, self.steps, on_disk=self.on_disk)

    @property
    def hops(self) -> int:
        """B."""
        return len(self.powers) + (self.steps > 0)

    @property
    def files(self) -> int:
        """The hops that are written: X too, from which they are made."""
        return 1 + sum(power > 0 for power in self.powers) + (self.steps > 0)


def compared_columns(n: int, d: int) -> int:
    """Columns of held-out features that are propagated to choose the hops.

    >>> compared_columns(10**5, 64), compared_columns(10**6, 128)
    (128, 64)
    """
    rank, halves = compared(n)
    return halves * min(rank, d // 2)


def compared_products(*, on_disk: bool) -> int:
    """Products with Â that choosing takes for each column.

    >>> compared_products(on_disk=True), compared_products(on_disk=False)
    (10, 14)
    """
    powers = {power for each, _ in COMPARED for power in each}
    return _products(sorted(powers), max(steps for _, steps in COMPARED), on_disk=on_disk)


def _products(powers: Sequence[int], steps: int, *, on_disk: bool) -> int:
    """In memory, the powers and PageRank are computed one after the other."""
    return products(powers, steps) if on_disk else max(powers, default=0) + steps


WORK: Mapping[str, Callable[[Shape], float]] = {
    "read": lambda shape: shape.edges + ENTRY * shape.nodes * shape.columns,
    "choose": lambda shape: (
        shape.edges * compared_columns(shape.nodes, shape.columns) * compared_products(on_disk=shape.on_disk)
    ),
    "propagate": lambda shape: shape.edges * shape.columns * shape.products,
    "train": lambda shape: shape.nodes * shape.epochs * shape.columns * shape.hops,
    "embed": lambda shape: shape.nodes * shape.columns * shape.hops,
    "parquet": lambda shape: shape.nodes,
}
"""W of each stage."""

TYPICAL: Mapping[str, float] = {
    **{"read": 150e-9, "choose": 1e-9, "propagate": 1e-9, "train": 50e-9, "embed": 20e-9, "parquet": 7e-6},
}
"""c on two cores, which says only whether there is anything worth measuring."""
TYPICAL_LAYERS = 3e-9
"""The same of :func:`work_of_layers`."""
CONTRASTED = 4096
"""About as many rows are contrasted with each one in a step, if there are so many."""


def work_of_layers(shape: Shape, widths: Sequence[int], views: int) -> float:
    """Work of an encoder that reads the edges in every step.

    In every epoch and view each layer's columns go along all edges, and rows are contrasted.
    """
    n = shape.nodes
    return shape.epochs * views * ((2 * shape.edges + n) * sum(widths) + n * min(n, CONTRASTED))


def memory_on_disk(sizes: Sizes, columns: int, workspace: int, ranks: Ranks = ALONE) -> int:
    """Anonymous memory of a run with hops whose graph is on disk, in bytes; mapped files are not counted.

    Args:
        sizes: Those of the graph.
        columns: d, those of a hop.
        workspace: The bytes that arrays may take.
        ranks: The processes; those of this machine propagate in shares, and the first one reads while others wait.
    """
    n, sharing = sizes.nodes, ranks.sharing
    at_once = min(columns, columns_at_once(n, share(workspace, sharing), ranks))
    rows = n + 2 * len(ranks.range(n))
    return sharing * IMPORTS + max(sharing * 4 * rows * at_once, 48 * n + CHUNK)


def memory_of_hops(sizes: Sizes, columns: int, hops: int, width: int) -> int:
    """The same of a graph in memory: beside the graph Â, or X, the hops and the vectors.

    Args:
        sizes: Those of the graph.
        columns: d, those of a hop.
        hops: B.
        width: Columns of a vector.
    """
    arrays = 4 * sizes.nodes * (columns * (hops + 3) + 2 * width)
    return IMPORTS + _graph(sizes) + 2 * sizes.edges * LAID_OUT + arrays


def memory_of_layers(sizes: Sizes, widths: Sequence[int], views: int, rows: int) -> int:
    """The same of an encoder that reads the edges in every step: beside the graph Â, and what each layer keeps.

    Args:
        sizes: Those of the graph.
        widths: Columns of each layer.
        views: Views of a step.
        rows: Nodes of a step.
    """
    kept = 4 * 4 * rows * sum(widths) * views
    return IMPORTS + _graph(sizes) + 2 * sizes.edges * LAID_OUT + kept + 4 * sizes.nodes * 2 * max(widths, default=0)


def _graph(sizes: Sizes) -> int:
    x = 4 * sizes.nodes * sizes.columns if sizes.entries is None else 12 * sizes.entries
    # a graph on disk is mapped, but its edges are written out for whoever reads them in every step
    text = AS_TEXT * sizes.edges * (not sizes.read and not sizes.on_disk)
    return 40 * sizes.edges + text + (0 if sizes.on_disk else x)


def disk_of_graph(sizes: Sizes) -> tuple[int, int]:
    """The arrays of a graph that stays on disk, in bytes, and what is there beside them while they are made."""
    if not sizes.on_disk or sizes.read:
        return 0, 0
    weights = 2 if sizes.weighted else 1
    x = 4 * sizes.nodes * sizes.columns if sizes.entries is None else 8 * sizes.entries
    return 8 * weights * sizes.edges + 16 * sizes.nodes + sizes.copied * x, 16 * weights * sizes.edges


def disk_of_hops(shape: Shape, stored: str = "float32") -> int:
    """The hops of a graph that stays on disk, stored as this type, and the X of float32 from which they are made."""
    number = 2 if stored == HALF else 4
    return shape.nodes * shape.columns * (4 + number * (shape.files - 1))


def disk_of_vectors(n: int, width: int, *, table: bool) -> int:
    """The vectors of a run; a table has them once more."""
    return 4 * n * width * (2 if table else 1)
