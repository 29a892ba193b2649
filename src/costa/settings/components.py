"""Settings that give vectors a number of columns.

A GCN's vectors are as wide as its last layer. With B hops, a vector has the codes of the hops, ``encoder.width``
columns each, and ``encoder.columns`` columns of the hops themselves, of which there are at most B times those of the
features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from costa.errors import InputError
from costa.settings.layers import flatten, merge
from costa.settings.presets import Resolved
from costa.wording import counted

GIVEN_BY = "n_components"


def with_components(resolved: Resolved, features: int, columns: int) -> Resolved:
    """The settings with which an encoder makes vectors of so many columns.

    Args:
        resolved: Settings of a method whose encoder's kind is a setting.
        features: Columns of the graph's features.
        columns: Columns of the vectors.
    """
    encoder, rank = resolved.values.encoder, resolved.values.features.rank
    changed = {"encoder.width": columns}
    if encoder.kind == "hops":
        hops = len(encoder.powers) + (encoder.steps > 0)
        if columns < hops:
            raise InputError(
                f"n_components = {columns} is too few for the {counted(hops, 'hop')} of this graph, each of which has a"
                f" code; give at least {hops}, or fewer hops in encoder.powers."
            )
        width, rest = share(columns, hops, min(features, rank) if rank else features)
        changed = {"encoder.width": width, "encoder.columns": rest}
    layers = [("before", flatten(resolved.values)), (GIVEN_BY, changed)]
    merged: Any = merge(type(resolved.values), layers)[0]
    return replace(resolved, values=merged, origins=resolved.origins | dict.fromkeys(changed, GIVEN_BY))


def share(columns: int, hops: int, features: int) -> tuple[int, int]:
    """The width of each hop's code, and the columns of the hops themselves, that make so many columns in all.

    Codes have half of them, or more if the hops have fewer columns than that.

    >>> share(64, 3, 1433), share(64, 3, 5), share(3, 3, 5)
    ((10, 34), (17, 13), (1, 0))
    """
    width = max(1, columns // 2 // hops, -(-columns // hops) - features)
    return width, columns - hops * width
