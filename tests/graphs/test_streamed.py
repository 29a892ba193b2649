"""Synthetic graphs on disk: the same seed gives the same bytes, and the folder loads."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from costa.errors import InputError
from costa.graphs import load_graph, streamed
from costa.graphs.communities import ENTRIES, Communities
from costa.graphs.streamed import stream_communities
from costa.nn.sparse import is_csr

parquet = pytest.importorskip("pyarrow.parquet")

NODES, EDGES = 20_000, 40_000
COMMAND = Path(__file__).parents[2] / "benchmarks" / "make_graph.py"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, sparse: bool) -> None:
    for name, seed in (("first", 3), ("again", 3), ("other", 4)):
        stream_communities(tmp_path / name, NODES, EDGES, columns=16, sparse=sparse, seed=seed)
    first, again, other = (contents(tmp_path / name) for name in ("first", "again", "other"))
    matrix = "features.npz" if sparse else "features.npy"
    assert list(first) == ["edges.parquet", matrix, "nodes.parquet"]
    assert first == again
    assert all(first[name] != other[name] for name in first)


def test_the_size_of_a_chunk_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream_communities(tmp_path / "large", NODES, EDGES, columns=16)
    monkeypatch.setattr(streamed, "CHUNK", 1)
    stream_communities(tmp_path / "small", NODES, EDGES, columns=16)
    for name, groups in (("nodes", 3), ("edges", 5)):
        large, small = (parquet.ParquetFile(tmp_path / size / f"{name}.parquet") for size in ("large", "small"))
        assert (large.num_row_groups, small.num_row_groups) == (1, groups)
        assert large.read().equals(small.read())


def test_a_dense_folder_loads(tmp_path: Path) -> None:
    lines: list[str] = []
    stream_communities(tmp_path / "graph", NODES, EDGES, columns=16, announce=lines.append)
    assert lines == [f"Writing {name} …" for name in ("features.npy", "nodes.parquet", "edges.parquet")]
    data = load_graph(tmp_path / "graph")
    drawn = Communities(NODES, EDGES, columns=16, classes=10, exponent=2.5, seed=0)
    assert data.x.shape == (NODES, 16)
    assert data.label_names == [str(label) for label in range(10)]
    for block, rows in enumerate(torch.arange(NODES).split(2**13)):
        assert (data.x[rows].numpy() == drawn.dense(block)).all()
        assert (data.y[rows].numpy() == drawn.nodes(block)[1]).all()
    listed = parquet.read_table(tmp_path / "graph" / "edges.parquet")
    assert listed.num_rows == EDGES
    ends = np.sort(np.stack([listed["source"].to_numpy(), listed["target"].to_numpy()]), axis=0)
    ends = np.unique(ends[:, ends[0] < ends[1]], axis=1)
    upper = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
    assert (upper == ends).all()


def test_a_sparse_folder_loads(tmp_path: Path) -> None:
    stream_communities(tmp_path / "graph", NODES, EDGES, columns=200, sparse=True)
    data = load_graph(tmp_path / "graph")
    assert is_csr(data.x)
    x = scipy.sparse.load_npz(tmp_path / "graph" / "features.npz")
    assert (x.shape, x.dtype, x.nnz) == ((NODES, 200), np.float32, NODES * ENTRIES)
    assert x.has_canonical_format
    assert (x.data == 1).all()
    drawn = Communities(NODES, EDGES, columns=200, classes=10, exponent=2.5, seed=0)
    np.testing.assert_array_equal(x.indices[: 2**13 * ENTRIES], drawn.sparse(0).ravel())
    np.testing.assert_array_equal(data.x.col_indices().numpy(), x.indices)


def test_ten_edges_a_node_by_default(tmp_path: Path) -> None:
    stream_communities(tmp_path / "graph", 1000)
    assert parquet.read_metadata(tmp_path / "graph" / "edges.parquet").num_rows == 10_000
    assert np.load(tmp_path / "graph" / "features.npy", mmap_mode="r").shape == (1000, 128)


def test_a_folder_that_holds_anything_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        stream_communities(tmp_path, 1000)
    assert contents(tmp_path) == {"kept": b"mine"}
    with pytest.raises(InputError, match="cannot be made"):
        stream_communities(tmp_path / "kept", 1000)


def test_nothing_is_made_of_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than 10 columns"):
        stream_communities(tmp_path / "graph", 1000, columns=10, sparse=True)
    with pytest.raises(InputError, match="hundred nodes"):
        stream_communities(tmp_path / "graph", 10)
    assert not (tmp_path / "graph").exists()


def test_the_command_says_what_it_made(tmp_path: Path) -> None:
    words = [sys.executable, str(COMMAND), str(tmp_path / "graph"), "--nodes", "2_000", "--columns", "16", "--sparse"]
    made = subprocess.run(words, capture_output=True, text=True, check=True)
    size = sum(map(len, contents(tmp_path / "graph").values()))
    assert f"2,000 nodes, 20,000 edges, {size:,} bytes" in made.stdout.splitlines()[-1]
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert again.stderr.splitlines()[-1].endswith("is not empty; give a new one.")
