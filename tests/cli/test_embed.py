"""``costa embed``."""

import json
import shutil

import numpy as np
import pytest
import torch


def test_embed_gives_the_runs_own_vectors_again(digits_run, costa, tmp_path):
    assert costa("embed", digits_run, "digits", "--out", tmp_path / "z.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), np.load(digits_run / "embeddings.npy"), atol=1e-6)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_folder_of_ones_own_from_start_to_end(own_graph, costa, tmp_path, suffix):
    import pandas as pd

    run, table = tmp_path / "run", tmp_path / f"z{suffix}"
    trained = costa("train", own_graph, "--out", run, "--epochs", 3, "--set", "encoder.width=8")
    assert trained.code == 0, trained.err
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["dataset"], metrics["status"]) == ("friends", "ok")
    assert metrics["probes"][0]["accuracy"]["mean"] > 0
    assert costa("embed", run, own_graph, "--out", table).code == 0
    frame = pd.read_csv(table) if suffix == ".csv" else pd.read_parquet(table)
    assert list(frame["id"][:2]) == ["person 00", "person 01"]
    np.testing.assert_allclose(frame.iloc[:, 1:], np.load(run / "embeddings.npy"), rtol=1e-4, atol=1e-6)
    assert list(pd.read_parquet(run / "embeddings.parquet")["id"]) == list(frame["id"])


def test_a_model_of_another_run_is_one_sentence(digits_run, costa, tmp_path):
    run = shutil.copytree(digits_run, tmp_path / "run")
    (run / "model.safetensors").write_bytes(b"nothing")
    result = costa("embed", run, "digits", "--out", tmp_path / "z.npy")
    assert result.code == 2
    assert "model.safetensors" in result.err


def test_what_cannot_be_embedded_is_one_sentence(costa, tmp_path, digits_run, own_graph):
    for run, graph, out, says in (
        (tmp_path, "digits", "z.npy", "is not a run"),
        (digits_run, own_graph, "z.npy", "has 6 features"),
        (digits_run, "digits", "z.txt", "its name must end in .npy, .csv or .parquet"),
        (digits_run, "digits", "no/z.npy", "cannot be written"),
    ):
        result = costa("embed", run, graph, "--out", tmp_path / out)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert says in result.err


@pytest.mark.parametrize("name", ["z.npy", "z.csv"])
def test_vectors_are_written_as_they_come(digits_run, costa, tmp_path, monkeypatch, name):
    from costa.methods.costa import Costa

    z, rows = np.load(digits_run / "embeddings.npy"), []

    def embed_rows(self, graph):
        for part in torch.from_numpy(z).split(500):
            rows.append(len(part))
            yield part

    monkeypatch.setattr(Costa, "embed_rows", embed_rows)
    result = costa("embed", digits_run, "digits", "--out", tmp_path / name)
    assert result.code == 0, result.err
    assert rows == [500, 500, 500, 297]
    found = np.load(tmp_path / name) if name == "z.npy" else np.loadtxt(tmp_path / name, delimiter=",", skiprows=1)
    np.testing.assert_allclose(found[:, -z.shape[1] :], z, rtol=1e-6)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("z", "tmp"))] == [name]
