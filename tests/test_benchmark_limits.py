"""``benchmarks/limits.py``: what all processes of a run take together is measured and stored."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from costa.memory import parse_size

COMMAND = Path(__file__).parents[1] / "benchmarks" / "limits.py"


def measured(folder, store, *options):
    command = [sys.executable, COMMAND, folder, "--store", store, *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in store.read_text().splitlines()]


def test_the_peak_of_a_run_and_a_refusal_are_stored(own_graph, tmp_path):
    pytest.importorskip("pyarrow")
    limits = ("--memory", "100MiB", "--memory", "1GiB")
    refused, kept = measured(own_graph, tmp_path / "limits.jsonl", *limits, "--kind", "one process")
    assert refused["refused"].startswith("this needs at least ")
    assert kept["refused"] is None
    assert (kept["nodes"], kept["columns"], kept["memory"]) == (60, 6, parse_size("1GiB"))
    assert 50 * 2**20 < kept["peak_anonymous_bytes"] < kept["memory"]
    assert not list(own_graph.parent.glob("tmp*"))
