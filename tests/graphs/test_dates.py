"""Dates written as text."""

import numpy as np
import pytest

from costa.graphs.dates import read_dates, undecided, which_first


@pytest.mark.parametrize(
    "text",
    [
        "2023-01-05",
        "2023-1-5",
        "2023/01/05",
        "20230105",
        "05.01.2023",
        "5.1.2023",
        "5 Jan 2023",
        "05-JAN-2023",
        "5. January 2023",
        "Jan 5, 2023",
        "January 5 2023",
        "2023-01-05 00:00:00.000000000",
        "2023-01-05T00:00Z",
        "2023-01-04T22:30:00-01:30",
        "2023/01/05 00:00",
    ],
)
def test_forms_of_one_date(text: str) -> None:
    assert read_dates([text], None)[0] == np.datetime64("2023-01-05", "us")


def test_a_month_is_its_first_day() -> None:
    assert read_dates(["2023-04"], None)[0] == np.datetime64("2023-04-01", "us")


@pytest.mark.parametrize("text", ["", "2023", "2023-13-01", "2023-02-29", "31.02.2023", "5 Foo 2023", "20230105-10"])
def test_what_is_not_a_date(text: str) -> None:
    assert np.isnat(read_dates([text], "day")).all()


def test_day_or_month_first() -> None:
    texts = ["01/02/2023", "03/03/2023"]
    assert [str(date)[:10] for date in read_dates(texts, "day")] == ["2023-02-01", "2023-03-03"]
    assert [str(date)[:10] for date in read_dates(texts, "month")] == ["2023-01-02", "2023-03-03"]
    assert [str(date)[:10] for date in read_dates(texts, None)] == ["NaT", "2023-03-03"]
    assert (which_first(texts), undecided(texts)) == (None, 0)
    assert which_first([*texts, "13-01-2023"]) == "day"
    assert which_first([*texts, "01/13/2023"]) == "month"
    # a point is only ever between day and month in this order
    assert which_first(["31.12.2023"]) is None
    assert undecided(["01.02.2023", "03/03/2023"]) is None
