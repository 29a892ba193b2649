"""What nodes, edges, weights and labels mean, in whatever files they come."""

import logging
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from costa.graphs import load_graph
from costa.graphs.files import read_folder

Write = Callable[..., Path]
EdgesOf = Callable[[Data], list[list[int]]]
EDGES = "source,target\nann,bob\nbob,cy\n"
FEATURES = "id,age,height\nann,31,1.7\nbob,40,1.8\ncy,29,1.6\n"


def test_nodes_decide_the_order(write: Write, edges_of: EdgesOf, folder: Path) -> None:
    nodes = "id,label\ncy,b\nbob,\nann,a\n"
    data = read_folder(write(folder, edges__csv=EDGES, features__csv=FEATURES, nodes__csv=nodes))
    assert data.node_ids == ["cy", "bob", "ann"]
    assert data.x[:, 0].tolist() == [29, 40, 31]
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.y.tolist() == [1, -1, 0]
    assert data.label_names == ["a", "b"]


def test_features_without_ids_follow_the_nodes(write: Write, edges_of: EdgesOf, folder: Path) -> None:
    write(folder, edges__csv="source,target\nz,x\n", nodes__csv="id\nz\ny\nx\n")
    np.save(folder / "features.npy", np.arange(6).reshape(3, 2))
    data = read_folder(folder)
    assert data.node_ids == ["z", "y", "x"]
    assert data.x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert edges_of(data) == [[0, 2], [2, 0]]


def test_row_numbers_as_ids_and_isolated_nodes(write: Write, edges_of: EdgesOf, folder: Path) -> None:
    write(folder, edges__tsv="target\tsource\n3\t0\n")
    np.save(folder / "features.npy", np.eye(5))
    data = read_folder(folder)
    assert data.node_ids == ["0", "1", "2", "3", "4"]
    assert data.num_nodes == 5
    assert edges_of(data) == [[0, 3], [3, 0]]


def test_a_graph_without_edges(write: Write, folder: Path) -> None:
    data = read_folder(write(folder, edges__csv="source,target,weight\n", features__csv=FEATURES))
    assert data.edge_index.shape == (2, 0)
    assert data.edge_index.dtype == torch.int64
    assert data.edge_weight.shape == (0,)


def test_direction_duplicates_and_self_loops(
    write: Write, edges_of: EdgesOf, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    edges = "source,target\nann,bob\nbob,ann\nann,bob\ncy,cy\ncy,ann\n"
    with caplog.at_level(logging.INFO, logger="costa"):
        data = read_folder(write(folder, edges__csv=edges, features__csv=FEATURES))
    assert edges_of(data) == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert "1 self-loops dropped" in caplog.text


def test_weights(write: Write, edges_of: EdgesOf, folder: Path) -> None:
    edges = (
        "source,target,weight\n"
        "ann,bob,2\nbob,ann,2\n"  # one edge listed both ways: 2, not 4
        "bob,cy,1\nbob,cy,0.5\ncy,bob,1.25\n"  # 1.5 one way, 1.25 the other
        "cy,cy,9\n"
    )
    data = read_folder(write(folder, edges__csv=edges, features__csv=FEATURES))
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 1.5, 1.5]
    assert data.edge_weight.dtype == torch.float32


# Multiples of 1/4: their sums are exact in float32, in any order.
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 40).map(lambda w: w / 4)), max_size=30)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, random=st.randoms())
def test_weights_against_a_plain_twin_in_any_order(
    write: Write,
    edges_of: EdgesOf,
    rows: list[tuple[int, int, float]],
    random: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    oneway: dict[tuple[int, int], float] = defaultdict(float)
    for i, j, w in rows:
        oneway[i, j] += w
    joined = {(i, j) for (a, b), w in oneway.items() if a != b and w for i, j in ((a, b), (b, a))}
    expected = {(i, j): max(oneway.get((i, j), 0), oneway.get((j, i), 0)) for i, j in joined}

    random.shuffle(rows)
    folder = tmp_path_factory.mktemp("graph")
    write(folder, edges__csv="source,target,weight\n" + "".join(f"{i},{j},{w}\n" for i, j, w in rows))
    np.save(folder / "features.npy", np.eye(5))
    data = read_folder(folder)
    found = dict(zip(map(tuple, edges_of(data)), data.edge_weight.tolist(), strict=True))
    assert found == expected
    assert len(found) == data.num_edges


def test_numeric_labels_keep_their_order(write: Write, folder: Path) -> None:
    write(folder, edges__csv="source,target\n", nodes__csv="id,label\n" + "".join(f"{i},{i % 12}\n" for i in range(24)))
    np.save(folder / "features.npy", np.eye(24))
    data = read_folder(folder)
    assert data.y.tolist() == [i % 12 for i in range(24)]
    assert data.label_names == [str(i) for i in range(12)]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["1", "01", "1e0", "0"], ["0", "01", "1", "1e0"]),
        (["10", "2", "x"], ["10", "2", "x"]),
    ],
)
def test_label_order(write: Write, labels: list[str], names: list[str], folder: Path) -> None:
    nodes = "id,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    write(folder, edges__csv="source,target\n", nodes__csv=nodes)
    np.save(folder / "features.npy", np.eye(len(labels)))
    data = read_folder(folder)
    assert data.label_names == names
    assert [data.label_names[code] for code in data.y] == labels


def test_without_features_the_edges_say_which_nodes_there_are(
    write: Write, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = read_folder(write(folder, edges__csv="source,target\nbob,ann\ncy,bob\n"))
    assert data.node_ids == ["bob", "ann", "cy"]
    assert data.x.shape == (3, 33)
    assert caplog.messages == [
        f"{str(folder / 'edges.csv')!r} comes without node features; 33 columns are made from the edges: "
        "log(1 + degree) and 32 eigenvectors of the normalised adjacency."
    ]
    named = read_folder(write(folder, nodes__csv="id\nann\nbob\ncy\ndan\n"))
    assert named.node_ids == ["ann", "bob", "cy", "dan"]
    assert named.x.shape == (4, 33)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("id,group", "the column 'group' is not read, because"),
        ("id,group,size,Label", "the columns 'group', 'size' are not read, because"),
        ("id", None),
        ("id,label", None),
    ],
)
def test_columns_of_nodes_that_are_not_read_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, columns: str, said: str | None
) -> None:
    rows = [",".join([name, *["red"] * columns.count(",")]) for name in ("ann", "bob")]
    (tmp_path / "nodes.csv").write_text("\n".join([columns, *rows]) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\n")
    (tmp_path / "features.csv").write_text("id,age\nann,31\nbob,40\n")
    load_graph(str(tmp_path))
    assert [said in message for message in caplog.messages] == [True] * (said is not None)


def test_a_graph_without_edges_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nann,ann\n")
    (tmp_path / "features.csv").write_text("id,age\nann,31\nbob,40\n")
    assert load_graph(str(tmp_path)).num_edges == 0
    (said,) = caplog.messages
    assert said.endswith("joins no two nodes; vectors will use each node's own features only.")
