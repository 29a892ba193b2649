"""Labels beside the points of a figure, apart from each other: greedy, and the same every time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

MARK = 6.0
"""Half the side of the square that a point's marker takes, in points of type, as are those below."""
BESIDE = 9.0
"""A label as near as this needs no line to its point."""
DISTANCES = (7.0, 9.0, 12.0, 16.0, 20.0, 26.0, 32.0, 40.0, 50.0, 60.0, 75.0, 90.0, 110.0)
"""From a point to its label."""
DETOUR = 15.0
"""How much further away a label may be to avoid one thing that would make it hard to read."""


def keep_apart(axes: Axes, labels: Sequence[Annotation], renderer: RendererAgg) -> None:
    """Move each label to the best place around its point; a thin line leads to one that is not beside it.

    The labels of the most crowded points choose first.
    """
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    pixels = renderer.points_to_pixels(1.0)
    points = [axes.transData.transform(label.xy) / pixels for label in labels]
    halves = [np.array(Text.get_window_extent(label, renderer).size) / 2 / pixels for label in labels]
    room = Bbox(axes.get_window_extent(renderer).get_points() / pixels)
    drawn = [segment for bar in axes.containers for whisker in bar[2] for segment in whisker.get_segments()]
    drawn += [pair for line in axes.lines for pair in itertools.pairwise(np.asarray(line.get_xydata()))]
    lines = [Bbox(axes.transData.transform(segment) / pixels) for segment in drawn]
    crowd = [sum(math.exp(-math.dist(point, other) / 40) for other in points) for point in points]
    placed: list[Bbox] = []
    for index in sorted(range(len(labels)), key=lambda index: -crowd[index]):
        distance, shift = _place(index, points, halves[index], room, placed, lines)
        labels[index].xyann = tuple(shift)
        if (leader := labels[index].arrow_patch) is not None:
            leader.set_visible(distance > BESIDE)
        placed.append(_box(points[index] + shift, halves[index]))


def _place(
    index: int,
    points: Sequence[np.ndarray],
    half: np.ndarray,
    room: Bbox,
    placed: Sequence[Bbox],
    lines: Sequence[Bbox],
) -> tuple[float, np.ndarray]:
    """The distance and the shift from a point to its label: the nearest place that covers no point and no other label.

    It is worth a detour to be nearer to no other point, to cover no error bar and no front, and to be led to across no
    other point or label. All lengths are points of type.

    Args:
        index: Which of the points.
        points: Where they are.
        half: Half the width and the height of the label.
        room: What it should not leave.
        placed: The labels that have their place.
        lines: What it should not cover, upright or level.
    """
    from matplotlib.path import Path as Line

    point = points[index]
    rivals = [other for place, other in enumerate(points) if place != index]
    foreign = [*(_box(rival, MARK) for rival in rivals), *placed]
    taken = [_box(point, MARK), *foreign]

    def cost(place: tuple[float, np.ndarray]) -> float:
        distance, shift = place
        box = _box(point + shift, half)
        own, *gaps = (np.linalg.norm(np.maximum(abs(other - point - shift) - half, 0)) for other in (point, *rivals))
        leader = Line([point, point + shift])
        crossed = box.count_overlaps(lines) + sum(leader.intersects_bbox(other) for other in foreign)
        confused = sum(gap <= own for gap in gaps)
        outside = not (room.contains(*box.min) and room.contains(*box.max))
        return distance + DETOUR * (crossed + confused) + 1000 * (box.count_overlaps(taken) + outside)

    angles = np.arange(0, 2 * math.pi, math.pi / 8)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return min(((d, (d + half) * direction) for d in DISTANCES for direction in directions), key=cost)


def _box(centre: np.ndarray, half: np.ndarray | float) -> Bbox:
    from matplotlib.transforms import Bbox

    return Bbox([centre - half, centre + half])
