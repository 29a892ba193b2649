"""The study of what labels choose: what is stored, and how the choice is compared with the best candidate."""

import json

import pytest

from costa.evaluate.probe import CROSS_VALIDATION
from costa.tuning.portfolio import PORTFOLIO, STRICT
from reproduction import choice
from reproduction.defaults import SPLITS


def test_each_candidate_is_measured_once(tmp_path):
    choice.measure("iris", PORTFOLIO[:2], tmp_path)
    choice.measure("iris", PORTFOLIO[1:3], tmp_path)
    lines = choice.read("iris", tmp_path)
    assert [line["candidate"] for line in lines] == [candidate.name for candidate in PORTFOLIO[:3]]
    assert {line["by"] for line in lines} == {CROSS_VALIDATION}  # 150 labels are few
    assert {len(line["test"]) for line in lines} == {SPLITS}
    assert all(0.5 < line["validation"] <= 1 for line in lines)


@pytest.mark.parametrize(("by", "labels"), [(STRICT, "a fifth"), (CROSS_VALIDATION, "all")])
def test_validation_chooses_and_the_test_compares(tmp_path, by, labels):
    first, second, third = PORTFOLIO[:3]

    def line(candidate, validation, test, status="ok"):
        scores = {"validation": validation, "test": test} if status == "ok" else {}
        return json.dumps({"candidate": candidate.name, "status": status, "by": by, **scores})

    lines = [line(first, 0.8, [0.7, 0.9]), line(second, 0.7, [0.9, 0.95]), line(third, None, None, "collapsed")]
    (tmp_path / "iris.jsonl").write_text("\n".join(lines) + "\n")
    (row,) = [row for row in choice.table(tmp_path).splitlines() if row.startswith("| iris")]
    assert row == f"| iris | {labels} | {first.title}: 80.0 | {second.title}: 92.5 | -12.5 ± 7.5 | level |"
