"""From a messy table and a list of edges to answers, by commands alone, against the truth that was planted."""

import csv
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from sklearn.metrics import normalized_mutual_info_score

from costa.cli import main
from tests.shop import COLUMNS, INTERESTS, write_shop

COMMAND = Path(sys.executable).parent / "costa"
ASKED = 8
"""Nodes of each kind whose nearest ones are asked for."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """``costa train`` as a process of its own, and a function for the commands after it, which share their imports."""
    place = tmp_path_factory.mktemp("walk")
    truth = write_shop(place / "shop")
    trained = subprocess.run(
        [COMMAND, "train", "shop", "--hold-out-edges", "0.1", "--out", "run"],
        cwd=place,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
    )
    assert trained.returncode == 0, trained.stderr

    def run(*arguments):
        out, err = StringIO(), StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(place)
            patch.setenv("COLUMNS", "200")
            patch.setattr("sys.argv", ["costa", *map(str, arguments)])
            with pytest.raises(SystemExit) as stopped:
                main()
        assert not stopped.value.code, err.getvalue()
        return out.getvalue()

    return SimpleNamespace(truth=truth, said=trained.stdout + trained.stderr, folder=place / "run", costa=run)


@pytest.fixture(scope="module")
def predicted(walk):
    """What ``costa predict`` prints and writes."""
    return walk.costa("predict", "run"), read(walk.folder / "predictions.csv")


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_nothing_of_the_folder_is_dropped_in_silence(walk):
    rows = {line.split(":")[0].strip() for line in walk.said.splitlines()}
    assert rows.issuperset({*COLUMNS} - {"entity_id", "label"})
    assert "the column 'entity_id' is taken for the nodes' ids" in walk.said
    labelled = sum(row["label"] != "" for row in read(walk.folder.parent / "shop" / "nodes.csv"))
    assert f"4 classes on {labelled} of the nodes" in walk.said
    assert "800 nodes" in walk.said
    assert "(weighted)" in walk.said
    assert "orders-2019.xlsx is not read" in walk.said


def test_the_graph_and_the_columns_together_tell_more_than_the_baselines(walk):
    metrics = json.loads((walk.folder / "metrics.json").read_text())
    accuracy = metrics["probes"][0]["accuracy"]["mean"]
    assert accuracy > max(baseline["accuracy"] for baseline in metrics["floor"].values()) + 0.05


def test_labels_are_predicted_as_well_as_was_said(walk, predicted):
    said, rows = predicted
    assert {row["id"] for row in rows} == walk.truth.keys()
    missing = [row for row in rows if row["given-or-predicted"] == "predicted"]
    assert len(missing) == sum(row["label"] == "" for row in read(walk.folder.parent / "shop" / "nodes.csv"))
    right = 100 * sum(row["label"] == walk.truth[row["id"]][1] for row in missing) / len(missing)
    mean, spread = map(float, re.search(r"the vectors +([\d.]+) ± ([\d.]+) %", said).groups())
    assert abs(right - mean) < 2 * spread
    assert mean > float(re.search(r"raw features +([\d.]+)", said)[1]) + 15
    assert all(row["label"] == walk.truth[row["id"]][1] for row in rows if row["given-or-predicted"] == "given")


def test_the_nearest_nodes_are_of_the_same_interest(walk):
    same = []
    for kind in ("customer", "product"):
        for node in sorted(node for node, (of, _) in walk.truth.items() if of == kind)[:ASKED]:
            near = re.findall(r"^ (\d+) .*\d\.\d{3}", walk.costa("similar", "run", node, "-k", 5), re.MULTILINE)
            assert len(near) == 5
            same += [walk.truth[each] == walk.truth[node] for each in near]
    assert sum(same) / len(same) > 0.6  # of the eight combinations, the largest has a sixth of the nodes


def test_clusters_are_the_kinds_and_within_them_the_interests(walk):
    assert "kind = product 100%" in walk.costa("clusters", "run")
    rows = read(walk.folder / "clusters.csv")
    assert agreement(rows, [walk.truth[row["id"]][0] for row in rows]) > 0.95
    walk.costa("clusters", "run", "--clusters", 8)
    rows = read(walk.folder / "clusters.csv")
    assert {row["id"] for row in rows} == walk.truth.keys()
    assert agreement(rows, [walk.truth[row["id"]] for row in rows]) > 0.6


def agreement(rows, truth):
    """Normalised mutual information."""
    return normalized_mutual_info_score([str(about) for about in truth], [row["cluster"] for row in rows])


def test_likely_links_join_a_customer_and_a_product_of_one_interest(walk):
    assert "chose the logistic regression" in " ".join(walk.costa("probe", "run", "--task", "links").split())
    walk.costa("links", "run")
    pairs = [(walk.truth[row["source"]], walk.truth[row["target"]]) for row in read(walk.folder / "links.csv")]
    assert len(pairs) == 100
    assert sum(source[0] != target[0] for source, target in pairs) > 85
    assert sum(source[1] == target[1] for source, target in pairs) > 75


def test_the_page_has_every_node(walk):
    walk.costa("report", "run")
    page = (walk.folder / "report.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="nodes">(.*?)</script>', page, flags=re.DOTALL)
    assert set(json.loads(data)["ids"]) == walk.truth.keys()
    assert all(interest in page for interest in INTERESTS)
