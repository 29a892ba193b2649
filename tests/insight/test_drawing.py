"""The style of the pictures."""

from matplotlib.figure import Figure

from costa.insight.drawing import COLOURS, MARKERS, plain


def test_a_repeated_colour_has_another_marker():
    lines = [(COLOURS[place % len(COLOURS)], MARKERS[place]) for place in range(len(MARKERS))]
    assert len(set(lines)) == len(MARKERS) > len(COLOURS)


def test_a_plain_picture_has_a_grid_and_no_box():
    axes = Figure().subplots()
    plain(axes)
    assert [axes.spines[side].get_visible() for side in ("top", "right", "left")] == [False, False, True]
    assert axes.get_axisbelow() is True
