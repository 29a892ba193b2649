"""The nodes' vectors on disk."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costa.errors import InputError
from costa.runs.files import EMBEDDINGS


def load_embeddings(folder: Path) -> torch.Tensor:
    """The vectors of a run."""
    try:
        return torch.from_numpy(np.load(folder / EMBEDDINGS, allow_pickle=False))
    except (OSError, ValueError):
        raise InputError(f"{folder / EMBEDDINGS} is missing or damaged; train the run again.") from None


def check_vector_path(path: Path) -> None:
    """Refuse a path that :func:`write_vectors` could not write, before any work is done."""
    if path.suffix not in (".npy", ".csv", ".parquet"):
        raise InputError(f"{path} has an unknown format; its name must end in .npy, .csv or .parquet.")
    if path.suffix == ".parquet" and not _has_pyarrow():
        raise InputError("writing Parquet needs pyarrow; pip install 'costa-gcl[tables]', or write .csv or .npy.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder or its folder does not exist; choose another.")


def write_vectors(path: Path, z: np.ndarray, ids: Sequence[Any] | None = None) -> None:
    """Write vectors as ``.npy``, or as ``.csv`` or ``.parquet`` with a column of ids (row numbers without ids)."""
    check_vector_path(path)
    if path.suffix == ".npy":
        np.save(path, z)
        return
    names = [f"z{column}" for column in range(z.shape[1])]
    ids = list(range(len(z))) if ids is None else list(ids)
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *names])
            writer.writerows([node, *row] for node, row in zip(ids, z.tolist(), strict=True))
    else:
        import pyarrow
        import pyarrow.parquet

        columns = {"id": ids} | {name: z[:, column] for column, name in enumerate(names)}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def table_name() -> str:
    """The name of the table of vectors with ids: Parquet if pyarrow is installed, else CSV."""
    return "embeddings.parquet" if _has_pyarrow() else "embeddings.csv"
