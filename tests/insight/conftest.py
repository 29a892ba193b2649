"""A run whose encoder is one of hops."""

import pytest
import torch

from costa import runs
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings.presets import resolve


@pytest.fixture(scope="module")
def hops_run(tmp_path_factory):
    """Its folder and its graph."""
    folder, graph = tmp_path_factory.mktemp("runs") / "hops", planted_partition(50, 2, 8, seed=0)
    given = {"encoder.kind": "hops", "encoder.width": 6, "encoder.powers": "1,3", "encoder.steps": 0}
    resolved = resolve(get_method("costa-mv"), graph, given=given, epochs=2)
    job = runs.Job(graph, graph.name, "costa-mv", resolved, torch.device("cpu"), probe=False)
    runs.execute(job, folder, seed=0)
    return folder, graph
