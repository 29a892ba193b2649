"""What is said about settings that were chosen from a graph or tuned on it."""

from dataclasses import make_dataclass

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings import merge
from costa.settings.explain import explain, from_graph
from costa.settings.presets import resolve

METHOD = get_method("costa-sv")
GCN = {"encoder.kind": "gcn"}
SETTINGS = merge(METHOD.Settings, [("test", {"encoder.kind": "hops", "sketch.ratio": 0.9})])[0]
MEASURED = "features.scaling = standard: the features are measurements, each on its own scale"


@pytest.mark.parametrize(
    ("features", "line"),
    [
        (torch.eye(40), "features.scaling = none: every feature lies within 0 and 1"),
        (3 * torch.eye(40), "features.scaling = rows: the features are counts: never negative, some above 1, mostly 0"),
        (3 * torch.eye(40) - 1, MEASURED),
    ],
)
def test_the_scaling_is_explained_by_the_features(features, line):
    graph = planted_partition(40, 2, 1, degree=4, seed=0)
    graph.x = features
    assert explain(resolve(METHOD, graph, given=GCN), graph) == [line]


def test_a_large_graph_limits_the_rows_of_the_sketch():
    graph = planted_partition(10_000, 2, 1, degree=2, seed=0)
    rows = "sketch.ratio = 0.4096: 10,000 nodes, and the sketch has at most 4,096 rows"
    given = {"sketch.ratio": 0.5}
    assert explain(resolve(METHOD, graph, given=GCN), graph) == [MEASURED, rows]
    assert explain(resolve(METHOD, graph, given=GCN | given), graph) == [MEASURED]


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        (0, ["sketch.ratio = 0.4096: 10,000 nodes, and the sketch has at most 4,096 rows"]),
        (8192, ["sketch.ratio = 0.5: 8,192 nodes in a batch, and the sketch has at most 4,096 rows"]),
        (1000, []),
    ],
)
def test_with_hops_the_epochs_and_the_rows_of_a_batch_are_explained(monkeypatch, batch, rows):
    graph = planted_partition(10_000, 2, 1, degree=2, seed=0)
    wide = make_dataclass("Wide", [(k, object, v) for k, v in vars(SETTINGS).items()], frozen=True)
    monkeypatch.setattr(METHOD, "Settings", wide)
    resolved = resolve(METHOD, graph, given={"train.batch": batch})
    epochs = resolved.values.train.epochs
    passes = f"train.epochs = {epochs}: the graph has 10,000 nodes, and the more there are, the fewer passes training"
    assert explain(resolved, graph) == [MEASURED, *rows, f"{passes} needs"]


def test_what_the_user_sets_is_not_explained():
    graph = planted_partition(40, 2, 4, degree=4, seed=0)
    resolved = resolve(METHOD, graph, given=GCN | {"features.scaling": "none", "train.lr": 0.1})
    assert explain(resolved, graph) == []


def test_a_tuned_preset_is_one_line(monkeypatch):
    values = {"encoder.width": 128, "augment.edge_rate": [0.2, 0.4], "train.lr": 0.00123456}
    monkeypatch.setattr("costa.settings.presets.load_preset", lambda *names: values)
    graph = planted_partition(40, 2, 4, degree=4, seed=0)
    resolved = resolve(METHOD, graph, preset="tuned", given={"encoder.width": 32})
    tuned = "augment.edge_rate = 0.2 and 0.4, train.lr = 0.001235: tuned on planted-partition"
    assert explain(resolved, graph) == [MEASURED, tuned]
    assert from_graph(resolved, graph) == [MEASURED]
