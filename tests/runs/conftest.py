"""A small graph, a small job on it, and a finished run."""

import pytest
import torch

from costa import runs
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings.presets import resolve


@pytest.fixture(scope="module")
def small_graph():
    return planted_partition(200, 2, 8, seed=0)


@pytest.fixture
def a_job(small_graph):
    """A function that makes a job of two epochs on the CPU, which is not evaluated."""

    def make(method="costa-sv", *, epochs=2, given=None, **options):
        small = {"encoder.kind": "gcn", "encoder.width": 16} if method == "costa-sv" else {}
        resolved = resolve(
            get_method(method),
            small_graph,
            preset="none",
            given=small | (given or {}),
            epochs=epochs if method == "costa-sv" else None,
        )
        return runs.Job(small_graph, "communities", method, resolved, torch.device("cpu"), **{"probe": False} | options)

    return make


@pytest.fixture
def finished(a_job, tmp_path):
    """The folder of a finished run."""
    runs.execute(a_job(), tmp_path / "run", seed=0)
    return tmp_path / "run"
