"""``costa train`` under torchrun: real processes, one of which is killed, and a Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
SMALL = ("--set", "encoder.width=8", "--set", "sketch.k=20", "--no-probe")
TRAIN = ("train", "digits", "--memory", "2GiB", "--epochs", 8, *SMALL)


def run(*arguments, cache, **environment):
    environment = {key: str(value) for key, value in environment.items()} | {"XDG_CACHE_HOME": str(cache)}
    words = [*TORCHRUN, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=os.environ | environment)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A folder with the run, and the cache, of a job that nobody disturbs; the graph and its hops are on disk."""
    folder = tmp_path_factory.mktemp("straight")
    done = run("-m", "costa", *TRAIN, "--out", folder / "run", cache=folder / "cache")
    assert done.returncode == 0, done.stderr
    assert "on cpu, 2 processes\n" in done.stdout
    assert done.stdout.count("Next: costa report") == 1
    return folder


@pytest.mark.parametrize("rank", [0, 1])
def test_a_job_that_is_started_again_ends_as_if_nobody_had_been_killed(rank, straight, tmp_path):
    """The checkpoint that it goes on from is in the middle of an epoch; the first process is the one that writes it."""
    killed = Path(__file__).with_name("one_is_killed.py")
    again = run("--max-restarts", 1, killed, *TRAIN, "--out", tmp_path / "run", cache=tmp_path / "cache", KILLED=rank)
    assert again.returncode == 0, again.stderr
    assert "another process of this training has ended" in again.stderr
    for name in ("embeddings.npy", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (straight / "run" / name).read_bytes()
    logs = [(folder / "run" / "log.csv").read_text().splitlines() for folder in (tmp_path, straight)]
    assert len(logs[0]) == 9
    assert [line.split(",")[:2] for line in logs[0]] == [line.split(",")[:2] for line in logs[1]]


def test_both_processes_work_on_one_run(straight):
    metrics = json.loads((straight / "run" / "metrics.json").read_text())
    assert (metrics["status"], metrics["epochs"], metrics["processes"]) == ("ok", 8, 2)
    parts = {path.name.partition(".part")[2] for path in (straight / "cache").rglob("pagerank-*.npy")}
    assert parts == {"-0-of-2.npy", "-1-of-2.npy"}  # each process its own rows


def test_a_terminals_interrupt_stops_all_and_keeps_what_there_is(tmp_path):
    train = ("train", "digits", "--epochs", 100_000, *SMALL, "--out", tmp_path / "run")
    process = subprocess.Popen(
        [*TORCHRUN, "-m", "costa", *map(str, train)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    log, deadline = tmp_path / "run" / "log.csv", time.time() + 120
    while not log.exists() or log.read_text().count("\n") < 5:
        assert process.poll() is None, process.communicate()
        assert time.time() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to torchrun and to all processes
    out, err = process.communicate(timeout=60)
    assert "run the same command with --resume to continue" in out, err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["status"] == "interrupted"
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    assert len(np.load(tmp_path / "run" / "embeddings.npy")) == 1797


@pytest.mark.parametrize("option", [("--seeds", 2), ("--choose",)])
def test_several_processes_train_one_run(costa, tmp_path, option, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = costa("train", "digits", *option, "--out", tmp_path / "run")
    assert result.code == 2
    assert "costa: 2 processes train one run together; leave out --choose and --seeds" in result.err
    assert not (tmp_path / "run").exists()


def test_a_limit_that_is_too_small_for_both_is_one_sentence(tmp_path):
    result = run("-m", "costa", "train", "digits", "--memory", "1GiB", "--out", tmp_path / "run", cache=tmp_path)
    assert result.returncode != 0
    assert "costa: this needs at least 1.3 GiB of memory for 2 processes, and --memory allows 1.0 GiB" in result.stderr
    assert result.stderr.count("costa: ") == 1
    assert not (tmp_path / "run").exists()
