import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from reproduction import labels


def arrange(points, names=None, front=None):
    """The labels' boxes and their points in pixels, the labels, and the axes."""
    figure = Figure(figsize=(5, 4))
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    names = names or [f"name {place}" for place in range(len(points))]
    named = []
    for (x, y), name in zip(points, names, strict=True):
        axes.errorbar(x, y, yerr=0.02, marker="o")
        named.append(
            axes.annotate(
                name,
                (x, y),
                (0, 0),
                textcoords="offset points",
                ha="center",
                va="center",
                arrowprops={"arrowstyle": "-"},
            )
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    if front:
        axes.plot(*front)
    canvas.draw()
    renderer = canvas.get_renderer()
    labels.keep_apart(axes, named, renderer)
    boxes = [Text.get_window_extent(label, renderer) for label in named]
    return boxes, [axes.transData.transform(point) for point in points], named, axes.get_window_extent(renderer)


def crowd(count):
    return np.random.default_rng(0).uniform(0.35, 0.65, (count, 2)).tolist()


def test_labels_cover_no_point_and_no_other_label():
    boxes, points, _, area = arrange(crowd(16))
    for place, box in enumerate(boxes):
        assert box.count_overlaps(boxes[:place]) == 0
        assert not any(box.contains(*point) for point in points)
        assert area.contains(*box.min)
        assert area.contains(*box.max)


def test_with_room_to_spare_a_label_is_beside_its_point_without_a_line():
    (box,), (point,), (label,), _ = arrange([(0.5, 0.5)])
    assert box.x0 - point[0] == pytest.approx(labels.DISTANCES[0] * 100 / 72, abs=1)
    assert not label.arrow_patch.get_visible()


def test_one_far_from_its_point_is_led_to():
    _, _, named, _ = arrange(crowd(16))
    far = [label for label in named if label.arrow_patch.get_visible()]
    near = [label for label in named if not label.arrow_patch.get_visible()]
    assert far
    assert near


def test_a_label_stays_inside():
    boxes, _, _, area = arrange([(0.99, 0.5), (0.01, 0.01), (0.5, 0.99)])
    assert all(area.contains(*box.min) and area.contains(*box.max) for box in boxes)


@pytest.mark.parametrize("rise", [0.0, 0.03])
def test_a_label_is_not_nearer_to_another_point(rise):
    boxes, points, _, _ = arrange([(0.5, 0.5), (0.53, 0.5 + rise)])

    def gap(box, point):
        return np.linalg.norm(np.maximum(np.maximum(box.min - point, point - box.max), 0))

    for box, own, other in zip(boxes, points, reversed(points), strict=True):
        assert gap(box, own) < gap(box, other)


def test_a_front_is_left_free():
    front = ([0.5, 1.0], [0.5, 0.5])
    (box,), (point,), _, _ = arrange([(0.5, 0.5)], front=front)
    assert box.x1 < point[0] or box.y0 > point[1] or box.y1 < point[1]
