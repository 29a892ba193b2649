from types import SimpleNamespace

import pytest

from costa import settings
from costa.methods import get_method
from reproduction import grid, store


@pytest.fixture
def reproduction(monkeypatch, capsys):
    """``python -m reproduction`` in this process: reproduction("table-main", "--no-run") → code, out, err."""
    from reproduction.__main__ import run as main

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["reproduction", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def line_of():
    """(metrics, settings) of a run, as a cell's run with a seed leaves them."""

    def line(cell, seed, *, status="ok", accuracy=0.8, only=None, **changed):
        flat = settings.flatten(get_method(cell.method).Settings()) | cell.fixed_settings | changed
        per_split = [accuracy + 0.01 * split for split in range(20)]
        # with ``only``, the other protocols have nothing right
        scores = {name: per_split if only in (None, name) else [0.0] * 20 for name in grid.PROTOCOLS}
        probes = [
            {"protocol": name, "accuracy": {"mean": accuracy, "per_split": accuracies}}
            for name, accuracies in scores.items()
        ]
        metrics = {"method": cell.method, "dataset": cell.dataset, "seed": seed, "status": status}
        return metrics | {"probes": probes if status == "ok" else []}, flat

    return line


@pytest.fixture
def add(line_of):
    """Add such a run to a store."""

    def add_to(results, cell, *arguments, **keywords):
        store.append(cell.root(results), *line_of(cell, *arguments, **keywords))

    return add_to
