"""From two CSV files to vectors with ids, no Python written."""

import csv
import json

import numpy as np
import pytest

NAMES = [f"{name} {i}" for i in range(15) for name in ("zoë", "Ann, of York")]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "friends"
    folder.mkdir()
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        pairs = rng.integers(30, size=(90, 2))
        csv.writer(file).writerows([["source", "target"], *([NAMES[a], NAMES[b]] for a, b in pairs)])
    with (folder / "features.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [[name, *row] for name, row in zip(NAMES, rng.normal(size=(30, 3)).round(3), strict=True)]
        csv.writer(file).writerows([["id", "a", "b", "c"], *rows])
    return folder


def vectors(path):
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            _, *rows = csv.reader(file)
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pandas().values.tolist()
    return [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=np.float32)


def test_two_files_to_vectors_with_ids(folder, costa, tmp_path):
    run = tmp_path / "run"
    trained = costa("train", f"{folder}/", "--out", run, "--epochs", 3)
    assert trained.code == 0, trained.err
    assert "friends: 30 nodes" in trained.out
    z = np.load(run / "embeddings.npy")
    ids, rows = vectors(run / "embeddings.parquet")
    assert ids == NAMES
    np.testing.assert_array_equal(rows, z)
    # a vector belongs to its id, not to its place
    lines = (folder / "features.csv").read_text(encoding="utf-8").splitlines()
    (folder / "features.csv").write_text("\n".join([lines[0], *lines[:0:-1]]), encoding="utf-8")
    assert costa("embed", run, folder, "--out", tmp_path / "z.csv").code == 0
    ids, rows = vectors(tmp_path / "z.csv")
    assert ids == NAMES[::-1]
    np.testing.assert_allclose(rows[::-1], z, atol=1e-5)


def test_files_named_one_by_one(folder, costa, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    run = tmp_path / "run"
    named = ["--edges", "edges.csv", "--features", "features.csv"]
    trained = costa("train", *named, "--out", run, "--epochs", 2)
    assert trained.code == 0, trained.err
    assert vectors(run / "embeddings.parquet")[0] == NAMES
    spec = json.loads((run / "config.json").read_text())["graph"]
    assert spec == f"{folder}/edges.csv + features {folder}/features.csv"
    assert costa("embed", run, *named, "--out", tmp_path / "z.csv").code == 0
    np.testing.assert_allclose(vectors(tmp_path / "z.csv")[1], np.load(run / "embeddings.npy"), atol=1e-6)
    assert costa("embed", run, spec, "--out", tmp_path / "z.npy").code == 0


def test_a_run_of_named_files_is_evaluated_later_unless_one_is_gone(folder, costa, tmp_path):
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "label"], *([name, name[0]] for name in NAMES)])
    named = [part for what in ("edges", "features", "nodes") for part in (f"--{what}", folder / f"{what}.csv")]
    assert costa("train", *named, "--out", tmp_path / "run", "--epochs", 2, "--no-probe").code == 0
    assert "accuracy" in costa("probe", tmp_path / "run").out
    (folder / "features.csv").rename(folder / "elsewhere.csv")
    lost = costa("probe", tmp_path / "run")
    assert f"was trained on {folder}/features.csv, which no longer exists" in " ".join(lost.err.split())


@pytest.mark.parametrize("kind", ["npz", "graphml"])
def test_the_ids_of_one_file_come_back_out(kind, costa, tmp_path):
    import networkx as nx

    graph = nx.relabel_nodes(nx.path_graph(30), dict(enumerate(NAMES)))
    for i, node in enumerate(graph):
        graph.nodes[node]["place"] = i - 15.0
    if kind == "npz":
        index = np.array([range(29), range(1, 30)])
        np.savez(tmp_path / "g.npz", edge_index=index, x=np.arange(-15.0, 15)[:, None], node_ids=np.array(NAMES))
    else:
        nx.write_graphml(graph, tmp_path / "g.graphml")
    trained = costa("train", tmp_path / f"g.{kind}", "--out", tmp_path / "run", "--epochs", 2)
    assert trained.code == 0, trained.err
    ids, rows = vectors(tmp_path / "run" / "embeddings.parquet")
    assert ids == NAMES
    np.testing.assert_array_equal(rows, np.load(tmp_path / "run" / "embeddings.npy"))


def test_several_seeds_of_files_named_one_by_one(folder, costa, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    named = ["--edges", "edges.csv", "--features", "features.csv", "--method", "raw"]
    assert costa("train", *named, "--out", tmp_path / "runs", "--seeds", 2).code == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_without_features_a_line_says_so(folder, costa, tmp_path, caplog):
    trained = costa("train", folder / "edges.csv", "--out", tmp_path / "run", "--epochs", 2)
    assert trained.code == 0, trained.err
    assert "33 features, no labels" in trained.out
    assert "comes without node features; 33 columns are made from the edges" in caplog.text
    assert set(vectors(tmp_path / "run" / "embeddings.parquet")[0]) == set(NAMES)
