"""One line a column: what it was taken for, why, what it becomes, and how to say otherwise."""

from __future__ import annotations

import numpy as np

from costa.graphs.cells import Cells, option
from costa.graphs.dates import read_dates
from costa.graphs.kinds import listed
from costa.graphs.preparing import Category, Date, Flag, Hashed, Nothing, Number, Preparation, Text
from costa.wording import counted

FEW = 32
"""A number with at most so many whole values may be a code."""
SHOWN = 5
"""The most values that a line lists."""


def plain(name: str) -> str:
    """The line of a column about which there is nothing to say but that it has numbers."""
    return f"{name}: a number, because it has only numbers. To leave it out: {option(name, 'ignore')}."


def describe(cells: Cells, how: Preparation, why: str, flagged: bool) -> str:
    """The line of a column that was prepared like this.

    Args:
        cells: The column.
        how: How it becomes numbers.
        why: What made it this kind, a predicate: "has only numbers"; empty if a person said so.
        flagged: Whether a column says where values are missing.
    """
    taken, becomes, hint = _described(cells, how)
    reason = f"because it {why}" if why else "as you said"
    parts = [f"{cells.name}: {taken}, {reason}{becomes}."]
    if flagged:
        parts.append(_missing(cells, how))
    return " ".join([*parts, hint] if why and hint else parts)


def _described(cells: Cells, how: Preparation) -> tuple[str, str, str]:
    """What it was taken for, what it becomes, and how to say otherwise."""
    name = cells.name
    leave_out = f"To leave it out: {option(name, 'ignore')}."
    as_category = f"As a category: {option(name, 'category')}."
    match how:
        case Flag():
            return "a flag", "; yes is 1", leave_out
        case Number():
            return "a number", "", _number_hint(cells) or leave_out
        case Category():
            shown = ", ".join(how.values[:SHOWN]) + ", …" * (len(how.values) > SHOWN)
            return (
                "a category",
                f"; a column each ({shown})" + ", one for the rare together" * bool(how.rare),
                leave_out,
            )
        case Hashed():
            return (
                "a category",
                f"; they are hashed into {how.width} columns",
                f"As text: {option(name, 'text')}. {leave_out}",
            )
        case Date():
            order = f", read with the {how.first} first" if how.first else ""
            start = np.datetime64(how.start, "us").astype("datetime64[D]")
            parts = [f"days since {start}", *["season"] * how.season, *["weekday"] * how.weekday]
            return f"a date{order}", f"; it becomes {listed(parts)}", f"{as_category} {leave_out}"
        case Text():
            words = counted(len(how.terms), "word")
            reduced = counted(len(how.components), "column")
            return "text", f"; TF-IDF of {words}, reduced to {reduced}", f"{as_category} {leave_out}"
        case Nothing(kind="constant"):
            return "left out", "", ""
    return "ignored", "", f"To use it: {option(name, 'category')} or {option(name, 'text')}."


def _number_hint(cells: Cells) -> str:
    """How to say that numbers are codes or dates; empty if they do not look like it."""
    as_category = f"{option(cells.name, 'category')}."
    if cells.padded:
        return f"Some begin with 0, as codes do; if they are codes: {as_category}"
    values = np.unique(cells.numbers())
    if not (values == np.round(values)).all():
        return ""
    if 2 < len(values) <= FEW:
        return f"If its {len(values)} different values are codes: {as_category}"
    if values[0] > 19_000_000 and values[-1] < 21_000_000:
        texts = cells.texts()
        if not np.isnat(read_dates(texts[:1000], None)).any():
            return f"If they are dates such as {texts[0]}: {option(cells.name, 'date')}."
    return ""


def _missing(cells: Cells, how: Preparation) -> str:
    rows = int(cells.missing.sum())
    words = f" (empty or {', '.join(map(repr, cells.missing_words))})" if cells.missing_words else ""
    instead = f"{_filled(how)} takes its place, and " if isinstance(how, Number | Flag | Date) else ""
    have = "has" if rows == 1 else "have"
    return f"{rows:,} of {counted(len(cells.codes), 'row')} {have} no value{words}: {instead}a column says where."


def _filled(how: Number | Flag | Date) -> str:
    if isinstance(how, Date):
        return f"the median {np.datetime64(how.fill, 'us').astype('datetime64[D]')}"
    return f"the median {np.format_float_positional(np.float32(how.fill), trim='-')}"
