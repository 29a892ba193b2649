"""`costa demo`, whole: what a newcomer sees first."""

import json

import numpy as np

from costa import demo
from costa.evaluate.baselines import BASELINES
from costa.graphs import load_graph
from costa.methods import get_method


def test_demo_prints_a_table_draws_a_picture_writes_a_page_and_says_where(costa, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "DRAWN", 100)
    out, title = tmp_path / "demo", get_method(demo.METHOD).title
    result = costa("demo", "--out", out)
    assert result.code == 0, result.err
    for line in ("Raw features", "Diffused features", "Untrained GCN", title):
        assert line in result.out
    for file in ("words.png", "demo.json"):
        assert str(out / file) in result.out
    assert (out / "words.png").read_bytes().startswith(b"\x89PNG")

    rows = {row["method"]: row for row in json.loads((out / "demo.json").read_text())}
    assert list(rows) == [*BASELINES, demo.METHOD]
    for number in ("low_label", "ten_percent"):  # edges matter, and the graph is not trivial
        assert rows["diffused"][number][0] > rows["raw"][number][0] + 0.2
        assert max(row[number][0] for row in rows.values()) < 0.97
    assert rows[demo.METHOD]["low_label"][0] > rows["diffused"]["low_label"][0]
    assert rows[demo.METHOD]["nmi"] > rows["untrained"]["nmi"] > rows["raw"]["nmi"]
    shown = next(line for line in result.out.splitlines() if title in line and "±" in line)
    assert f"{100 * rows[demo.METHOD]['ten_percent'][0]:.1f} ±" in shown

    run = out / demo.REPORTED
    assert (run / "model.safetensors").exists()
    assert json.loads((run / "config.json").read_text())["graph"] == "words"
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["clustering"]["nmi"] == rows[demo.METHOD]["nmi"]
    assert metrics["floor"]["diffused"]["accuracy"] == rows["diffused"]["ten_percent"][0]
    page = run / "report.html"
    assert str(page) in result.out
    text = page.read_text()
    assert f"<h1>words: {title}</h1>" in text
    assert '"wolf"' in text
    assert "member of the genus Canis" in text


def test_the_picture_names_one_word_of_each_kind():
    graph = load_graph(demo.GRAPH)
    kinds = [int(graph.y[graph.node_ids.index(word)]) for word in demo.MARKED]
    assert kinds == list(range(len(graph.label_names)))
    assert len(demo.COLOURS) == len(graph.label_names)
    assert f"{graph.num_nodes:,} common nouns" in demo.ABOUT


def test_words_on_the_picture_do_not_cover_each_other():
    marks = [("a", np.array([0.0, 0.0])), ("b", np.array([0.1, 0.05])), ("c", np.array([0.1, 0.1]))]
    assert [word for word, _ in demo._spaced(marks, 1.0)] == ["a", "c"]
