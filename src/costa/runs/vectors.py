"""The nodes' vectors on disk."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costa.errors import InputError
from costa.graphs.stages import Done, unheard
from costa.graphs.storage import Growing, drop_pages, mapped, open_array
from costa.runs.files import EMBEDDINGS
from costa.writing import check_place, replacing

SEEN = 2**16
"""The most vectors by which the health of a run is judged."""
ROWS = 2**16
"""Rows of a table that are written at a time, a row group of Parquet."""


def load_embeddings(folder: Path) -> torch.Tensor:
    """The vectors of a run, mapped: only what is used is read."""
    try:
        return mapped(open_array(folder / EMBEDDINGS))
    except (OSError, ValueError):
        raise InputError(f"{folder / EMBEDDINGS} is missing or damaged; train the run again.") from None


def check_vector_path(path: Path) -> None:
    """Refuse a path that :func:`write_vectors` could not write, before any work is done."""
    if path.suffix not in (".npy", ".csv", ".parquet"):
        raise InputError(f"{path} has an unknown format; its name must end in .npy, .csv or .parquet.")
    if path.suffix == ".parquet" and not _has_pyarrow():
        raise InputError("writing Parquet needs pyarrow; pip install 'costa-gcl[tables]', or write .csv or .npy.")
    check_place(path)


@dataclass(frozen=True)
class Written:
    """What was seen of vectors as they were written: whether all are finite, and evenly spaced rows."""

    finite: bool
    some: torch.Tensor


def write_rows(path: Path, parts: Iterable[torch.Tensor], n: int, done: Done = unheard) -> Written:
    """Write n vectors as ``.npy`` as they come, some rows at a time; keep at most SEEN of them."""
    parts, finite = iter(parts), True
    first, step = next(parts), -(-n // SEEN)
    # all at once: small arrays that are kept between large ones that are not would leave holes in memory
    some = torch.empty(-(-n // step), first.shape[1])
    with replacing(path) as temporary, Growing(temporary, np.dtype(np.float32), first.shape[1]) as file:
        for part in itertools.chain([first], parts):
            rows = part.float().to_dense().cpu()
            seen, place = rows[-file.rows % step :: step], -(-file.rows // step)
            some[place : place + len(seen)] = seen
            finite = finite and bool(rows.isfinite().all())
            file.append(rows.numpy())
            done(file.rows / n)
    return Written(finite, some)


def column_names(columns: int) -> list[str]:
    """What the columns of vectors are called, in every table of them.

    >>> column_names(3)
    ['z0', 'z1', 'z2']
    """
    return [f"z{column}" for column in range(columns)]


def write_vectors(path: Path, z: np.ndarray, ids: Sequence[Any] | None = None, done: Done = unheard) -> None:
    """Write vectors as ``.npy``, or as ``.csv`` or ``.parquet`` with a column of ids (row numbers without ids)."""
    check_vector_path(path)
    if path.suffix == ".npy":
        np.save(path, z)
        return
    names = column_names(z.shape[1])
    ids = range(len(z)) if ids is None else ids
    parts = ((list(ids[start : start + ROWS]), z[start : start + ROWS]) for start in range(0, len(z), ROWS))
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *names])
            for some, rows in parts:
                writer.writerows([node, *row] for node, row in zip(some, rows.tolist(), strict=True))
        return
    import pyarrow
    from pyarrow import parquet

    kind, written = pyarrow.array(list(ids[:1])).type, 0
    schema = pyarrow.schema([("id", kind), *((name, pyarrow.float32()) for name in names)])
    # vectors hardly repeat or compress: a dictionary costs time and saves nothing
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as file:
        for some, rows in parts:
            columns = [pyarrow.array(some, kind), *map(pyarrow.array, np.ascontiguousarray(rows.T))]
            file.write_table(pyarrow.table(columns, schema=schema))
            drop_pages(z)
            written += len(rows)
            done(written / len(z))


def write_parts(path: Path, parts: Iterable[torch.Tensor], n: int, ids: Sequence[Any] | None = None) -> tuple[int, int]:
    """Write n vectors that come some rows at a time, as :func:`write_vectors` does; return their shape.

    A table is written from a ``.npy`` file beside it, which is then removed.
    """
    with tempfile.TemporaryDirectory(dir=path.absolute().parent) as folder:
        rows = path if path.suffix == ".npy" else Path(folder) / EMBEDDINGS
        write_rows(rows, parts, n)
        z = open_array(rows)
        if rows != path:
            write_vectors(path, z, ids)
        return z.shape[0], z.shape[1]


def _has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def table_name() -> str:
    """The name of the table of vectors with ids: Parquet if pyarrow is installed, else CSV."""
    return "embeddings.parquet" if _has_pyarrow() else "embeddings.csv"
