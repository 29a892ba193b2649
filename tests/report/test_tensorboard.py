"""Runs for TensorBoard."""

import importlib.util

import pytest

from costa import runs
from costa.report import tensorboard


def test_without_tensorboard_a_sentence_names_the_extra(costa, own_graph, tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard.importlib.util, "find_spec", lambda name: None)
    ended = costa("train", own_graph, "--epochs", 1, "--out", tmp_path / "run", "--tensorboard", tmp_path / "board")
    assert ended.code == 2
    assert "pip install 'costa-gcl[tensorboard]'" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="TensorBoard is not installed")
def test_loss_health_scores_and_vectors_arrive(costa, own_graph, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, board = tmp_path / "run", tmp_path / "board"
    arguments = ("--epochs", 3, "--set", "encoder.width=8", "--out", run, "--tensorboard", board)
    assert costa("train", own_graph, *arguments).code == 0
    events = EventAccumulator(str(board / "run"))
    events.Reload()
    metrics = runs.read_metrics(run)
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3]
    assert events.Scalars("health/effective_rank")[0].value == pytest.approx(metrics.health.effective_rank)
    accuracy = metrics.probes[0].accuracy.mean
    assert events.Scalars("accuracy/random-10-10-80")[0].value == pytest.approx(accuracy)
    (names,) = (board / "run").rglob("metadata.tsv")
    assert names.read_text().splitlines()[:4] == ["person 00", "person 01", "person 02", "red · person 03"]
    (vectors,) = (board / "run").rglob("tensors.tsv")
    assert len(vectors.read_text().splitlines()) == 60


def test_a_large_graph_shows_some_of_its_nodes(own_graph, tmp_path, costa, monkeypatch):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    monkeypatch.setattr(tensorboard, "MOST_POINTS", 25)
    costa("train", own_graph, "--epochs", 1, "--no-probe", "--out", tmp_path / "run", "--tensorboard", tmp_path)
    (vectors,) = (tmp_path / "run").rglob("tensors.tsv")
    assert len(vectors.read_text().splitlines()) == 20
