import pytest

from costa import settings
from costa.experiments import grid, store
from costa.methods import get_method


@pytest.fixture
def line_of():
    """(metrics, settings) of a run, as a cell's run with a seed leaves them."""

    def line(cell, seed, *, status="ok", accuracy=0.8, only=None, **changed):
        flat = settings.flatten(get_method(cell.method).Settings()) | cell.asked | changed
        per_split = [accuracy + 0.01 * split for split in range(20)]
        # with ``only``, the other protocols have nothing right
        scores = {name: per_split if only in (None, name) else [0.0] * 20 for name in grid.PROTOCOLS}
        probes = [{"protocol": name, "accuracy": {"mean": accuracy, "per_split": own}} for name, own in scores.items()]
        metrics = {"method": cell.method, "dataset": cell.dataset, "seed": seed, "status": status}
        return metrics | {"probes": probes if status == "ok" else []}, flat

    return line


@pytest.fixture
def add(line_of):
    """Add such a run to a store."""

    def add_to(results, cell, *arguments, **keywords):
        store.append(cell.root(results), *line_of(cell, *arguments, **keywords))

    return add_to
