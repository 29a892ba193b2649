"""The style of the pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
"""Markers of successive lines; there are more markers than colours, so a repeated colour has another marker."""


def plain(axes: Axes) -> None:
    """Draw a pale grid behind the data and no box around it."""
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
