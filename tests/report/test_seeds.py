"""The page of a folder of several seeds."""

import json
import re
import shutil
import statistics

import pytest

from costa.errors import InputError
from costa.report import runs_in, seeds, write_seeds


def change(run, name, **changes):
    path = run / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def folder(digits_run, tmp_path, monkeypatch):
    """Three seeds; the third one diverged."""
    for seed, status in enumerate(("ok", "ok", "diverged")):
        run = shutil.copytree(digits_run, tmp_path / "runs" / f"digits {seed}")
        change(run, "config.json", seed=seed)
        metrics = json.loads((run / "metrics.json").read_text())
        for probe in metrics["probes"]:
            probe["accuracy"]["mean"] = 0.8 + seed / 50
        probes = metrics["probes"] if status == "ok" else []
        change(run, "metrics.json", seed=seed, status=status, probes=probes)
    (tmp_path / "runs" / "notes").mkdir()
    monkeypatch.setattr(seeds, "write_report", lambda run, *_: (run / "report.html").write_text(""))
    return tmp_path / "runs"


def test_every_seed_has_a_row_and_the_mean_is_of_those_that_ended_well(folder):
    assert [run.name for run in runs_in(folder)] == ["digits 0", "digits 1", "digits 2"]
    page = write_seeds(folder)
    text = page.read_text(encoding="utf-8")
    assert "<h1>digits: COSTA, one view, 3 seeds</h1>" in text
    assert "Not in any mean: seed 2 (diverged)." in text
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    assert [row[1] for row in rows[1:]] == ["ok", "ok", "diverged", ""]
    assert [row[2][:4] for row in rows[1:]] == ["80.0", "82.0", "–", "81.0"]
    assert rows[-1][0] == "mean over 2 seeds"
    assert rows[-1][2] == f"81.0 ± {100 * statistics.stdev([0.8, 0.82]):.1f} %"
    linked = re.findall(r'href="([^"]*)/report.html"', text)
    assert linked == ["digits%200", "digits%201", "digits%202"]
    assert all((folder / name.replace("%20", " ") / "report.html").exists() for name in linked)


def test_runs_of_different_methods_have_no_mean(folder):
    change(folder / "digits 1", "config.json", method="grace")
    with pytest.raises(InputError, match="holds runs of costa-sv on digits and grace on digits, whose scores have no"):
        write_seeds(folder)


def test_a_run_is_no_folder_of_runs(folder, digits_run, tmp_path):
    assert runs_in(digits_run) == runs_in(folder / "notes") == runs_in(tmp_path / "nothing") == []
