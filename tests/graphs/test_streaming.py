"""Large files give the same graph as small ones do, whatever they hold."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from costa.errors import InputError
from costa.graphs import graph_sizes, load_graph
from costa.graphs.storage import StoredGraph

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SMALL = "64MiB"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def links(n=30, m=200, seed=0):
    """Random links with duplicates, both directions of some, and self-loops."""
    return np.random.default_rng(seed).integers(n, size=(2, m))


def write_csv(path, columns, delimiter=","):
    rows = zip(*columns.values(), strict=True)
    lines = [delimiter.join(columns), *(delimiter.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path, columns):
    parquet.write_table(pyarrow.table(columns), path, row_group_size=50)


def matrix(n=30, d=4, seed=1):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def same(folder):
    """The graph from chunks, after a comparison with the graph from memory."""
    plain, stored = load_graph(folder), load_graph(folder, memory=SMALL)
    assert isinstance(stored, StoredGraph)
    assert not isinstance(plain, StoredGraph)
    x, other = (each.x.to_dense() for each in (plain, stored))
    assert torch.equal(x, other)
    assert (plain.x.layout, plain.name, plain.label_names) == (stored.x.layout, stored.name, stored.label_names)
    assert list(plain.node_ids) == list(stored.node_ids)
    assert torch.equal(plain.y, stored.y)
    assert torch.equal(plain.edge_index, stored.edge_index)
    assert plain.num_edges == stored.num_edges
    assert ("edge_weight" in plain) == ("edge_weight" in stored)
    if "edge_weight" in plain:
        torch.testing.assert_close(plain.edge_weight, stored.edge_weight)
    return stored


def test_row_numbers_and_an_array(tmp_path):
    source, target = links()
    write_parquet(tmp_path / "edges.parquet", {"source": source, "target": target})
    np.save(tmp_path / "features.npy", matrix())
    graph = same(tmp_path)
    assert not (Path(graph.folder) / "x.npy").exists()  # it is read where it is


@pytest.mark.parametrize("write", [write_csv, write_parquet])
@pytest.mark.parametrize("name", [lambda i: 7 * i - 50, "n{}".format, lambda i: f"{i:03d}", lambda i: float(3 * i)])
def test_ids_weights_and_labels_of_every_kind(tmp_path, write, name):
    ids = [name(i) for i in np.random.default_rng(2).permutation(30).tolist()]
    source, target = ([ids[i] for i in end] for end in links())
    weight = np.random.default_rng(3).integers(0, 4, len(source)) / 2
    kind = "csv" if write is write_csv else "parquet"
    write(tmp_path / f"edges.{kind}", {"source": source, "target": target, "weight": weight})
    labels = [["red", "", "blue", "10"][i % 4] for i in range(30)]
    write(tmp_path / f"nodes.{kind}", {"id": ids, "label": labels})
    order = np.random.default_rng(4).permutation(30)
    write(tmp_path / f"features.{kind}", {"id": [ids[i] for i in order], "a": matrix()[:, 0], "b": matrix()[:, 1]})
    same(tmp_path)


@pytest.mark.parametrize("labels", [[3, 1, 2] * 10, [1.0, None, 2.0] * 10, [None, "x", "y"] * 10])
def test_typed_labels(tmp_path, labels):
    source, target = links()
    write_parquet(tmp_path / "edges.parquet", {"source": source, "target": target})
    write_parquet(tmp_path / "nodes.parquet", {"id": list(range(30)), "label": labels})
    np.save(tmp_path / "features.npy", matrix())
    same(tmp_path)


@pytest.mark.parametrize("density", [0.03, 0.5])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_features(tmp_path, density, compressed):
    source, target = links()
    write_csv(tmp_path / "edges.csv", {"source": source, "target": target})
    x = scipy.sparse.random_array((30, 40), density=density, rng=5, format="csr")
    scipy.sparse.save_npz(tmp_path / "features.npz", x, compressed=compressed)
    graph = same(tmp_path)
    rows = graph.rows_of_x(7, 20).to_dense()
    assert torch.equal(rows, graph.x.to_dense()[7:20])
    assert torch.equal(graph.some_rows_of_x(9).to_dense(), graph.x.to_dense()[::4])


@pytest.mark.parametrize("kind", ["csc", "coo"])
@pytest.mark.parametrize("density", [0.03, 0.5])
def test_sparse_features_in_another_format(tmp_path, kind, density, monkeypatch):
    monkeypatch.setattr("costa.graphs.entries.CHUNK", 7)
    source, target = links()
    write_csv(tmp_path / "edges.csv", {"source": source, "target": target})
    x = scipy.sparse.random_array((30, 30), density=density, rng=5, format=kind)
    if kind == "coo":  # entries in no order, one of them twice
        order = np.random.default_rng(6).permutation(np.r_[0, : x.nnz])
        x = scipy.sparse.coo_array((np.r_[x.data][order], (x.row[order], x.col[order])), shape=x.shape)
    scipy.sparse.save_npz(tmp_path / "features.npz", x)
    assert not list(Path(same(tmp_path).folder).glob("raw*"))
    assert graph_sizes(tmp_path, memory=SMALL).columns == 30


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("part", [0, 1])
def test_torn_sparse_features_are_refused(tmp_path, kind, part):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    x = scipy.sparse.random_array((30, 20), density=0.1, rng=5, format=kind)
    scipy.sparse.save_npz(tmp_path / "features.npz", x)
    saved = dict(np.load(tmp_path / "features.npz"))
    name = (("row", "col") if kind == "coo" else ("indices", "indptr"))[part]
    for torn in (saved[name][:-1], saved[name] + 1000, -1 - saved[name]):
        np.savez(tmp_path / "features.npz", **(saved | {name: torn}))
        with pytest.raises(InputError, match=f"do not fit together as a {kind.upper()} matrix"):
            load_graph(tmp_path, memory=SMALL)
    np.savez(tmp_path / "features.npz", **{key: value for key, value in saved.items() if key != name})
    with pytest.raises(InputError, match=f"lacks {name}; save it again"):
        load_graph(tmp_path, memory=SMALL)


@pytest.mark.parametrize("kind", ["bsr", "dia"])
def test_sparse_features_in_a_rare_format_are_refused(tmp_path, kind):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    scipy.sparse.save_npz(tmp_path / "features.npz", scipy.sparse.eye_array(30).asformat(kind))
    with pytest.raises(InputError, match=f"of the format {kind}; save it as CSR"):
        load_graph(tmp_path, memory=SMALL)


def test_an_array_of_another_type_is_converted(tmp_path):
    source, target = links()
    write_csv(tmp_path / "edges.csv", {"source": source, "target": target})
    np.save(tmp_path / "features.npy", np.asfortranarray(matrix().astype(np.float64)))
    same(tmp_path)
    (tmp_path / "features.npy").unlink()
    np.savez_compressed(tmp_path / "features.npz", matrix().astype(np.int8))
    assert not list(Path(same(tmp_path).folder).glob("raw*"))


def test_a_graph_in_memory_can_be_kept_on_disk():
    plain, stored = load_graph("digits"), load_graph("digits", memory=SMALL)
    assert isinstance(stored, StoredGraph)
    assert stored.name == "digits"
    order = torch.argsort(plain.edge_index[0] * plain.num_nodes + plain.edge_index[1])
    assert torch.equal(plain.edge_index[:, order], stored.edge_index)
    assert torch.equal(plain.x, stored.x)
    assert torch.equal(plain.y, stored.y)


def test_changed_files_are_read_again(tmp_path):
    source, target = links()
    write_csv(tmp_path / "edges.csv", {"source": source, "target": target})
    np.save(tmp_path / "features.npy", matrix())
    first, again = same(tmp_path), same(tmp_path)
    assert first.folder == again.folder
    write_csv(tmp_path / "edges.csv", {"source": source[:50], "target": target[:50]})
    assert same(tmp_path).fingerprint != first.fingerprint


BAD = {
    "unknown id": ("source,target\n0,1\n2,31\n", None, "the target '31' in row 2, which is not a row number"),
    "empty id": ("source,target\n0,1\n,3\n", None, "an empty source in row 2"),
    "no column": ("source,to\n0,1\n", None, "needs the columns 'source' and 'target' .* but has only 'source', 'to'"),
    "weights": ("source,target,weight\n0,1,1\n1,2,-1\n", None, "the weight -1 in row 2"),
    "text as weight": ("source,target,weight\n0,1,heavy\n", None, "cannot be read"),
    "ragged": ("source,target\n0,1\n1,2,3\n", None, "cannot be read"),
    "twice": ("source,target\n0,1\n", "id\n0\n1\n0\n", "lists the id '0' twice, in rows 1 and 3"),
    "count": ("source,target\n0,1\n", "id\n0\n1\n", "has 30 rows, but nodes.csv lists 2 nodes"),
    "written otherwise": ("source,target\n0,1.0\n", None, "write ids the same way everywhere"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_sentence(tmp_path, case):
    edges, nodes, sentence = BAD[case]
    (tmp_path / "edges.csv").write_text(edges)
    if nodes is not None:
        (tmp_path / "nodes.csv").write_text(nodes)
    np.save(tmp_path / "features.npy", matrix())
    with pytest.raises(InputError, match=sentence):
        load_graph(tmp_path, memory=SMALL)
    assert not list((tmp_path / "cache" / "costa" / "graphs").iterdir())  # nothing is left behind


def test_features_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    for value, sentence in ((np.nan, "NaN or no value in row 3, column 1"), (np.inf, "an infinite value")):
        x = matrix()
        x[3, 1] = value
        np.save(tmp_path / "features.npy", x)
        with pytest.raises(InputError, match=sentence):
            load_graph(tmp_path, memory=SMALL)
    np.save(tmp_path / "features.npy", matrix(n=1))
    (tmp_path / "edges.csv").write_text("source,target\n0,0\n")
    with pytest.raises(InputError, match="at least 2 nodes"):
        load_graph(tmp_path, memory=SMALL)
    np.save(tmp_path / "features.npy", 0 * matrix())
    with pytest.raises(InputError, match="nothing but zeros"):
        load_graph(tmp_path, memory=SMALL)


def start_reading(folder):
    """Another process that reads the folder's files, and waits before it is done."""
    program = """
import sys, time
from costa.graphs import load_graph, streaming

def wait(*arguments):
    print("waiting", flush=True)
    time.sleep(60)

streaming.finish = wait
load_graph(sys.argv[1], memory="64MiB")
"""
    process = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n"
    return process


def test_what_a_killed_process_was_writing_is_removed_and_what_a_living_one_writes_is_kept(tmp_path):
    cache = tmp_path / "cache" / "costa" / "graphs"
    source, target = links()
    write_csv(tmp_path / "edges.csv", {"source": source, "target": target})
    np.save(tmp_path / "features.npy", matrix())
    process = start_reading(tmp_path)
    try:
        (building,) = cache.iterdir()
        graph = load_graph(tmp_path, memory=SMALL)
        assert {building, Path(graph.folder)} == set(cache.iterdir())
    finally:
        process.kill()
        process.wait()
    assert building.exists()
    load_graph(tmp_path, memory=SMALL)  # although the graph is there
    assert [Path(graph.folder)] == list(cache.iterdir())
