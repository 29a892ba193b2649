"""``costa train``."""

import csv
import json
import signal
import subprocess
import time

import numpy as np
import pytest
import torch

from costa import runs
from costa.graphs.synthetic import planted_partition

GCN = ("--set", "encoder.kind=gcn")


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
    model = runs.load_model(tmp_path / "run", torch.device("cpu"))
    assert np.load(tmp_path / "run" / "embeddings.npy").shape == (1797, model.vector_width)


def rows_of(text):
    """The words of each line after its first one."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}


def test_settings_are_shown_with_where_they_came_from(costa, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("[loss]\ntau = 0.7\n")
    result = costa(
        "train", "digits", "--out", tmp_path / "run", "--epochs", 1, "--no-probe",
        "--config", config, "--set", "sketch.kind=countsketch", "--set", "sketch.ratio=0.1", "--verbose",
    )  # fmt: skip
    assert result.code == 0, result.err
    rows = rows_of(result.out)
    assert rows["sketch.kind"] == ["countsketch", "--set"]
    assert rows["sketch.ratio"] == ["0.1", "--set"]
    assert rows["loss.tau"][0] == "0.7"
    assert rows["train.epochs"] == ["1", "--epochs"]
    assert rows["features.scaling"] == ["none", "graph"]
    assert rows["sketch.density"] == ["0.01", "default", "(unused)"]
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["settings"]["sketch.kind"] == "countsketch"
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["probes"] == []


def test_a_first_run_shows_what_is_not_a_default(costa, tmp_path):
    arguments = ("train", "digits", "--epochs", 1, "--no-probe", "--set", "sketch.ratio=0.1", "--set", "loss.tau=0.5")
    result = costa(*arguments, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    rows = rows_of(result.out)
    assert (rows["sketch.ratio"], rows["train.epochs"]) == (["0.1", "--set"], ["1", "--epochs"])
    assert rows["loss.tau"] == ["0.5", "--set"]  # somebody asked for the default
    assert "sketch.kind" not in rows
    assert "Chosen: features.scaling = none: every feature lies within 0 and 1.\n" in result.out
    assert "The other settings have their defaults; --verbose lists them.\n" in result.out


def test_quiet_prints_the_result_alone(costa, tmp_path):
    run = tmp_path / "run"
    result = costa("train", "digits", "--epochs", 1, "--no-probe", "--quiet", "--out", run)
    assert result.code == 0, result.err
    first, *between, last = result.out.splitlines()
    assert first.startswith("costa-mv on digits, seed 0: 1 epoch in")
    assert last == f"  {run}/"
    assert {line.split()[0] for line in between} == {"vectors", "not"}
    refused = costa("train", "digits", "--quiet", "--verbose")
    assert refused.err == "costa: --verbose and --quiet were both given; choose one.\n"


def test_several_seeds_make_several_runs_and_a_line_each(costa, tmp_path):
    out = tmp_path / "runs"
    result = costa("train", "digits", "--seeds", 2, "--epochs", 1, "--out", out, "--set", "sketch.k=50")
    assert result.code == 0, result.err
    assert {path.name for path in out.iterdir()} == {"digits-costa-mv-0", "digits-costa-mv-1"}
    configs = [json.loads((out / f"digits-costa-mv-{seed}" / "config.json").read_text()) for seed in (0, 1)]
    assert [(config["seed"], config["settings"]["sketch.k"]) for config in configs] == [(0, 50), (1, 50)]
    assert "seed s on split s" in result.out
    assert result.out.endswith(f"\nNext: costa report {out}\n")


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


def test_vectors_on_a_line_have_collapsed(costa, tmp_path, monkeypatch):
    line = torch.linspace(-1, 1, 1797)[:, None] * torch.ones(4)
    monkeypatch.setattr("costa.methods.encoding.EncoderMethod.embed_rows", lambda self, graph: iter([line]))
    result = costa("train", "digits", "--epochs", 1, "--out", tmp_path / "run")
    assert result.code == 1
    assert "collapsed after 1 epoch: all vectors point the same way, lie along one line" in result.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["status"], metrics["probes"]) == ("collapsed", [])


def test_a_collapse_that_was_prevented_is_told(costa, tmp_path):
    """A weight decay that kills the vectors within 64 epochs if nothing steps in."""
    rng = np.random.default_rng(0)
    graph = planted_partition(200, 3, 2, degree=5, homophily=0.75, seed=0)
    rates = np.where(rng.random((3, 2000)) < 0.1, 0.06, 0.015)
    x = (rng.random((200, 2000)) < rates[graph.y.numpy()]).astype("float32")
    np.savez(tmp_path / "words.npz", edge_index=graph.edge_index.numpy(), x=x)
    strong = ("train.weight_decay=0.3", "train.lr=0.01", "loss.tau=4", "encoder.width=32", "head.width=32")
    arguments = [word for each in strong for word in ("--set", each)]
    out = tmp_path / "run"
    one_view = ("--method", "costa-sv", "--set", "encoder.kind=gcn")
    result = costa("train", tmp_path / "words.npz", "--epochs", 64, "--seed", 2, "--out", out, *one_view, *arguments)
    assert result.code == 0
    assert "Note: the vectors were about to collapse, so training went back and goes on from epoch 16" in result.out
    metrics = json.loads((out / "metrics.json").read_text())
    assert (metrics["status"], metrics["epochs"]) == ("ok", 64)
    assert metrics["watch"] == {"weight_decay": pytest.approx(0.03), "since_epoch": 16, "stopped": False}
    assert metrics["health"]["effective_rank"] > 3


def test_a_last_step_that_diverges_is_noticed(costa, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "costa.methods.encoding.EncoderMethod.embed_rows", lambda *given: iter([torch.full((1797, 4), float("nan"))])
    )
    for method, advice in (("costa-sv", "lower train.lr or raise loss.tau."), ("dgi", "lower train.lr.")):
        run = tmp_path / method
        result = costa("train", "digits", "--method", method, "--epochs", 1, "--out", run)
        assert result.code == 1
        assert f"diverged after 1 epoch and is not evaluated; {advice}\n" in result.out
        assert json.loads((run / "metrics.json").read_text())["status"] == "diverged"


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
    assert "which no longer exists; put it back, or say with --graph" in costa("probe", tmp_path / "run").err
    moved = ("--graph", tmp_path / "moved")
    for command in (("probe", "--repeats", 2), ("predict",), ("similar", "person 07"), ("clusters",), ("links",)):
        name, *more = command
        result = costa(name, tmp_path / "run", *more, *moved)
        assert result.code == 0, result.err
    edges = tmp_path / "moved" / "edges.csv"
    edges.write_text("\n".join(edges.read_text().splitlines()[:-1]))
    assert "has other features or edges than when" in costa("clusters", tmp_path / "run", *moved).err


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


BAD_TRAIN = [
    (["corra"], "did you mean 'cora'"),
    (["./nowhere"], "nowhere"),
    (["digits", "--method", "costa-sw"], "there are: costa-sv, costa-mv"),
    (["digits", "--set", "sketch.ratioo=1"], "did you mean sketch.ratio"),
    (["digits", "--set", "sketch.ratio"], "KEY=VALUE"),
    (["digits", "--set", "sketch.ratio=-1"], "out of range"),
    (["digits", "--set", "sketch.kind=svd", "--set", "sketch.k=600"], "at most min(n, d)"),
    (["digits", "--preset", "best"], "tuned, strict, paper, none"),
    (["digits", "--method", "costa-mv", "--preset", "paper"], "available for: cora"),
    (["digits", "--config", "missing.toml"], "there is no settings file"),
    (["digits", "--seed", "1", "--seeds", "2"], "choose one run or several"),
    (["digits", "--epochs", "0"], "epochs"),
    (["digits", "--method", "raw", "--epochs", "3"], "not trained"),
    (["digits", "--device", "cuda"], "no CUDA device"),
    (["digits", "--set", "sketch.kind=noise", "--set", "sketch.noise_std=1", "--set", "sketch.k=9"], "keeps all rows"),
    (["digits", "--set", "sketch.density=0.5"], "belongs to sketch.kind = sparse"),
    (["digits", "--set", "sketch.k=9", "--set", "sketch.ratio=0.5"], "sketch.k says how many rows"),
    (["digits", "--method", "costa-sv", "--set", "augment.mask_rate=0.1,0.2"], "has one view"),
    (["digits", "--set", "train.lr=1e38"], "at most 100"),
    (["digits", "--set", "sketch.ratio=1e9"], "at most 100"),
    (["digits", "--set", "sketch.k=10000000000"], "more than 100 for each of 512 nodes"),
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


def test_a_folder_that_holds_something_else_is_left_alone(costa, digits_run, tmp_path):
    before = {path: path.read_bytes() for path in digits_run.iterdir()}
    ended = "(costa-sv on digits, seed 0); it has ended and `costa report"
    for arguments, says in (
        (["digits", "--method", "costa-sv"], f"{digits_run} already holds this run {ended} {digits_run}` shows it"),
        (["digits", "--seed", "5"], "already holds another run"),
        (["digits", "--method", "raw", "--resume"], "already holds another run"),
    ):
        result = costa("train", *arguments, "--out", digits_run)
        assert result.code == 2
        assert says in result.err
    assert {path: path.read_bytes() for path in digits_run.iterdir()} == before
    (tmp_path / "thesis.tex").write_text("dear diary")
    assert "is not a run of costa" in costa("train", "digits", "--out", tmp_path).err


def test_a_place_that_cannot_be_written_is_one_sentence(costa, tmp_path):
    (tmp_path / "file").write_text("mine")
    result = costa("train", "digits", "--epochs", 1, "--no-probe", "--out", tmp_path / "file" / "x")
    assert result.code == 2
    assert result.err.startswith("costa: ")
    assert result.err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("settings", [["sketch.kind=svd", "sketch.k=600"], ["sketch.k=1000000000000"]])
def test_a_refused_start_leaves_no_folder_behind(costa, tmp_path, settings):
    given = [word for setting in settings for word in ("--set", setting)]
    assert costa("train", "digits", *given, "--out", tmp_path / "run").code == 2
    assert not (tmp_path / "run").exists()


def test_resume_goes_on_with_the_seeds_that_are_missing(costa, tmp_path):
    arguments = ["train", "digits", "--epochs", 1, "--no-probe", "--out", tmp_path / "runs"]
    assert costa(*arguments, "--seeds", 1).code == 0
    first = tmp_path / "runs" / "digits-costa-mv-0" / "model.safetensors"
    trained = first.stat().st_mtime_ns
    for _ in range(2):
        assert costa(*arguments, "--seeds", 3, "--resume").code == 0
    assert sorted(path.name[-1] for path in (tmp_path / "runs").iterdir()) == ["0", "1", "2"]
    assert first.stat().st_mtime_ns == trained


def test_resume_refuses_other_settings_and_leaves_the_run_as_it_is(costa, digits_run):
    before = {path: path.read_bytes() for path in digits_run.iterdir()}
    again = ("train", "digits", "--method", "costa-sv", *GCN, "--out", digits_run, "--resume")
    result = costa(*again, "--epochs", 3, "--set", "loss.tau=0.9")
    assert result.code == 2
    started = json.loads((digits_run / "config.json").read_text())["settings"]["loss.tau"]
    assert f"started with loss.tau = {started}, not 0.9" in result.err
    more = costa(*again, "--epochs", 9)
    assert "has ended after its 3 epochs, and what its optimizer remembered was not kept" in more.err
    assert "train again with --epochs 9 into another --out" in more.err
    assert {path: path.read_bytes() for path in digits_run.iterdir()} == before


def test_a_run_that_ended_is_not_trained_again(costa, digits_run):
    before = (digits_run / "model.safetensors").stat().st_mtime_ns
    again = ("--method", "costa-sv", *GCN, "--epochs", 3, "--out", digits_run, "--resume")
    assert costa("train", "digits", *again).code == 0
    assert (digits_run / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_there_is_and_resume_goes_on(tmp_path, number, command):
    """A real process, a real signal: Ctrl-C, or what a scheduler sends."""
    run = tmp_path / "run"
    arguments = [command, "train", "digits", "--out", run, "--epochs", "100000", "--set", "encoder.width=8"]
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
