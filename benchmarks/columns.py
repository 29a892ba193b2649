"""Seconds and memory from a file of mixed columns to the matrix of features.

    python benchmarks/columns.py     # adds a line for CSV and one for Parquet to results/bench/columns-cpu.jsonl

Of 200,000 rows and 40 columns: 10 numbers, 10 with gaps, 8 categories, 4 dates, 4 flags, 2 codes of 20,000 values and
2 texts of about 11 words, one of them with commas. Each file is read and prepared in a process of its own, whose memory
is the most that was resident, everything that it has imported included. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costa.graphs.columns import fit_columns
from costa.graphs.tables import read_table
from costa.memory import size
from costa.runs.provenance import commit, versions

STORE = Path("results/bench/columns-cpu.jsonl")
FILES = ("table.csv", "table.parquet")


def make(folder: Path, rows: int) -> None:
    """Write the same table to both files."""
    import pandas

    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(random.choice(letters, length)) for length in random.integers(3, 10, 5000)]
    frequency = 1 / np.arange(1, 5001)
    frequency /= frequency.sum()

    def text(between: str) -> list[str]:
        drawn = np.split(
            random.choice(5000, 11 * rows, p=frequency), np.sort(random.choice(11 * rows, rows - 1, replace=False))
        )
        return [between.join(words[i] for i in line) for line in drawn]

    columns: dict[str, Any] = {f"number {i}": random.normal(50, 10, rows).round(4) for i in range(10)}
    for i in range(10):
        whole = random.integers(0, 1000, rows).astype(float)
        columns[f"gaps {i}"] = pandas.array(np.where(random.random(rows) < 0.1, np.nan, whole)).astype("Int64")
    columns |= {
        f"category {i}": np.array([f"value {v}" for v in range(3 + 3 * i)])[random.integers(0, 3 + 3 * i, rows)]
        for i in range(8)
    }
    columns |= {
        f"date {i}": np.datetime64("2015-01-01", "s") + random.integers(0, 3000, rows) * 86400 for i in range(4)
    }
    columns |= {f"flag {i}": random.random(rows) < 0.3 for i in range(4)}
    columns |= {f"code {i}": [f"C{v:05d}" for v in random.integers(0, 20_000, rows)] for i in range(2)}
    columns |= {"text 0": text(" "), "text 1": text(", ")}
    frame = pandas.DataFrame(columns)
    frame.to_csv(folder / FILES[0], index=False)
    frame.to_parquet(folder / FILES[1], index=False)


def measure(path: Path) -> dict[str, Any]:
    """Read, fit and transform one file in this process."""
    stages, began = dict[str, float](), time.perf_counter()

    def timed(stage: str) -> None:
        nonlocal began
        stages[stage], began = round(time.perf_counter() - began, 2), time.perf_counter()

    before = resident("VmHWM")
    table = read_table(path)
    timed("read")
    fitted = fit_columns(table)
    timed("fit")
    x = fitted.transform(table)
    timed("transform")
    return {
        **{"file": path.suffix[1:], "file_bytes": path.stat().st_size, "rows": table.rows},
        **{
            "columns": len(table.columns),
            "matrix_columns": x.shape[1],
            "kinds": [each.kind for each in fitted.columns],
        },
        **{"stages": stages, "seconds": round(sum(stages.values()), 2), "imports_bytes": before},
        **{"peak_resident_bytes": resident("VmHWM"), "threads": torch.get_num_threads()},
        **{"commit": commit(), "versions": versions()},
    }


def resident(which: str) -> int:
    """``VmRSS``, the bytes of this process in memory, or ``VmHWM``, the most there were."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(which)).split()[1])


def main() -> None:
    """Measure each file in a fresh process, print and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--file", type=Path, help="Measure this file alone and print it as JSON.")
    given = parser.parse_args()
    if given.file:
        print(json.dumps(measure(given.file)))
        return
    with tempfile.TemporaryDirectory() as place:
        make(Path(place), given.rows)
        for name in FILES:
            path = Path(place) / name
            told = subprocess.run(
                [sys.executable, __file__, "--file", path], check=True, capture_output=True, text=True
            )
            line = json.loads(told.stdout)
            print(f"{name:14}  {line['seconds']} s, {size(line['peak_resident_bytes'])}  {line['stages']}", flush=True)
            with given.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
