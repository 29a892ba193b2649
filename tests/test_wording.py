"""Counts, durations, differences and names for a person, where one wording ends and the next begins."""

import pytest

from costa.wording import counted, did_you_mean, duration, signed


def test_only_one_is_singular():
    assert [counted(number, "epoch") for number in (0, 1, 2, 1000)] == [
        "0 epochs",
        "1 epoch",
        "2 epochs",
        "1,000 epochs",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0123, "0.012 s"),
        (9.94, "9.9 s"),
        (10, "10 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (5399, "90 min"),
        (5400, "1.5 h"),
        (360_000, "100.0 h"),
    ],
)
def test_the_unit_changes_where_it_reads_better(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.0, "0.00"), (-0.0, "0.00"), (0.004, "0.00"), (0.006, "+0.01"), (-0.006, "−0.01"), (12, "+12.00")],
)
def test_what_rounds_to_zero_has_no_sign(difference, text):
    assert signed(difference) == text


def test_a_name_is_looked_for_whatever_its_case():
    assert did_you_mean("GRACE", ["grace", "gca"]) == " (did you mean 'grace'?)"
    assert did_you_mean("Cora ML", {"cora-ml": "CoraML", "coraml": "CoraML"}) == " (did you mean 'CoraML'?)"
    assert did_you_mean("xyz", []) == ""
    assert did_you_mean("", ["grace"]) == ""
