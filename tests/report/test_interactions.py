"""What a reader does on the page, in a real browser, on a desk and on a phone, light and dark."""

import csv
import io
import json
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest

from costa.report.page import render

from .chromium import colours, find, follow, saved, settle
from .conftest import MARKUP

SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
HOSTILE = [
    *(
        MARKUP,
        "<b>",
        "&amp;",
        "' onclick='x",
        '"',
        '""',
        "a,b",
        "a\nb",
        "a\r\nb",
        "a\tb",
        "\\",
        "\\n",
        "`${x}`",
        "{{x}}",
    ),
    *(
        "=1+1",
        "=HYPERLINK(A1)",
        "+1",
        "+cmd|' /C calc'!A0",
        "-1",
        "-a",
        "-1e5x",
        "@SUM(A1)",
        "%",
        "%41",
        "%zz",
        "#id=a",
    ),
    *("a&b=c", "a+b", "a b", "?q", "../..", "__proto__", "constructor", "toString", "null", "NaN", "-0", "1e3"),
    *("\u202egnp.exe", "a\u200bb", "é", "e\u0301", "ß", "ﬁ", "日本語", "👩‍🚀", "ａ", "x" * 300, "İ"),
]


@pytest.fixture(params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def page(request, visit, tabled):
    """The page of the run with a table, on each of these screens."""
    opened = visit(*request.param, path=tabled)
    yield opened
    assert opened.complaints == []
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= request.param[0]


@pytest.fixture(scope="module")
def hostile(small_run, tmp_path_factory):
    """The page of a graph whose ids are hostile."""
    ids = HOSTILE + [f"node {i}" for i in range(60 - len(HOSTILE))]
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(render(replace(small_run.facts, nodes=replace(small_run.facts.nodes, ids=ids))), encoding="utf-8")
    return path


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def facts_on(card):
    names, values = (card.locator(f"dl {tag}").all_inner_texts() for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def address_of(page):
    return page.evaluate("() => location.hash")


def test_a_column_of_numbers_colours_the_map_along_a_scale(page):
    before = colours(page)
    page.select_option("#column", label="age")
    settle(page)
    assert len(colours(page) - before) > 10
    assert page.locator("[aria-pressed=true]").count() == 0
    assert page.locator("#legend text").all_text_contents() == ["≤ 21", "50", "≥ 78"]
    assert page.locator("#legend .none").inner_text().split() == ["no", "value", "6"]


def test_a_column_of_words_colours_the_map_by_class(page):
    page.select_option("#column", label="plan")
    settle(page)
    entries = page.locator("#legend button")
    assert [entry.split("\n")[0] for entry in entries.all_inner_texts()] == ["=pro", "basic", "plus", "no value"]
    entries.nth(1).press("Enter")
    assert entries.nth(1).get_attribute("aria-pressed") == "true"
    assert page.locator("#save").inner_text() == "Save 19 nodes as CSV"
    page.locator("[data-colour=clusters]").click()
    assert page.locator("#column").input_value() == ""
    assert page.locator("#save").inner_text() == "Save 60 nodes as CSV"


def test_columns_that_do_not_colour_are_not_offered(page):
    offered = page.locator("#column option").all_inner_texts()
    assert offered[1:] == ["age", "plan", "degree"]


def test_the_card_has_the_nodes_own_values(page):
    facts = facts_on(find(page, "person 14 & co"))
    assert facts["age"] == "–"
    assert facts["plan"] == "=pro"
    assert facts[MARKUP] == f"{MARKUP} 14"
    assert page.locator("#card img").count() == 0


def test_the_selected_node_is_in_the_address(page):
    find(page, "person 31")
    assert address_of(page) == "#id=person%2031%20%26%20co"
    find(page, "person 32")
    page.locator("#card p button").first.click()
    settle(page)
    third = page.locator("#card h3").inner_text()
    for name in ("person 32 & co", "person 31 & co"):
        page.go_back()
        settle(page)
        assert page.locator("#card h3").inner_text() == name
    page.go_back()
    settle(page)
    assert not page.locator("#card").is_visible()
    for name in ("person 31 & co", "person 32 & co", third):
        page.go_forward()
        settle(page)
        assert page.locator("#card h3").inner_text() == name
    page.locator("#card .close").click()
    settle(page)
    assert not page.locator("#card").is_visible()
    assert address_of(page) == ""


@pytest.mark.parametrize("screen", SCREENS)
def test_an_address_opens_its_node(visit, tabled, screen):
    page = visit(*screen, path=tabled, address="#id=person%2031%20%26%20co")
    assert page.locator("#card h3").inner_text() == "person 31 & co"
    top, bottom = page.locator(".stage").evaluate("(stage) => [stage.getBoundingClientRect().top, innerHeight]")
    assert -1 < top < bottom
    assert follow(page, "#id=person%2032%20%26%20co", "#id=nobody") == ["person 32 & co", None]
    assert page.locator("#found").inner_text() == "No node has the id “nobody”."


def test_a_typical_node_of_a_cluster_is_shown_on_the_map(page):
    link = page.locator("#clusters a").first
    name = link.inner_text()
    link.click()
    page.wait_for_timeout(20)
    settle(page)
    assert page.locator("#card h3").inner_text() == name
    bottom = page.locator(".stage").evaluate("(stage) => stage.getBoundingClientRect().bottom")
    assert 0 < bottom <= 801
    entries = page.evaluate("() => history.length")
    page.locator("#card .close").click()
    assert page.evaluate("() => history.length") == entries + 1


def test_search_forgives_case_and_accents(small_run, visit, tmp_path):
    ids = ["Zoë Łukasz", "zoe lukasz", "José", "JOSE", *(f"node {i}" for i in range(56))]
    (tmp_path / "page.html").write_text(
        render(replace(small_run.facts, nodes=replace(small_run.facts.nodes, ids=ids))), encoding="utf-8"
    )
    page = visit(path=tmp_path / "page.html")
    for text, name in {"zoë ł": ids[0], "ZOE": ids[0], " jose ": ids[2], "JOSE": ids[3], "NODE 55": ids[59]}.items():
        assert find(page, text).locator("h3").inner_text() == name


def test_search_shows_what_matches_and_goes_from_one_to_the_next(page):
    page.fill("#find input", "3 & CO")
    settle(page)
    assert page.locator("#found").inner_text() == "6 nodes match: Enter goes to the next."
    assert page.locator("#save").inner_text() == "Save 6 nodes as CSV"
    for place in (1, 2, 3, 4, 5, 6, 1):
        page.press("#find input", "Enter")
        settle(page)
        assert page.locator("#found").inner_text() == f"{place} of 6 nodes that match."
        assert page.locator("#card h3").inner_text() == f"person {place - 1}3 & co"
    page.fill("#find input", "")
    assert page.locator("#found").inner_text() == ""
    assert page.locator("#save").inner_text() == "Save 60 nodes as CSV"


def test_a_whole_id_is_shown_among_all_nodes(small_run, visit, tmp_path):
    nodes = replace(small_run.facts.nodes, ids=[f"node {i}" for i in range(60)])
    (tmp_path / "page.html").write_text(render(replace(small_run.facts, nodes=nodes)), encoding="utf-8")
    page = visit(path=tmp_path / "page.html")
    page.fill("#find input", "NODE 5")
    assert page.locator("#save").inner_text() == "Save 11 nodes as CSV"
    assert find(page, "NODE 5").locator("h3").inner_text() == "node 5"
    assert page.locator("#save").inner_text() == "Save 60 nodes as CSV"


def test_search_says_that_it_found_nothing(page):
    find(page, "nobody <b>")
    assert page.locator("#find input").get_attribute("aria-invalid") == "true"
    assert page.locator("#found").inner_text() == "No node has “nobody <b>” in its id."
    assert not page.locator("#card").is_visible()


def test_what_a_search_shows_is_saved(page, small_run, table):
    nodes = small_run.facts.nodes
    page.fill("#find input", "person 1")
    found = rows(saved(page, page.locator("#save")))
    assert [row["id"] for row in found] == [f"person {i} & co" for i in range(10, 20)]
    row = found[4]
    assert (row["label"], row["cluster"]) == (nodes.labels.names[nodes.labels.of[14]], str(nodes.found.of[14] + 1))
    assert (row["degree"], row["degree (table)"]) == (str(nodes.degree[14]), "0")
    assert (row["age"], row["plan"], row[MARKUP]) == ("", "'=pro", f"{MARKUP} 14")
    assert [row["plan"] for row in found] == [plan.replace("=", "'=") for plan in table.columns["plan"][10:20]]


def test_a_class_is_saved(page, small_run):
    of = small_run.facts.nodes.labels.of
    page.locator("#legend button").nth(1).click()
    found = rows(saved(page, page.locator("#save")))
    assert [row["label"] for row in found] == ["red"] * int((of == 1).sum())
    page.locator("#legend button").nth(2).click()
    assert len(rows(saved(page, page.locator("#save")))) == int((of != 0).sum())


def test_a_node_is_saved_with_its_neighbours(page, small_run):
    nodes, graph = small_run.facts.nodes, small_run.graph
    card = find(page, "person 40")
    found = {row["id"]: row for row in rows(saved(page, card.locator(".file button")))}
    source, target = graph.edge_index
    around, nearest = set(target[source == 40].tolist()), nodes.nearest[40].tolist()
    assert list(found)[: 1 + len(nearest)] == [graph.node_ids[node] for node in (40, *nearest)]
    assert set(found) == {graph.node_ids[node] for node in {40, *nearest, *around}}
    for node in {*nearest, *around}:
        row = found[graph.node_ids[node]]
        relations = ["nearest vector"] * (node in nearest) + ["neighbour"] * (node in around)
        assert row["relation"] == " and ".join(relations)
    for node, cosine in zip(nearest, nodes.similar[40], strict=True):
        assert float(found[graph.node_ids[node]]["cosine"]) == pytest.approx(cosine, abs=6e-4)
    assert found["person 40 & co"]["relation"] == "selected"


def test_hostile_ids_are_text_everywhere(visit, hostile):
    assert len(set(HOSTILE)) == len(HOSTILE) > 38
    page = visit(path=hostile)
    assert follow(page, *(f"#id={quote(name, safe='')}" for name in HOSTILE)) == HOSTILE
    for name in HOSTILE[:3]:
        find(page, name)
        assert page.evaluate("() => decodeURIComponent(location.hash.slice(4))") == name
    found = [row["id"] for row in rows(saved(page, page.locator("#save")))]
    guarded = {name for name, cell in zip(HOSTILE, found, strict=False) if cell == f"'{name}"}
    assert guarded == {"=1+1", "=HYPERLINK(A1)", "+cmd|' /C calc'!A0", "-a", "-1e5x", "@SUM(A1)"}
    assert [cell for name, cell in zip(HOSTILE, found, strict=False) if name not in guarded] == [
        name for name in HOSTILE if name not in guarded
    ]
    assert page.locator("#card img, #card b").count() == 0
    assert "taken" not in page.title()
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 560])
def test_on_a_phone_the_card_leaves_its_node_free(visit, tabled, width, scheme):
    page = visit(width, scheme, path=tabled)
    spot = """() => { const box = document.getElementById("card").getBoundingClientRect(),
      stage = document.querySelector(".stage").getBoundingClientRect();
      return [box.left - stage.left, box.top - stage.top, box.right - stage.left, box.bottom - stage.top,
        stage.width, stage.height]; }"""
    ringed = """([x, y]) => document.getElementById("over").getContext("2d")
      .getImageData(Math.round(x) - 9, Math.round(y), 3, 1).data.some((value) => value > 0)"""
    card = find(page, "person 40")
    left, top, right, bottom, wide, high = page.evaluate(spot)
    assert left >= 0 and right <= wide and bottom <= high  # noqa: PT018
    assert page.evaluate(ringed, [wide / 2, 0.2 * high])
    assert top > 0.2 * high + 10
    assert card.locator(".file button").is_enabled()
    page.focus("#points")
    steps = round(0.5 * high / (0.12 * wide))
    for _ in range(steps):  # the node moves down, the card to the top
        page.keyboard.press("ArrowUp")
    settle(page)
    left, top, right, bottom, wide, high = page.evaluate(spot)
    x, y = wide / 2, 0.2 * high + steps * 0.12 * wide
    assert page.evaluate(ringed, [x, y])
    assert not (top - 8 < y < bottom + 8)
    assert top >= 0


def test_neighbours_without_a_label_are_neither_right_nor_wrong(visit, small_run, tmp_path):
    facts, names = small_run.facts, small_run.graph.node_ids
    nodes, (source, target) = facts.nodes, small_run.graph.edge_index.numpy()
    of = np.full(60, -1)
    of[[8, nodes.nearest[8, 0], nodes.nearest[8, 1]]] = 0, 0, 1
    around = target[source == 8]
    known = np.bincount(source, (of[source] >= 0) & (of[target] >= 0), 60).astype(int)
    same = np.bincount(source, (of[source] >= 0) & (of[source] == of[target]), 60).astype(int)
    lonely = next(node for node in range(60) if of[node] < 0)
    labels = replace(nodes.labels, of=of, same=same, known=known)
    (tmp_path / "page.html").write_text(render(replace(facts, nodes=replace(nodes, labels=labels))), encoding="utf-8")
    page = visit(path=tmp_path / "page.html")
    text = find(page, names[8]).inner_text()
    assert "By vector: 1 of 2 labelled nearest nodes have its label, 4 are unlabelled: " in text
    if known[8]:
        assert f"{len(around) - known[8]} are unlabelled; " in text
    else:
        assert f"In the graph: its {len(around)} neighbours are all unlabelled; " in text
    assert "have its label" not in find(page, names[lonely]).inner_text()


def test_the_page_holds_its_data_as_plain_json(tabled):
    text = tabled.read_text(encoding="utf-8").split('id="nodes">')[1].split("</script>")[0]
    age, plan, words, _ = json.loads(text)["columns"]
    assert (age["numbers"][:5], plan["classes"]) == ([20, 21, 22, 23, None], ["=pro", "basic", "plus"])
    assert words["text"][5] == f"{MARKUP} 5"
