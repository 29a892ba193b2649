"""``costa clusters``."""

import csv
import html
import re

import numpy as np
import pytest

from costa import runs


@pytest.fixture
def friends_run(own_graph, costa, tmp_path):
    """A run whose vectors are set to two directions, one for each label."""
    run = tmp_path / "run"
    assert costa("train", own_graph, "--epochs", 1, "--set", "encoder.width=4", "--no-probe", "--out", run).code == 0
    noise = np.random.default_rng(0).normal(0, 0.05, (60, 4))
    np.save(run / "embeddings.npy", (np.eye(4)[np.arange(60) % 2 * (np.arange(60) > 5)] + noise).astype("float32"))
    return run


def test_each_cluster_has_its_size_its_typical_nodes_and_what_sets_it_apart(friends_run, costa):
    result = costa("clusters", friends_run)
    assert result.code == 0, result.err
    typical = r"  typical  (person \d\d(?:, )?){5}\n"
    said = re.compile(
        r"friends: 60 nodes in 2 clusters, chosen by the mean silhouette \(0\.\d\d\)\n"
        rf"\ncluster 1: 33 nodes \(55%\)\n{typical}  apart    label = blue 93% \(all: 49%\).*\n"
        rf"\ncluster 2: 27 nodes \(45%\)\n{typical}  apart    label = red 100% \(all: 51%\).*\n"
    )
    assert said.match(result.out), result.out
    assert result.out.endswith(f"\n{friends_run / 'clusters.csv'}\n")
    with (friends_run / "clusters.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"person {i:02d}" for i in range(60)]
    assert [int(row["cluster"]) for row in rows] == [1 + (i % 2 and i > 5) for i in range(60)]


@pytest.mark.parametrize("options", [(), ("--clusters", 3)])
def test_the_report_shows_the_same_clusters(friends_run, costa, options):
    z = np.eye(4)[np.arange(60) % 4] + np.random.default_rng(0).normal(0, 0.1, (60, 4))
    np.save(friends_run / "embeddings.npy", z.astype("float32"))
    printed = costa("clusters", friends_run, *options).out
    if not options:
        (friends_run / "clusters.csv").unlink()  # the report finds the number in the same way
    assert costa("report", friends_run).code == 0
    page = (friends_run / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="clusters"') : page.index('<section id="quality"')]
    rows = re.findall(r"<tr><th scope=\"row\">(cluster \d+)</th>.*?>([\d,]+) <small>(\d+%)</small>(.*?)</tr>", section)
    shown = [
        f"{name}: {size} nodes ({share})\n  typical  {', '.join(re.findall(r'>([^<]+)</a>', rest))}\n"
        f"  apart    {'; '.join(re.findall(r'<li>(.*?)</li>', rest))}\n"
        for name, size, share, rest in rows
    ]
    assert len(shown) == (3 if options else 4)
    assert printed.split("\n", 2)[2].startswith("\n".join(map(html.unescape, shown)))


def test_as_many_clusters_as_are_asked_for(friends_run, costa):
    result = costa("clusters", friends_run, "--clusters", 3)
    assert result.out.startswith("friends: 60 nodes in 3 clusters\n")
    assert result.out.count("\ncluster ") == 3


@pytest.mark.parametrize(
    ("number", "says"), [("many", "is not a number of clusters"), ("99", "the vectors make 2 to 60 clusters, not 99")]
)
def test_another_number_is_one_sentence(friends_run, costa, number, says):
    result = costa("clusters", friends_run, "--clusters", number)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert says in result.err
    assert not (friends_run / "clusters.csv").exists()


def test_a_run_on_a_disk_graph_is_clustered_from_there(own_graph, costa, tmp_path):
    pytest.importorskip("pyarrow")
    run = tmp_path / "stored"
    options = ("--epochs", 1, "--set", "encoder.width=4", "--no-probe", "--memory", "1GiB", "--out", run)
    assert costa("train", own_graph, *options).code == 0
    result = costa("clusters", run, "--clusters", 2)
    assert result.code == 0, result.err
    assert len((run / "clusters.csv").read_text().splitlines()) == 61
    assert len(runs.load_embeddings(run)) == 60
