"""The line that a column gets."""

from typing import Any

import numpy as np
import pytest

from costa.graphs.columns import fit_columns
from costa.graphs.tables import Table


def line(values: Any, kind: str | None = None, name: str = "a") -> str:
    (said,) = fit_columns(Table("it", "it", {name: values}, len(values)), {name: kind} if kind else None).lines()
    return said


LEAVE_OUT = "To leave it out: --columns a=ignore."


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1.5", "2"], f"a: a number, because it has only numbers. {LEAVE_OUT}"),
        (
            ["1.5", "", "2.5", "NA"],
            "a: a number, because it has only numbers. 2 of 4 rows have no value (empty or 'NA'): the median 2 takes"
            f" its place, and a column says where. {LEAVE_OUT}",
        ),
        (
            [3, 1, 2, 1],
            "a: a number, because it has only numbers. If its 3 different values are codes: --columns a=category.",
        ),
        (
            ["01234", "2"],
            "a: a number, because it has only numbers. Some begin with 0, as codes do; if they are codes: --columns"
            " a=category.",
        ),
        (
            np.array([20230131, 20230201]),
            "a: a number, because it has only numbers. If they are dates such as 20230131: --columns a=date.",
        ),
        (["yes", "no", "no"], f"a: a flag, because it has only no and yes; yes is 1. {LEAVE_OUT}"),
        (
            ["b", None, "a", "b"],
            "a: a category, because it has 2 different texts; a column each (a, b). 1 of 4 rows has no value: a column"
            f" says where. {LEAVE_OUT}",
        ),
        (
            ["31/01/2023", "", "01/02/2023"],
            "a: a date, read with the day first, because it has only dates; it becomes days since 2023-01-31, season"
            " and weekday. 1 of 3 rows has no value: the median 2023-01-31 takes its place, and a column says where. As"
            f" a category: --columns a=category. {LEAVE_OUT}",
        ),
        (["CH", "CH"], "a: left out, because it is 'CH' in every row."),
        (["", None], "a: left out, because it is empty in every row."),
        (
            ["ann", "bob"],
            "a: ignored, because it has 2 different texts in 2 rows, as names and ids do. To use it: --columns"
            " a=category or --columns a=text.",
        ),
        (
            [f"C{i}" for i in range(40)] * 2,
            "a: a category, because it has 40 different texts; they are hashed into 32 columns. As text: --columns"
            f" a=text. {LEAVE_OUT}",
        ),
        (
            [f"the same five words again {i % 2}" for i in range(4)] + ["and another three here"],
            "a: a category, because it has 3 different texts; a column each (and another three here, the same five"
            f" words again 0, the same five words again 1). {LEAVE_OUT}",
        ),
        (
            ["the cat sat down", "the dog ran away", "the bird flew off"],
            "a: text, because it has 4 words in a cell on average; TF-IDF of 10 words, reduced to 3 columns. As a"
            f" category: --columns a=category. {LEAVE_OUT}",
        ),
    ],
)
def test_lines(values: Any, expected: str) -> None:
    assert line(values) == expected


def test_what_was_said_needs_no_remedy() -> None:
    assert line(["ann", "bob"], "ignore") == "a: ignored, as you said."
    assert line([1, 2], "category") == "a: a category, as you said; a column each (1, 2)."


def test_medians_are_written_as_in_the_table() -> None:
    assert "the median 41.3 takes" in line(["41.3", ""])
    assert "the median 1234567 takes" in line(["1234567", ""])


def test_the_remedy_can_be_typed() -> None:
    assert line(["b", "a", "b"], name="the plan").endswith("--columns 'the plan=ignore'.")
