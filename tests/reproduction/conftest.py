import pytest

from costa import settings
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings import presets
from reproduction import bounds, grid, store


@pytest.fixture
def reproduction(in_process):
    """``python -m reproduction``: reproduction("table-main", "--no-run") → code, out, err."""
    from reproduction.__main__ import run

    return in_process("reproduction", run)


@pytest.fixture
def line_of():
    """(metrics, settings) of a run, as a cell's run with a seed leaves them."""

    def line(cell, seed, *, status="ok", accuracy=0.8, only=None, **changed):
        flat = settings.flatten(get_method(cell.method).Settings()) | cell.fixed_settings | changed
        per_split = [accuracy + 0.01 * split for split in range(20)]
        # with ``only``, the other protocols have nothing right
        scores = {name: per_split if only in (None, name) else [0.0] * 20 for name in grid.EVALUATED_BY}
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


@pytest.fixture
def few_draws(monkeypatch):
    """A few draws, one spectrum, a small graph instead of Cora."""

    def load(name, data_dir=None):
        graph = planted_partition(60, 2, 8, seed=0)
        graph.name = name
        return graph

    monkeypatch.setattr(bounds, "load_graph", load)
    monkeypatch.setattr(bounds, "SPECTRA", {"flat": bounds.flat})
    monkeypatch.setattr(
        bounds, "STUDIED_SKETCHES", {name: bounds.STUDIED_SKETCHES[name] for name in ("gaussian", "svd", "noise")}
    )
    for name, value in (("ROWS", (16,)), ("SMALL_ROWS", (4, 16)), ("DRAWS", 20), ("SMALL_DRAWS", 30)):
        monkeypatch.setattr(bounds, name, value)
    original = bounds.presets.resolve
    monkeypatch.setattr(bounds.presets, "resolve", lambda *a, **k: original(*a, **k, epochs=1))


@pytest.fixture
def two_tuned(monkeypatch):
    """As if one view and DGI had tuned settings for Cora, and nothing else had any."""
    chosen = {"encoder.width": 64, "encoder.layers": 1, "features.scaling": "rows", "loss.tau": 0.9}
    tuned = {("costa-sv", "cora"), ("dgi", "cora")}
    monkeypatch.setattr(
        presets, "load_preset", lambda name, method, dataset: chosen if (method, dataset) in tuned else None
    )
