"""Each example runs, and prints what it promises."""

import re
import runpy
from pathlib import Path

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
