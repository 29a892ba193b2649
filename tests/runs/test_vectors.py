"""Vectors on disk: three formats, with ids."""

import csv
import sys

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.runs import vectors

Z = np.arange(6, dtype=np.float32).reshape(3, 2) / 7
IDS = ["zoë", "Ann, of York", "bob"]


def test_an_array(tmp_path):
    vectors.write_vectors(tmp_path / "z.npy", Z, IDS)
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), Z)


def test_rows_are_written_as_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "SEEN", 7)
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    written = vectors.write_rows(tmp_path / "z.npy", z.split(4), 20)
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), z.numpy())
    assert torch.equal(written.some, z[::3])  # evenly spaced, at most seven
    assert written.finite
    z[13, 1] = torch.inf  # not among them
    assert not vectors.write_rows(tmp_path / "z.npy", z.split(4), 20).finite


@pytest.mark.parametrize(("ids", "expected"), [(IDS, IDS), (None, ["0", "1", "2"])])
def test_a_csv_file_has_ids_or_row_numbers(tmp_path, ids, expected):
    vectors.write_vectors(tmp_path / "z.csv", Z, ids)
    with (tmp_path / "z.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "z0", "z1"]
    assert [row[0] for row in rows] == expected
    np.testing.assert_array_equal(np.array([row[1:] for row in rows], dtype=np.float32), Z)


def test_a_parquet_file_has_ids(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    vectors.write_vectors(tmp_path / "z.parquet", Z, IDS)
    table = parquet.read_table(tmp_path / "z.parquet").to_pydict()
    assert table["id"] == IDS
    np.testing.assert_array_equal(np.stack([table["z0"], table["z1"]], 1).astype(np.float32), Z)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("z.txt", "has an unknown format; its name must end in .npy, .csv or .parquet"),
        ("no/z.npy", "cannot be written"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_first(tmp_path, name, says):
    with pytest.raises(InputError, match=says):
        vectors.check_vector_path(tmp_path / name)
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        vectors.check_vector_path(tmp_path / "folder.npy")


def test_without_pyarrow_tables_are_csv(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(vectors, "_has_pyarrow", lambda: False)
    assert vectors.table_name() == "embeddings.csv"
    with pytest.raises(InputError, match=r"needs pyarrow; pip install 'costa-gcl\[tables\]'"):
        vectors.check_vector_path(tmp_path / "z.parquet")


def test_embeddings_are_read_without_running_code(tmp_path):
    np.save(tmp_path / "embeddings.npy", Z)
    assert torch.equal(vectors.load_embeddings(tmp_path), torch.from_numpy(Z))
    np.save(tmp_path / "embeddings.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(InputError, match=r"embeddings.npy is missing or damaged; train the run again"):
        vectors.load_embeddings(tmp_path)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_the_share_that_is_written_is_reported(tmp_path, monkeypatch, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(vectors, "ROWS", 5)
    z, shares = torch.randn(20, 3), []
    if kind == "npy":
        vectors.write_rows(tmp_path / "z.npy", z.split(5), 20, shares.append)
    else:
        vectors.write_vectors(tmp_path / "z.parquet", z.numpy(), done=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1]
