"""A small run with ids that are markup, the page made of it, and a browser to open it in."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from .chromium import ARGUMENTS, CHROMIUM, settle

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


@pytest.fixture(scope="session")
def table():
    """A table of the 60 nodes, as text from CSV."""
    from costa.graphs.tables import Table

    columns = {
        "age": ["" if i % 10 == 4 else str(20 + i) for i in range(60)],
        "plan": ["" if i < 2 else ["basic", "plus", "=pro"][i % 3] for i in range(60)],
        MARKUP: [f"{MARKUP} {i}" for i in range(60)],
        "degree": [str(i % 7) for i in range(60)],
    }
    return Table("the table", "the table", columns, 60)


@pytest.fixture(scope="session")
def tabled(small_run, table, tmp_path_factory):
    """The page of the run with this table."""
    from costa.evaluate.profiles import profiles
    from costa.report.columns import columns_of
    from costa.report.page import render

    graph = small_run.graph.clone()
    graph.table = table
    shown = small_run.facts.nodes
    columns = columns_of(graph, shown.shown)
    nodes = replace(shown, columns=columns, traits=profiles(graph, shown.found.of, len(shown.found.sizes)))
    page = tmp_path_factory.mktemp("tabled") / "report.html"
    page.write_text(render(replace(small_run.facts, nodes=nodes)), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser():
    """Chromium; without it these tests are skipped."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    reason = "playwright is not installed (pip install playwright)"
    with pytest.importorskip("playwright.sync_api", reason=reason).sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, small_run):
    """Open the page: visit(width=…) → the page, with what it asked for and complained about."""
    opened = []

    def open_page(width=1000, scheme="light", path=small_run.page, address=""):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        opened.append(context)
        page = context.new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri() + address)
        settle(page)
        return page

    yield open_page
    for context in opened:
        context.close()
