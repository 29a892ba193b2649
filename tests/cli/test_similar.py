"""``costa similar``."""

import shutil

import numpy as np
import pytest

from costa.insight.similar import most_similar
from costa.runs import load_embeddings


def table(out):
    """The cells of each row under the head."""
    head, *rows = out.splitlines()[1:]
    return head.split(), [row.split() for row in rows]


@pytest.fixture
def friends_run(own_graph, costa, tmp_path):
    assert costa("train", own_graph, "--epochs", 2, "--set", "encoder.width=8", "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


def test_the_nearest_nodes_with_label_and_cosine(friends_run, costa):
    result = costa("similar", friends_run, "person 07", "-k", 4)
    assert result.code == 0, result.err
    assert result.out.startswith("Nearest to person 07, red:\n")
    head, rows = table(result.out)
    assert head == ["id", "label", "cosine"]
    expected = most_similar(load_embeddings(friends_run), 7, 4)
    assert [(int(row[1]), float(row[-1])) for row in rows] == [(row, round(cosine, 3)) for row, cosine in expected]
    for row in rows:
        number = int(row[1])
        assert row[2:-1] == ([] if number < 3 else [["blue", "red"][number % 2]])


def test_an_unknown_id_is_one_sentence(friends_run, costa):
    result = costa("similar", friends_run, "Person 07")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "there is no node 'Person 07' (did you mean 'person 07'?)" in result.err


def test_nodes_without_ids_are_named_by_their_row(digits_run, costa):
    head, rows = table(costa("similar", digits_run, 3, "-k", 2).out)
    assert head == ["id", "label", "cosine"]
    assert [int(row[0]) for row in rows] == [row for row, _ in most_similar(load_embeddings(digits_run), 3, 2)]


def test_notes_on_the_nodes_are_shown_and_a_graph_without_labels_has_no_such_column(costa, tmp_path):
    edges = np.array([[0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]])
    x = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    notes = [f"the note of {row}" for row in range(6)]
    np.savez(tmp_path / "ring.npz", edge_index=edges, x=x, node_ids=list("abcdef"), node_notes=notes)
    run = tmp_path / "run"
    costa("train", tmp_path / "ring.npz", "--epochs", 1, "--set", "encoder.width=4", "--out", run)
    shown = costa("similar", run, "b", "-k", 2)
    assert shown.out.startswith("Nearest to b, the note of 1:\n")
    head, rows = table(shown.out)
    assert head == ["id", "cosine", "note"]
    assert all(row[2:] == ["the", "note", "of", str("abcdef".index(row[0]))] for row in rows)


def test_a_run_on_a_disk_graph_is_searched_there(own_graph, costa, tmp_path):
    pytest.importorskip("pyarrow")
    run = tmp_path / "stored"
    options = ("--epochs", 1, "--set", "encoder.width=4", "--no-probe", "--memory", "1GiB", "--out", run)
    assert costa("train", own_graph, *options).code == 0
    _, rows = table(costa("similar", run, "person 20", "-k", 3).out)
    expected = most_similar(load_embeddings(run), 20, 3)
    assert [int(row[1]) for row in rows] == [row for row, _ in expected]
    shutil.rmtree(own_graph)
    assert "no longer exists" in costa("similar", run, "person 20").err
