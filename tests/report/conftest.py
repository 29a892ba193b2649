"""A small run with ids that are markup, and the page made of it."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
import torch

MARKUP = "</script><img src=x onerror=\"document.title='taken'\">"


def write_graph(folder, *, labelled=True):
    rng = np.random.default_rng(0)
    folder.mkdir()
    names = [MARKUP if i == 5 else f"person {i:02d} & co" for i in range(60)]
    pairs = {(int(a), int(b)) for a, b in rng.integers(60, size=(900, 2)) if a < b and a % 2 == b % 2}
    tables = {"edges.csv": [["source", "target"], *([names[a], names[b]] for a, b in sorted(pairs))]}
    labels = ["" if i < 3 or not labelled else ["<b>blue</b>", "red"][i % 2] for i in range(60)]
    tables["nodes.csv"] = [["id", "label"], *zip(names, labels, strict=True)]
    for name, rows in tables.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    np.save(folder / "features.npy", rng.normal(size=(60, 6)).astype("float32"))
    return folder


def train(source, folder, method="costa-sv", **given):
    from costa import runs
    from costa.graphs import load_graph
    from costa.methods import get_method
    from costa.settings.presets import resolve

    graph = load_graph(str(source))
    resolved = resolve(get_method(method), graph, given=given)
    runs.execute(runs.Job(graph, str(source), method, resolved, torch.device("cpu")), folder, seed=0)
    return folder


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """A run on the user's own graph, its facts and its page."""
    from costa.graphs import load_graph
    from costa.report.facts import gather
    from costa.report.page import render

    place = tmp_path_factory.mktemp("report")
    source = write_graph(place / "friends")
    given = {"encoder.kind": "gcn", "train.epochs": 8, "encoder.width": 32, "head.width": 16}
    folder = train(source, place / "run", **given)
    facts = gather(folder)
    (folder / "report.html").write_text(render(facts), encoding="utf-8")
    return SimpleNamespace(folder=folder, facts=facts, graph=load_graph(str(source)), page=folder / "report.html")
