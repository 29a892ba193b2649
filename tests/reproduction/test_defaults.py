"""The comparison of the defaults: what is stored is what is shown, split by split."""

import json

import numpy as np
import pytest
import torch

from costa import training
from costa.evaluate import health
from reproduction import defaults

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two baselines, and two seeds of a random one, on a small graph."""
    folder = tmp_path_factory.mktemp("defaults")
    defaults.run("wine", ["raw", "diffused", "untrained"], range(2), CPU, folder)
    return folder


def test_a_line_for_each_seed_of_what_is_random_and_one_for_the_rest(store):
    lines = [json.loads(line) for line in (store / "wine.jsonl").read_text().splitlines()]
    runs = [(line["contestant"], line["seed"]) for line in lines]
    assert runs == [("raw", 0), ("diffused", 0), ("untrained", 0), ("untrained", 1)]
    # 178 nodes are too few for 2% of the labels
    assert {tuple(line["scores"]) for line in lines} == {("10%",)}
    assert {len(line["scores"]["10%"]["accuracy"]) for line in lines} == {defaults.SPLITS}


def test_codes_that_collapse_are_noticed_beside_columns_that_do_not(monkeypatch):
    graph = defaults.graph_called("iris")
    embed = defaults.embedder(defaults.OURS, graph, CPU, {"train.epochs": 1})
    assert embed(0)[1] == "ok"
    made = training.train_and_embed

    def with_dead_codes(*given, **options):
        method, outcome, z = made(*given, **options)
        z[:, : method.code_columns] = 1
        assert health.status(z, graph.x) == "ok"
        return method, outcome, z

    monkeypatch.setattr(training, "train_and_embed", with_dead_codes)
    assert embed(0)[1] == "collapsed"


def test_seeds_are_averaged_on_each_split_and_a_later_line_replaces_an_earlier_one(tmp_path):
    def line(seed, first, second):
        scores = {"10%": {"accuracy": [first, second], "macro_f1": [0, 0]}}
        return json.dumps({"contestant": "raw", "seed": seed, "scores": scores})

    (tmp_path / "wine.jsonl").write_text("\n".join([line(0, 0.9, 0.9), line(1, 0.2, 0.4), line(0, 0.4, 0.6)]) + "\n")
    np.testing.assert_allclose(defaults.read("wine", "10%", store=tmp_path)["raw"], [30, 50])
    assert defaults.read("wine", "2%", store=tmp_path) == {}


def test_lines_without_scores_do_not_replace_those_that_have_some(tmp_path):
    def line(seed, status, scores):
        return json.dumps({"contestant": defaults.OURS, "seed": seed, "status": status, "scores": scores})

    scored = {"10%": {"accuracy": [0.5], "macro_f1": [0]}}
    lines = [line(0, "ok", scored), line(0, "collapsed", {}), line(1, "diverged", {}), line(2, "ok", {})]
    (tmp_path / "wine.jsonl").write_text("\n".join(lines) + "\n")
    np.testing.assert_allclose(defaults.read("wine", "10%", store=tmp_path)[defaults.OURS], [50])


def test_every_maker_makes_a_labelled_graph_with_edges_and_features():
    for name, make in defaults.MADE.items():
        graph = make()
        assert graph.num_nodes == len(graph.y) == len(graph.x), name
        assert graph.num_edges > 0, name
        assert len(graph.y.unique()) > 1, name
