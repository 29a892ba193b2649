"""``costa predict``."""

import csv
import random

import numpy as np
import pytest


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def train(costa, graph, run, *options):
    trained = costa("train", graph, "--epochs", 2, "--set", "encoder.width=8", "--no-probe", "--out", run, *options)
    assert trained.code == 0, trained.err


def test_the_labels_that_are_missing_are_predicted_and_the_others_kept(own_graph, costa, tmp_path):
    train(costa, own_graph, tmp_path / "run")
    result = costa("predict", tmp_path / "run")
    assert result.code == 0, result.err
    rows = read(tmp_path / "run" / "predictions.csv")
    assert [row["id"] for row in rows] == [f"person {i:02d}" for i in range(60)]
    assert [row["given-or-predicted"] for row in rows] == ["predicted"] * 3 + ["given"] * 57
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows[:3])
    for number, row in enumerate(rows[3:], start=3):
        assert (row["label"], row["probability"]) == (["blue", "red"][number % 2], "")
    assert "friends: 57 of 60 nodes have a label, of 2 classes; 3 are predicted.\n" in result.out
    for said in ("the vectors ", "raw features ", "the most common class ", "51 %", "calibration error"):
        assert said.replace("51 %", "50.9 %") in result.out
    assert result.out.endswith(f"{tmp_path / 'run' / 'predictions.csv'}\n")


def test_a_run_on_a_disk_graph_has_the_same_predictions(own_graph, costa, tmp_path):
    pytest.importorskip("pyarrow")
    train(costa, own_graph, tmp_path / "stored", "--memory", "1GiB")
    train(costa, own_graph, tmp_path / "run")
    np.save(tmp_path / "stored" / "embeddings.npy", np.load(tmp_path / "run" / "embeddings.npy"))
    for run in ("stored", "run"):
        assert costa("predict", tmp_path / run, "--out", tmp_path / f"{run}.csv").code == 0
    assert (tmp_path / "stored.csv").read_text() == (tmp_path / "run.csv").read_text()


def test_vectors_that_are_not_above_the_most_common_class_are_told_so(own_graph, costa, tmp_path):
    nodes, rng = own_graph / "nodes.csv", random.Random(0)
    header, *rows = nodes.read_text().splitlines()
    drawn = [f"{row.split(',')[0]},{rng.choice(['blue', 'blue', 'red'])}" for row in rows[3:]]
    nodes.write_text("\n".join([header, *rows[:3], *drawn]))
    train(costa, own_graph, tmp_path / "run")
    out = costa("predict", tmp_path / "run").out
    assert "Note: the vectors are not above the most common class (" in out
    assert f": try `costa train {own_graph} --choose`.\n" in out


def test_rare_classes_are_told(own_graph, costa, tmp_path):
    nodes = own_graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("person 10,blue", "person 10,green"))
    train(costa, own_graph, tmp_path / "run")
    assert "Note: fewer than five nodes are labelled 'green', so " in costa("predict", tmp_path / "run").out


def test_what_cannot_be_predicted_is_one_sentence(own_graph, costa, digits_run, tmp_path):
    (own_graph / "nodes.csv").unlink()
    x = np.load(own_graph / "features.npy")
    (own_graph / "features.npy").unlink()
    table = [f"person {i:02d}," + ",".join(map(str, row)) for i, row in enumerate(x.tolist())]
    (own_graph / "features.csv").write_text("\n".join(["id,a,b,c,d,e,f", *table]))
    train(costa, own_graph, tmp_path / "run")
    for run, out, says in (
        (tmp_path / "run", "p.csv", "friends has no labels"),
        (digits_run, "p.csv", "every node of digits has a label"),
        (digits_run, "no/p.csv", "cannot be written"),
        (tmp_path, "p.csv", "is not a run"),
    ):
        result = costa("predict", run, "--out", tmp_path / out)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert says in result.err
        assert not (tmp_path / out).exists()
