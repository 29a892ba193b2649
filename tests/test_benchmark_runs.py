"""Every benchmark graph trains to the end on a CPU, with its features sparse where that is faster."""

import json

import numpy as np
import pytest

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
