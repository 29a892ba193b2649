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
def page(own):
    return Reader(own.page.read_text(encoding="utf-8"))


def changed(own, **metrics):
    return render(dataclasses.replace(own.facts, metrics=own.facts.metrics | metrics))


def test_nothing_is_loaded(own, page):
    assert not {"img", "iframe", "object", "embed", "audio", "video"} & set(page.tags)
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "action", "srcset")]
    assert addresses == ["data:,"]
    text = own.page.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, no address
    assert "default-src 'none'" in text
    assert "unsafe" not in text


def test_no_style_or_handler_that_the_policy_would_refuse(page):
    assert not [name for _, name, _ in page.attributes if name == "style" or name.startswith("on")]


def test_ids_and_labels_are_text(own, page):
    assert page.tags.count("script") == 2
    assert "<img" not in own.page.read_text(encoding="utf-8")
    data = json.loads(page.data)
    assert data["ids"][5] == MARKUP
    assert data["labels"]["names"] == ["<b>blue</b>", "red"]


def test_json_cannot_end_its_script():
    assert json.loads(as_script({"id": MARKUP + "<!--"})) == {"id": MARKUP + "<!--"}
    assert "<" not in as_script(MARKUP)


def test_a_run_is_told_in_full(own, page):
    metrics = own.facts.metrics
    probe = metrics["probes"][0]
    for words in (
        "friends: COSTA, one view",
        "random-10-10-80: 10% train",
        f"{100 * probe['accuracy']['mean']:.1f} ± {100 * probe['accuracy']['std']:.1f} %",
        f"{100 * metrics['floor']['raw']['accuracy']:.1f} %",
        f"{metrics['clustering']['nmi']:.3f}",
        "in epoch 1 to",
        "effective rank",
        "sketch.ratio",
        "chosen from the graph",
        f"torch {metrics['versions']['torch']}",
        "Median bias by degree",
    ):
        assert words in page.text, words


def test_headings_follow_each_other(page):
    assert page.tags.count("h1") == 1
    assert page.tags.index("h1") < page.tags.index("h2") < page.tags.index("h3")


@pytest.mark.parametrize(
    ("rank", "cosine", "words"),
    [
        (1.5, 0.5, "along a single line"),
        (9, 0.995, "Barely"),
        (9, 0.9, "share one strong direction"),
        (9, 0.1, "Yes: they"),
    ],
)
def test_health_in_a_plain_sentence(own, rank, cosine, words):
    assert words in changed(own, health={"effective_rank": rank, "mean_cosine": cosine})


@pytest.mark.parametrize(
    ("status", "words"),
    [("collapsed", "all vectors point the same way"), ("diverged", "no longer numbers"), ("interrupted", "--resume")],
)
def test_a_run_that_went_wrong_says_so_first(own, status, words):
    text = changed(own, status=status)
    assert words in text[: text.index("<main>")]
    assert 'role="alert"' in text


def test_training_that_did_not_help_is_told(own):
    low, high = {"accuracy": 0, "nmi": 0}, {"accuracy": 1, "nmi": 1}
    text = changed(own, floor={"raw": low, "diffused": high, "untrained": low})
    assert "diffused features, without any training, 100.0 %" in text[text.index("Training did not help") :]
    assert "Training did not help" not in changed(own, floor=None)


def test_without_labels_the_page_goes_on(tmp_path):
    source = write_graph(tmp_path / "friends", labelled=False)
    page = Reader(render(gather(train(source, tmp_path / "run", **{"train.epochs": 2, "encoder.width": 16}))))
    assert "no labels of two classes" in page.text
    assert ("button", "data-colour", "labels") not in page.attributes
    assert ("button", "data-colour", "clusters") in page.attributes
    assert json.loads(page.data)["labels"] is None


def test_a_score_of_few_labels_says_so(own):
    assert "so few say little" not in changed(own, probes=own.facts.metrics["probes"][:1])
    few = own.facts.metrics["probes"][0] | {"trained_on": 3, "classes": 2}
    assert "learns 2 classes from 3 nodes; so few say little" in changed(own, probes=[few])


def test_labels_that_were_not_used_are_told(own):
    assert "costa probe RUN" in changed(own, probes=[], clustering=None, floor=None)


def test_dead_vectors_leave_the_rest_standing(own):
    facts = dataclasses.replace(
        own.facts,
        nodes=None,
        sketched=None,
        distortion=None,
        spectrum=[],
        metrics=own.facts.metrics
        | {"status": "diverged", "health": None, "probes": [], "clustering": None, "floor": None},
    )
    page = Reader(render(facts))
    assert "There is no map" in page.text
    assert json.loads(page.data) is None
    assert "Does the sketch" not in page.text


def test_losses_that_are_no_numbers_are_counted(own):
    losses = [(1, 3.0), (2, 2.0), (3, float("nan"))]
    assert "In 1 of them it was not a number" in render(dataclasses.replace(own.facts, losses=losses))
    assert "no curve of a single epoch" in render(dataclasses.replace(own.facts, losses=losses[:1]))


def test_command(costa, own):
    own.page.unlink()
    result = costa("report", own.folder)
    assert result.code == 0, result.err
    assert str(own.page) in result.out
    assert own.page.read_text(encoding="utf-8") == render(own.facts)
    assert costa("report", own.folder.parent).code == 2
