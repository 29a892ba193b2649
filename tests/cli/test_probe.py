"""``costa probe``."""

import json
import shutil

import pytest


def test_probe_adds_to_the_metrics(digits_run, costa, tmp_path):
    run = shutil.copytree(digits_run, tmp_path / "run")
    result = costa("probe", run, "--protocol", "random-20-80", "--repeats", 2)
    assert result.code == 0, result.err
    assert "random-20-80, 2 splits" in result.out
    metrics = json.loads((run / "metrics.json").read_text())
    assert [probe["protocol"] for probe in metrics["probes"]] == ["random-10-10-80", "random-2-2-96", "random-20-80"]
    again = costa("probe", run, "--protocol", "random-20-80", "--repeats", 3)
    assert again.code == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert len(metrics["probes"]) == 3
    assert len(metrics["probes"][-1]["accuracy"]["per_split"]) == 3
    assert costa("probe", run, "--repeats", 2).code == 0  # measured again, it keeps its place
    metrics = json.loads((run / "metrics.json").read_text())
    assert [probe["protocol"] for probe in metrics["probes"]] == ["random-10-10-80", "random-2-2-96", "random-20-80"]


def test_of_very_many_labels_a_sample_is_evaluated_and_its_size_is_told(digits_run, costa, tmp_path, monkeypatch):
    from costa.evaluate import samples

    monkeypatch.setattr(samples, "MOST", 1000)
    run = shutil.copytree(digits_run, tmp_path / "run")
    result = costa("probe", run, "--repeats", 2)
    assert result.code == 0, result.err
    assert " on 1,000 of 1,797 labelled nodes, drawn at random\n" in result.out
    assert json.loads((run / "metrics.json").read_text())["sample"] == {"nodes": 1000, "of": 1797}


def test_probes_help_says_what_each_protocol_is(costa):
    from costa.evaluate.protocols import PROTOCOLS

    shown = " ".join(costa("probe", "--help").out.split())
    for protocol in PROTOCOLS.values():
        assert f"{protocol.name} {protocol.description}" in shown


DAMAGE = [
    ("metrics.json", '{"schema": 1, "me'),
    ("metrics.json", None),
    ("config.json", "[]"),
    ("config.json", '{"schema": 1}'),
    ("config.json", '{"schema": 7}'),
    ("embeddings.npy", "no array"),
]


@pytest.mark.parametrize(("name", "content"), DAMAGE)
def test_a_damaged_run_is_one_sentence(digits_run, costa, tmp_path, name, content):
    run = shutil.copytree(digits_run, tmp_path / "run")
    (run / name).unlink()
    if content is not None:
        (run / name).write_text(content)
    result = costa("probe", run, "--repeats", 1)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert name in result.err


def test_nodes_listed_in_another_order_are_not_evaluated_with_the_vectors_of_others(own_graph, costa, tmp_path):
    nodes = own_graph / "nodes.csv"
    arguments = ("train", own_graph, "--epochs", 1, "--set", "encoder.width=8", "--out", tmp_path / "run")
    head, *rows = nodes.read_text().splitlines()
    unlabelled = [f"{row.split(',')[0]}," for row in rows]
    nodes.write_text("\n".join([head, *unlabelled]))
    assert costa(*arguments).code == 0
    nodes.write_text("\n".join([head, *reversed(rows)]))
    for refused in (costa("probe", tmp_path / "run"), costa("report", tmp_path / "run"), costa(*arguments, "--resume")):
        assert refused.code == 2
        assert "the same in another order" in refused.err
    nodes.write_text("\n".join([head, *rows]))
    assert costa("probe", tmp_path / "run", "--repeats", 1).code == 0


def test_a_score_of_few_labels_says_so(costa, own_graph, tmp_path):
    few = "Note: random-2-2-96 learns 2 classes from only 1 node, so its score says little."
    trained = costa("train", own_graph, "--set", "train.epochs=2", "--out", tmp_path / "run")
    assert trained.out.count("says little") == 1
    assert few in trained.out
    assert few in costa("probe", tmp_path / "run", "--protocol", "random-2-2-96").out
    assert "Note" not in costa("probe", tmp_path / "run", "--protocol", "random-20-80").out


def test_another_folder_and_another_protocol_are_one_sentence(costa, tmp_path, digits_run):
    refused = costa("probe", tmp_path)
    assert (refused.code, "is not a run" in refused.err) == (2, True)
    unknown = costa("probe", digits_run, "--protocol", "random-50-50")
    assert (unknown.code, "there is no protocol 'random-50-50'" in unknown.err) == (2, True)
