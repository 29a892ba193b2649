"""The README's code blocks run, and its numbers are those of the store."""

import re
from pathlib import Path

import pytest

from reproduction import figures, pages, paper, tables, targets
from reproduction.bench import suites
from reproduction.grid import Cell
from reproduction.targets import Request

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


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")], ids=lambda page: page.name)
def test_every_target_that_a_page_names_exists(page):
    known = {*targets.TARGETS, "pages", "bench", *(suites.TARGET + name for name in suites.DESCRIPTIONS)}
    for named in re.findall(r"python -m reproduction((?: [a-z0-9][\w-]*)*)", page.read_text(encoding="utf-8")):
        assert known.issuperset(named.split()), named


def test_every_command_on_using_vectors_exists(costa):
    page = (ROOT / "docs" / "using-vectors.md").read_text(encoding="utf-8")
    lines = re.findall(r"^costa (.+)$", page, flags=re.MULTILINE)
    assert {line.split()[0] for line in lines} == {"train", "predict", "similar", "clusters"}
    for line in lines:
        command, *words = line.split()
        help_text = costa(command, "--help").out
        assert all(option in help_text for option in words if option.startswith("-")), line


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def measured(dataset):
    """What the README's table has for a dataset."""

    def score(method):
        return pages.score(Cell(method, dataset), ROOT / "results", seeds=20)

    both = [cell for name in ("costa-sv", "costa-mv") for cell in (score(name), paper.reported_for(name, dataset))]
    return [paper.title_of(dataset), *both, *map(score, ("untrained", "hops", "diffused", "raw"))]


def test_measured_numbers_are_those_of_the_store():
    rows = [line.strip("| ").split(" | ") for line in README.splitlines() if line.startswith("| ") and "±" in line]
    datasets = paper.MEASURED
    assert rows == [measured(dataset) for dataset in datasets]


def test_the_performance_page_is_what_the_store_gives(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8")
    tables.performance(ROOT / "results", tmp_path / "figures")
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


def test_the_runtime_figure_is_of_the_stored_runtimes(tmp_path):
    figures.fig_runtime(ROOT / "results", tmp_path)
    drawn = (ROOT / "docs" / "figures" / "fig-runtime.csv").read_bytes()
    assert (tmp_path / "fig-runtime.csv").read_bytes() == drawn


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_is_of_the_stored_runs(tmp_path, name):
    (path,) = [
        path
        for path in targets.reproduce([f"fig-{name}"], Request(ROOT / "results", tmp_path))
        if path.suffix == ".csv"
    ]
    assert path.read_bytes() == (ROOT / "docs" / "figures" / path.name).read_bytes()


def test_the_results_page_is_what_the_store_gives(tmp_path):
    page = tmp_path / "results.md"
    page.write_text((ROOT / "docs" / "results.md").read_text(encoding="utf-8"), encoding="utf-8")
    for name in pages.TABLES:
        pages.write(name, ROOT / "results", tmp_path / "figures", seeds=20)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "page"), [("defaults", "defaults"), ("scaling", "scaling"), ("parts", "performance")])
def test_a_page_is_what_the_store_gives(name, page, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    page, written = tmp_path / f"{page}.md", ROOT / "docs" / f"{page}.md"
    page.write_text(written.read_text(encoding="utf-8"), encoding="utf-8")
    targets.TARGETS[name].make(Request(ROOT / "results", tmp_path / "figures"))
    assert page.read_text(encoding="utf-8") == written.read_text(encoding="utf-8")
