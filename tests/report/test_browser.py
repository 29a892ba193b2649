"""The page in a real browser: the map, its card, and the charts."""

from dataclasses import replace

import numpy as np
import pytest

from costa.report.page import render

from .chromium import PIXELS, colours, find, settle
from .conftest import MARKUP


def test_it_loads_quietly_and_draws_the_nodes(visit, small_run):
    page = visit()
    assert page.requests == [small_run.page.as_uri()]
    assert page.complaints == []
    pixels = page.evaluate(PIXELS)
    assert len(pixels) > 10 * 60
    assert len({tuple(pixel[2:]) for pixel in pixels}) >= 3  # two labels, and none


def test_pointing_at_a_node_tells_who_it_is(visit, small_run):
    page = visit()
    page.locator(".stage").scroll_into_view_if_needed()
    x, y, *_ = page.evaluate(PIXELS)[0]
    box = page.locator("#points").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    settle(page)
    card = page.locator("#card")
    assert card.is_visible()
    assert card.locator("h3").inner_text() in small_run.graph.node_ids
    page.mouse.move(box["x"] + 1, box["y"] - 20)
    settle(page)
    assert not card.is_visible()


def test_the_card_says_what_the_graph_says(visit, small_run):
    nodes, graph = small_run.facts.nodes, small_run.graph
    card = find(visit(), "person 08 & co")
    source, target = graph.edge_index
    around = target[source == 8]
    text = card.inner_text()
    assert card.locator("h3").inner_text() == "person 08 & co"
    assert f"degree\n{len(around)}" in text
    known = int((graph.y[around] >= 0).sum())
    same = int((graph.y[around] == graph.y[8]).sum())
    some = "labelled neighbours" if known < len(around) else "neighbours"
    assert f"{same} of {known} {some} have its label" in text
    listed = zip(nodes.nearest[8], nodes.similar[8], strict=True)
    assert ", ".join(f"{graph.node_ids[node]} {cosine:.2f}" for node, cosine in listed) in text
    assert "<b>blue</b>" in text


def test_the_card_has_the_nodes_note(visit, small_run, tmp_path):
    notes = [f"{MARKUP} {node}" for node in range(60)]
    noted = replace(small_run.facts, nodes=replace(small_run.facts.nodes, notes=notes))
    (tmp_path / "noted.html").write_text(render(noted), encoding="utf-8")
    card = find(visit(path=tmp_path / "noted.html"), "person 08 & co")
    assert card.locator("p").first.inner_text() == notes[8]
    assert card.locator("img").count() == 0


def test_the_card_names_the_neighbours_the_most_similar_first(visit, small_run):
    source, target = small_run.graph.edge_index
    z = np.load(small_run.folder / "embeddings.npy")
    cosine = (z @ z[8]) / np.linalg.norm(z, axis=1) / np.linalg.norm(z[8])
    around = sorted(target[source == 8].tolist(), key=lambda node: -cosine[node])
    listed = ", ".join(f"{small_run.graph.node_ids[node]} {cosine[node]:.2f}" for node in around[:8])
    card = find(visit(), "person 08 & co")
    rest = f" and {len(around) - 8} more." if len(around) > 8 else "."
    assert card.locator("p:not(.file)").last.inner_text().endswith(f": {listed}{rest}")


def test_a_name_on_the_card_leads_to_its_node(visit, small_run):
    page = visit()
    card = find(page, "person 08 & co")
    other = small_run.graph.node_ids[small_run.facts.nodes.nearest[8, 0]]
    card.get_by_role("button", name=other, exact=True).first.press("Enter")
    settle(page)
    assert card.locator("h3").inner_text() == other
    assert page.evaluate("() => document.getElementById('card').contains(document.activeElement)")
    page.focus("#points")
    page.keyboard.press("Escape")
    settle(page)
    assert not card.is_visible()


def test_names_are_written_on_the_map(visit):
    written = """() => {
      const over = document.getElementById("over");
      return over.getContext("2d").getImageData(0, 0, over.width, over.height).data.some((value) => value > 0);
    }"""
    page = visit()
    assert page.evaluate(written)
    assert not page.locator("#card").is_visible()


def test_lines_lead_to_the_neighbours_in_the_graph(visit, small_run):
    page = visit()
    find(page, "person 40 & co")
    points, (source, target) = small_run.facts.nodes.layout.points, small_run.graph.edge_index.numpy()
    size = np.array(
        page.evaluate("() => { const s = document.querySelector('.stage'); return [s.clientWidth, s.clientHeight]; }")
    )
    scale = 4 * 0.93 * (size / np.ptp(points, axis=0)).min()  # what finding a node zooms to, in its middle
    away = (points[target[source == 40]] - points[40]) * scale * [1, -1]
    length = np.linalg.norm(away, axis=1, keepdims=True)
    spots = size / 2 + (away / length * np.minimum(30, length / 2))
    inked = """(spots) => spots.map(([x, y]) => document.getElementById("over").getContext("2d")
      .getImageData(Math.round(x) - 1, Math.round(y) - 1, 3, 3).data.some((value) => value > 0))"""
    assert all(page.evaluate(inked, spots.tolist()))
    assert not all(page.evaluate(inked, (size - spots).tolist()))


def test_an_id_that_is_markup_stays_text(visit):
    page = visit()
    card = find(page, MARKUP)
    assert card.locator("h3").inner_text() == MARKUP
    assert card.locator("img").count() == 0
    assert "taken" not in page.title()
    assert page.complaints == []


def test_buttons_and_keys_change_the_colours(visit):
    page = visit()
    before = colours(page)
    page.focus("[data-colour=degree]")
    page.keyboard.press("Enter")
    settle(page)
    assert page.locator("[data-colour=degree]").get_attribute("aria-pressed") == "true"
    assert len(before ^ colours(page)) > 3


def test_a_legend_entry_singles_its_group_out(visit, small_run):
    page = visit()
    before = len(page.evaluate(PIXELS))
    assert page.locator("#legend button").count() == 3
    assert page.locator("#legend button span").nth(0).inner_text() == "<b>blue</b>"
    page.locator("#legend button").nth(0).click()
    settle(page)
    share = np.mean(small_run.facts.nodes.labels.of == 0)
    assert len(page.evaluate(PIXELS)) < (share + 0.25) * before


def test_zoom_and_keys_move_the_map(visit):
    page = visit()
    before = page.evaluate(PIXELS)
    page.focus("#points")
    page.keyboard.press("ArrowRight")
    settle(page)
    moved = page.evaluate(PIXELS)
    assert min(pixel[0] for pixel in moved) < min(pixel[0] for pixel in before)
    page.keyboard.press("0")
    settle(page)
    assert page.evaluate(PIXELS) == before


def test_the_curve_tells_its_values(visit, small_run):
    page = visit()
    chart = page.locator("#training svg[data-hover]")
    chart.focus()
    page.keyboard.press("Home")
    epoch, loss = small_run.facts.losses[0]
    assert page.locator("#training output").inner_text() == f"epoch {epoch}: loss {loss:.4f}"
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 0.99 * box["width"], box["y"] + 20)
    epoch, loss = small_run.facts.losses[-1]
    assert page.locator("#training output").inner_text() == f"epoch {epoch}: loss {loss:.4f}"


def test_dark_mode_and_print_have_their_own_paper(visit):
    light, dark = visit(scheme="light"), visit(scheme="dark")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(paper) == "rgb(253, 252, 250)"
    assert dark.evaluate(paper) == "rgb(21, 23, 27)"
    dark.emulate_media(media="print")
    assert dark.evaluate(paper) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [320, 400])
def test_a_phone_need_not_scroll_sideways(visit, width):
    page = visit(width=width)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert len(page.evaluate(PIXELS)) > 60
