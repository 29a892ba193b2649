import dataclasses
import functools
import hashlib
import http.server
import json
import logging
import pickle
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import platformdirs
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits
from torch_geometric.datasets import Amazon, Planetoid, WikiCS
from torch_geometric.utils import to_scipy_sparse_matrix

from costa.errors import InputError
from costa.graphs.benchmarks import BENCHMARKS, Benchmark, RawFile, content_digest, load_benchmark
from costa.nn.sparse import is_csr

NAMES = "wikics amazon-computers amazon-photo coauthor-cs coauthor-physics cora citeseer pubmed dblp digits words"
BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}


def listing(folder: Path) -> list[tuple[str, int, int]]:
    found = sorted(folder.rglob("*"))
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in found]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own, and no data folder from the environment."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(folder / name))
    monkeypatch.delenv("COSTA_DATA", raising=False)
    return folder / "costa" / "data"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which a server of this machine alone offers it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, "127.0.0.1")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def at(benchmark: Benchmark, address: str, **sums: str | None) -> Benchmark:
    """The benchmark with its sources at another address, and other sums for some files."""
    files = [RawFile(f.name, address + f.name, sums.get(f.name, f.sha256)) for f in benchmark.files]
    return dataclasses.replace(benchmark, files=tuple(files))


def write_npz(path: Path) -> None:
    """A graph of four nodes under the keys that the NPZ datasets have."""
    np.savez(
        path,
        adj_data=np.ones(3, np.float32),
        adj_indices=np.array([1, 2, 3], np.int32),
        adj_indptr=np.array([0, 2, 2, 3, 3], np.int32),
        adj_shape=np.array([4, 4]),
        attr_data=np.array([0.5, 2.0, 1.0], np.float32),
        attr_indices=np.array([0, 1, 1], np.int32),
        attr_indptr=np.array([0, 1, 2, 3, 3], np.int32),
        attr_shape=np.array([4, 2]),
        labels=np.array([0, 1, 1, 0]),
    )


def write_wikics(path: Path) -> None:
    """Five articles, one self-loop, two splits, in the format of WikiCS's data.json."""
    masks = [[True, False, False, False, False], [False, True, False, False, False]]
    content = {
        "features": [[0.5 * i, -1.0, i * i] for i in range(5)],
        "labels": [0, 1, 1, 0, 2],
        "links": [[1, 2], [0], [2], [], [0]],
        "train_masks": masks,
        "val_masks": [mask[::-1] for mask in masks],
        "stopping_masks": [[False, False, True, False, False]] * 2,
        "test_mask": [False, False, True, True, False],
    }
    path.write_text(json.dumps(content))


def test_the_table_has_the_names_in_order() -> None:
    assert " ".join(benchmark.name for benchmark in BENCHMARKS) == NAMES


def test_every_file_has_a_sum_or_its_content_has() -> None:
    for benchmark in BENCHMARKS:
        for file in benchmark.files:
            known = file.sha256 or benchmark.content_sha256
            assert known is not None
            assert len(bytes.fromhex(known)) == 32


@pytest.mark.parametrize("name", [name for name in NAMES.split() if name not in ("wikics", "digits", "words")])
def test_counts_types_and_form(name: str, data_dir: Path) -> None:
    benchmark = BY_NAME[name]
    before = listing(data_dir)
    data = load_benchmark(benchmark, data_dir=data_dir)
    assert listing(data_dir) == before

    assert data.name == name
    assert data.x.shape == (benchmark.nodes, benchmark.features)
    assert data.x.dtype == torch.float32
    assert data.num_edges == 2 * benchmark.edges
    assert data.is_undirected()
    assert data.edge_index.unique(dim=1).size(1) == data.num_edges
    assert not data.has_self_loops()
    assert data.y.dtype == torch.int64
    assert data.y.unique().tolist() == list(range(benchmark.classes))
    assert ("train_mask" in data) == (benchmark.reader == "planetoid")
    if benchmark.content_sha256 is not None:
        assert content_digest(data) == benchmark.content_sha256


@pytest.mark.parametrize("name", ["cora", "amazon-photo"])
def test_equal_to_the_pyg_class(name: str, data_dir: Path, tmp_path: Path) -> None:
    benchmark = BY_NAME[name]
    shutil.copytree(data_dir / benchmark.folder, tmp_path / benchmark.folder)
    dataset = Planetoid if benchmark.reader == "planetoid" else Amazon
    theirs = dataset(str(tmp_path), benchmark.folder)[0]
    ours = load_benchmark(benchmark, data_dir=data_dir)
    assert set(ours.keys()) == {*theirs.keys(), "name"}
    for key in theirs.keys():  # noqa: SIM118 (iterating over a Data gives pairs)
        assert torch.equal(ours[key].to_dense(), theirs[key]), key
    assert is_csr(ours.x) == (name == "cora")  # a third of Amazon-Photo is not 0
    assert content_digest(ours) == content_digest(theirs)


def test_planetoid_leaves_the_warning_filters_as_found(data_dir: Path) -> None:
    before = list(warnings.filters)
    load_benchmark(BY_NAME["cora"], data_dir=data_dir)
    assert warnings.filters == before


def test_wikics_equals_the_pyg_class(tmp_path: Path) -> None:
    raw = tmp_path / "data" / "WikiCS" / "raw"
    raw.mkdir(parents=True)
    write_wikics(raw / "data.json")
    before = listing(tmp_path / "data")
    ours = load_benchmark(BY_NAME["wikics"], data_dir=tmp_path / "data")
    assert listing(tmp_path / "data") == before

    shutil.copytree(raw, tmp_path / "theirs" / "raw")
    theirs = WikiCS(str(tmp_path / "theirs"), is_undirected=True)[0]
    assert set(ours.keys()) == {*theirs.keys(), "name"}
    for key in theirs.keys():  # noqa: SIM118
        assert torch.equal(ours[key], theirs[key]), key
    assert ours.train_mask.shape == (5, 2)
    assert ours.edge_index.T.tolist() == [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [2, 2], [4, 0]]


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"features": [[1], [1, 2]]}'])
def test_a_wikics_file_of_another_form_is_one_sentence(content: str, tmp_path: Path) -> None:
    raw = tmp_path / "WikiCS" / "raw"
    raw.mkdir(parents=True)
    (raw / "data.json").write_text(content)
    with pytest.raises(InputError, match=r"data\.json' could not be read as WikiCS"):
        load_benchmark(BY_NAME["wikics"], data_dir=tmp_path)


def test_npz_features_become_binary_and_edges_undirected(tmp_path: Path) -> None:
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    write_npz(raw / "amazon_electronics_photo.npz")
    data = load_benchmark(BY_NAME["amazon-photo"], data_dir=tmp_path)
    assert data.x.tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]
    assert data.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0], [2, 3], [3, 2]]


def test_sparse_npz_features_stay_sparse(tmp_path: Path) -> None:
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    path = raw / "amazon_electronics_photo.npz"
    write_npz(path)
    parts = dict(np.load(path)) | {"attr_shape": np.array([4, 20])}
    np.savez(path, **parts)
    data = load_benchmark(BY_NAME["amazon-photo"], data_dir=tmp_path)
    assert is_csr(data.x)
    assert data.x.to_dense()[:, :2].tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]
    assert data.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0], [2, 3], [3, 2]]


def test_a_broken_npz_and_one_with_objects_are_one_sentence(tmp_path: Path) -> None:
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    path = raw / "amazon_electronics_photo.npz"
    path.write_bytes(b"PK\x03\x04 truncated")
    with pytest.raises(InputError, match="could not be read as Amazon-Photo"):
        load_benchmark(BY_NAME["amazon-photo"], data_dir=tmp_path)
    np.savez(path, attr_data=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="could not be read as Amazon-Photo"):
        load_benchmark(BY_NAME["amazon-photo"], data_dir=tmp_path)


def test_digits_against_a_plain_twin() -> None:
    data = load_benchmark(BY_NAME["digits"])
    pixels, labels = load_digits(return_X_y=True)
    n = len(pixels)
    joined = np.zeros((n, n), dtype=bool)
    for i in range(n):
        distances = ((pixels - pixels[i]) ** 2).sum(axis=1)
        distances[i] = np.inf
        # Whole numbers: a fraction of the index below one decides ties and nothing else.
        joined[i, np.argsort(distances + np.arange(n) / n)[:6]] = True
    joined |= joined.T
    assert torch.equal(data.edge_index, torch.from_numpy(np.array(joined.nonzero())))
    assert torch.equal(data.x.double() * 16, torch.from_numpy(pixels))
    assert data.y.tolist() == labels.tolist()
    counts = BY_NAME["digits"]
    assert (data.num_nodes, data.num_edges // 2, data.num_features) == (counts.nodes, counts.edges, counts.features)


def test_words_are_a_connected_part_of_wordnet() -> None:
    data, table = load_benchmark(BY_NAME["words"]), BY_NAME["words"]
    assert (data.num_nodes, data.num_edges // 2, data.num_features) == (table.nodes, table.edges, table.features)
    assert len(set(data.node_ids)) == len(data.node_notes) == data.num_nodes
    assert data.y.bincount(minlength=table.classes).min() >= 100
    assert len(data.label_names) == table.classes
    length = data.x.to_dense().norm(dim=1)
    assert bool(((length - 1).abs() < 1e-5).logical_or(length == 0).all())
    assert int((length == 0).sum()) < 0.02 * data.num_nodes
    joined = to_scipy_sparse_matrix(data.edge_index, num_nodes=data.num_nodes)
    assert connected_components(joined, directed=False)[0] == 1
    dog, canine = data.node_ids.index("dog"), data.node_ids.index("canine")
    assert data.label_names[data.y[dog]] == "animal"
    assert data.node_notes[dog].startswith("a member of the genus Canis")
    assert canine in data.edge_index[1, data.edge_index[0] == dog]


def test_the_file_of_words_is_small_holds_no_pickle_and_has_its_licence_beside_it() -> None:
    folder = resources.files("costa.graphs")
    with resources.as_file(folder / "words.npz") as path:
        assert path.stat().st_size < 500_000
        with np.load(path, allow_pickle=False) as arrays:
            assert not any(arrays[key].dtype.hasobject for key in arrays)
    licence = (folder / "WORDNET-LICENSE").read_text()
    assert "Princeton" in licence
    assert "Permission to use, copy, modify and distribute" in licence


def test_the_argument_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("argument", "environment"):
        (tmp_path / folder / "WikiCS" / "raw").mkdir(parents=True)
    write_wikics(tmp_path / "argument" / "WikiCS" / "raw" / "data.json")
    (tmp_path / "environment" / "WikiCS" / "raw" / "data.json").write_text("{}")
    monkeypatch.setenv("COSTA_DATA", str(tmp_path / "environment"))
    assert load_benchmark(BY_NAME["wikics"], data_dir=tmp_path / "argument").num_nodes == 5
    with pytest.raises(InputError, match="environment"):
        load_benchmark(BY_NAME["wikics"])


def test_a_data_folder_without_the_dataset_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "WikiCS" / "raw").mkdir(parents=True)
    write_wikics(tmp_path / "full" / "WikiCS" / "raw" / "data.json")
    monkeypatch.setenv("COSTA_DATA", str(tmp_path / "full"))
    with caplog.at_level(logging.INFO, logger="costa"):
        assert load_benchmark(BY_NAME["wikics"], data_dir=tmp_path / "empty").num_nodes == 5
    assert "has no WikiCS" in caplog.text


def test_a_data_folder_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nowhere' \(data_dir\) does not exist"):
        load_benchmark(BY_NAME["cora"], data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("COSTA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"nowhere' \(COSTA_DATA\) does not exist"):
        load_benchmark(BY_NAME["cora"])


def test_a_missing_file_is_named(data_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(data_dir / "Cora", tmp_path / "Cora")
    (tmp_path / "Cora" / "raw" / "ind.cora.ally").unlink()
    with pytest.raises(InputError, match=r"ind\.cora\.ally' is missing"):
        load_benchmark(BY_NAME["cora"], data_dir=tmp_path)


def test_a_pickle_with_the_wrong_sum_is_never_opened(data_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(data_dir / "Cora", tmp_path / "Cora")
    path = tmp_path / "Cora" / "raw" / "ind.cora.graph"
    path.chmod(0o644)
    marker = tmp_path / "opened"
    # A pickle that would create the marker when loaded: posix/nt.mkdir(marker).
    path.write_bytes(b"cos\nmkdir\n(V" + str(marker).encode() + b"\ntR.")
    with pytest.raises(InputError, match=r"ind\.cora\.graph' has the wrong SHA-256"):
        load_benchmark(BY_NAME["cora"], data_dir=tmp_path)
    assert not marker.exists()
    assert path.exists()
    pickle.loads(path.read_bytes())
    assert marker.exists()


def test_download_into_the_cache_once(
    served: tuple[Path, str], own_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, address = served
    write_npz(folder / "amazon_electronics_photo.npz")
    digest = sha256(folder / "amazon_electronics_photo.npz")
    benchmark = at(BY_NAME["amazon-photo"], address, **{"amazon_electronics_photo.npz": digest})
    assert load_benchmark(benchmark).num_nodes == 4
    assert [path.name for path in own_cache.rglob("*.*")] == ["amazon_electronics_photo.npz"]
    (folder / "amazon_electronics_photo.npz").unlink()
    assert load_benchmark(benchmark).num_nodes == 4
    assert capfd.readouterr().err == ""


def test_a_download_beside_a_data_folder_is_not_written_into_it(
    served: tuple[Path, str], tmp_path: Path, own_cache: Path
) -> None:
    folder, address = served
    write_wikics(folder / "data.json")
    benchmark = at(BY_NAME["wikics"], address, **{"data.json": sha256(folder / "data.json")})
    (tmp_path / "data").mkdir()
    assert load_benchmark(benchmark, data_dir=tmp_path / "data").num_nodes == 5
    assert listing(tmp_path / "data") == []
    assert (own_cache / "WikiCS" / "raw" / "data.json").is_file()
    assert sorted(path.name for path in (own_cache / "WikiCS").iterdir()) == ["raw"]


def test_all_planetoid_files_are_fetched_and_checked(served: tuple[Path, str], data_dir: Path) -> None:
    folder, address = served
    for path in (data_dir / "Cora" / "raw").iterdir():
        shutil.copyfile(path, folder / path.name)
    benchmark = at(BY_NAME["cora"], address)
    assert load_benchmark(benchmark).num_nodes == benchmark.nodes


def test_a_tampered_download_is_refused_and_not_kept(served: tuple[Path, str], own_cache: Path) -> None:
    folder, address = served
    write_npz(folder / "amazon_electronics_photo.npz")
    benchmark = at(BY_NAME["amazon-photo"], address)
    with pytest.raises(InputError, match="wrong SHA-256 and was discarded"):
        load_benchmark(benchmark)
    assert [path for path in own_cache.rglob("*") if path.is_file()] == []


def test_a_corrupt_file_in_the_cache_is_fetched_anew(served: tuple[Path, str], own_cache: Path) -> None:
    folder, address = served
    write_wikics(folder / "data.json")
    benchmark = at(BY_NAME["wikics"], address, **{"data.json": sha256(folder / "data.json")})
    cached = own_cache / "WikiCS" / "raw" / "data.json"
    cached.parent.mkdir(parents=True)
    cached.write_text("half a file")
    assert load_benchmark(benchmark).num_nodes == 5
    assert sha256(cached) == benchmark.files[0].sha256


@pytest.mark.parametrize("kind", ["other", "broken"])
def test_a_dblp_download_with_other_content_is_refused_and_not_kept(
    kind: str, served: tuple[Path, str], own_cache: Path
) -> None:
    folder, address = served
    if kind == "other":
        write_npz(folder / "dblp.npz")
    else:
        (folder / "dblp.npz").write_bytes(b"<html>moved</html>")
    benchmark = at(BY_NAME["dblp"], address)
    with pytest.raises(InputError, match="wrong SHA-256" if kind == "other" else "could not be read as DBLP"):
        load_benchmark(benchmark)
    assert [path for path in own_cache.rglob("*") if path.is_file()] == []


def test_a_dblp_download_repacked_otherwise_is_accepted(
    served: tuple[Path, str], data_dir: Path, own_cache: Path
) -> None:
    folder, address = served
    with np.load(data_dir / "dblp" / "raw" / "dblp.npz") as archive:
        np.savez(folder / "dblp.npz", **archive)
    assert sha256(folder / "dblp.npz") != sha256(data_dir / "dblp" / "raw" / "dblp.npz")
    assert load_benchmark(at(BY_NAME["dblp"], address)).num_nodes == 17_716
    assert (own_cache / "dblp" / "raw" / "dblp.npz").is_file()


@pytest.mark.parametrize("part", ["edge_index", "x", "y"])
def test_the_content_digest_sees_every_part_but_not_the_order_of_edges(part: str, tmp_path: Path) -> None:
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    write_npz(raw / "amazon_electronics_photo.npz")
    data = load_benchmark(BY_NAME["amazon-photo"], data_dir=tmp_path)
    digest = content_digest(data)
    data.edge_index = data.edge_index.flip(1)
    assert content_digest(data) == digest
    data[part] = data[part].clone()
    data[part][0] = 1 - data[part][0]
    assert content_digest(data) != digest


def test_no_network_is_one_sentence(served: tuple[Path, str], capfd: pytest.CaptureFixture[str]) -> None:
    _, address = served
    with pytest.raises(InputError) as missing:
        load_benchmark(at(BY_NAME["cora"], address + "gone/"))
    with pytest.raises(InputError) as refused:
        load_benchmark(at(BY_NAME["cora"], "http://127.0.0.1:9/"))
    for error in (missing, refused):
        sentence = str(error.value)
        assert sentence.startswith("cora could not be fetched from http://127.0.0.1:")
        assert "--data-dir or COSTA_DATA" in sentence
        assert "\n" not in sentence
    assert capfd.readouterr().err == ""


def test_a_cache_that_cannot_be_written_is_one_sentence(served: tuple[Path, str], own_cache: Path) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cora could not be fetched"):
        load_benchmark(at(BY_NAME["cora"], served[1]))


def test_the_module_imports_neither_torch_nor_sklearn() -> None:
    heavy = "{'torch', 'torch_geometric', 'sklearn', 'pooch'} & set(sys.modules)"
    code = f"import sys, costa.graphs; print({heavy})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "set()"
