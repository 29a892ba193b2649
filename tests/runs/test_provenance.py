"""Commit, versions and peak memory of a run."""

import subprocess

import torch

from costa.runs import provenance
from costa.version import __version__


def test_the_environment_may_name_the_commit(monkeypatch):
    monkeypatch.setenv("COSTA_COMMIT", "abc123")
    assert provenance.commit() == "abc123"


def test_the_tree_is_dirty_if_its_code_was_changed_not_if_results_were_added(monkeypatch, tmp_path):
    def git(*words):
        command = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    code, results = tmp_path / "src" / "code.py", tmp_path / "results.jsonl"
    code.parent.mkdir()
    for file in (code, results):
        file.write_text("")
    git("init")
    git("add", ".")
    git("commit", "--message", "first")
    head = git("rev-parse", "HEAD")
    monkeypatch.delenv("COSTA_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "__file__", str(code))
    results.write_text("{}")
    assert provenance.commit() == head
    code.write_text("1")
    assert provenance.commit() == f"{head}-dirty"


def test_an_installed_package_has_no_commit(monkeypatch):
    def untracked(command, **options):
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.delenv("COSTA_COMMIT", raising=False)
    monkeypatch.setattr(subprocess, "run", untracked)
    assert provenance.commit() is None


def test_peak_memory_is_that_of_the_process():
    provenance.reset_peak_memory(torch.device("cpu"))
    held = torch.ones(2**24)
    peak = provenance.peak_memory(torch.device("cpu"))
    assert peak > held.numel() * held.element_size()


def test_versions_name_what_affects_results():
    versions = provenance.versions()
    assert list(versions) == ["costa", "python", "torch", "torch-geometric", "numpy", "scikit-learn"]
    assert versions["costa"] == __version__
