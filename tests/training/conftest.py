import csv
from types import SimpleNamespace

import pytest
import torch

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings.presets import load_base

CPU = torch.device("cpu")
SEEDS = [2, 3, 5]


@pytest.fixture(scope="session")
def graph():
    return planted_partition(50, 3, 12, seed=0)


@pytest.fixture
def build(graph):
    """build(seed, name, **{"group.setting": value}) → a small method, built and not yet prepared."""

    def built(seed=0, name="costa-mv", graph=graph, **values):
        small = {"encoder.kind": "gcn", "encoder.width": 8, "head.width": 8, "features.rank": 0}
        small |= {"augment.edge_rate": 0.2, "augment.mask_rate": 0.2, "augment.hop_rate": 0.4, "encoder.powers": (1, 4)}
        method = get_method(name)
        small = {key: value for key, value in small.items() if key in settings.flatten(method.Settings())}
        values = small | values
        base = load_base(name) if values.get("encoder.kind") != "hops" else {}
        given, _ = settings.merge(method.Settings, [("base", base), ("test", values)])
        layers = [("base", base), ("graph", method.choose(graph, given)), ("test", values)]
        merged, _ = settings.merge(method.Settings, layers)
        return training.build(method, merged, graph, seed, CPU)

    return built


@pytest.fixture
def several(build):
    """several(**values) → the method with each of three seeds."""
    return lambda **values: [build(seed, **values) for seed in SEEDS]


@pytest.fixture
def folders(tmp_path):
    """A folder for each of the three seeds."""
    paths = [tmp_path / f"seed-{seed}" for seed in SEEDS]
    for path in paths:
        path.mkdir()
    return paths


@pytest.fixture
def after():
    """after(steps) → a should_stop that says so once this many steps are done; without batches, epochs."""

    def should_stop(steps):
        count = iter(range(1, 1000))
        return lambda: next(count) == steps

    return should_stop


@pytest.fixture
def read_log():
    """read_log(folder) → the epochs and losses in its log."""

    def read(folder):
        with (folder / training.LOG).open() as file:
            rows = list(csv.DictReader(file))
        return SimpleNamespace(epochs=[int(row["epoch"]) for row in rows], losses=[float(row["loss"]) for row in rows])

    return read
