"""The tables of docs/defaults.md."""

import json

import pytest
import torch

from reproduction import defaults, defaults_page


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two baselines, and two seeds of a random one, on a small graph."""
    folder = tmp_path_factory.mktemp("defaults")
    defaults.run("wine", ["raw", "diffused", "untrained"], range(2), torch.device("cpu"), folder)
    return folder


def test_the_last_training_of_a_seed_says_how_it_ended(tmp_path):
    def line(seed, status, scores):
        return json.dumps({"contestant": defaults.OURS, "seed": seed, "status": status, "scores": scores})

    scored = {"10%": {"accuracy": [0.5], "macro_f1": [0]}}
    lines = [line(0, "ok", scored), line(0, "collapsed", {}), line(1, "diverged", {}), line(2, "ok", {})]
    (tmp_path / "wine.jsonl").write_text("\n".join(lines) + "\n")
    assert defaults_page.endings(tmp_path).endswith("| 1 | 3 | 1 | 1 | 1 |")


def test_the_table_compares_with_the_best_baseline(store, monkeypatch):
    monkeypatch.setattr(defaults_page, "OURS", "diffused")
    monkeypatch.setattr(defaults_page, "BASELINES", ["raw", "untrained"])
    scores = defaults.read("wine", "10%", store=store)
    best = max(scores["raw"].mean(), scores["untrained"].mean())
    (row,) = [line for line in defaults_page.table("10%", "accuracy", store).splitlines() if line.startswith("| wine")]
    assert f"| {scores['diffused'].mean() - best:+.1f} ±" in row
    assert "| made | 10% |" in defaults_page.summary(store)


def test_what_was_tried_is_in_the_store():
    assert len(defaults_page.tried().splitlines()) == 2 + sum(map(len, defaults_page.VARIANTS.values()))
