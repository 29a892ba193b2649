"""Placing the labels of a figure's points so that they do not overlap: greedy and deterministic."""

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
"""Half the side of a marker's square; this and the lengths below are in typographic points."""
BESIDE = 9.0
"""A label this close to its point needs no line."""
DISTANCES = (7.0, 9.0, 12.0, 16.0, 20.0, 26.0, 32.0, 40.0, 50.0, 60.0, 75.0, 90.0, 110.0)
"""Candidate distances from a point to its label."""
DETOUR = 15.0
"""How much further away a label may be to avoid one obstacle that would make it hard to read."""


def keep_apart(axes: Axes, labels: Sequence[Annotation], renderer: RendererAgg) -> None:
    """Move each label to the best place around its point; a thin line leads to a label further away.

    The labels of the most crowded points are placed first.
    """
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    pixels = renderer.points_to_pixels(1.0)
    points = [axes.transData.transform(label.xy) / pixels for label in labels]
    halves = [np.array(Text.get_window_extent(label, renderer).size) / 2 / pixels for label in labels]
    area = Bbox(axes.get_window_extent(renderer).get_points() / pixels)
    drawn = [segment for bar in axes.containers for whisker in bar[2] for segment in whisker.get_segments()]
    drawn += [pair for line in axes.lines for pair in itertools.pairwise(np.asarray(line.get_xydata()))]
    lines = [Bbox(axes.transData.transform(segment) / pixels) for segment in drawn]
    crowd = [sum(math.exp(-math.dist(point, other) / 40) for other in points) for point in points]
    placed: list[Bbox] = []
    for index in sorted(range(len(labels)), key=lambda index: -crowd[index]):
        distance, shift = _place(index, points, halves[index], area, placed, lines)
        labels[index].xyann = tuple(shift)
        if (leader := labels[index].arrow_patch) is not None:
            leader.set_visible(distance > BESIDE)
        placed.append(_box(points[index] + shift, halves[index]))


def _place(
    index: int,
    points: Sequence[np.ndarray],
    half: np.ndarray,
    area: Bbox,
    placed: Sequence[Bbox],
    lines: Sequence[Bbox],
) -> tuple[float, np.ndarray]:
    """The distance and the shift from a point to its label: the nearest place that covers no point and no other label.

    A label takes a detour to stay nearest to its own point, to cover no error bar and no front, and to have no other
    point or label on the line to its point. All lengths are in typographic points.

    Args:
        index: Index of the point.
        points: Positions of all points.
        half: Half the width and the height of the label.
        area: Where the label should stay.
        placed: The labels already placed.
        lines: Horizontal and vertical lines that it should not cover.
    """
    from matplotlib.path import Path as Line

    point = points[index]
    others = [other for place, other in enumerate(points) if place != index]
    obstacles = [*(_box(other, MARK) for other in others), *placed]
    taken = [_box(point, MARK), *obstacles]

    def cost(place: tuple[float, np.ndarray]) -> float:
        distance, shift = place
        box = _box(point + shift, half)
        own_gap, *gaps = (np.linalg.norm(np.maximum(abs(p - point - shift) - half, 0)) for p in (point, *others))
        leader = Line([point, point + shift])
        crossed = box.count_overlaps(lines) + sum(leader.intersects_bbox(obstacle) for obstacle in obstacles)
        confused = sum(gap <= own_gap for gap in gaps)
        outside = not (area.contains(*box.min) and area.contains(*box.max))
        return distance + DETOUR * (crossed + confused) + 1000 * (box.count_overlaps(taken) + outside)

    angles = np.arange(0, 2 * math.pi, math.pi / 8)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return min(((d, (d + half) * direction) for d in DISTANCES for direction in directions), key=cost)


def _box(centre: np.ndarray, half: np.ndarray | float) -> Bbox:
    from matplotlib.transforms import Bbox

    return Bbox([centre - half, centre + half])
