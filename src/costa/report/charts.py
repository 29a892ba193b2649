"""Charts as SVG and HTML that need no script: sizes are percentages, so text keeps its size on a phone.

Colours come from ``page.css``. If a chart has a series, ``charts.js`` shows the value at the pointer or under the arrow
keys; without the script, the numbers are in the text next to the chart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

MOST_POINTS = 600
"""A longer series is thinned to every m-th point and the last."""

Spot: TypeAlias = tuple[float, float, str]
"""A value's position from the left and from the top, 0 to 1 each, and its text."""


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from ``low`` to ``high``."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """The position of a value on the axis, from 0 to 1."""
        ends = [self.low, self.high, value]
        low, high, value = map(math.log10, ends) if self.log else ends
        return (value - low) / (high - low) if high > low else 0.5

    def ticks(self, most: int = 6) -> list[float]:
        """Round values along the axis.

        >>> Axis(0, 1).ticks(), Axis(1e-4, 2, log=True).ticks()
        ([0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0], [0.0001, 0.001, 0.01, 0.1, 1.0])
        """
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers][:: max(1, -(-len(powers) // most))]
        rough = (self.high - self.low) / (most - 1)
        if not rough > 0:
            return [self.low]
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def short(value: float) -> str:
    """A number for an axis.

    >>> short(0.30000000000000004), short(1e-05), short(12000.0)
    ('0.3', '1e-05', '12,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def curve(
    points: Sequence[tuple[float, float]],
    *,
    alt: str,
    across: str,
    up: str,
    say: Callable[[float, float], str],
    log: bool = False,
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """A line through the points.

    Args:
        points: x and y, x rising.
        alt: Text for screen readers.
        across: Label of the x axis.
        up: Label of the y axis.
        say: Gives the text for a point.
        log: Whether the y axis is logarithmic.
        marks: Vertical lines: x and label of each.
    """
    step = -(-len(points) // MOST_POINTS)
    drawn = [*points[::step], *([points[-1]] if (len(points) - 1) % step else [])]
    x = Axis(drawn[0][0], drawn[-1][0])
    y = _around([value for _, value in drawn], log)
    places = [(x.at(a), 1 - y.at(b)) for a, b in drawn]
    path = " ".join(f"{1000 * a:.1f},{1000 * b:.1f}" for a, b in places)
    hover: list[Spot] = [(round(a, 4), round(b, 4), say(*point)) for (a, b), point in zip(places, drawn, strict=True)]
    inside = "".join(
        f'<line class="mark" x1="{100 * x.at(at):.2f}%" x2="{100 * x.at(at):.2f}%" y1="0" y2="100%"/>'
        f'<text class="tick" x="{100 * x.at(at):.2f}%" dx="6" y="14">{escape(word)}</text>'
        for at, word in marks
    )
    inside += (
        '<svg class="fill" viewBox="0 0 1000 1000" preserveAspectRatio="none">'
        f'<polyline class="curve" points="{path}"/></svg>'
    )
    return _frame(x, y, inside, alt=alt, across=across, up=up, hover=hover)


def strip(values: Sequence[float], lines: Sequence[tuple[float, str, str]], *, alt: str, across: str, say: str) -> str:
    """A dot for each value over an axis from 0, and labelled vertical lines.

    Args:
        values: Non-negative numbers.
        lines: x, label and CSS class of each line.
        alt: Text for screen readers.
        across: Label of the x axis.
        say: Text in front of a dot's value.
    """
    x = Axis(0, 1.15 * max([*values, *(at for at, _, _ in lines), 1e-9]))
    # a fixed order of heights spreads the dots without a random number
    dots = "".join(
        f'<circle class="dot" cx="{100 * x.at(value):.2f}%" cy="{30 + 60 * (index * 0.618 % 1):.1f}%" r="3.5"/>'
        for index, value in enumerate(values)
    )
    bars = "".join(
        f'<line class="{kind}" x1="{100 * x.at(at):.2f}%" x2="{100 * x.at(at):.2f}%" y1="0" y2="100%"/>'
        f'<text class="tick {"end" if x.at(at) > 0.6 else ""}" x="{100 * x.at(at):.2f}%"'
        f' dx="{-6 if x.at(at) > 0.6 else 6}" y="{14 + 16 * row}">{escape(word)}</text>'
        for row, (at, word, kind) in enumerate(lines)
    )
    hover: list[Spot] = [(round(x.at(value), 4), 0.6, f"{say} {value:.4f}") for value in sorted(values)]
    return _frame(x, None, dots + bars, alt=alt, across=across, up="", hover=hover, low=True)


@dataclass(frozen=True)
class Bar:
    """One row of a table with bars.

    Attributes:
        name: Name of the row.
        share: Length of the bar, from 0 to 1.
        text: The number as text.
        dots: The single measurements, from 0 to 1.
        kind: CSS class: ``own`` for this run, ``other`` for a baseline, ``plain`` for the rest.
    """

    name: str
    share: float
    text: str
    dots: Sequence[float] = ()
    kind: str = "own"


def bars(rows: Sequence[Bar], *, caption: str, heads: tuple[str, str]) -> str:
    """A table with a bar from zero in each row, next to its number.

    Args:
        rows: From top to bottom.
        caption: Caption of the table.
        heads: Headings of the names and of the numbers.
    """
    body = "".join(
        f'<tr><th scope="row">{escape(bar.name)}</th><td class="bar" aria-hidden="true"><svg width="100%" height="18">'
        f'<rect class="track" width="100%" height="18"/>'
        f'<rect class="{bar.kind}" width="{100 * bar.share:.2f}%" height="18"/>'
        + "".join(f'<circle class="split" cx="{100 * dot:.2f}%" cy="9" r="2.5"/>' for dot in bar.dots)
        + f'</svg></td><td class="number">{escape(bar.text)}</td></tr>'
        for bar in rows
    )
    head = f'<tr><th scope="col">{escape(heads[0])}</th><td></td><th scope="col">{escape(heads[1])}</th></tr>'
    return f'<table class="bars"><caption>{escape(caption)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>'


def _around(values: Sequence[float], log: bool) -> Axis:
    """An axis with a small margin above and below."""
    low, high = min(values), max(values)
    if log:
        return Axis(low / 1.3, high * 1.3, log=True)
    margin = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return Axis(low - margin, high + margin)


def _frame(
    x: Axis,
    y: Axis | None,
    inside: str,
    *,
    alt: str,
    across: str,
    up: str,
    hover: Sequence[Spot],
    low: bool = False,
) -> str:
    """Draw the axes around ``inside``."""
    grid = "".join(
        f'<text class="tick middle" x="{100 * x.at(tick):.2f}%" y="100%" dy="18">{short(tick)}</text>'
        for tick in x.ticks(5)
    )
    if y is not None:
        heights = [(100 * (1 - y.at(tick)), tick) for tick in y.ticks()]
        grid += "".join(
            f'<line class="grid" x1="0" x2="100%" y1="{height:.2f}%" y2="{height:.2f}%"/>'
            f'<text class="tick end" x="-8" y="{height:.2f}%" dy="4">{short(tick)}</text>'
            for height, tick in heights
        )
    kind = "chart low" if low else "chart"
    return (
        f'<figure class="{kind}"><p class="up">{escape(up)}</p>'
        f'<svg role="img" tabindex="0" aria-label="{escape(alt)}"'
        f' data-hover="{escape(json.dumps(hover, ensure_ascii=False))}">'
        f'{grid}<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>{inside}</svg>'
        f'<figcaption>{escape(across)}<output aria-live="polite"></output></figcaption></figure>'
    )
