import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest

from costa.report.facts import gather
from costa.report.page import as_script, render

from .conftest import MARKUP, train, write_graph


class Reader(HTMLParser):
    """What a browser would find: the elements, their addresses, what scripts and text hold."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.inside, self.text, self.data = [], [], [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag in ("script", "style"):
            self.inside.append(dict(attrs).get("id", tag))

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.text += data
        elif self.inside[-1] == "nodes":
            self.data += data


@pytest.fixture(scope="module")
def page(small_run):
    return Reader(small_run.page.read_text(encoding="utf-8"))


def test_nothing_is_loaded(small_run, page):
    assert not {"img", "iframe", "object", "embed", "audio", "video"} & set(page.tags)
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "action", "srcset")]
    assert {address for address in addresses if not address.startswith("#id=")} == {"data:,"}
    text = small_run.page.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, no address
    assert "default-src 'none'" in text
    assert "unsafe" not in text


def test_no_style_or_handler_that_the_policy_would_refuse(page):
    assert not [name for _, name, _ in page.attributes if name == "style" or name.startswith("on")]


def test_ids_and_labels_are_text(small_run, page):
    assert page.tags.count("script") == 2
    assert "<img" not in small_run.page.read_text(encoding="utf-8")
    data = json.loads(page.data)
    assert data["ids"][5] == MARKUP
    assert data["labels"]["names"] == ["<b>blue</b>", "red"]


def test_json_cannot_end_its_script():
    assert json.loads(as_script({"id": MARKUP + "<!--"})) == {"id": MARKUP + "<!--"}
    assert "<" not in as_script(MARKUP)


def test_a_run_is_told_in_full(small_run, page):
    metrics = small_run.facts.metrics
    probe = metrics.probes[0]
    for words in (
        "friends: COSTA, one view",
        "random-10-10-80: 10% train",
        f"{100 * probe.accuracy.mean:.1f} ± {100 * probe.accuracy.std:.1f} %",
        f"{100 * metrics.baselines['raw'].accuracy:.1f} %",
        f"{metrics.clustering.nmi:.3f}",
        "in epoch 1 to",
        "effective rank",
        "sketch.ratio",
        "chosen from the graph",
        f"torch {metrics.versions['torch']}",
        "Median bias by degree",
    ):
        assert words in page.text, words


def test_headings_follow_each_other(page):
    assert page.tags.count("h1") == 1
    assert page.tags.index("h1") < page.tags.index("h2") < page.tags.index("h3")


def test_without_labels_the_page_goes_on(tmp_path):
    source = write_graph(tmp_path / "friends", labelled=False)
    page = Reader(render(gather(train(source, tmp_path / "run", **{"train.epochs": 2, "encoder.width": 16}))))
    assert "no labels of two classes" in page.text
    assert ("button", "data-colour", "labels") not in page.attributes
    assert ("button", "data-colour", "clusters") in page.attributes
    assert json.loads(page.data)["labels"] is None


def test_dead_vectors_leave_the_rest_standing(small_run):
    facts = dataclasses.replace(
        small_run.facts,
        nodes=None,
        sketched=None,
        distortion=None,
        spectrum=[],
        metrics=dataclasses.replace(
            small_run.facts.metrics, status="diverged", health=None, probes=[], clustering=None, baselines=None
        ),
    )
    page = Reader(render(facts))
    assert "There is no map" in page.text
    assert json.loads(page.data) is None
    assert "Does the sketch" not in page.text


def test_command(costa, small_run):
    small_run.page.unlink()
    result = costa("report", small_run.folder)
    assert result.code == 0, result.err
    assert str(small_run.page) in result.out
    assert small_run.page.read_text(encoding="utf-8") == render(small_run.facts)
    assert costa("report", small_run.folder.parent).code == 2
