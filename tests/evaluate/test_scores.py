"""Scores over splits: their text and their JSON."""

import json
from dataclasses import replace

import pytest

from costa.evaluate.probe import linear_probe
from costa.evaluate.scores import ProbeResult, Score


def test_the_text_carries_the_protocol():
    assert str(Score.of([0.85, 0.83], "random-20-80")) == "84.0 ± 1.4 % (random-20-80, 2 splits)"
    assert str(Score.of([0.815], "public")) == "81.5 % (public, 1 split)"


def test_a_notebook_shows_the_protocol_too():
    score = Score.of([0.85, 0.83], "random-20-80")
    shown = ProbeResult("random-20-80", 0.2, score, Score.of([0.5, 0.5], "random-20-80"))._repr_html_()
    assert "<caption>random-20-80, 2 splits</caption>" in shown
    assert "<th>accuracy</th><td>84.0 ± 1.4 %</td>" in shown
    assert "<th>macro-F1</th><td>50.0 ± 0.0 %</td>" in shown
    assert "<td>84.0 ± 1.4 %</td>" in score._repr_html_()


def test_the_deviation_is_the_samples():
    score = Score.of([0.5, 0.7, 0.9], "public")
    assert score.mean == pytest.approx(0.7)
    assert score.std == pytest.approx(0.2)
    assert Score.of([0.5], "public").std == 0.0


def test_its_dictionary_is_the_contract(blobs):
    z, y = blobs()
    found = linear_probe(z, y, "random-20-80", repeats=3).to_dict()
    assert list(found) == ["protocol", "label_fraction", "trained_on", "classes", "accuracy", "macro_f1"]
    assert found["protocol"] == "random-20-80"
    assert found["label_fraction"] == 0.2
    for name in ("accuracy", "macro_f1"):
        assert list(found[name]) == ["mean", "std", "per_split"]
        assert [type(value) for value in found[name]["per_split"]] == [float] * 3
        assert type(found[name]["mean"]) is type(found[name]["std"]) is float
        assert 0 <= found[name]["mean"] <= 1


def test_it_comes_back_from_json():
    score = Score.of([0.5, 0.7], "random-20-80")
    result = ProbeResult("random-20-80", 0.2, score, score, trained_on=80, classes=3, split=4)
    assert ProbeResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    older = {name: value for name, value in result.to_dict().items() if name not in ("trained_on", "classes", "split")}
    assert ProbeResult.from_dict(older) == replace(result, trained_on=None, classes=None, split=None)


def test_splits_are_numbered_from_the_one_that_was_evaluated():
    score = Score.of([0.5, 0.7], "random-20-80")
    assert ProbeResult("random-20-80", 0.2, score, score).by_split() == {0: 0.5, 1: 0.7}
    one = Score.of([0.6], "random-20-80")
    assert ProbeResult("random-20-80", 0.2, one, one, split=7).by_split() == {7: 0.6}


def test_its_text_names_the_protocol(blobs):
    z, y = blobs()
    text = str(linear_probe(z, y, repeats=2))
    assert text.startswith("random-10-10-80, 2 splits: accuracy ")
    assert ", macro-F1 " in text


def test_a_classifier_of_few_nodes_is_named(blobs):
    z, y = blobs(n=100)
    y[60:] = -1
    few = linear_probe(z, y, repeats=2)
    assert (few.trained_on, few.classes) == (6, len(y[y >= 0].unique()))
    assert replace(few, classes=4).too_few() == (
        "random-10-10-80 learns 4 classes from only 6 nodes, so its score says little"
    )
    assert replace(few, classes=3).too_few() is None
    assert replace(few, trained_on=None).too_few() is None  # as an earlier version wrote it
