"""``costa train --hold-out-edges``, ``costa probe --task links`` and ``costa links``."""

import csv
import json
import shutil

import numpy as np
import pytest

from costa import runs
from costa.graphs import load_graph
from costa.graphs.pairs import edge_numbers, number_pairs, pairs_of
from tests.graphs.other_edges import with_other_edges

SMALL = ("--epochs", 3, "--set", "encoder.width=8", "--set", "encoder.powers=0,2", "--no-probe")
"""Features without signal would choose no hop along the edges."""


@pytest.fixture
def held_out(own_graph, costa, tmp_path):
    """A run that held edges out."""
    run = tmp_path / "run"
    trained = costa("train", own_graph, "--hold-out-edges", "0.2", *SMALL, "--out", run)
    assert trained.code == 0, trained.err
    return run, trained.out


def write_edges(folder, graph):
    """The edges of a graph into the folder's table."""
    ids = graph.node_ids
    pairs = pairs_of(edge_numbers(graph)).T.tolist()
    with (folder / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *((ids[i], ids[j]) for i, j in pairs)])


def test_a_run_knows_what_it_held_out(held_out, own_graph):
    run, out = held_out
    whole = load_graph(own_graph)
    count = round(0.2 * whole.num_edges / 2)
    assert f"Held out: {count} edges, 0.2 of all; training sees the others." in out
    record = json.loads((run / "config.json").read_text())["held_out_edges"]
    assert (record["share"], record["seed"], record["edges"]) == (0.2, 0, count)
    edges = runs.load_run_edges(run, None)
    assert edges.held.shape == (2, count)
    assert edges.training.num_edges == whole.num_edges - 2 * count
    assert edges.whole.num_edges == whole.num_edges
    assert runs.load_run_graph(run, None).num_edges == edges.training.num_edges


@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize("method", ["costa-mv", "untrained"])
def test_held_out_edges_leave_no_trace_in_the_model(own_graph, costa, tmp_path, method, features):
    if not features:
        (own_graph / "features.npy").unlink()
    more = ("--epochs", 3, "--set", "encoder.steps=2") if method == "costa-mv" else ()
    given = ("train", own_graph, "--method", method, *more)
    runs_of = {}
    for name in ("one", "other"):
        run = runs_of[name] = tmp_path / name
        trained = costa(*given, "--hold-out-edges", "0.2", "--out", run)
        assert trained.code == 0, trained.err
        if name == "one":
            write_edges(own_graph, with_other_edges(load_graph(own_graph), 0.2))
    records = [json.loads((run / "config.json").read_text()) for run in runs_of.values()]
    assert records[0]["held_out_edges"]["digest"] != records[1]["held_out_edges"]["digest"]
    assert records[0]["settings"] == records[1]["settings"]
    for file in ("model.safetensors", "embeddings.npy"):
        assert (runs_of["one"] / file).read_bytes() == (runs_of["other"] / file).read_bytes()
    scores = [json.loads((run / "metrics.json").read_text()) for run in runs_of.values()]
    assert scores[0]["floor"] == scores[1]["floor"]
    assert costa(*given, "--no-probe", "--out", tmp_path / "all").code == 0
    assert (tmp_path / "all" / "embeddings.npy").read_bytes() != (run / "embeddings.npy").read_bytes()


def test_a_run_is_scored_on_what_it_held_out(held_out, costa):
    run, _ = held_out
    before = json.loads((run / "metrics.json").read_text())
    assert before["links"] is None
    probed = costa("probe", run, "--task", "links")
    assert probed.code == 0, probed.err
    names = ("cosine of vectors", "dot product", "logistic", "common neighbours", "Adamic", "preferential", "chance")
    assert all(name in probed.out for name in (*names, "raw features", "diffused features", "hits@100"))
    assert "edges to test on" in probed.out
    after = json.loads((run / "metrics.json").read_text())
    links = after.pop("links")
    del before["links"]
    assert after == before
    count = json.loads((run / "config.json").read_text())["held_out_edges"]["edges"]
    assert links["edges"] == [count // 3, count - count // 3]
    assert f"chose the {'' if links['chosen'] == 'logistic' else links['chosen']}" in " ".join(probed.out.split())
    assert costa("probe", run, "--task", "links").out == probed.out


def test_a_run_that_saw_all_edges_is_refused_with_the_command_that_makes_another(own_graph, costa, tmp_path):
    run = tmp_path / "seen"
    assert costa("train", own_graph, *SMALL, "--out", run).code == 0
    refused = costa("probe", run, "--task", "links")
    assert refused.code == 2
    assert "was trained on all edges" in refused.err
    command = refused.err.strip().partition("some out: costa ")[2].split()
    assert costa(*command, *SMALL).code == 0
    assert costa("probe", f"{run}-links", "--task", "links").code == 0


def test_the_command_names_files_as_they_were_given(own_graph, costa, tmp_path):
    files = ("--edges", own_graph / "edges.csv", "--features", own_graph / "features.npy", "--nodes")
    arguments = (*files, own_graph / "nodes.csv")
    assert costa("train", *arguments, *SMALL, "--out", tmp_path / "seen").code == 0
    refused = costa("probe", tmp_path / "seen", "--task", "links")
    assert " ".join(map(str, arguments)) in refused.err


def test_options_of_the_other_task_are_refused(held_out, costa):
    refused = costa("probe", held_out[0], "--task", "links", "--repeats", 3)
    assert (refused.code, refused.err) == (
        2,
        "costa: --repeats goes with --task labels; leave it out, or --task links.\n",
    )


def test_a_run_goes_on_only_with_the_edges_it_held_out(held_out, own_graph, costa, tmp_path):
    run, _ = held_out
    again = ("train", own_graph, *SMALL, "--out", run, "--resume")
    assert costa(*again, "--hold-out-edges", "0.2").code == 0
    for more in ((), ("--hold-out-edges", "0.3")):
        refused = costa(*again, *more)
        assert refused.code == 2
        assert "started with --hold-out-edges 0.2, drawn with the seed 0" in refused.err
    seen = tmp_path / "seen"
    assert costa("train", own_graph, *SMALL, "--out", seen).code == 0
    refused = costa("train", own_graph, *SMALL, "--out", seen, "--resume", "--hold-out-edges", "0.2")
    assert (refused.code, "has seen all edges" in refused.err) == (2, True)


def test_a_changed_graph_does_not_get_other_held_out_edges(held_out, own_graph, costa):
    run, _ = held_out
    lines = (own_graph / "edges.csv").read_text().splitlines()
    (own_graph / "edges.csv").write_text("\n".join(lines[:-1]))
    for command in (("probe", run, "--task", "links"), ("links", run), ("report", run)):
        refused = costa(*command)
        assert refused.code == 2
        assert "has other edges than when" in refused.err
    refused = costa("train", own_graph, *SMALL, "--out", run, "--resume", "--hold-out-edges", "0.2")
    assert (refused.code, "other edges than when" in refused.err) == (2, True)


def test_seeds_hold_out_the_same_edges(own_graph, costa, tmp_path):
    trained = costa("train", own_graph, "--hold-out-edges", "0.2", *SMALL, "--seeds", 2, "--out", tmp_path / "runs")
    assert trained.code == 0, trained.err
    folders = sorted((tmp_path / "runs").iterdir())
    held = [json.loads((folder / "config.json").read_text())["held_out_edges"] for folder in folders]
    assert len(held) == 2
    assert held[0] == held[1]
    alone = tmp_path / "alone"
    assert costa("train", own_graph, "--hold-out-edges", "0.2", *SMALL, "--out", alone).code == 0
    assert (alone / "embeddings.npy").read_bytes() == (folders[0] / "embeddings.npy").read_bytes()


def test_what_cannot_be_held_out_is_one_sentence(costa, tmp_path):
    for more, sentence in (
        (("--hold-out-edges", "1"), "1 of the 7,522 edges cannot be held out"),
        (("--hold-out-edges", "0.1", "--memory", "2GiB"), "digits stays on disk"),
    ):
        refused = costa("train", "digits", *more, "--out", tmp_path / "run")
        assert refused.code == 2
        assert sentence in refused.err
        assert refused.err.count("\n") == 1
        assert not (tmp_path / "run").exists()


def test_embedding_a_runs_own_graph_leaves_out_what_it_held_out(held_out, own_graph, costa, tmp_path):
    run, _ = held_out
    assert costa("embed", run, "--out", tmp_path / "own.npy").out.count("\n") == 1
    given = costa("embed", run, own_graph, "--out", tmp_path / "given.npy")
    assert "have seen all edges of friends" in given.out
    own, all_edges, vectors = (
        np.load(path) for path in (tmp_path / "own.npy", tmp_path / "given.npy", run / "embeddings.npy")
    )
    assert np.array_equal(own, vectors)
    assert not np.allclose(all_edges, vectors)


def read_links(path):
    header, *rows = list(csv.reader(path.open(newline="")))
    assert header == ["source", "target", "score"]
    return [(source, target, float(score)) for source, target, score in rows]


def test_likely_links_are_new_ones_by_the_chosen_score(held_out, own_graph, costa, tmp_path):
    run, _ = held_out
    plain = costa("links", run, "-k", 20)
    assert plain.code == 0, plain.err
    assert "Scored by the cosine of vectors (no held-out edges chose another score)" in plain.out
    whole = load_graph(own_graph)
    z = np.load(run / "embeddings.npy")
    number = {name: row for row, name in enumerate(whole.node_ids)}
    rows = read_links(run / "links.csv")
    assert len(rows) == 20
    pairs = np.array([[number[source], number[target]] for source, target, _ in rows])
    assert not {tuple(pair) for pair in pairs.tolist()} & {tuple(pair) for pair in whole.edge_index.T.tolist()}
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    scores = [score for *_, score in rows]
    assert scores == pytest.approx((unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(1), abs=1e-5)
    assert scores == sorted(scores, reverse=True)
    assert costa("probe", run, "--task", "links").code == 0
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["links"]["chosen"] = "dot"
    (run / "metrics.json").write_text(json.dumps(metrics))
    chosen = costa("links", run, "-k", 7, "--out", tmp_path / "mine.csv")
    assert "Scored by the dot product of vectors (chosen by held-out edges)" in chosen.out
    dots = z @ z.T
    dots[tuple(whole.edge_index.numpy())] = -np.inf
    best = np.sort(dots[np.triu_indices(60, 1)])[::-1][:7]
    assert [score for *_, score in read_links(tmp_path / "mine.csv")] == pytest.approx(best, rel=1e-4)


def test_links_without_ids_are_row_numbers(digits_run, costa, tmp_path):
    run = shutil.copytree(digits_run, tmp_path / "run")
    assert costa("links", run, "-k", 5).code == 0
    ends = [(int(source), int(target)) for source, target, _ in read_links(run / "links.csv")]
    numbers = number_pairs(pairs_of(edge_numbers(load_graph("digits"))))
    assert all(source < target < 1797 for source, target in ends)
    assert not {j * (j - 1) // 2 + i for i, j in ends} & set(numbers.tolist())
