"""Every benchmark graph trains to the end on a CPU, with its features sparse where that is faster."""

import json

import numpy as np
import pytest

from benchmarks import parts
from costa.graphs import load_graph
from costa.methods.encoding import Inputs
from costa.nn import FeatureScaling, SparseMatrix, sparse_if_faster

SPARSE = {
    "cora": True,
    "citeseer": True,
    "dblp": True,
    "coauthor-cs": True,
    "coauthor-physics": True,
    "pubmed": False,  # 10% of its entries are filled: on a par
    "amazon-photo": False,
    "amazon-computers": False,
}


@pytest.mark.parametrize("name", SPARSE)
def test_trains_to_the_end(name, costa, data_dir, tmp_path):

    graph = load_graph(name, data_dir=data_dir)
    inputs = Inputs.of(graph, sparse_if_faster(FeatureScaling("none", graph.num_features)(graph.x)))
    assert isinstance(inputs.x, SparseMatrix) == SPARSE[name]
    nodes = graph.num_nodes
    del graph, inputs

    small = ["--set", "encoder.width=32", "--set", "encoder.columns=16", "--set", "sketch.k=256"]
    result = costa(
        "train", name, "--epochs", 2, "--no-probe", "--data-dir", data_dir, "--out", tmp_path / "run", *small
    )
    assert result.code == 0, result.err
    z = np.load(tmp_path / "run" / "embeddings.npy")
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    hops = len(settings["encoder.powers"]) + (settings["encoder.steps"] > 0)
    assert z.shape == (nodes, hops * 32 + 16)
    assert np.isfinite(z).all()


def test_what_training_on_parts_takes_is_measured(monkeypatch):
    monkeypatch.setattr(parts, "GRAPH", "words")
    graph = load_graph("words")
    line = parts.trained(graph, "two views, GCN", 48, epochs=1)
    assert (line["status"], line["epochs"], line["parts"]) == ("ok", 1, 48)
    assert 0 < line["train_seconds"] < line["seconds"]
    assert 2**26 < line["peak_anonymous_bytes"] < line["peak_resident_bytes"]
    above_chance = 1.5 * graph.y.bincount().max() / graph.num_nodes
    assert all(
        accuracy > above_chance for accuracy in [*line["accuracy"], *parts.baseline(graph, "diffused")["accuracy"]]
    )
