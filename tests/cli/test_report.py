"""``costa report``."""

import shutil


def test_the_page_is_written_and_named(costa, digits_run, tmp_path):
    run = shutil.copytree(digits_run, tmp_path / "run")
    result = costa("report", run)
    assert result.code == 0, result.err
    assert result.out.endswith(f"{run / 'report.html'}: open it in a browser\n")
    assert "<h1>digits: COSTA, one view</h1>" in (run / "report.html").read_text()


def test_the_page_is_opened_if_that_is_asked_for(costa, digits_run, tmp_path, monkeypatch):
    run, opened = shutil.copytree(digits_run, tmp_path / "a run"), []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert costa("report", run).code == 0
    assert opened == []
    assert costa("report", run, "--open").out.endswith(f"\n{run / 'report.html'}\n")
    assert opened == [f"file://{tmp_path}/a%20run/report.html"]


def test_another_folder_is_one_sentence(costa, tmp_path):
    result = costa("report", tmp_path)
    assert result.code == 2
    assert "is not a run" in result.err
