"""One seed: what is on disk after training, after a failure and after a resume."""

import json
from dataclasses import replace

import pytest
import torch

from costa import training
from costa.errors import InputError
from costa.runs import execution, load_embeddings


def test_a_run_is_a_folder_of_files(a_job, tmp_path):
    metrics = execution.execute(a_job(), tmp_path / "deep" / "run", seed=3)
    names = {path.name for path in (tmp_path / "deep" / "run").iterdir()}
    assert names == {"config.json", "model.safetensors", "embeddings.npy", "metrics.json", "log.csv"}
    assert (metrics.seed, metrics.status, metrics.epochs, list(metrics.probes)) == (3, "ok", 2, [])
    config = json.loads((tmp_path / "deep" / "run" / "config.json").read_text())
    assert (config["method"], config["graph"], config["seed"]) == ("costa-sv", "communities", 3)
    assert load_embeddings(tmp_path / "deep" / "run").shape == (200, 16)


@pytest.mark.parametrize("spec", ["words", "./words"])
def test_a_graph_with_ids_is_found_again_by_its_name_or_from_any_folder(a_job, tmp_path, monkeypatch, spec):
    monkeypatch.chdir(tmp_path)
    job = a_job()
    job.graph.node_ids = [str(node) for node in range(200)]
    execution.execute(replace(job, spec=spec), tmp_path / "run", seed=0)
    where = json.loads((tmp_path / "run" / "config.json").read_text())["graph"]
    assert where == ("words" if spec == "words" else str(tmp_path / "words"))


def test_vectors_that_are_not_finite_have_diverged(a_job, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "costa.methods.encoding.EncoderMethod.embed", lambda self, graph: torch.full((200, 16), torch.nan)
    )
    metrics = execution.execute(a_job(probe=True), tmp_path, seed=0)
    assert (metrics.status, metrics.health, list(metrics.probes)) == ("diverged", None, [])


def test_a_condition_stops_training_and_keeps_the_checkpoint(a_job, tmp_path):
    metrics = execution.execute(a_job(epochs=50), tmp_path, seed=0, should_stop=lambda: True)
    assert (metrics.status, metrics.epochs) == ("interrupted", 1)
    assert (tmp_path / training.CHECKPOINT).exists()
    resumed = execution.execute(a_job(epochs=3, resume=True), tmp_path, seed=0)
    assert (resumed.status, resumed.epochs) == ("ok", 3)
    assert not (tmp_path / training.CHECKPOINT).exists()


def test_a_run_that_has_ended_is_evaluated_and_not_trained(a_job, finished, monkeypatch):
    monkeypatch.setattr(training, "train", None)
    metrics = execution.execute(a_job(resume=True, probe=True, protocols=["random-10-10-80"]), finished, seed=0)
    assert [probe.protocol for probe in metrics.probes] == ["random-10-10-80"]


def test_a_failed_start_leaves_no_folder(a_job, tmp_path):
    with pytest.raises(InputError, match="min"):
        execution.execute(a_job(given={"sketch.kind": "svd", "sketch.k": 100}), tmp_path / "run", seed=0)
    assert not (tmp_path / "run").exists()


def test_a_failed_resume_keeps_its_folder(a_job, finished):
    with (
        pytest.raises(RuntimeError, match="broken"),
        execution.empty_on_failure(a_job(resume=True), [finished]),
    ):
        raise RuntimeError("broken")
    assert (finished / "config.json").exists()
