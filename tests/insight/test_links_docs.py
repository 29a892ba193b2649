"""docs/links.md does what it says."""

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "links.md").read_text(encoding="utf-8")


def blocks(language):
    return [block for kind, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M) if kind == language]


def test_the_commands_print_the_tables_columns_and_a_list(costa, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (commands,) = blocks("sh")
    table, listed = blocks("")
    for line in commands.strip().splitlines():
        more = ["--no-probe", "--epochs", "1"] if "train" in line else []
        result = costa(*shlex.split(line)[1:], *more)
        assert result.code == 0, (line, result.err)
        if "probe" in line:
            shown = [row.split("  ")[0] for row in result.out.splitlines() if row.startswith(" ")]
            assert shown[: len(table.splitlines())] == [row.split("  ")[0] for row in table.splitlines()]
            assert "of 398 held-out edges against 10,000 non-edges" in result.out
    assert (tmp_path / "run" / "links.csv").read_text().splitlines()[0] == listed.splitlines()[0]


def test_the_code_runs(capsys):
    (code,) = blocks("python")
    exec(compile(code, "links.md", "exec"), {})
    chosen, ours, theirs = capsys.readouterr().out.split()
    assert float(ours) > float(theirs) == pytest.approx(0.549, abs=1e-3)
    assert chosen in ("cosine", "dot", "logistic")
