"""What a column of a table is taken for, and how a person says otherwise.

| kind | taken for it, if nobody says otherwise |
|---|---|
| ``number`` | every value is a number |
| ``flag`` | every value is one of :data:`FLAGS`, and not all are numbers |
| ``date`` | every value is a date (:mod:`costa.graphs.dates`) |
| ``text`` | many different texts of several words |
| ``ignore`` | nearly every row has another text of few words, as names do |
| ``category`` | any other text |
| ``constant`` | not a number or a flag, and the same in every row; nobody can ask for it |

If at least half of the values are numbers, or dates, the others are taken for mistakes: such a column is refused, and
never becomes a category by itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from costa.errors import InputError
from costa.graphs.cells import Cells, Problem, is_plain_number
from costa.graphs.dates import LONGEST, read_dates, undecided, which_first
from costa.wording import did_you_mean

KINDS = ("number", "flag", "category", "date", "text", "ignore")
"""What a person can say that a feature is."""
ROLES = ("id", "label")
"""What a person can say instead, of a column that is no feature (:mod:`costa.graphs.roles`)."""
FLAGS = {
    **dict.fromkeys(("true", "yes", "t", "y", "on", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "no", "f", "n", "off", "0", "0.0"), 0.0),
}
"""Words for 1 and for 0, in small letters."""
LIMIT = 32
"""The most columns that one column becomes, apart from the one that says where a value is missing; a category with more
values is hashed."""
WORDS = 4
"""Texts with at least so many words on average are more than names."""
DIFFER = 0.9
"""If at least this share of the texts differ, they identify rows."""

_DRESSED = re.compile(r"[-+]?[$€£¥]? ?[-+]?(\d+|\d{1,3}([., '_\u00a0]\d{3})+)([.,]\d+)? ?[%$€£¥]?")


def recognise(cells: Cells) -> tuple[str, str]:
    """The kind of a column, and why in a few words.

    Raises:
        Problem: Some values do not fit the others, or dates can be read in two ways.
    """
    if isinstance(cells.distinct, np.ndarray):
        return ("flag", "is true or false") if cells.distinct.dtype == bool else ("number", "has only numbers")
    texts = list(cells.distinct)
    if cells.as_numbers is not None:
        return "number", "has only numbers"
    if len(texts) <= len(FLAGS) and all(text.lower() in FLAGS for text in texts):
        return "flag", f"has only {listed(sorted(texts))}"
    counts, there = cells.counts(), int((~cells.missing).sum())
    if len(texts) == 1 and there == len(cells.codes) and not _is_dressed(texts[0]):
        return "constant", f"is {texts[0]!r} in every row"
    short = np.array([len(text) <= LONGEST for text in texts])
    if 2 * counts[short].sum() >= there:  # otherwise they are neither numbers nor dates
        dressed = np.array([_is_dressed(text) for text in texts])
        if 2 * counts[dressed].sum() >= there:
            raise _not_number(cells, texts)
        first = which_first(texts)
        readable = ~np.isnat(read_dates(texts, first or "day"))
        if 2 * counts[readable].sum() >= there:
            dates_of(cells, first)
            return "date", "has only dates"
    words = float(np.mean([text.count(" ") + 1 for text in texts]))
    differ = len(texts) / there
    if words >= WORDS and (len(texts) > LIMIT or differ >= DIFFER):
        return "text", f"has {words:.0f} words in a cell on average"
    if differ >= DIFFER:
        return "ignore", f"has {len(texts):,} different texts in {there:,} rows, as names and ids do"
    return "category", f"has {len(texts):,} different text{'s' * (len(texts) > 1)}"


def _is_dressed(text: str) -> bool:
    """Whether a text is a number, perhaps with separators or a unit."""
    return len(text) <= LONGEST and (_DRESSED.fullmatch(text) is not None or is_plain_number(text))


def _not_number(cells: Cells, texts: list[str]) -> Problem:
    wrong = next(i for i, text in enumerate(texts) if not is_plain_number(text))
    if _DRESSED.fullmatch(texts[wrong]):
        return cells.problem(wrong, "has a separator or a unit; write numbers like 1234.5")
    return cells.problem(wrong, "is not a number, while most of the column is; correct it, empty the cell")


def dates_of(cells: Cells, first: str | None) -> NDArray[np.datetime64]:
    """The distinct values as points in time, if all of them are dates that can be read in one way."""
    texts = cells.texts()
    first = first or which_first(texts)
    dates = read_dates(texts, first)
    unread = np.isnat(dates)
    if unread.any():
        if first is None and (both_ways := undecided(texts)) is not None:
            raise cells.problem(
                both_ways, "may have the day or the month first, and no other row tells; write dates like 2023-01-31"
            )
        order = f" with the {first} first" if first else ""
        raise cells.problem(int(np.argmax(unread)), f"is not a date{order}; write it like 2023-01-31, empty the cell")
    return dates


def parse_columns(said: str) -> dict[str, str]:
    """What ``--columns`` says, by name. A name with a comma stands in quotation marks together with its kind.

    >>> parse_columns("plan=category, joined=date")
    {'plan': 'category', 'joined': 'date'}

    Raises:
        InputError: Something is not NAME=KIND, a kind does not exist, or a name is there twice.
    """
    kinds: dict[str, str] = {}
    for part in next(csv.reader([said], skipinitialspace=True), []):
        name, equals, kind = (piece.strip() for piece in part.rpartition("="))
        if not equals or not name:
            raise InputError(f"--columns has {part!r}; give NAME=KIND, for example plan=category,note=ignore.")
        if kind not in (*KINDS, *ROLES):
            raise InputError(
                f"--columns has the kind {kind!r} for {name!r}{did_you_mean(kind, (*KINDS, *ROLES))}; the kinds are"
                f" {', '.join((*KINDS, *ROLES))}."
            )
        if name in kinds:
            raise InputError(f"--columns has {name!r} twice; give it one kind.")
        kinds[name] = kind
    return kinds


def said_of(names: Container[str], said: Mapping[str, str]) -> dict[str, str]:
    """What a person says of a table with these names, and of ids and labels."""
    return {name: kind for name, kind in said.items() if name in names or {name, kind} & {*ROLES}}


def listed(texts: Sequence[str]) -> str:
    """Texts as a list to read.

    >>> listed(["yes"]), listed(["a", "b", "c"])
    ('yes', 'a, b and c')
    """
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
