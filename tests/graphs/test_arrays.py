"""NumPy files: a matrix of features, and bundles."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs import as_graph
from costa.graphs.arrays import as_features
from costa.graphs.files import read_files, read_folder

Write = Callable[..., Path]
EdgesOf = Callable[[Data], list[list[int]]]
SAVERS: dict[str, Callable[[Path, np.ndarray], None]] = {
    "npy": lambda path, x: np.save(path / "features.npy", x),
    "fortran order": lambda path, x: np.save(path / "features.npy", np.asfortranarray(x)),
    "npz": lambda path, x: np.savez_compressed(path / "features.npz", x),
    "sparse": lambda path, x: scipy.sparse.save_npz(path / "features.npz", scipy.sparse.csr_matrix(x)),
    "sparse array": lambda path, x: scipy.sparse.save_npz(path / "features.npz", scipy.sparse.coo_array(x)),
    "csv": lambda path, x: np.savetxt(path / "features.csv", x, delimiter=",", header="a,b", comments=""),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("kind", SAVERS)
def test_every_kind_of_feature_file(write: Write, kind: str, dtype: Any, folder: Path) -> None:
    x = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    SAVERS[kind](folder, x)
    data = read_folder(write(folder, edges__csv="source,target\n0,2\n"))
    assert data.x.dtype == torch.float32
    assert data.x.is_contiguous()
    assert data.x.tolist() == x.astype(float).tolist()


def test_a_bundle(edges_of: EdgesOf, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mine.npz",
        edge_index=np.array([[0, 1], [1, 2]], dtype=np.int32),
        edge_weight=np.array([2, 3]),
        x=np.eye(3),
        y=np.array([7, -1, 4]),
        node_ids=np.array(["ann", "bob", "cy"]),
        node_notes=np.array(["a baker", "", "a sailor"]),
    )
    data = read_files(tmp_path / "mine.npz")
    assert data.node_notes == ["a baker", "", "a sailor"]
    assert (data.name, data.node_ids) == ("mine", ["ann", "bob", "cy"])
    assert (data.y.tolist(), data.label_names) == ([1, -1, 0], ["4", "7"])
    assert edges_of(data) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 3, 3]
    (tmp_path / "people.csv").write_text("id,label\nx,b\ny,a\nz,b\n")
    np.save(tmp_path / "other.npy", np.ones((3, 1)) * [[1], [2], [3]])
    other = read_files(tmp_path / "mine.npz", tmp_path / "other.npy", tmp_path / "people.csv")
    assert (other.node_ids, other.y.tolist(), other.x.tolist()) == (["x", "y", "z"], [1, 0, 1], [[1], [2], [3]])


def test_a_public_benchmark_file_is_a_bundle(data_dir: Path) -> None:
    from costa.graphs import load_graph

    data = read_files(data_dir / "Photo" / "raw" / "amazon_electronics_photo.npz")
    known = load_graph("amazon-photo", data_dir=data_dir)
    assert torch.equal(data.edge_index, known.edge_index)
    assert torch.equal(data.y, known.y)
    assert torch.equal((data.x > 0).float(), known.x)


def test_features_that_are_mostly_zeros_stay_sparse_in_every_order(write: Write, folder: Path) -> None:
    x = np.zeros((3, 40), dtype=np.float32)
    x[0, 3], x[2, 7], x[2, 1] = 5, -1, 2
    scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.coo_array(x))
    data = read_folder(write(folder, edges__csv="source,target\n0,2\n"))
    assert data.x.layout == torch.sparse_csr
    assert data.x.to_dense().tolist() == x.tolist()
    given = scipy.sparse.csr_array((np.array([1.0, 4.0, 0.0]), np.array([3, 3, 9]), np.array([0, 3, 3])), shape=(2, 40))
    features = as_features(given, "it", "it")
    assert features.x.nnz == 1  # duplicates are summed, stored zeros dropped
    assert features.x[0, 3] == 5
    assert given.nnz == 3  # in a copy


def test_an_overflow_in_a_sparse_matrix_is_named_by_its_place() -> None:
    given = scipy.sparse.csr_array(([1.0, 1e300], ([0, 1], [30, 7])), shape=(2, 40))
    with pytest.raises(InputError, match="in row 1, column 7"):
        as_features(given, "it", "it")


@pytest.mark.parametrize("wrong", [7, -1])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_an_index_out_of_range_reaches_no_product(write: Write, folder: Path, kind: str, wrong: int) -> None:
    write(folder, edges__csv="source,target\n0,2\n")
    scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.eye_array(3, format=kind))
    with np.load(folder / "features.npz") as file:
        saved = dict(file)
    name = "col" if kind == "coo" else "indices"
    saved[name] = np.where(np.arange(3) == 1, wrong, saved[name])
    np.savez(folder / "features.npz", **saved)
    with pytest.raises(InputError, match=r"features.npz' cannot be read as a NumPy file \(ValueError\); save it again"):
        read_folder(folder)


def test_an_archive_that_needs_more_memory_than_there_is_is_not_unpacked(write: Write, folder: Path) -> None:
    write(folder, edges__csv="source,target\n0,1\n")
    huge = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (10**7, 10**7)}
    with zipfile.ZipFile(folder / "features.npz", "w") as archive, archive.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, huge)
    with pytest.raises(InputError, match=r"features.npz' unpacks to 727.6 TiB of memory, and .* are available"):
        read_folder(folder)


def test_a_number_by_mistake_does_not_make_a_trillion_nodes() -> None:
    with pytest.raises(InputError, match=r"the edge array names node 1000000000000, and as many nodes need at least"):
        as_graph([[0], [10**12]])
