"""``costa compare`` and ``costa train --choose``."""

import json

import numpy as np
import pytest

from costa import COSTA
from costa.cli.choose import print_choice
from costa.evaluate.scores import Score
from costa.tuning import portfolio
from costa.tuning.portfolio import Candidate, Choice, Compared


@pytest.fixture
def three(monkeypatch):
    """A portfolio of two baselines and one small method."""
    small = {"encoder.kind": "gcn", "encoder.width": 16, "head.width": 16}
    candidates = (
        Candidate("raw", "raw features", "raw"),
        Candidate("diffused", "diffused features", "diffused"),
        Candidate("small", "a small GCN", "costa-mv", small),
    )
    monkeypatch.setattr(portfolio, "PORTFOLIO", candidates)
    return candidates


def config(folder):
    return json.loads((folder / "config.json").read_text())


def test_compare_prints_the_table_and_writes_nothing(costa, three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = costa("compare", "digits", "--epochs", 1)
    assert result.code == 0, result.err
    for candidate in three:
        assert f"  {candidate.title}: " in result.out
        assert any(line.startswith(f" {candidate.title} ") and "±" in line for line in result.out.splitlines())
    assert "20 splits of a fixed fifth of the labelled nodes (strict-10-10-80)" in result.out
    assert "chosen" not in result.out
    assert result.out.endswith("Next: costa train digits --choose\n")
    assert not list(tmp_path.iterdir())


def test_the_chosen_candidate_is_the_run(costa, three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = costa("train", "digits", "--choose", "--epochs", 1)
    assert result.code == 0, result.err
    run = tmp_path / "runs" / "digits-chosen-0"
    choice = Choice.from_dict(config(run)["chosen"])
    assert choice.chosen.name == "diffused"
    assert (choice.by, [row.candidate for row in choice.table]) == ("strict-10-10-80", list(three))
    assert config(run)["method"] == "diffused"
    (line,) = [line for line in result.out.splitlines() if line.rstrip().endswith("chosen")]
    assert line.startswith(" diffused features")
    metrics = json.loads((run / "metrics.json").read_text())
    assert [probe["protocol"] for probe in metrics["probes"]] == ["strict-10-10-80"]
    assert f"strict-10-10-80  accuracy {100 * metrics['probes'][0]['accuracy']['mean']:.1f} ±" in result.out
    model = COSTA.load(run)
    assert (model.method_.name, model.choose) == ("diffused", True)
    np.testing.assert_array_equal(model.transform("digits"), np.load(run / "embeddings.npy"))
    # what was tested on must not have chosen
    assert "took part in choosing" not in costa("probe", run, "--protocol", "strict-10-10-80", "--repeats", 2).out
    shown = costa("probe", run, "--protocol", "random-20-80", "--repeats", 2).out
    assert "labels of nodes that random-20-80 tests on took part in choosing this run; strict-10-10-80 tests" in shown
    again = costa("train", "digits", "--choose", "--epochs", 1)
    assert again.code == 2
    assert "already holds another run (diffused on digits, seed 0); choose another --out" in again.err
    assert again.out == ""


def test_few_labels_choose_together_and_none_is_left_to_test(costa, three, own_graph, tmp_path):
    result = costa("train", own_graph, "--choose", "--epochs", 1, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "20 folds of all labelled nodes (5-fold cross-validation, repeated)" in result.out
    assert "not evaluated: all labels took part in the choice, so none are left for a test" in result.out
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["probes"] == []
    assert config(tmp_path / "run")["chosen"]["by"] == "5-fold cross-validation"
    assert "took part in choosing this run." in costa("probe", tmp_path / "run", "--repeats", 2).out


def test_several_seeds_of_the_choice_and_a_run_that_is_resumed(costa, three, own_graph, tmp_path, monkeypatch):
    monkeypatch.setattr(portfolio, "PORTFOLIO", three[2:])
    command = ("train", own_graph, "--choose", "--epochs", 1, "--seeds", 2, "--out", tmp_path / "runs")
    result = costa(*command)
    assert result.code == 0, result.err
    runs = [tmp_path / "runs" / f"friends-chosen-{seed}" for seed in (0, 1)]
    assert [config(run)["chosen"]["name"] for run in runs] == ["small", "small"]
    assert [config(run)["settings"]["encoder.width"] for run in runs] == [16, 16]
    assert config(runs[0])["origins"]["encoder.width"] == "choice"
    monkeypatch.setattr(portfolio, "choose", lambda *args, **options: pytest.fail("chosen again"))
    again = costa(*command, "--resume")
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    "given", [("--method", "costa-sv"), ("--preset", "tuned"), ("--config", "mine.toml"), ("--set", "loss.tau=1")]
)
def test_what_choosing_decides_cannot_be_given(costa, three, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = costa("train", "digits", "--choose", *given)
    assert result.code == 2
    expected = f"costa: --choose decides the method and its settings; leave out {given[0]}, or --choose.\n"
    assert result.err == expected


def test_a_run_that_was_not_chosen_is_not_resumed_as_one(costa, own_graph, tmp_path):
    run = tmp_path / "run"
    assert costa("train", own_graph, "--method", "raw", "--no-probe", "--out", run).code == 0
    result = costa("train", own_graph, "--choose", "--resume", "--out", run)
    assert f"the run in {run} was not started with --choose; resume it without" in result.err


def test_without_labels_there_is_one_sentence(costa, three, own_graph, tmp_path):
    nodes = (own_graph / "nodes.csv").read_text().splitlines()
    (own_graph / "nodes.csv").write_text(
        "\n".join(line.split(",")[0] + "," for line in nodes).replace("id,", "id,label")
    )
    for command in (("compare", own_graph), ("train", own_graph, "--choose", "--out", tmp_path / "run")):
        result = costa(*command)
        assert result.code == 2
        assert result.err == (
            "costa: choosing needs labels of two classes, which this graph does not have; label some nodes.\n"
        )
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("higher", [True, False])
def test_a_default_that_is_kept_beside_a_higher_mean_is_explained(capsys, higher):
    default, other = (
        next(each for each in portfolio.PORTFOLIO if each.name == name) for name in ("costa-mv-hops", "raw")
    )
    means = {default.name: 0.7, other.name: 0.71 if higher else 0.69}
    table = [Compared(each, "ok", Score.of([means[each.name]] * 3, portfolio.STRICT), 1.0) for each in (other, default)]
    print_choice(Choice(default, portfolio.STRICT, table))
    assert ("The default is kept" in capsys.readouterr().out) == higher
