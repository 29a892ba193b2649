"""Tables of mixed columns through the command line: what they were taken for is said, saved and applied again."""

import json
from pathlib import Path

import numpy as np
import pytest

SHORT = ("--no-probe", "--epochs", "2")
HEADER = ["who", "age", "plan", "label"]


def write_table(folder: Path, header: list[str], name: str = "features.csv", *, seed: int = 0, n: int = 60) -> Path:
    rng = np.random.default_rng(seed)
    folder.mkdir(exist_ok=True)
    cells = {
        "who": [str(1000 + i) for i in rng.permutation(n)],
        "age": ["" if i % 7 == 0 else str(20 + i % 40) for i in range(n)],
        "plan": [("gold", "basic", "free")[i % 3] for i in range(n)],
        "label": ["" if i % 2 else ("yes", "no")[i % 4 // 2] for i in range(n)],
    }
    rows = zip(*(cells[column] for column in header), strict=True)
    (folder / name).write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    edges = [f"{1000 + i},{1000 + (i + 1) % n}" for i in range(n)]
    (folder / "edges.csv").write_text("\n".join(["from,to", *edges]) + "\n")
    return folder


def test_columns_are_said_and_saved(costa, tmp_path):
    graph, run = write_table(tmp_path / "people", HEADER), tmp_path / "run"
    result = costa("train", graph, "--out", run, *SHORT)
    assert result.code == 0, result.err
    assert "age: a number" in result.out
    assert "plan: a category, because it has 3 different texts" in result.out
    saved = json.loads((run / "config.json").read_text())["columns"]
    assert [column["name"] for column in saved["columns"]] == ["age", "plan"]


@pytest.mark.parametrize("memory", [(), ("--memory", "1GiB")])
def test_embedding_finds_columns_by_name(costa, tmp_path, memory):
    graph, run = write_table(tmp_path / "people", HEADER), tmp_path / "run"
    assert costa("train", graph, "--out", run, *SHORT, *memory).code == 0
    other = write_table(tmp_path / "turned", ["plan", "who", "label", "age"])
    result = costa("embed", run, other, "--out", tmp_path / "z.npy", *memory)
    assert result.code == 0, result.err
    assert np.allclose(np.load(tmp_path / "z.npy"), np.load(run / "embeddings.npy"), atol=1e-6)
    lacks = write_table(tmp_path / "lacks", ["who", "plan"])
    result = costa("embed", run, lacks, "--out", tmp_path / "z.npy", *memory)
    assert result.code == 2
    assert "lacks the column" in result.err
    assert "'age'" in result.err


def test_columns_are_taken_as_said(costa, tmp_path):
    graph, run = write_table(tmp_path / "people", HEADER), tmp_path / "run"
    said = "plan=label,label=ignore,who=id"
    assert costa("train", graph, "--columns", said, "--out", run, *SHORT).code == 0
    assert json.loads((run / "config.json").read_text())["columns"]["roles"] == {
        **{"plan": "label", "label": "ignore", "who": "id"}
    }
    assert "accuracy" in costa("probe", run, "--repeats", "2").out
    result = costa("train", graph, "--columns", "plan=categroy", "--out", tmp_path / "other", *SHORT)
    assert (result.code, "did you mean 'category'" in result.err) == (2, True)


@pytest.mark.parametrize("changed", ["edges.csv", "features.csv"])
def test_a_run_does_not_go_on_with_other_data(costa, tmp_path, changed):
    graph, run = write_table(tmp_path / "people", HEADER), tmp_path / "run"
    assert costa("train", graph, "--out", run, *SHORT).code == 0
    assert costa("train", graph, "--out", run, "--resume", *SHORT).code == 0
    text = (graph / changed).read_text()
    (graph / changed).write_text(text.replace("1003,1004", "1003,1009").replace("gold", "platinum"))
    result = costa("train", graph, "--out", run, "--resume", *SHORT)
    assert result.code == 2
    assert "has other features or edges than when the run in" in result.err


def test_new_labels_are_no_other_data(costa, tmp_path):
    graph, run = write_table(tmp_path / "people", HEADER), tmp_path / "run"
    assert costa("train", graph, "--out", run, *SHORT).code == 0
    table = graph / "features.csv"
    table.write_text(table.read_text().replace("basic,\n", "basic,no\n"))
    assert costa("train", graph, "--out", run, "--resume", *SHORT).code == 0
    assert costa("probe", run, "--repeats", "2").code == 0


@pytest.mark.parametrize("memory", [(), ("--memory", "1GiB")])
def test_commands_on_a_run_do_not_answer_for_other_data(costa, tmp_path, memory):
    graph, run = write_table(tmp_path / "people", HEADER), tmp_path / "run"
    assert costa("train", graph, "--out", run, *SHORT, *memory).code == 0
    table = graph / "features.csv"
    table.write_text(table.read_text().replace(",21,", ",77,").replace("basic,\n", "basic,no\n"))
    result = costa("clusters", run)
    assert (result.code, "has other features or edges than when the run in" in result.err) == (2, True)
    table.write_text(table.read_text().replace(",77,", ",21,"))
    assert costa("clusters", run).code == 0  # labels are not what it was trained on


@pytest.mark.parametrize("memory", [(), ("--memory", "1GiB")])
def test_columns_that_a_model_does_not_have_are_said(costa, tmp_path, caplog, memory):
    graph, run = write_table(tmp_path / "people", ["who", "age", "label"]), tmp_path / "run"
    assert costa("train", graph, "--out", run, *SHORT).code == 0
    other = write_table(tmp_path / "more", HEADER)
    assert costa("embed", run, other, "--out", tmp_path / "z.npy", *memory).code == 0
    assert "has the column 'plan', which the model was not fitted to; it is not used" in caplog.text
