"""What ``costa train`` prints about its runs."""

from itertools import islice
from pathlib import Path

import pytest

from costa import graphs
from costa.cli.runs import print_run
from costa.errors import InputError
from costa.evaluate.baselines import Baseline
from costa.evaluate.samples import Sample
from costa.evaluate.scores import ProbeResult, Score
from costa.memory import parse_size, workspace
from costa.runs import Metrics, folder, several
from costa.training import Watched


def test_seeds_that_a_stop_kept_from_beginning_are_counted(costa, tmp_path, monkeypatch):
    real = several.execute
    monkeypatch.setattr(
        several, "execute", lambda job, folders, *rest, **more: islice(real(job, folders, *rest, **more), 1)
    )
    result = costa("train", "digits", "--method", "raw", "--no-probe", "--seeds", 3, "--out", tmp_path / "runs")
    assert result.code == 130
    assert result.out.endswith(
        "Stopped before the last 2 of 3 seeds; run the same command with --resume to continue.\n"
    )


def test_brackets_in_a_path_are_shown_as_they_are(costa, tmp_path):
    arguments = ("--no-probe", "--out", tmp_path / "r[old][/b]", "--data-dir", tmp_path)
    result = costa("train", "digits", "--method", "raw", *arguments)
    assert result.code == 0, result.err
    assert "r[old][/b]/\n" in result.out
    assert "not evaluated: --no-probe" in result.out
    assert result.out.endswith(f"\nNext: costa report '{tmp_path}/r[old][/b]' --data-dir {tmp_path}\n")


def test_a_sample_is_told_beside_its_scores(capsys):
    score = Score(0.6, 0.01, (0.6,), "random-10-10-80")
    probes, sample = [ProbeResult("random-10-10-80", 0.1, score, score)], Sample(50_000, 10**6)
    for metrics in (Metrics("raw", "d", 0, "ok", probes=probes, sample=each) for each in (sample, None)):
        print_run(metrics, Path("run"), None)
        told = "  on 50,000 of 1,000,000 labelled nodes, drawn at random\n" in capsys.readouterr().out
        assert told == (metrics.sample is not None)


@pytest.mark.parametrize(
    ("ours", "method", "said"), [(0.6, "costa-sv", True), (0.9, "costa-sv", False), (0.6, "raw", False)]
)
def test_a_run_that_is_not_above_a_baseline_is_told_so(capsys, ours, method, said):
    score = Score(ours, 0.01, (ours,), "random-10-10-80")
    low, high = Baseline(accuracy=0.5, nmi=0.5), Baseline(accuracy=0.7, nmi=0.5)
    probes = [ProbeResult("random-10-10-80", 0.1, score, score)]
    baselines = {"raw": low, "diffused": high, "untrained": low}
    metrics = Metrics(method, "d", 0, "ok", 1, 1.0, probes=probes, baselines=baselines)
    print_run(metrics, Path("run"), None, "costa train d --choose")
    verdict = "Note: not above diffused features (60.0 against 70.0): try `costa train d --choose`.\n"
    assert (verdict in capsys.readouterr().out) == said
    print_run(metrics, Path("run"), None)  # the labels chose this run
    assert ("Note: not above diffused features (60.0 against 70.0).\n" in capsys.readouterr().out) == said


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        (Metrics("raw", "d", 0, "ok", seconds=0.24), "raw on d, seed 0: done in 0.2 s"),
        (Metrics("gca", "d", 3, "ok", 9, 2.0, trained_together=3), "seed 3: 9 epochs in 2.0 s, together with 2 others"),
        (Metrics("gca", "d", 0, "interrupted", 1), "stopped after 1 epoch; run the same command with --resume"),
        (Metrics("gca", "d", 0, "diverged", 5), "diverged after 5 epochs and is not evaluated; lower train.lr"),
        (
            Metrics("raw", "d", 0, "collapsed"),
            "collapsed: all vectors point the same way, lie along one line, or are zero",
        ),
        (Metrics("gca", "d", 0, "ok", 9, loss_fell=False), "Note: the loss stayed flat: it did not fall by more than"),
        (
            Metrics("gca", "d", 0, "ok", 5, watch=Watched(0.002, 3, stopped=False)),
            "Note: the vectors were about to collapse, so training went back and goes on from epoch 3",
        ),
    ],
)
def test_how_a_run_ended_is_said(capsys, metrics, says):
    print_run(metrics, Path("run"), None)
    assert says in capsys.readouterr().out


def test_why_a_run_was_not_evaluated_is_said(capsys):
    print_run(Metrics("raw", "d", 0, "ok"), Path("run"), "--no-probe")
    assert "not evaluated: --no-probe\n  run/\n" in capsys.readouterr().out


def test_commands_on_a_run_keep_to_its_limit(costa, tmp_path, monkeypatch):
    run, small = tmp_path / "run", ("--set", "encoder.width=8", "--set", "encoder.powers=", "--epochs", 1)
    assert costa("train", "digits", "--memory", "2GiB", "--no-probe", *small, "--out", run).code == 0
    assert folder.load_run_graph(run, None).memory == workspace(parse_size("2GiB"))
    assert folder.load_run_graph(run, None, "3GiB").memory == workspace(parse_size("3GiB"))

    def load_graph(*_, memory=None, **__):
        raise InputError(f"asked for {memory}.")

    monkeypatch.setattr(folder, "load_graph", load_graph)
    monkeypatch.setattr(graphs, "load_graph", load_graph)
    for command in (("probe", run), ("report", run), ("embed", run, "digits", "--out", tmp_path / "z.npy")):
        assert costa(*command).err == "costa: asked for 2GiB.\n"
        assert costa(*command, "--memory", "3GiB").err == "costa: asked for 3GiB.\n"
