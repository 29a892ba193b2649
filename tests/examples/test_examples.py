"""Each example runs, and prints what it promises."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(capsys):
    def run(name):
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def percents(text):
    return [float(number) for number in re.findall(r"([\d.]+)(?: ± [\d.]+ )?%", text)]


def test_quickstart(example):
    out = example("quickstart")
    pixels, ours = percents(out)
    assert ours > pixels + 4
    assert re.search(r"^1797 nodes, \d+ numbers each", out, re.MULTILINE)
    assert "saved as config.json and model.safetensors" in out
    assert "the same vectors: True" in out


def test_drop_in_sketch(example):
    plain, sketched = example("drop_in_sketch").splitlines()
    assert " 1797 rows" in plain
    assert " 449 rows" in sketched
    assert abs(percents(plain)[0] - percents(sketched)[0]) < 5


def test_new_nodes(example):
    old, new, pixels = percents(example("new_nodes"))
    assert abs(old - new) < 5
    assert new > pixels + 3


def test_two_kinds(example):
    ours, features = percents(example("two_kinds"))
    assert ours > features + 15


def test_the_notebook_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples" / "from_table.ipynb").read_text("utf-8"))
    scope, cells = {}, [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        exec(compile("".join(cell["source"]), "from_table.ipynb", "exec"), scope)
    out = capsys.readouterr().out
    assert "town: a category" in out
    vectors, features, *_ = percents(out)
    assert vectors > features + 15
    assert scope["accuracy"] > 0.8
    assert (tmp_path / "club-model" / "model.safetensors").exists()


def test_the_page_on_two_kinds_is_true(tmp_path, monkeypatch, capsys, costa):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "two-kinds.md").read_text("utf-8")
    (table,) = re.findall(r"```csv\n(.*?)```", page, flags=re.DOTALL)
    for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(compile(code, "two-kinds.md", "exec"), {})
    assert "'type=product'" in capsys.readouterr().out
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "edges.csv").write_text("source,target\nc1,p1\nc2,p2\nc1,p2\n")
    for features in (table, (tmp_path / "features.csv").read_text()):
        (shop / "features.csv").write_text(features)
        trained = costa("train", "shop", "--epochs", 1, "--set", "encoder.powers=0,1", "--out", f"run{len(features)}")
        assert trained.code == 0, trained.err
        assert "kind: a category" in trained.out


def test_the_table_on_two_kinds_is_what_was_measured():
    page = (ROOT / "docs" / "two-kinds.md").read_text("utf-8")
    lines = (ROOT / "results" / "bench" / "two-kinds-cpu.jsonl").read_text("utf-8").splitlines()
    for way, hops, row in (
        ("one table, gaps and kind", "chosen", 0),
        ("one table, neither kind nor where gaps are", "chosen", 1),
        ("one table, the text in a column per kind", "chosen", 2),
        ("HeteroData", "chosen", 3),
        ("HeteroData, each block standardised", "chosen", 4),
        ("HeteroData, each block standardised", "0, 1, 2", 5),
    ):
        (entry,) = [each for each in map(json.loads, lines) if (each["way"], each["hops"]) == (way, hops)]
        accuracy = 100 * np.array(entry["accuracy"])
        shown = f"| {accuracy.mean():.1f} ± {accuracy.std(ddof=1):.1f} | {np.mean(entry['nmi']):.2f} |"
        assert re.findall(r"\| \d+\.\d ± .*", page)[row] == shown


@pytest.mark.parametrize("page", ["quickstart", "pieces"])
def test_the_pages_run_from_top_to_bottom(page, tmp_path, monkeypatch, capsys, costa):
    monkeypatch.chdir(tmp_path)
    scope, printed = {}, ""
    blocks = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 6
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, f"{page}.md", "exec"), scope)
            printed += capsys.readouterr().out
        else:
            result = costa(*block.split()[1:])
            assert result.code == 0, result.err
    assert len(printed.splitlines()) >= 7


@pytest.mark.parametrize("page", ["quickstart", "pieces"])
def test_the_pages_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / f"{page}.md").read_text("utf-8")):
        assert (ROOT / "docs" / target).exists(), target
