"""How much longer a step takes if its rows are on disk, with and without asking for them a step ahead.

    OMP_NUM_THREADS=1 python benchmarks/ahead.py --folder FOLDER

FOLDER is on the disk that is measured, and gets a file of 1 GB for each of three hops, 4,000,000 × 64, which are
deleted at the end. Steps are those of the defaults. The rows are in memory, or none of them is, as of files many times
larger than memory: their pages are dropped, and the kernel is kept from reading around a page, which would soon have
all of these files in memory. Each time is also a multiple of the first one; the least of several rounds counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import mmap
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from costa import settings, training
from costa.graphs.ahead import ReadAhead
from costa.graphs.hop_files import StoredHop
from costa.graphs.storage import Growing, mapped, open_array
from costa.methods import get_method
from costa.methods.encoding import HopInputs

HOPS, BLOCK = 3, 100_000
STEPS, ROUNDS = 30, 4
CASES = {(where, asked): [] for where in ("in memory", "on disk") for asked in (False, True)}


class Switched(ReadAhead):
    """Asks for all rows or for none, whatever there was to wait for."""

    asks = False
    waits = property(lambda self: self.asks, lambda self, value: None)


def main() -> None:
    """Time each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        paths = [Path(place) / f"{hop}.npy" for hop in range(HOPS)]
        draw = np.random.default_rng(0)
        for path in paths:
            with Growing(path, np.dtype(np.float32), given.columns) as file:
                for start in range(0, given.rows, BLOCK):
                    file.append(draw.standard_normal((min(BLOCK, given.rows - start), given.columns), np.float32))
        os.sync()
        measure([open_array(path) for path in paths], [os.open(path, os.O_RDONLY) for path in paths])


def measure(arrays: list[np.memmap], files: list[int]) -> None:
    """Train on these hops, a few steps of each case in turn."""
    n, columns = arrays[0].shape
    method = get_method("costa-mv")
    chosen = {"encoder.powers": (0, 4), "encoder.steps": 10, "features.scaling": "none", "features.rank": 0}
    merged, _ = settings.merge(method.Settings, [("benchmark", chosen)])
    graph = Data(x=torch.zeros(1, columns).expand(n, columns))
    built = training.build(method, merged, graph, 0, torch.device("cpu"))
    ahead = Switched(arrays)
    inputs = dataclasses.replace(HopInputs.on_disk([StoredHop(array, mapped(array)) for array in arrays]), ahead=ahead)
    built._prepared = graph, inputs
    steps = training.Steps([built], graph, merged.train)
    for _ in range(ROUNDS):
        for (where, asked), found in CASES.items():
            if where == "in memory":
                for block in inputs.blocks:
                    block.sum()
            else:
                for array, file in zip(arrays, files, strict=True):
                    array.base.madvise(mmap.MADV_RANDOM)
                    array.base.madvise(mmap.MADV_DONTNEED)
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            ahead.asks = asked
            steps.run(2)
            took = []
            for _ in range(STEPS):
                began = time.perf_counter()
                steps.run(1)
                took.append(time.perf_counter() - began)
            found.append(statistics.median(took))
            for array in arrays:
                array.base.madvise(mmap.MADV_NORMAL)
    one = min(CASES["in memory", False])
    for (where, asked), found in CASES.items():
        print(
            f"{where:10} {'asked for' if asked else 'not asked':10} {1000 * min(found):8.2f} ms {min(found) / one:6.2f}"
        )


main()
