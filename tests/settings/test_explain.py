"""What is said about settings that were chosen from a graph or tuned on it."""

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from costa.methods import get_method, reach
from costa.methods.costa import ROW_VISITS
from costa.nn import SparseMatrix
from costa.settings.explain import REACHES, explain, from_graph, not_default
from costa.settings.presets import resolve

METHOD = get_method("costa-sv")
GCN = {"encoder.kind": "gcn"}
HOPS = {"encoder.powers": "1,4", "encoder.width": 80}
"""Nothing is left to choose of the encoder."""
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


def test_with_parts_the_rows_are_those_of_a_group():
    graph = planted_partition(20_000, 2, 1, degree=2, seed=0)
    rows = "sketch.ratio = 0.4096: 10,000 nodes in a group of parts, and the sketch has at most 4,096 rows"
    given = GCN | {"train.parts": 8, "train.group": 4, "sketch.kind": "gaussian"}
    assert explain(resolve(METHOD, graph, given=given), graph) == [MEASURED, rows]
    assert explain(resolve(METHOD, graph, given=given | {"train.parts": 16}), graph) == [MEASURED]


def test_a_large_graph_needs_fewer_epochs():
    graph = planted_partition(10_000, 2, 1, degree=2, seed=0)
    epochs = (
        f"train.epochs = {ROW_VISITS // 10_000}: the graph has 10,000 nodes, and the more there are, the fewer passes"
    )
    assert explain(resolve(METHOD, graph, given=HOPS), graph) == [MEASURED, f"{epochs} training needs"]


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        (0, ["sketch.ratio = 0.2048: 20,000 nodes, and the sketch has at most 4,096 rows"]),
        (8192, []),
    ],
)
def test_with_hops_the_rows_are_those_of_a_batch(batch, rows):
    graph = planted_partition(20_000, 2, 1, degree=2, seed=0)
    resolved = resolve(METHOD, graph, given=HOPS | {"train.batch": batch, "train.epochs": 3})
    assert explain(resolved, graph) == [MEASURED, *rows]


@pytest.mark.parametrize("chosen", [reach.OWN, reach.APART, reach.NEAR, reach.FAR, reach.ENDS, reach.ALL])
def test_how_far_hops_look_is_explained(chosen, monkeypatch):
    monkeypatch.setattr("costa.methods.reach.choose_reach", lambda *given: chosen)
    graph = planted_partition(40, 2, 4, degree=4, seed=0)
    values = " and ".join(map(str, chosen[0]))
    lines = explain(resolve(METHOD, graph), graph)
    assert f"encoder.powers = {values}: {REACHES[chosen[0], chosen[1] > 0]}" in lines
    steps = {
        reach.OWN: "nothing comes along the edges",
        reach.APART: "PageRank's walks would repeat a node's own features",
    }
    average = "the average over PageRank's walks is one of the hops"
    assert f"encoder.steps = {chosen[1]}: {steps.get(chosen, average)}" in lines
    width = (reach.COLUMNS - METHOD.Settings().encoder.columns) // (len(chosen[0]) + (chosen[1] > 0))
    why = f"all codes and columns together make a vector of at most {reach.COLUMNS} numbers"
    assert f"encoder.width = {width}: {why}" in lines


def test_without_edges_there_is_no_more_to_explain():
    graph = planted_partition(40, 2, 4, degree=0, seed=0)
    assert "encoder.powers = 0: there are no edges" in explain(resolve(METHOD, graph), graph)


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


def test_a_reduced_x_is_explained_by_its_size(monkeypatch):
    graph = planted_partition(40, 2, 1, degree=4, seed=0)
    graph.x = SparseMatrix.from_dense(torch.eye(40)).a
    monkeypatch.setattr("costa.methods.baselines.FULL", 0)
    line = "features.rank = 512: all 40 columns of 40 nodes, filled in, would take too much memory"
    assert line in explain(resolve(get_method("diffused"), graph), graph)


def test_what_is_not_a_default_is_what_somebody_set_and_what_a_base_changes():
    graph = planted_partition(40, 2, 1, degree=4, seed=0)
    hops = not_default(METHOD, resolve(METHOD, graph, given={"loss.tau": METHOD.Settings().loss.tau}, epochs=3))
    assert hops == ["loss.tau", "train.epochs"]
    gcn = resolve(METHOD, graph, given=GCN)
    shown = not_default(METHOD, gcn)
    assert "encoder.kind" in shown
    assert "encoder.steps" in shown  # a GCN's base has another value than the default
    assert "loss.tau" not in shown  # and the same
    assert not set(shown) & set(METHOD.unused(gcn.values))
