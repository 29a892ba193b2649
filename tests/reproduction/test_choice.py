"""The study of what labels choose: what is stored, and how the choice is compared with the best candidate."""

import json
from statistics import fmean

import pytest

from costa.evaluate.probe import CROSS_VALIDATION
from costa.tuning.portfolio import DEFAULT, PORTFOLIO, STRICT
from reproduction import choice
from reproduction.defaults import SPLITS


def test_each_candidate_is_measured_once(tmp_path):
    choice.measure("iris", PORTFOLIO[:2], tmp_path)
    choice.measure("iris", PORTFOLIO[1:3], tmp_path)
    lines = choice.read("iris", tmp_path)
    assert [line["candidate"] for line in lines] == [candidate.name for candidate in PORTFOLIO[:3]]
    assert {line["by"] for line in lines} == {CROSS_VALIDATION}  # 150 labels are few
    assert {len(line["test"]) for line in lines} == {SPLITS}
    assert all(0.5 < fmean(line["validation"]) <= 1 for line in lines)


@pytest.mark.parametrize("by", [STRICT, CROSS_VALIDATION])
@pytest.mark.parametrize(("default", "clear"), [([0.7, 0.72], True), ([0.82, 0.79], False)])
def test_validation_chooses_and_the_test_compares(tmp_path, by, default, clear):
    first, second, third = (each for each in PORTFOLIO if each.name in ("raw", "hops", DEFAULT))

    def line(candidate, validation, test, status="ok"):
        scores = {"validation": validation, "test": test} if status == "ok" else {}
        return json.dumps({"candidate": candidate.name, "status": status, "by": by, **scores})

    lines = [
        line(first, [0.8, 0.82], [0.7, 0.9]),
        line(second, None, None, "collapsed"),
        line(third, default, [0.9, 0.95]),
    ]
    (tmp_path / "iris.jsonl").write_text("\n".join(lines) + "\n")
    (row,) = [row for row in choice.table(tmp_path).splitlines() if row.startswith("| iris")]
    if clear:
        assert row == f"| iris | {first.title}: 80.0 | {third.title}: 92.5 | -12.5 ± 7.5 | level |"
    else:  # not by more than chance
        assert row == f"| iris | {third.title}: 92.5 | {third.title}: 92.5 | +0.0 ± 0.0 | level |"
