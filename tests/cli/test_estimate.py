"""``costa estimate``, and the first line of ``costa train``."""

import contextlib
import json
import re

import pytest

from costa import training
from costa.nn.ranks import Ranks
from costa.runs import estimate as module

LINE = re.compile(r"(A few seconds|About [\d.]+ \w+), [\d.]+ \w+ of memory and [\d.]+ \w+ of disk.*\.")


def test_a_run_says_first_what_it_will_take(costa, tmp_path, own_graph):
    for graph in ("digits", own_graph):
        result = costa("train", graph, "--epochs", 1, "--no-probe", "--out", tmp_path / f"run of {graph == 'digits'}")
        assert result.code == 0, result.err
        assert LINE.fullmatch(result.out.splitlines()[0])


def test_that_labels_are_evaluated_comes_on_top(costa, tmp_path, own_graph):
    result = costa("train", own_graph, "--epochs", 1, "--out", tmp_path / "run")
    assert result.out.splitlines()[0].endswith("of disk, then the evaluation.")
    again = costa("train", own_graph, "--epochs", 1, "--out", tmp_path / "run", "--resume")
    assert again.out.splitlines()[0].startswith("At most a few seconds, ")


def test_a_run_without_a_loss_says_memory_and_disk(costa, tmp_path):
    result = costa("train", "digits", "--method", "raw", "--no-probe", "--out", tmp_path / "run")
    assert re.match(r"[\d.]+ MiB of memory and [\d.]+ KiB of disk\.\n", result.out)


@pytest.mark.parametrize("kind", ["hops", "gcn"])
def test_estimate_tells_each_stage_what_there_is_and_leaves_nothing(costa, tmp_path, own_graph, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "FEW", 0.0)
    result = costa("estimate", own_graph, "--set", f"encoder.kind={kind}", "--epochs", 2)
    assert result.code == 0, result.err
    assert re.search(r"^ *train +[\d.]+ s", result.out, re.MULTILINE)
    assert re.search(r"^ *in all +[\d.]+ s", result.out, re.MULTILINE)
    assert re.search(r"^memory +[\d.]+ MiB, of [\d.]+ GiB that are available$", result.out, re.MULTILINE)
    assert f"in {tmp_path} for the vectors, where" in result.out
    assert not (tmp_path / "runs").exists()


def test_a_graph_that_stays_on_disk_is_told_before_it_is_read(costa, own_graph):
    pytest.importorskip("pyarrow")
    result = costa("estimate", own_graph, "--memory", "1GiB")
    assert result.code == 0, result.err
    assert "Reading" not in result.out
    assert len(re.findall("^disk ", result.out, re.MULTILINE)) == 2


def test_what_does_not_fit_is_said_and_code_1(costa, own_graph, monkeypatch):
    monkeypatch.setattr(module, "whole", lambda: 2**28)
    result = costa("estimate", own_graph)
    assert result.code == 1
    assert re.search(r"\nThis needs about [\d.]+ MiB of memory, and 256.0 MiB are available; ", result.out)
    monkeypatch.setattr(module, "whole", lambda: 2**40)
    monkeypatch.setattr(module, "free_disk", lambda folder: 9)
    result = costa("estimate", own_graph)
    assert result.code == 1
    assert "where 9 B are free; free some, or choose another --out." in result.out


@pytest.mark.parametrize("graph", ["digits", "own"])
def test_train_refuses_before_anything_is_spent(costa, tmp_path, own_graph, monkeypatch, graph):
    monkeypatch.setattr(module, "whole", lambda: 2**28)
    result = costa("train", own_graph if graph == "own" else graph, "--out", tmp_path / "run")
    assert result.code == 2
    assert result.err.startswith("costa: this needs about ")
    assert "256.0 MiB are available" in result.err
    assert not (tmp_path / "run").exists()


def test_several_seeds_are_told_together(costa, tmp_path):
    result = costa("train", "digits", "--method", "raw", "--seeds", 2, "--no-probe", "--out", tmp_path / "runs")
    assert result.code == 0, result.err
    sizes = [(tmp_path / "runs" / f"digits-raw-{seed}" / "embeddings.npy").stat().st_size for seed in (0, 1)]
    told = re.search(r"and ([\d.]+) KiB of disk", result.out)
    assert float(told[1]) == pytest.approx(sum(sizes) / 1024, rel=0.01)
    assert json.loads((tmp_path / "runs" / "digits-raw-0" / "metrics.json").read_text())["status"] == "ok"


@pytest.mark.parametrize("graph", ["digits", "own"])
@pytest.mark.parametrize("command", ["train", "estimate"])
def test_a_limit_is_for_all_processes_of_the_machine(costa, tmp_path, own_graph, monkeypatch, graph, command):
    pytest.importorskip("pyarrow")
    alone_but_not_on_this_machine = Ranks(0, 1, local=(0, 2))
    monkeypatch.setattr(training, "joined", lambda device: contextlib.nullcontext(alone_but_not_on_this_machine))
    graph = own_graph if graph == "own" else graph
    result = costa(command, graph, "--memory", "1GiB", "--out", tmp_path / "run")
    assert result.code == (2 if command == "train" else 1)
    assert "needs at least 1.3 GiB of memory for 2 processes, and --memory allows 1.0 GiB;" in result.err + result.out
    assert not (tmp_path / "run").exists()
    result = costa("estimate", graph, "--memory", "1.5GiB", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "GiB for 2 processes, of" in result.out


def test_one_process_that_cannot_keep_to_its_limit_is_refused(costa, tmp_path, own_graph):
    pytest.importorskip("pyarrow")
    result = costa("train", own_graph, "--memory", "600MiB", "--out", tmp_path / "run")
    assert result.code == 2
    assert "this needs at least 768.0 MiB of memory, and --memory allows 600.0 MiB; give --memory 1GiB." in result.err
