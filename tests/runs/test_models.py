"""The model of a run: loaded, rebuilt, refused."""

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.runs import execution, models, read_config

CPU = torch.device("cpu")


def test_a_loaded_model_gives_the_vectors_of_its_run(small_graph, finished):
    z = models.embed(models.load_model(finished, CPU), finished, small_graph)
    np.testing.assert_allclose(z, np.load(finished / "embeddings.npy"), atol=1e-6)


def test_a_model_is_as_readable_as_its_config(finished):
    assert (finished / "model.safetensors").stat().st_mode == (finished / "config.json").stat().st_mode


def test_settings_come_back_as_they_were(a_job, finished):
    model = models.rebuild(read_config(finished))
    assert models.read_settings(type(model), read_config(finished)) == a_job().resolved.values


@pytest.mark.parametrize("content", [None, b"nothing"])
def test_a_missing_or_damaged_model_is_one_sentence(finished, content):
    (finished / "model.safetensors").unlink()
    if content is not None:
        (finished / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"model.safetensors is missing or is not the model of .*; train it again"):
        models.load_model(finished, CPU)


def test_other_features_are_one_sentence(finished):
    model = models.load_model(finished, CPU)
    with pytest.raises(InputError, match=r"has 5 features, but the model of .* was trained on 8; embed a graph with"):
        models.embed(model, finished, planted_partition(50, 2, 5, seed=0))


def test_a_method_that_knows_only_its_nodes_refuses_another_graph(a_job, small_graph, tmp_path):
    pytest.importorskip("gensim")
    folder = tmp_path / "walks"
    execution.execute(a_job("deepwalk"), folder, seed=0)
    model = models.load_model(folder, CPU)
    assert models.embed(model, folder, small_graph).shape[0] == 200
    other = small_graph.clone()
    other.name = "elsewhere"
    with pytest.raises(InputError, match="deepwalk gives vectors only for the graph it was trained on"):
        models.embed(model, folder, other)
