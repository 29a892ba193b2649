import json
import re
from html import unescape

import pytest

from costa.report.charts import Axis, Bar, bars, curve, strip


def hover(html):
    return json.loads(unescape(re.search(r'data-hover="([^"]*)"', html)[1]))


def say(x, y):
    return f"{x:.0f}: {y}"


def test_axis_places_values():
    assert Axis(2, 6).at(3) == 0.25
    assert Axis(0.01, 100, log=True).at(1) == pytest.approx(0.5)
    assert Axis(3, 3).at(3) == 0.5
    assert Axis(3, 3).ticks() == [3]


def test_curve_goes_through_its_points():
    html = curve([(1, 10.0), (2, 0.0), (3, 5.0)], alt="falls", across="epoch", up="loss", say=say)
    (x0, y0, text), (x1, y1, _), (x2, y2, _) = hover(html)
    assert (x0, x1, x2) == (0, 0.5, 1)
    assert y0 < y2 < y1  # from the top
    assert text == "1: 10.0"
    assert 'aria-label="falls"' in html


def test_long_curves_are_thinned_and_keep_their_end():
    points = hover(curve([(i, float(i)) for i in range(1, 5001)], alt="", across="", up="", say=say))
    assert len(points) < 700
    assert points[-1][2] == "5000: 5000.0"


def test_a_constant_curve_can_be_drawn():
    assert hover(curve([(1, 2.0), (2, 2.0)], alt="", across="", up="", say=say))[0][1] == pytest.approx(0.5)


def test_bars_are_numbers_too_and_escape():
    html = bars([Bar("<b>me</b>", 0.5, "50 %", dots=[0.25])], caption="a & b", heads=("", "share"))
    assert 'width="50.00%"' in html
    assert 'cx="25.00%"' in html
    assert "&lt;b&gt;me" in html
    assert "<b>" not in html
    assert "a &amp; b" in html


def test_strip_has_a_dot_for_each_draw_and_the_bound():
    html = strip([0.1, 0.2], [(0.4, "proved", "bound")], alt="", across="ε", say="one draw:")
    assert html.count('class="dot"') == 2
    assert [text for _, _, text in hover(html)] == ["one draw: 0.1000", "one draw: 0.2000"]
    assert re.search(r'class="bound" x1="86\.96%"', html)
