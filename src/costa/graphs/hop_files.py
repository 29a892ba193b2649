"""The files of hops beside a graph on disk: their names, and what a number in them stands for.

    0.npy                   X, n × d, float32: the hops are computed from it, and as a hop it is read from here
    4.npy                   Â⁴X, float32
    pagerank-10-0.1.npy     ten steps of PageRank with α = 0.1
    4-float16.npy           Â⁴X in half the space; below its n rows is one of whole numbers e
    4.part-1-of-3.npy       the rows of Â⁴X that the second of three processes holds
    4.partial, 4.done       Â⁴X while it is written, and how many of its columns are done

Column j of a float16 file is 2^e_j times what is stored. The unit 2^e_j brings the largest number of the column to
between 2¹⁴ and 2¹⁵, of the 2¹⁶ that float16 reaches, so nothing overflows, and numbers down to 2⁻²⁸ of the largest keep
the eleven bits that float16 has. As the units are powers of two, only this one rounding changes a number, by at most
1/2048 of it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from costa.graphs.storage import Growing, mapped, open_array, open_rows
from costa.nn import Preparation
from costa.nn.held_out import PAGERANK
from costa.nn.hops import ROWS, Block
from costa.nn.ranks import ALONE, Ranks
from costa.writing import locked, replacing

HALF = "float16"
LARGEST = 15
"""The largest number of a float16 column is below 2 to this power."""
SMALLEST = -100
"""A column whose largest number is below 2 to this power gets the unit of one that is not."""


class Halves:
    """Rows of a float16 file, read as float32; what :class:`costa.nn.Hops` asks of a tensor.

    Args:
        stored: What is stored, float16, mapped.
        unit: What each column is multiplied by.
    """

    device = torch.device("cpu")

    def __init__(self, stored: Tensor, unit: Tensor) -> None:
        self._stored, self._unit = stored, unit
        self.shape = stored.shape

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, rows: Any, /) -> Tensor:
        return self._stored[rows].float().mul_(self._unit)

    def split(self, size: int, /) -> Iterator[Tensor]:
        """So many rows at a time."""
        for start in range(0, max(1, len(self)), size):
            yield self[start : start + size]


class StoredHop(NamedTuple):
    """A hop in a file.

    Attributes:
        array: What is stored, mapped.
        block: The hop, read from there when rows of it are asked for.
    """

    array: NDArray[Any]
    block: Block


def open_hop(path: Path, rows: range | None = None) -> StoredHop:
    """The hop in a file of either type, or these rows of it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "1-float16.npy"
    >>> create_hop(path, 2, 1, HALF)
    >>> write_columns(path, 0, torch.tensor([[3.0], [-0.1]]))
    >>> open_hop(path).block[:].flatten().tolist()
    [3.0, -0.0999755859375]
    """
    whole = open_array(path)
    half = whole.dtype == np.float16
    array = open_rows(path, range(len(whole) - half) if rows is None else rows)
    return StoredHop(array, Halves(mapped(array), _unit(whole[-1])) if half else mapped(array))


def create_hop(path: Path, n: int, width: int, kind: str) -> None:
    """A file of n rows whose columns have yet to be written."""
    np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(kind), shape=(n + (kind == HALF), width))


def write_columns(path: Path, start: int, columns: Tensor, ranks: Ranks = ALONE) -> None:
    """Write the next columns of a hop, or a rank's rows of them, in units that are the same for all ranks.

    The file is mapped only meanwhile: pages that were touched count as memory of the process.
    """
    file = np.lib.format.open_memmap(path, mode="r+")
    place = slice(start, start + columns.shape[1])
    if file.dtype == np.float16:
        # of a tiny graph a rank may hold no row
        there = columns if len(columns) else torch.zeros(1, columns.shape[1])
        largest = ranks.largest(torch.linalg.vector_norm(there, torch.inf, dim=0))
        file[-1, place] = largest.frexp().exponent.clamp(min=SMALLEST) - LARGEST
        columns = columns / _unit(file[-1, place])
    file[: len(columns), place] = columns.numpy()


def _unit(exponents: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ldexp(np.float32(1), exponents.astype(np.int32)))


@dataclass(frozen=True)
class HopFiles:
    """The files of a prepared X's hops, in a folder named after how it was prepared.

    Attributes:
        folder: The folder.
        steps: K of PageRank.
        teleport: α of PageRank.
        kind: ``float32`` or ``float16``.
        part: Which rows they have, :attr:`costa.nn.ranks.Ranks.part`; empty for all.
    """

    folder: Path
    steps: int
    teleport: float
    kind: str = "float32"
    part: str = ""

    @classmethod
    def of(cls, graph_folder: str, preparation: Preparation, steps: int, teleport: float, kind: str) -> HopFiles:
        """Those of a graph in this folder."""
        digest = hashlib.blake2b(preparation.scaling.kind.encode(), digest_size=12)
        for module in preparation:
            for name, value in module.state_dict().items():
                digest.update(name.encode() + value.cpu().numpy().tobytes())
        folder = Path(graph_folder) / "hops" / digest.hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, steps, teleport, kind)

    def of_rank(self, ranks: Ranks) -> HopFiles:
        """Those that a rank writes; the whole files if it is alone."""
        return self if ranks.size == 1 else replace(self, part=ranks.part)

    def path(self, key: int) -> Path:
        """The file of a power of Â, or of PageRank."""
        name = f"pagerank-{self.steps}-{self.teleport}" if key == PAGERANK else f"{key}"
        half = f"-{HALF}" if self.kind == HALF and key != 0 else ""
        return self.folder / f"{name}{half}{'.' if self.part else ''}{self.part}.npy"

    def partial(self, key: int) -> Path:
        """The file while it is written."""
        return self.path(key).with_suffix(".partial")

    def done(self, key: int) -> int:
        """How many columns, from the first, are in the file that is being written."""
        note = self._note(key)
        return int(note.read_text()) if note.exists() and self.partial(key).exists() else 0

    def note_done(self, key: int, columns: int) -> None:
        """Note that so many columns are done, for another try after a kill."""
        with replacing(self._note(key)) as temporary:
            temporary.write_text(str(columns))

    def end(self, key: int) -> None:
        """All columns are done."""
        self.partial(key).replace(self.path(key))
        self._note(key).unlink(missing_ok=True)

    def _note(self, key: int) -> Path:
        return self.path(key).with_suffix(".done")

    def lacks(self, key: int) -> bool:
        """Whether it has yet to be written."""
        return not (self.path(key).exists() or self.whole.path(key).exists())

    def open(self, key: int, rows: range) -> StoredHop:
        """These rows, which are all of a part, from the whole file if it is there."""
        whole = self.whole.path(key)
        return open_hop(whole, rows) if whole.exists() else open_hop(self.path(key))

    @property
    def whole(self) -> HopFiles:
        """Those of all rows."""
        return replace(self, part="")

    def join(self, key: int) -> None:
        """Make the whole file of its parts, which several processes have written, if all of them are here."""
        for size in [int(path.stem.rpartition("-")[2]) for path in self._parts(key, 0, "*")]:
            parts = [path for rank in range(size) for path in self._parts(key, rank, size)]
            if len(parts) < size or self.path(key).exists():
                continue
            arrays = [open_array(part) for part in parts]
            half = arrays[0].dtype == np.float16
            with (
                replacing(self.path(key)) as temporary,
                Growing(temporary, arrays[0].dtype, arrays[0].shape[1]) as file,
            ):
                for array in arrays:
                    rows = array[: len(array) - half]
                    for start in range(0, len(rows), ROWS):
                        file.append(rows[start : start + ROWS])
                if half:
                    file.append(arrays[0][-1:])
            for part in parts:
                part.unlink()

    def _parts(self, key: int, rank: int, size: int | str) -> list[Path]:
        pattern = replace(self, part=f"part-{rank}-of-{size}").path(key)
        return list(self.folder.glob(pattern.name))

    @contextlib.contextmanager
    def locked(self, ranks: Ranks) -> Iterator[None]:
        """Hold the folder's lock, the first rank for all of them; what a killed process was writing is removed."""
        with locked(self.folder) if ranks.first else contextlib.nullcontext(False) as alone:
            for abandoned in self.folder.glob(".*") if alone else []:
                abandoned.unlink()
            ranks.wait()
            yield
            ranks.wait()
