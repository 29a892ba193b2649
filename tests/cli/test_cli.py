"""The command line through its entry point, as a user meets it."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from costa.runs import several

COMMAND = Path(sys.executable).parent / "costa"


def test_help_is_quick_to_read_and_names_every_command():
    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    for command in ("demo", "train", "probe", "embed", "datasets", "methods"):
        assert f"\n  {command} " in shown
    assert "Start with `costa demo`" in " ".join(shown.split())


def test_help_does_not_wait_for_torch():
    code = "import sys, costa.cli; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_python_m_costa_is_the_same_command():
    shown = subprocess.run([sys.executable, "-m", "costa", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("costa 0.")


@pytest.mark.parametrize("command", ["demo", "train", "probe", "embed", "datasets", "methods"])
def test_every_command_explains_itself(costa, command):
    result = costa(command, "--help")
    assert result.code == 0
    assert "Usage: costa" in result.out


def test_train_writes_a_run_and_says_what_it_did(costa, tmp_path):
    result = costa("train", "digits", "--method", "costa-mv", "--epochs", 2, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    shown = " ".join(result.out.split())
    assert "costa-mv on digits, seed 0: 2 epochs in" in shown
    assert f"accuracy {100 * metrics['probes'][0]['accuracy']['mean']:.1f} ±" in shown
    assert f"raw {100 * metrics['floor']['raw']['accuracy']:.1f} (NMI" in shown
    assert str(tmp_path / "run") in result.out
    assert len(list(csv.DictReader((tmp_path / "run" / "log.csv").open()))) == 2
    assert np.load(tmp_path / "run" / "embeddings.npy").shape == (1797, 256)


def test_settings_are_shown_with_where_they_came_from(costa, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("[loss]\ntau = 0.7\n")
    result = costa(
        "train", "digits", "--out", tmp_path / "run", "--epochs", 1, "--no-probe",
        "--config", config, "--set", "sketch.kind=countsketch", "--set", "sketch.ratio=0.1",
    )  # fmt: skip
    assert result.code == 0, result.err
    rows = {line.split()[0]: line.split()[1:] for line in result.out.splitlines() if line.strip()}
    assert rows["sketch.kind"] == ["countsketch", "--set"]
    assert rows["sketch.ratio"] == ["0.1", "--set"]
    assert rows["loss.tau"][0] == "0.7"
    assert rows["train.epochs"] == ["1", "--epochs"]
    assert rows["features.scaling"] == ["none", "graph"]
    assert rows["sketch.density"] == ["0.01", "default", "(unused)"]
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["settings"]["sketch.kind"] == "countsketch"
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["probes"] == []


def test_several_seeds_make_several_runs_and_a_line_each(costa, tmp_path):
    out = tmp_path / "runs"
    result = costa("train", "digits", "--seeds", 2, "--epochs", 1, "--out", out, "--set", "sketch.k=50")
    assert result.code == 0, result.err
    assert {path.name for path in out.iterdir()} == {"digits-costa-sv-0", "digits-costa-sv-1"}
    configs = [json.loads((out / f"digits-costa-sv-{seed}" / "config.json").read_text()) for seed in (0, 1)]
    assert [(config["seed"], config["settings"]["sketch.k"]) for config in configs] == [(0, 50), (1, 50)]
    assert "seed s on split s" in result.out
    assert result.out.endswith(f"\nNext: costa report {out / 'digits-costa-sv-0'}\n")


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


@pytest.mark.parametrize("command", ["embed", "probe", "report", "train"])
def test_a_run_of_a_newer_version_is_told_from_a_damaged_one(digits_run, costa, tmp_path, command):
    run = shutil.copytree(digits_run, tmp_path / "run")
    (run / "config.json").write_text('{"schema": 2}')
    more = {"embed": ["digits", "--out", tmp_path / "z.npy"], "train": ["digits", "--resume", "--out", run]}
    result = costa(command, *([] if command == "train" else [run]), *more.get(command, []))
    assert result.code == 2
    assert result.err == (
        f"costa: {run / 'config.json'} was written by a newer version of costa (schema 2; this version reads 1);"
        " update costa.\n"
    )


def test_a_model_of_another_run_is_one_sentence(digits_run, costa, tmp_path):
    run = shutil.copytree(digits_run, tmp_path / "run")
    (run / "model.safetensors").write_bytes(b"nothing")
    result = costa("embed", run, "digits", "--out", tmp_path / "z.npy")
    assert result.code == 2
    assert "model.safetensors" in result.err


def test_vectors_that_say_nothing_are_not_evaluated(own_graph, costa, tmp_path):
    np.save(own_graph / "features.npy", np.ones((60, 6), dtype="float32"))
    edges = ["source,target", *(f"person {i:02d},person {(i + 1) % 60:02d}" for i in range(60))]
    (own_graph / "edges.csv").write_text("\n".join(edges))
    result = costa("train", own_graph, "--epochs", 1, "--out", tmp_path / "run")
    assert result.code == 1
    assert "collapsed after 1 epoch: all vectors point the same way" in result.out
    assert "look at the features, lower train.weight_decay or train.lr." in result.out
    assert "Next:" not in result.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["status"], metrics["probes"]) == ("collapsed", [])


def test_a_last_step_that_diverges_is_noticed(costa, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(
        "costa.methods.encoding.EncoderMethod.embed", lambda self, graph: torch.full((1797, 4), float("nan"))
    )
    for method, advice in (("costa-sv", "lower train.lr or raise loss.tau."), ("dgi", "lower train.lr.")):
        run = tmp_path / method
        result = costa("train", "digits", "--method", method, "--epochs", 1, "--out", run)
        assert result.code == 1
        assert f"diverged after 1 epoch and is not evaluated; {advice}\n" in result.out
        assert json.loads((run / "metrics.json").read_text())["status"] == "diverged"


def test_embed_gives_the_runs_own_vectors_again(digits_run, costa, tmp_path):
    assert costa("embed", digits_run, "digits", "--out", tmp_path / "z.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), np.load(digits_run / "embeddings.npy"), atol=1e-6)


def test_a_folder_named_as_a_benchmark_is_not_the_benchmark(own_graph, costa, tmp_path, monkeypatch):
    own_graph.rename(tmp_path / "digits")
    monkeypatch.chdir(tmp_path)
    result = costa("train", "./digits", "--epochs", 1, "--no-probe", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "preset" not in result.out.replace("no tuned settings", "")
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["dataset"] == "digits-folder"
    monkeypatch.chdir("/")  # the run remembers where its graph is
    assert costa("probe", tmp_path / "run", "--repeats", 2).code == 0
    (tmp_path / "digits").rename(tmp_path / "moved")
    assert "which no longer exists; put it back" in costa("probe", tmp_path / "run").err


def test_nodes_listed_in_another_order_are_not_judged_by_the_vectors_of_others(own_graph, costa, tmp_path):
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


def test_few_labels_are_evaluated_as_far_as_they_go(own_graph, costa, tmp_path):
    nodes = (own_graph / "nodes.csv").read_text().splitlines()
    nodes[25:] = [line.split(",")[0] + "," for line in nodes[25:]]
    (own_graph / "nodes.csv").write_text("\n".join(nodes) + "\n")
    result = costa("train", own_graph, "--epochs", 1, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "Not evaluated: the protocol 'random-2-2-96' needs at least 50 labelled nodes" in result.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [probe["protocol"] for probe in metrics["probes"]] == ["random-10-10-80"]
    assert metrics["floor"]["untrained"]["accuracy"] > 0


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


def test_a_graph_without_labels_is_trained_and_not_evaluated(own_graph, costa, tmp_path):
    (own_graph / "nodes.csv").unlink()
    # without nodes.csv the ids must be row numbers
    edges = (own_graph / "edges.csv").read_text().replace("person ", "")
    (own_graph / "edges.csv").write_text("\n".join(
        ",".join(str(int(cell)) if cell.isdigit() else cell for cell in line.split(",")) for line in edges.splitlines()
    ))  # fmt: skip
    result = costa("train", own_graph, "--out", tmp_path / "run", "--epochs", 1)
    assert result.code == 0, result.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["probes"], metrics["clustering"], metrics["floor"]) == ([], None, None)
    assert "no labels, on cpu" in result.out
    assert "not evaluated: no labels" in result.out
    refused = costa("probe", tmp_path / "run")
    assert refused.code == 2
    assert "no label" in refused.err


def test_lists(costa):
    assert "coauthor-physics" in costa("datasets").out
    assert "COSTA, two views" in costa("methods").out


BAD_TRAIN = [
    (["corra"], "did you mean 'cora'"),
    (["./nowhere"], "nowhere"),
    (["digits", "--method", "costa-sw"], "there are: costa-sv, costa-mv"),
    (["digits", "--set", "sketch.ratioo=1"], "did you mean sketch.ratio"),
    (["digits", "--set", "sketch.ratio"], "KEY=VALUE"),
    (["digits", "--set", "sketch.ratio=-1"], "out of range"),
    (["digits", "--set", "sketch.kind=svd"], "at most min(n, d)"),
    (["digits", "--preset", "best"], "tuned, strict, paper, none"),
    (["digits", "--method", "costa-mv", "--preset", "paper"], "there are for: cora"),
    (["digits", "--config", "missing.toml"], "there is no settings file"),
    (["digits", "--seed", "1", "--seeds", "2"], "choose one run or several"),
    (["digits", "--epochs", "0"], "epochs"),
    (["digits", "--method", "raw", "--epochs", "3"], "not trained"),
    (["digits", "--device", "cuda"], "no CUDA device"),
    (["digits", "--set", "sketch.kind=noise", "--set", "sketch.noise_std=1", "--set", "sketch.k=9"], "keeps all rows"),
    (["digits", "--set", "sketch.density=0.5"], "belongs to sketch.kind = sparse"),
    (["digits", "--set", "sketch.k=9", "--set", "sketch.ratio=0.5"], "sketch.k says how many rows"),
    (["digits", "--set", "augment.edge_rate=0.1,0.2"], "has one view"),
    (["digits", "--set", "train.lr=1e38"], "at most 100"),
    (["digits", "--set", "sketch.ratio=1e9"], "at most 100"),
    (["digits", "--set", "sketch.k=10000000000"], "not enough memory"),
    (["digits", "--seed", "99999999999999999999"], "seed"),
    (["digits", "--config", "."], "irectory"),
    (["digits", "--device", "abacus"], "unknown device"),
    (["digits", "--resume"], "no run to resume"),
    (["cora", "--data-dir", "missing-folder"], "missing-folder"),
]


@pytest.mark.parametrize(
    ("arguments", "says"), BAD_TRAIN, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_sentence_and_code_2(costa, tmp_path, monkeypatch, arguments, says):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = costa("train", *arguments, "--out", tmp_path / "run")
    assert result.code == 2
    assert says in " ".join(result.err.split())
    assert "Traceback" not in result.err
    if result.err.startswith("costa: "):  # the rest are usage errors, which show the usage too
        assert result.err.count("\n") == 1


def test_other_commands_refuse_what_is_no_run(costa, tmp_path, digits_run, own_graph):
    for arguments in (["probe", tmp_path], ["embed", tmp_path, "digits", "--out", tmp_path / "z.npy"]):
        result = costa(*arguments)
        assert result.code == 2
        assert "is not a run" in result.err
    assert "has 6 features" in costa("embed", digits_run, own_graph, "--out", tmp_path / "z.npy").err
    assert "end its name in" in costa("embed", digits_run, "digits", "--out", tmp_path / "z.txt").err
    assert "cannot be written" in costa("embed", digits_run, "digits", "--out", tmp_path / "no" / "z.npy").err
    assert costa("probe", digits_run, "--protocol", "random-50-50").code == 2


def test_a_folder_that_holds_something_else_is_left_alone(costa, digits_run, tmp_path):
    before = {path: path.read_bytes() for path in digits_run.iterdir()}
    ended = "(costa-sv on digits, seed 0); it has ended and `costa report"
    for arguments, says in (
        (["digits"], f"{digits_run} already holds this run {ended} {digits_run}` shows it"),
        (["digits", "--seed", "5"], "already holds another run"),
        (["digits", "--method", "raw", "--resume"], "already holds another run"),
    ):
        result = costa("train", *arguments, "--out", digits_run)
        assert result.code == 2
        assert says in result.err
    assert {path: path.read_bytes() for path in digits_run.iterdir()} == before
    (tmp_path / "thesis.tex").write_text("dear diary")
    assert "is not a run of costa" in costa("train", "digits", "--out", tmp_path).err
    assert "not an earlier demo" in costa("demo", "--out", tmp_path).err


def test_a_place_that_cannot_be_written_is_one_sentence(costa, tmp_path):
    (tmp_path / "file").write_text("mine")
    result = costa("train", "digits", "--epochs", 1, "--no-probe", "--out", tmp_path / "file" / "x")
    assert result.code == 2
    assert result.err.startswith("costa: ")
    assert result.err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("setting", ["sketch.kind=svd", "sketch.k=10000000000"])
def test_a_refused_start_leaves_no_folder_behind(costa, tmp_path, setting):
    assert costa("train", "digits", "--set", setting, "--out", tmp_path / "run").code == 2
    assert not (tmp_path / "run").exists()


def test_brackets_in_a_path_are_shown_as_they_are(costa, tmp_path):
    arguments = ("--no-probe", "--out", tmp_path / "r[old][/b]", "--data-dir", tmp_path)
    result = costa("train", "digits", "--method", "raw", *arguments)
    assert result.code == 0, result.err
    assert "r[old][/b]/\n" in result.out
    assert "not evaluated: --no-probe" in result.out
    assert result.out.endswith(f"\nNext: costa report '{tmp_path}/r[old][/b]' --data-dir {tmp_path}\n")


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


def test_resume_goes_on_with_the_seeds_that_are_missing(costa, tmp_path):
    arguments = ["train", "digits", "--epochs", 1, "--no-probe", "--out", tmp_path / "runs"]
    assert costa(*arguments, "--seeds", 1).code == 0
    first = tmp_path / "runs" / "digits-costa-sv-0" / "model.safetensors"
    trained = first.stat().st_mtime_ns
    for _ in range(2):
        assert costa(*arguments, "--seeds", 3, "--resume").code == 0
    assert sorted(path.name[-1] for path in (tmp_path / "runs").iterdir()) == ["0", "1", "2"]
    assert first.stat().st_mtime_ns == trained


def test_resume_refuses_other_settings_and_leaves_the_run_as_it_is(costa, digits_run):
    before = {path: path.read_bytes() for path in digits_run.iterdir()}
    result = costa("train", "digits", "--epochs", 3, "--out", digits_run, "--resume", "--set", "loss.tau=0.9")
    assert result.code == 2
    assert "started with loss.tau = 0.5, not 0.9" in result.err
    more = costa("train", "digits", "--epochs", 9, "--out", digits_run, "--resume")
    assert "started with train.epochs = 3, not 9" in more.err
    assert {path: path.read_bytes() for path in digits_run.iterdir()} == before


def test_a_run_that_ended_is_not_trained_again(costa, digits_run):
    before = (digits_run / "model.safetensors").stat().st_mtime_ns
    assert costa("train", "digits", "--epochs", 3, "--out", digits_run, "--resume").code == 0
    assert (digits_run / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_there_is_and_resume_goes_on(tmp_path, number):
    """A real process, a real signal: Ctrl-C, or what a scheduler sends."""
    run = tmp_path / "run"
    arguments = [COMMAND, "train", "digits", "--out", run, "--epochs", "100000", "--set", "encoder.width=8"]
    process = subprocess.Popen(
        [*arguments, "--set", "sketch.k=20"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.time() + 60
    while not (run / "log.csv").exists() or (run / "log.csv").read_text().count("\n") < 5:
        assert process.poll() is None, process.communicate()
        assert time.time() < deadline
        time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "with --resume to continue" in out
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["status"] == "interrupted"
    assert np.isfinite(np.load(run / "embeddings.npy")).all()
    done = metrics["epochs"]

    more = [str(argument).replace("100000", str(done + 3)) for argument in arguments]
    subprocess.run([*more, "--set", "sketch.k=20", "--resume", "--no-probe"], check=True, capture_output=True)
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["status"], metrics["epochs"]) == ("ok", done + 3)
    assert (run / "log.csv").read_text().count("\n") == done + 4
    assert not (run / "checkpoint.safetensors").exists()


def test_progress_shows_loss_rate_and_time_left_on_a_terminal_only(tmp_path):
    import pty

    arguments = [COMMAND, "train", "digits", "--epochs", "30", "--no-probe", "--set", "sketch.k=100", "--out"]
    quiet = subprocess.run([*arguments, tmp_path / "a"], capture_output=True, text=True, check=True)
    assert "epochs/s" not in quiet.stdout

    shown = b""
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([*arguments, tmp_path / "b"], stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        while True:
            try:
                chunk = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            shown += chunk
    os.close(leader)
    assert process.returncode == 0
    assert b"epochs/s" in shown
    assert b"loss" in shown
    assert b"30/30" in shown


def test_a_score_of_few_labels_says_so(costa, own_graph, tmp_path):
    few = "Note: random-2-2-96 learns 2 classes from only 1 node, so its score says little."
    trained = costa("train", own_graph, "--set", "train.epochs=2", "--out", tmp_path / "run")
    assert trained.out.count("says little") == 1
    assert few in trained.out
    assert few in costa("probe", tmp_path / "run", "--protocol", "random-2-2-96").out
    assert "Note" not in costa("probe", tmp_path / "run", "--protocol", "random-20-80").out


@pytest.mark.parametrize(
    ("ours", "method", "said"), [(0.6, "costa-sv", True), (0.9, "costa-sv", False), (0.6, "raw", False)]
)
def test_a_run_that_is_not_above_a_baseline_is_told_so(capsys, ours, method, said):
    from costa.cli.runs import print_run
    from costa.evaluate.baselines import Baseline
    from costa.evaluate.scores import ProbeResult, Score
    from costa.runs import Metrics

    score = Score(ours, 0.01, (ours,), "random-10-10-80")
    low, high = Baseline(accuracy=0.5, nmi=0.5), Baseline(accuracy=0.7, nmi=0.5)
    probes = [ProbeResult("random-10-10-80", 0.1, score, score)]
    baselines = {"raw": low, "diffused": high, "untrained": low}
    metrics = Metrics(method, "d", 0, "ok", 1, 1.0, probes=probes, baselines=baselines)
    print_run(metrics, Path("run"), None)
    assert ("not above diffused features (60.0 against 70.0)" in capsys.readouterr().out) == said
