"""What the page says of a run, section by section."""

import dataclasses

import numpy as np
import pytest

from costa.evaluate.baselines import Baseline
from costa.evaluate.health import Health
from costa.evaluate.profiles import Trait
from costa.evaluate.samples import Sample
from costa.insight.clusters import Clusters
from costa.report.columns import Columns
from costa.report.page import render

from .conftest import MARKUP


def changed(small_run, **metrics):
    return render(dataclasses.replace(small_run.facts, metrics=dataclasses.replace(small_run.facts.metrics, **metrics)))


@pytest.mark.parametrize(
    ("rank", "cosine", "words"),
    [
        (1.5, 0.5, "along a single line"),
        (9, 0.995, "Almost: they differ"),
        (9, 0.9, "No, but they share one strong direction"),
        (9, 0.1, "No: they point"),
    ],
)
def test_health_in_a_plain_sentence(small_run, rank, cosine, words):
    assert words in changed(small_run, health=Health(rank, cosine))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("collapsed", "all vectors point the same way"),
        ("diverged", "values that are not numbers"),
        ("interrupted", "--resume"),
    ],
)
def test_a_run_that_went_wrong_says_so_first(small_run, status, words):
    text = changed(small_run, status=status)
    assert words in text[: text.index("<main>")]
    assert 'role="alert"' in text


def test_training_that_did_not_help_is_told(small_run):
    low, high = Baseline(accuracy=0, nmi=0), Baseline(accuracy=1, nmi=1)
    text = changed(small_run, baselines={"raw": low, "diffused": high, "untrained": low})
    assert "diffused features, without any training, 100.0 %" in text[text.index("Training did not help") :]
    assert "Training did not help" not in changed(small_run, baselines=None)


def test_a_score_of_few_labels_says_so(small_run):
    assert "its score says little" not in changed(small_run, probes=small_run.facts.metrics.probes[:1])
    few = dataclasses.replace(small_run.facts.metrics.probes[0], trained_on=3, classes=2)
    assert "learns 2 classes from only 3 nodes, so its score says little" in changed(small_run, probes=[few])


def test_labels_that_were_not_used_are_told(small_run):
    assert "costa probe RUN" in changed(small_run, probes=[], clustering=None, baselines=None)


def test_losses_that_are_no_numbers_are_counted(small_run):
    losses = [(1, 3.0), (2, 2.0), (3, float("nan"))]
    assert "In 1 epoch the loss was not a number" in render(dataclasses.replace(small_run.facts, losses=losses))
    assert "A curve needs at least two epochs" in render(dataclasses.replace(small_run.facts, losses=losses[:1]))


def test_samples_are_told_beside_what_they_show(small_run):
    told = " All scores are those of 50,000 of 1,000,000 labelled nodes, drawn at random."
    assert told in changed(small_run, sample=Sample(50_000, 10**6))
    assert told not in changed(small_run)
    nodes = dataclasses.replace(small_run.facts.nodes, of=90)
    told = " The map shows 60 of 90 nodes: the clusters' typical ones, and others drawn at random;"
    assert told in render(dataclasses.replace(small_run.facts, nodes=nodes))


def with_columns(small_run, **nodes):
    return render(dataclasses.replace(small_run.facts, nodes=dataclasses.replace(small_run.facts.nodes, **nodes)))


def test_clusters_have_their_size_typical_nodes_and_traits(small_run):
    found = Clusters(np.repeat([0, 1], [45, 15]), [45, 15], [[8, 5], [9]], 0.25)
    traits = [Trait("income", "12,346", "0.123", 0.9), Trait(f"{MARKUP} = <b>pro", "80%", "10%", 0.7)]
    text = with_columns(small_run, found=found, traits=[traits, []])
    section = text[text.index('<section id="clusters"') : text.index('<section id="quality"')]
    assert ">45 <small>75%</small>" in section
    assert '<a href="#id=person%2008%20%26%20co">person 08 &amp; co</a>, <a href="#id=%3C%2Fscript' in section
    assert "<li>income 12,346 (all: 0.123)</li>" in section
    assert " = &lt;b&gt;pro 80% (all: 10%)</li>" in section
    assert "into 2 clusters: the number with the largest mean silhouette (0.25;" in section
    assert "<li>no column</li>" in section
    assert "<img" not in section


def test_a_number_of_clusters_from_the_file_is_said(small_run):
    found = dataclasses.replace(small_run.facts.nodes.found, silhouette=None)
    assert "as many as <code>clusters.csv</code> in the run's folder has" in with_columns(small_run, found=found)


def test_without_columns_there_is_no_list_of_them(small_run):
    text = small_run.page.read_text(encoding="utf-8")
    assert 'id="column"' not in text[: text.index("<script")]


def test_columns_that_did_not_fit_are_named(small_run):
    text = with_columns(small_run, columns=Columns([], ["remarks", "<b>"]))
    assert "may take 8 MB of the page; these did not fit and are left out: remarks, &lt;b&gt;." in text
    assert "did not fit" not in small_run.page.read_text(encoding="utf-8")
