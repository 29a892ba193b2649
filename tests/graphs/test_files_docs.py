"""docs/own-data.md and examples/own_csv.py do what they say."""

import csv
import re
import runpy
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch, costa, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "friends").mkdir()
    page = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
    files = iter(re.findall(r"`(friends/\w+\.csv)`", page))
    scope, printed = {}, []
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, flags=re.DOTALL)
    assert [kind for kind, _ in blocks].count("sh") == 5
    for kind, block in blocks:
        if kind == "csv":
            Path(next(files)).write_text(block)
        elif kind == "python":
            exec(compile(block, "own-data.md", "exec"), scope)
            printed.append(capsys.readouterr().out)
        else:
            for line in block.strip().splitlines():
                result = costa(*shlex.split(line)[1:])
                assert result.code == 0, (line, result.err, result.out)
    text = "".join(printed)
    assert "['ann', 'bob', 'cy'] [1, -1, 0] ['blue', 'red']" in text
    assert "the edge table has the target 'cy' in row 2, which is not an id in the feature table; add that node" in text
    with open("vectors.csv", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["id", "ann", "bob", "cy", "dan", "eve", "fay"]


@pytest.mark.parametrize("given", [True, False])
def test_the_example(given, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["own_csv.py", *([str(tmp_path)] if given else [])])
    runpy.run_path(str(ROOT / "examples" / "own_csv.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert output.startswith("nearest to north-00: ")
    assert len(re.findall(r"(?<!to )north-\d\d", output)) >= 4
    assert (tmp_path / "vectors.csv").exists() == given
