"""What headers tell of a graph is what it has."""

import csv

import numpy as np
import pytest
import scipy.sparse

from costa.graphs import graph_sizes, load_graph
from costa.graphs.sizes import sizes_of
from costa.graphs.synthetic import planted_partition


def write_tables(folder, graph, kind, *, weighted=False):
    """The edges, each once, and all nodes."""
    folder.mkdir()
    links = [link for link in graph.edge_index.T.tolist() if link[0] < link[1]]
    names = ["source", "target", *(["weight"] if weighted else [])]
    rows = [[*link, *([1.5] if weighted else [])] for link in links]
    nodes = [[i, f"class {y}"] for i, y in enumerate(graph.y.tolist())]
    for stem, header, content in (("edges", names, rows), ("nodes", ["id", "label"], nodes)):
        if kind == "parquet":
            pyarrow = pytest.importorskip("pyarrow")
            from pyarrow import parquet

            columns = dict(zip(header, map(list, zip(*content, strict=True)), strict=True))
            parquet.write_table(pyarrow.table(columns), folder / f"{stem}.parquet")
        else:
            with (folder / f"{stem}.{kind}").open("w", newline="") as file:
                csv.writer(file, delimiter="\t" if kind == "tsv" else ",").writerows([header, *content])
    return folder


@pytest.fixture(scope="module")
def graph():
    return planted_partition(300, 3, 12, degree=6, seed=0)


def write_features(folder, graph, kind):
    x = graph.x.numpy().copy()
    if kind == "npy":
        np.save(folder / "features.npy", x)
    elif kind == "sparse":
        x[:, 1:] = 0
        scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.csr_array(x))
    elif kind == "npz":
        np.savez(folder / "features.npz", x=x)
    else:
        with (folder / "features.csv").open("w", newline="") as file:
            rows = [[i, *row] for i, row in enumerate(x.tolist())]
            csv.writer(file).writerows([["id", *(f"x{i}" for i in range(x.shape[1]))], *rows])


@pytest.mark.parametrize("tables", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("features", ["npy", "npz", "sparse", "csv"])
@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_headers_tell_what_reading_finds(tmp_path, graph, tables, features, memory):
    if memory is not None:
        pytest.importorskip("pyarrow")
    folder = write_tables(tmp_path / "mine", graph, tables)
    write_features(folder, graph, features)
    told = graph_sizes(folder, memory=memory)
    found = sizes_of(load_graph(folder, memory=memory))
    for name in ("nodes", "edges", "columns", "entries", "labels", "weighted", "named", "on_disk", "folder"):
        assert getattr(told, name) == getattr(found, name), name
    assert not told.read
    assert found.read
    assert graph_sizes(folder, memory=memory).read == (memory is not None)


def test_only_a_float32_array_is_used_where_it_is(tmp_path, graph):
    pytest.importorskip("pyarrow")
    folder = write_tables(tmp_path / "mine", graph, "csv", weighted=True)
    write_features(folder, graph, "npy")
    told = graph_sizes(folder, memory="1GiB")
    assert (told.copied, told.weighted) == (False, True)
    np.save(folder / "features.npy", graph.x.numpy().astype("float64"))
    assert graph_sizes(folder, memory="1GiB").copied


def test_the_rows_of_a_large_text_are_told_from_parts_of_it(tmp_path):
    with (tmp_path / "edges.csv").open("w") as file:
        file.write("source,target\n")
        file.writelines(f"{i},{7 * i}\n" for i in range(120_000))
    np.save(tmp_path / "features.npy", np.ones((9, 2), dtype="float32"))
    assert graph_sizes(tmp_path).edges == pytest.approx(120_000, rel=0.03)


def test_a_bundle_tells(tmp_path, graph):
    np.savez(tmp_path / "all.npz", edge_index=graph.edge_index.numpy(), x=graph.x.numpy(), y=graph.y.numpy())
    told = graph_sizes(tmp_path / "all.npz")
    assert (told.nodes, told.columns, told.edges) == (300, 12, graph.num_edges)


def test_without_features_a_table_of_nodes_tells(tmp_path, graph):
    folder = write_tables(tmp_path / "mine", graph, "csv")
    assert graph_sizes(folder).columns == load_graph(folder).num_features
    (folder / "nodes.csv").unlink()
    assert graph_sizes(folder) is None


def test_what_headers_do_not_tell_is_not_told(tmp_path, graph):
    assert graph_sizes("cora") is None
    folder = write_tables(tmp_path / "mine", graph, "csv")
    (folder / "features.npy").write_bytes(b"no array")
    assert graph_sizes(folder) is None  # whoever reads it says so
