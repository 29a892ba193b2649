"""The README's code blocks run, and its numbers are those of the store."""

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from costa import runs, settings
from costa.experiments import figures, pages, presets, store, tables
from costa.methods import get_method

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split("\n")[0])
def test_python_blocks_run(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_there_is_python_to_run():
    assert len(blocks("python")) == 2


def test_the_make_targets_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_every_option_the_readme_shows_exists(costa):
    helps = {}
    for line in re.findall(r"^costa (.+?)(?:\s+#.*)?$", README, flags=re.MULTILINE):
        command, *words = line.split()
        helps[command] = helps.get(command) or costa(command, "--help").out
        for option in (word for word in words if word.startswith("--")):
            assert option in helps[command], line


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_measured_numbers_are_those_of_the_store():
    """Each row of the table of measurements, computed again from the lines it stands for."""
    rows = re.findall(
        r"^\| (\w+) \| (costa-\w+) \| (\w+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", README, re.MULTILINE
    )
    assert len(rows) == 2
    for dataset, method, preset, ours, raw, untrained, _paper in rows:
        lines = store.read(ROOT / "results" / method / f"{dataset}.jsonl")
        assert [line["seed"] for line in lines] == list(range(20))
        values = presets.load_preset(preset, method, dataset) or {"features.scaling": "none"}
        expected = settings.flatten(settings.merge(get_method(method).Settings, [("preset", values)])[0])
        for line in lines:
            assert line["status"] == "ok"
            assert re.fullmatch("[0-9a-f]{40}", line["commit"])
            merged, _ = settings.merge(get_method(method).Settings, [("line", line["settings"])])
            assert settings.flatten(merged) == expected
        every, pairs = runs.pair_scores(lines)["random-10-10-80"]
        assert ours == f"{100 * every:.1f} ({100 * mean(pairs):.1f} ± {100 * stdev(pairs):.1f})"
        assert raw == f"{100 * lines[0]['floor']['raw']['accuracy']:.1f}"
        assert untrained == f"{100 * lines[0]['floor']['untrained']['accuracy']:.1f}"


def test_the_performance_page_is_what_the_store_gives(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8")
    tables.performance(ROOT / "results", tmp_path / "figures")
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


def test_the_runtime_figure_is_of_the_stored_runtimes(tmp_path):
    figures.fig_runtime(ROOT / "results", tmp_path)
    drawn = (ROOT / "docs" / "figures" / "fig-runtime.csv").read_bytes()
    assert (tmp_path / "fig-runtime.csv").read_bytes() == drawn


def test_the_results_page_is_what_the_store_gives(tmp_path):
    page = tmp_path / "results.md"
    page.write_text((ROOT / "docs" / "results.md").read_text(encoding="utf-8"), encoding="utf-8")
    for name in pages.TABLES:
        pages.write(name, ROOT / "results", tmp_path / "figures", seeds=20)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
