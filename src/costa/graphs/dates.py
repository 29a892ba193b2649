"""Dates written as text.

Read are 2023-01-31, 2023/1/31, 2023-01 and 20230131; 31.01.2023; 31/01/2023 or 01/31/2023, and the same with hyphens;
31 Jan 2023, 31-Jan-2023 and Jan 31, 2023; all of them perhaps with a time (14:30, 14:30:05.25), and the first with an
offset, which is converted to UTC. Whether the day or the month is first is decided by the whole column: one 31 is
enough. If no cell tells, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time

import numpy as np
from numpy.typing import NDArray

_TIME = r"(?:[ T]+(\d.*))?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})(?:\2(\d{{1,2}}))?{_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}")
_NAMED = re.compile(rf"(?:(\d{{1,2}})[ .-]+([A-Za-z]{{3,9}})|([A-Za-z]{{3,9}})\.? +(\d{{1,2}}))[ .,-]+(\d{{4}}){_TIME}")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
LONGEST = 40
"""No date is longer; most other texts are, and need not be looked at closely."""


def which_first(texts: Sequence[str]) -> str | None:
    """``day`` or ``month`` where 01/02/2023 is 1 February or 2 January; None if the texts do not tell.

    >>> which_first(["01/02/2023", "31/01/2023"]), which_first(["01/31/2023"]), which_first(["01/02/2023"])
    ('day', 'month', None)
    """
    for text in texts:
        parts = _YEAR_LAST.fullmatch(text)
        if parts and parts[2] != "." and max(int(parts[1]), int(parts[3])) > 12:
            return "day" if int(parts[1]) > 12 else "month"
    return None


def undecided(texts: Sequence[str]) -> int | None:
    """The position of the first text for which the order of day and month matters; None if there is none."""
    matched = ((i, _YEAR_LAST.fullmatch(text)) for i, text in enumerate(texts))
    return next((i for i, parts in matched if parts and parts[2] != "." and parts[1] != parts[3]), None)


def read_dates(texts: Sequence[str], first: str | None) -> NDArray[np.datetime64]:
    """Each text as a point in time, NaT if it is not a date.

    Args:
        texts: Dates, perhaps with a time.
        first: ``day`` or ``month``, what comes first in 01/02/2023; such a date is NaT without it.

    >>> [str(date) for date in read_dates(["2023-01-31", "31.1.2023 06:00", "Jan 31, 2023", "31/31/2023"], "day")]
    ['2023-01-31T00:00:00.000000', '2023-01-31T06:00:00.000000', '2023-01-31T00:00:00.000000', 'NaT']
    """
    return np.array([_read(text, first) for text in texts], dtype="datetime64[us]")


def _read(text: str, first: str | None) -> datetime | None:
    try:
        moment = _moment(text, first)
        return moment.astimezone(UTC).replace(tzinfo=None) if moment and moment.tzinfo else moment
    except (ValueError, OverflowError):
        return None


def _moment(text: str, first: str | None) -> datetime | None:
    if len(text) > LONGEST:
        return None
    # Python would also take other characters than these between date and time, and so numbers of orders for dates.
    if (len(text) == 8 and text.isdigit()) or (len(text) > 9 and text[4] == "-" and text[10:11] in "T "):
        return datetime.fromisoformat(text)
    if parts := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, clock = parts.groups(default="")
    elif parts := _YEAR_LAST.fullmatch(text):
        day, point, month, year, clock = parts.groups(default="")
        if point != "." and day != month and first != "day":
            if first is None:
                return None
            day, month = month, day
    elif parts := _NAMED.fullmatch(text):
        name = (parts[2] or parts[3]).lower()
        month = str(1 + next((i for i, known in enumerate(_MONTHS) if known.startswith(name)), -1))
        day, year, clock = parts[1] or parts[4], parts[5], parts[6] or ""
    else:
        return None
    hour = time.fromisoformat(clock) if clock else time()
    return datetime.combine(datetime(int(year), int(month), int(day or "1")), hour)
