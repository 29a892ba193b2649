"""``benchmarks/similar.py``: a search is timed, checked against float64 and stored."""

import json
import subprocess
import sys
from pathlib import Path

COMMAND = Path(__file__).parents[1] / "benchmarks" / "similar.py"


def test_a_search_is_timed_and_stored(tmp_path):
    store = tmp_path / "similar.jsonl"
    options = ["--nodes", "3000", "--columns", "16", "--searches", "2", "--place", tmp_path, "--store", store]
    result = subprocess.run([sys.executable, COMMAND, *options], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    (line,) = map(json.loads, store.read_text().splitlines())
    assert (line["nodes"], line["columns"], line["searches"]) == (3000, 16, 2)
    assert 0 < line["median_seconds"] <= line["slowest_seconds"]
    assert [path.name for path in tmp_path.iterdir()] == ["similar.jsonl"]
