"""One mistake, one sentence: each case names the files it spoils and what is said, word for word."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs import as_graph, load_graph

EDGES = "source,target\nann,bob\nbob,cy\n"
FEATURES = "id,age,height\nann,31,1.7\nbob,40,1.8\ncy,29,1.6\n"
ROWS = np.arange(6.0).reshape(3, 2)
GOOD = {"edges.csv": EDGES, "features.csv": FEATURES}
NUMBERED = {"edges.csv": "source,target\n0,1\n1,2\n", "features.csv": None, "features.npy": ROWS}

Content = str | bytes | np.ndarray | dict[str, Any] | Callable[[Path], object] | None


def write(path: Path, content: Content) -> None:
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8", newline="")
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    elif content is not None:
        content(path)


def parquet(**columns: Any) -> Callable[[Path], object]:
    def save(path: Path) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)

    return save


def cut(save: Callable[[Path], object], size: int) -> Callable[[Path], object]:
    def save_part(path: Path) -> None:
        save(path)
        path.write_bytes(path.read_bytes()[:size])

    return save_part


def objects(path: Path) -> None:
    np.save(path, np.array([[1], ["a"]], dtype=object), allow_pickle=True)


WEIGHTED = "source,target,weight\nann,bob,1\nann,cy,{}\n"

# Files over those of GOOD (None: taken away) → the sentence, with FOLDER for where they are.
FOLDERS: dict[str, tuple[dict[str, Content], str]] = {
    "no edges file": (
        {"edges.csv": None},
        "the folder 'FOLDER' has no edges file; put one of edges.csv, edges.tsv, edges.parquet, edges.jsonl,"
        " edges.ndjson there.",
    ),
    "two edges files": (
        {"edges.tsv": EDGES},
        "the folder 'FOLDER' has edges.csv and edges.tsv; keep one of them.",
    ),
    "a missing column": (
        {"edges.csv": "from,target\nann,bob\n"},
        "'FOLDER/edges.csv' needs the columns 'source' and 'target' (or from and to, or src and dst) but has only"
        " 'from', 'target'; rename the columns of the edges' ends.",
    ),
    "nodes without id": (
        {"nodes.csv": "name,label\nann,a\n"},
        "'FOLDER/nodes.csv' needs a column 'id' but has only name, label; rename or add the column.",
    ),
    "an unknown id": (
        {"edges.csv": EDGES + "dan,ann\n"},
        "'FOLDER/edges.csv' has the source 'dan' in row 3, which is not an id in features.csv; add that node or drop"
        " the row.",
    ),
    "features for fewer nodes than edges name": (
        NUMBERED | {"edges.csv": "source,target\n0,1\n1,3\n"},
        "'FOLDER/edges.csv' has the target '3' in row 2, which is not a row number of features.npy (0 to 2); add that"
        " node or drop the row.",
    ),
    "a negative row number": (
        NUMBERED | {"edges.csv": "source,target\n0,-1\n"},
        "'FOLDER/edges.csv' has the target '-1' in row 1, which is not a row number of features.npy (0 to 2); add that"
        " node or drop the row.",
    ),
    "2^63": (
        NUMBERED | {"edges.csv": f"source,target\n0,{2**63}\n"},
        "'FOLDER/edges.csv' has the target '9223372036854775808' in row 1, which is not a row number of features.npy"
        " (0 to 2); add that node or drop the row.",
    ),
    "10^30 as a float": (
        {"edges.csv": None, "edges.parquet": parquet(source=[1e30], target=[1.0])},
        "'FOLDER/edges.parquet' has the float 1e+30 in row 1 of the column 'source', which is too large to be an exact"
        " whole number; store it as an integer or as text.",
    ),
    "1.0 for 1": (
        {"edges.csv": "source,target\n1.0,2.0\n", "features.csv": "id,a\n1,5\n2,6\n"},
        "'FOLDER/edges.csv' has the source '1.0' in row 1, which is not an id in features.csv, though '1' is; write ids"
        " the same way everywhere.",
    ),
    "an empty id": (
        {"edges.csv": EDGES + "ann, \n"},
        "'FOLDER/edges.csv' has an empty target in row 3; give an id or drop the row.",
    ),
    "the same id twice": (
        {"nodes.csv": "id\nann\nbob\ncy\nann\n"},
        "'FOLDER/nodes.csv' lists the id 'ann' twice, in rows 1 and 4; drop one of them.",
    ),
    "an id of bytes": (
        {"edges.csv": None, "edges.parquet": parquet(source=[b"\xff"], target=["ann"])},
        "'FOLDER/edges.parquet' has the bytes b'\\xff' in row 1 of the column 'source'; store text.",
    ),
    "inf": (
        {"features.csv": FEATURES.replace("29", "-inf")},
        "'FOLDER/features.csv' has an infinite value in row 3 of the column 'age'; replace it, or empty the cell if"
        " it is unknown.",
    ),
    "too large": (
        {"features.csv": FEATURES.replace("31", "1e39")},
        "'FOLDER/features.csv' has 1e+39, too large for float32, in row 1 of the column 'age'; replace it, or empty"
        " the cell if it is unknown.",
    ),
    "text among numbers": (
        {"features.csv": FEATURES.replace("40", "forty")},
        "'FOLDER/features.csv' has 'forty' in row 2 of the column 'age', which is not a number, while most of the"
        " column is; correct it, empty the cell, or say --columns age=category or --columns age=ignore.",
    ),
    "a column of lists": (
        {"features.csv": None, "features.parquet": parquet(id=["ann", "bob", "cy"], v=[[1.0], [2.0], [3.0]])},
        "'FOLDER/features.parquet' has [1.0] in row 1 of the column 'v', which is neither a number nor text; write it"
        " as one of them, or say --columns v=ignore.",
    ),
    "an empty file": (
        {"edges.csv": ""},
        "'FOLDER/edges.csv' is empty or starts with a blank line; put the column names in its first line.",
    ),
    "only a header": (
        {"features.csv": "id,age\n"},
        "'FOLDER/features.csv' holds 0 rows of 1 features; give at least one of each.",
    ),
    "only ids": (
        {"features.csv": "id\nann\nbob\ncy\n"},
        "'FOLDER/features.csv' holds 3 rows of 0 features; give at least one of each.",
    ),
    "no header": (
        {"features.csv": "0.5,1\n2,3\n"},
        "the first line of 'FOLDER/features.csv' is all numbers; put a line of column names above it.",
    ),
    "a row too short": (
        {"features.csv": FEATURES + "dan,1\n"},
        "'FOLDER/features.csv' has 2 cells in row 4, but its first line has 3; give every row the same number.",
    ),
    "a row too long, with quotes": (
        {"edges.csv": 'source,target\n"ann",bob\nbob,cy,ann\n'},
        "'FOLDER/edges.csv' has 3 cells in row 2, but its first line has 2; give every row the same number.",
    ),
    "an open quotation mark": (
        {"edges.csv": 'source,target\nann,bob\nbob,"cy\nann,cy\n'},
        "'FOLDER/edges.csv' has a quotation mark in line 3 that is never closed; close it.",
    ),
    "the same column twice": (
        {"features.csv": "id,a,a\nann,1,2\n"},
        "'FOLDER/features.csv' has two columns named 'a'; rename one of them.",
    ),
    "a column without a name": (
        {"features.csv": ",a\n0,1\n1,2\n"},
        "'FOLDER/features.csv' has a column without a name; name it, or leave it out (pandas: index=False).",
    ),
    "semicolons": (
        {"edges.csv": EDGES.replace(",", ";")},
        "'FOLDER/edges.csv' separates its cells with semicolons; use commas instead.",
    ),
    "tabs": (
        {"edges.csv": EDGES.replace(",", "\t")},
        "'FOLDER/edges.csv' separates its cells with tabs; use commas instead, or rename the file to end in .tsv.",
    ),
    "commas in .tsv": (
        {"edges.csv": None, "edges.tsv": EDGES},
        "'FOLDER/edges.tsv' separates its cells with commas; use tabs instead.",
    ),
    "UTF-16": (
        {"edges.csv": EDGES.encode("utf-16")},
        "'FOLDER/edges.csv' is UTF-16 or not text at all; save it as UTF-8 text.",
    ),
    "Latin-1": (
        {"edges.csv": "source,target\nJosé,ann\n".encode("latin-1")},
        "'FOLDER/edges.csv' has the byte 0xe9 in line 2, which is not UTF-8 (it may be Latin-1); save it as UTF-8"
        " text.",
    ),
    "a folder for a file": (
        {"edges.csv": Path.mkdir},
        "'FOLDER/edges.csv' is a folder, not a file; give the path of a file.",
    ),
    "a link to nowhere": (
        {"edges.csv": lambda path: path.symlink_to("elsewhere.csv")},
        "there is no file 'FOLDER/edges.csv'; check the path.",
    ),
    "an unreadable file": (
        {"edges.csv": lambda path: path.symlink_to("edges.csv")},
        "'FOLDER/edges.csv' cannot be opened (Too many levels of symbolic links); check its permissions.",
    ),
    "a negative weight": (
        {"edges.csv": WEIGHTED.format(-2)},
        "'FOLDER/edges.csv' has the weight -2 in row 2; weights must be 0 or more.",
    ),
    "NaN for a weight": (
        {"edges.csv": WEIGHTED.format("nan")},
        "'FOLDER/edges.csv' has NaN or no value in row 2 of the column 'weight'; replace it, or drop the row or the"
        " column.",
    ),
    "no weight in a row": (
        {"edges.csv": WEIGHTED.format("")},
        "'FOLDER/edges.csv' has nothing in row 2 of the column 'weight'; give a number, or drop the row or the column.",
    ),
    "fewer rows than nodes": (
        NUMBERED | {"nodes.csv": "id\n0\n1\n2\n3\n"},
        "'FOLDER/features.npy' has 3 rows, but nodes.csv lists 4 nodes; give one row for each node.",
    ),
    "a node without features": (
        {"nodes.csv": "id\nann\nbob\ncy\ndan\n"},
        "'FOLDER/features.csv' has no row for the node 'dan' of nodes.csv; add it.",
    ),
    "features of no node": (
        {"nodes.csv": "id\nann\nbob\n"},
        "'FOLDER/features.csv' has a row for 'cy', which nodes.csv does not list; add it there or drop the row.",
    ),
    "one node": (
        {"edges.csv": "source,target\n", "features.csv": "a\n1\n"},
        "a graph needs at least 2 nodes to contrast, but this one has 1.",
    ),
    "neither edges nor features": (
        {"edges.csv": "source,target\n", "features.csv": None, "nodes.csv": "id\nann\nbob\n"},
        "'FOLDER/edges.csv' gives neither features nor edges, so there is nothing to learn from; give one of them.",
    ),
    "features all zero": (
        {"features.csv": "a,b\n0,0\n0,0\n", "edges.csv": "source,target\n0,1\n"},
        "'FOLDER/features.csv' holds nothing but zeros; give features, or leave them out to have them made from the"
        " edges.",
    ),
    "complex numbers": (
        NUMBERED | {"features.npy": ROWS * 1j},
        "'FOLDER/features.npy' holds complex128 values; give real numbers.",
    ),
    "text in an array": (
        NUMBERED | {"features.npy": np.array([["a"], ["b"]])},
        "'FOLDER/features.npy' holds <U1 values; give real numbers.",
    ),
    "Python objects": (
        NUMBERED | {"features.npy": objects},
        "'FOLDER/features.npy' holds Python objects, which are never loaded; save an array of numbers.",
    ),
    "one dimension": (
        NUMBERED | {"features.npy": np.ones(3)},
        "'FOLDER/features.npy' has the shape (3,); give one row of features for each node.",
    ),
    "three dimensions": (
        NUMBERED | {"features.npy": np.ones((3, 2, 2))},
        "'FOLDER/features.npy' has the shape (3, 2, 2); give one row of features for each node.",
    ),
    "no rows": (
        NUMBERED | {"features.npy": np.ones((0, 2))},
        "'FOLDER/features.npy' holds 0 rows of 2 features; give at least one of each.",
    ),
    "NaN in an array": (
        NUMBERED | {"features.npy": np.array([[1.0, 2.0], [3.0, np.nan]])},
        "'FOLDER/features.npy' has NaN or no value in row 1, column 1 (both from 0); replace it, or drop the row or"
        " the column.",
    ),
    "an infinity in a sparse matrix": (
        NUMBERED
        | {
            "features.npy": None,
            "features.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.coo_array([[1.0, 0], [np.inf, 1]])),
        },
        "'FOLDER/features.npz' has an infinite value in row 1, column 0 (both from 0); replace it, or drop the row or"
        " the column.",
    ),
    "two arrays": (
        NUMBERED | {"features.npy": None, "features.npz": {"a": ROWS, "b": ROWS}},
        "'FOLDER/features.npz' holds a, b; save exactly one array or sparse matrix in it.",
    ),
    "a truncated npy": (
        NUMBERED | {"features.npy": cut(lambda path: np.save(path, ROWS), 140)},
        "'FOLDER/features.npy' cannot be read as a NumPy file (ValueError); save it again with numpy.save, numpy.savez"
        " or scipy.sparse.save_npz.",
    ),
    "a truncated npz": (
        NUMBERED | {"features.npy": None, "features.npz": cut(lambda path: np.savez(path, x=ROWS), 140)},
        "'FOLDER/features.npz' cannot be read as a NumPy file (BadZipFile); save it again with numpy.save, numpy.savez"
        " or scipy.sparse.save_npz.",
    ),
    "a truncated parquet": (
        {"edges.csv": None, "edges.parquet": cut(parquet(source=["ann"], target=["bob"]), 50)},
        "'FOLDER/edges.parquet' cannot be read as Parquet (ArrowInvalid); write it again.",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_with_one_mistake(case: str, tmp_path: Path) -> None:
    files, sentence = FOLDERS[case]
    for name, content in (GOOD | files).items():
        write(tmp_path / name, content)
    with pytest.raises(InputError) as error:
        load_graph(tmp_path)
    assert str(error.value) == sentence.replace("FOLDER", str(tmp_path))


def test_no_two_mistakes_share_a_sentence() -> None:
    sentences = [sentence for cases in (FOLDERS, FILES, OBJECTS) for _, sentence in cases.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(tmp_path: Path) -> None:
    for name, content in GOOD.items():
        write(tmp_path / name, content)
    (tmp_path / "edges.csv").chmod(0)
    with pytest.raises(InputError, match=r"cannot be opened \(Permission denied\); check its permissions\.$"):
        load_graph(tmp_path)


PARTS = {"adj_data": np.ones(1), "adj_indices": np.array([5]), "adj_indptr": np.array([0, 1, 1])}

# One file that is a graph → the sentence.
FILES: dict[str, tuple[tuple[str, Content], str]] = {
    "no file": (
        ("links.csv + features x.npy", None),
        "there is no file 'FOLDER/links.csv'; check the path.",
    ),
    "another kind of file": (
        ("graph.xlsx", b"PK"),
        "'FOLDER/graph.xlsx' is not a file of edges that costa reads; its name must end in .csv, .tsv, .parquet,"
        " .jsonl, .ndjson, .npz, .graphml or .gexf.",
    ),
    "one array": (
        ("graph.npz", lambda path: path.write_bytes(_npy(ROWS))),
        "'FOLDER/graph.npz' holds one array, not a graph; save edge_index and x with numpy.savez.",
    ),
    "no edges": (
        ("graph.npz", {"x": ROWS, "y": np.arange(3)}),
        "'FOLDER/graph.npz' holds x, y but no edges; save them as edge_index, or as the four adj_ parts.",
    ),
    "edges in three rows": (
        ("graph.npz", {"edge_index": np.ones((3, 4), dtype=int), "x": ROWS}),
        "edge_index in 'FOLDER/graph.npz' has the shape (3, 4); give a row of sources and a row of targets.",
    ),
    "edges between fractions": (
        ("graph.npz", {"edge_index": np.array([[0.0], [1.0]]), "x": ROWS}),
        "edge_index in 'FOLDER/graph.npz' holds float64 values; give row numbers, which are integers.",
    ),
    "a row number that is none": (
        ("graph.npz", {"edge_index": np.array([[0], [3]]), "x": ROWS}),
        "edge_index in 'FOLDER/graph.npz' names node 3, but there are only the nodes 0 to 2; drop the edge, or give the"
        " node its features.",
    ),
    "2^63 in an array": (
        ("graph.npz", {"edge_index": np.array([[0], [2**63]], dtype=np.uint64), "x": ROWS}),
        "edge_index in 'FOLDER/graph.npz' holds 9223372036854775808, too large for a row number; give row numbers"
        " from 0.",
    ),
    "too few weights": (
        ("graph.npz", {"edge_index": np.array([[0, 1], [1, 2]]), "edge_weight": np.ones(3), "x": ROWS}),
        "the weights of edge_index in 'FOLDER/graph.npz' have the shape (3,); give one for each of its 2 edges.",
    ),
    "an infinite weight": (
        ("graph.npz", {"edge_index": np.array([[0, 1], [1, 2]]), "edge_weight": np.array([1, np.inf]), "x": ROWS}),
        "edge_index in 'FOLDER/graph.npz' has the weight inf between the nodes 1 and 2; weights must be finite and 0 or"
        " more.",
    ),
    "labels of two dimensions": (
        ("graph.npz", {"edge_index": np.array([[0], [1]]), "x": ROWS, "y": np.eye(3)}),
        "the labels in 'FOLDER/graph.npz' have the shape (3, 3); give one for each node.",
    ),
    "too few labels": (
        ("graph.npz", {"edge_index": np.array([[0], [1]]), "x": ROWS, "y": np.arange(2)}),
        "there are 2 labels for 3 nodes; give one each, empty if unlabelled.",
    ),
    "a part of a matrix": (
        ("graph.npz", PARTS),
        "'FOLDER/graph.npz' has adj_data but no adj_shape; save all four parts of the matrix.",
    ),
    "parts that do not fit": (
        ("graph.npz", PARTS | {"adj_shape": np.array([2, 2])}),
        "the adj_ arrays in 'FOLDER/graph.npz' do not fit together as a CSR matrix; save the parts of one matrix.",
    ),
    "an oblong adjacency matrix": (
        ("graph.npz", lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_array(ROWS))),
        "'FOLDER/graph.npz' has the shape (3, 2); an adjacency matrix is square.",
    ),
    "objects in a bundle": (
        ("graph.npz", lambda path: np.savez(path, edge_index=np.array([[0], [1]]), x=np.array([[{}], [1]]))),
        "x in 'FOLDER/graph.npz' holds Python objects, which are never loaded; save an array of numbers.",
    ),
    "the same id twice": (
        ("graph.npz", {"edge_index": np.array([[0], [1]]), "node_ids": np.array(["a", "b", "a"]), "x": ROWS}),
        "node_ids in 'FOLDER/graph.npz' lists the id 'a' twice, in rows 1 and 3; drop one of them.",
    ),
    "too few notes": (
        ("graph.npz", {"edge_index": np.array([[0], [1]]), "node_notes": np.array(["a", "b"]), "x": ROWS}),
        "node_notes in 'FOLDER/graph.npz' has 2 lines for 3 nodes; give one each.",
    ),
    "no XML": (
        ("graph.graphml", "<graphml><graph>"),
        "'FOLDER/graph.graphml' cannot be read as GraphML (ParseError); write it again with networkx.write_graphml.",
    ),
}


def _npy(array: np.ndarray) -> bytes:
    import io

    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("case", FILES)
def test_a_file_with_one_mistake(case: str, tmp_path: Path) -> None:
    (name, content), sentence = FILES[case]
    write(tmp_path / name, content)
    with pytest.raises(InputError) as error:
        load_graph(str(tmp_path / name))
    assert str(error.value) == sentence.replace("FOLDER", str(tmp_path))


PAIR = np.array([[0], [1]])
OBJECTS: dict[str, tuple[Callable[[], Any], str]] = {
    "no graph": (
        lambda: as_graph({0: [1]}),
        "a dict is not a graph that costa can read; give a PyG Data, a NetworkX graph, a scipy adjacency matrix, an"
        " edge array, or a pandas or polars frame.",
    ),
    "no features": (
        lambda: as_graph(PAIR, {0: [1]}),
        "a dict cannot be read as features; give an array, a scipy matrix or a frame.",
    ),
    "nodes that are no frame": (
        lambda: as_graph(PAIR, ROWS, ["a", "b", "c"]),
        "nodes must be a pandas or polars frame with the column id, not a list.",
    ),
    "a Data and features given with it": (
        lambda: as_graph(Data(edge_index=torch.from_numpy(PAIR), num_nodes=2), ROWS),
        "a Data brings its own features and labels; set its x and y instead of giving others.",
    ),
    "a Data without edges": (
        lambda: as_graph(Data(x=torch.ones(2, 1))),
        "the graph has no edge_index; for a graph without edges give torch.empty(2, 0).long().",
    ),
    "an index too large": (
        lambda: as_graph(PAIR + 2, ROWS),
        "the edge array names node 3, but there are only the nodes 0 to 2; drop the edge, or give the node its"
        " features.",
    ),
    "ids in an edge array": (
        lambda: as_graph(np.array([["ann"], ["bob"]]), ROWS),
        "the edge array holds <U3 values; give row numbers, which are integers.",
    ),
    "an adjacency of another size": (
        lambda: as_graph(scipy.sparse.coo_array(([1.0], ([4], [0])), shape=(5, 5)), ROWS),
        "the adjacency matrix has 5 rows, but there are 3 nodes; give one row for each node.",
    ),
    "a negative entry": (
        lambda: as_graph(scipy.sparse.csr_array([[0, -1.0, 0], [0, 0, 0], [0, 0, 0]]), ROWS),
        "the adjacency matrix has the weight -1 between the nodes 0 and 1; weights must be finite and 0 or more.",
    ),
    "a complex adjacency": (
        lambda: as_graph(scipy.sparse.csr_array([[0, 1j], [0, 0]])),
        "the adjacency matrix holds complex128 values; give real numbers.",
    ),
    "labels of bytes": (
        lambda: as_graph(PAIR, ROWS, labels=np.array([b"a", b"b", b"a"])),
        "the labels hold the bytes b'a'; give labels as text or numbers.",
    ),
    "labels of two dimensions": (
        lambda: as_graph(PAIR, ROWS, labels=np.eye(3)),
        "the labels have the shape (3, 3); give one for each node.",
    ),
    "features all zero": (
        lambda: as_graph(PAIR, 0 * ROWS),
        "the feature array holds nothing but zeros; give features, or leave them out to have them made from the edges.",
    ),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_an_object_with_one_mistake(case: str) -> None:
    make, sentence = OBJECTS[case]
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == sentence


# What may look like a mistake and is none.
FINE: dict[str, dict[str, Content]] = {
    "a byte order mark": {"edges.csv": b"\xef\xbb\xbf" + EDGES.encode()},
    "Windows' line ends": {"edges.csv": EDGES.replace("\n", "\r\n")},
    "mixed line ends": {"edges.csv": "source,target\r\nann,bob\nbob,cy\r"},
    "empty lines at the end": {"edges.csv": EDGES + "\n\n"},
    "no line end at the end": {"edges.csv": EDGES.strip()},
    "blanks around cells": {"edges.csv": EDGES.replace(",", " , ")},
    "quotes": {"edges.csv": 'source,target\n"ann",bob\nbob,"cy"\n'},
    "other columns": {"edges.csv": "source,since,target\nann,1999,bob\nbob,2001,cy\n"},
    "duplicates, both directions, self-loops": {"edges.csv": EDGES + "ann,bob\nbob,ann\ncy,cy\n"},
    "an edge of weight zero": {"edges.csv": "source,target,weight\nann,bob,1\nbob,cy,1\nann,cy,0\n"},
    "labels in part": {"nodes.csv": "id,label\nann,a\nbob,\ncy,b\n"},
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_no_mistake(case: str, tmp_path: Path) -> None:
    for name, content in (GOOD | FINE[case]).items():
        write(tmp_path / name, content)
    graph = load_graph(tmp_path)
    assert graph.node_ids == ["ann", "bob", "cy"]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.x[:, 0].tolist() == [31, 40, 29]


def test_a_huge_id_is_text(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(f"source,target\n{10**30},{2**63}\n")
    (tmp_path / "features.csv").write_text(f"id,a\n{2**63},1\n{10**30},2\n")
    assert load_graph(tmp_path).node_ids == [str(2**63), str(10**30)]


def test_features_that_are_alike_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, content in (GOOD | {"features.csv": "id,a\nann,1\nbob,1\ncy,1\n"}).items():
        write(tmp_path / name, content)
    assert load_graph(tmp_path).x.tolist() == [[1], [1], [1]]
    assert caplog.messages == [
        f"{str(tmp_path / 'features.csv')!r} has the same features for every node, so they cannot tell nodes apart;"
        " leave them out to have them made from the edges."
    ]
