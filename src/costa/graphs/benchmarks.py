"""The nine datasets of the paper and two embedded graphs; ``benchmarks.toml`` has their sources and checksums.

PyTorch Geometric's own readers do the reading, so the graphs equal those of its dataset classes, but no
``processed/`` folder is ever written. The readers work as follows:

- Planetoid (Cora, CiteSeer, PubMed): features as published, self-loops and duplicate edges removed, the public
  split as ``train_mask``, ``val_mask`` and ``test_mask``. CiteSeer's 15 isolated test nodes, which the source
  leaves out, get zero features and class 0.
- NPZ (Amazon, Coauthor, DBLP): every positive feature becomes 1, self-loops are removed, and the graph is made
  undirected.
- WikiCS: made undirected, self-loops kept, its 20 splits as the columns of ``train_mask``, ``val_mask`` and
  ``stopping_mask``; all splits share one ``test_mask``.

Two graphs need no download: ``digits`` is made from scikit-learn's images, and ``words``, a part of WordNet, is the
bundle ``words.npz`` (``WORDNET-LICENSE`` is its licence, ``benchmarks/make_words.py`` made it). Its nodes have ids.

A data folder (``data_dir``, ``COSTA_DATA``) has the layout of those classes' root, ``FOLDER/raw/FILE``. It is
only read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
import tomllib
import warnings
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from costa.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RawFile:
    """One file of a dataset: its name, its original address, and the original's SHA-256 if known."""

    name: str
    url: str
    sha256: str | None


@dataclass(frozen=True)
class Benchmark:
    """A graph that ``load_graph`` knows by name.

    Attributes:
        name: What a user types.
        title: What a table prints.
        description: One line on what nodes, edges and classes are.
        reader: The format of its files; ``digits`` and ``words`` are embedded.
        folder: Its folder below a data folder.
        files: What ``FOLDER/raw`` holds.
        nodes: The number of nodes.
        edges: The number of undirected edges, duplicates merged.
        features: The number of feature columns.
        classes: The number of classes.
        content_sha256: ``content_digest`` of the graph; None where it was not at hand.
    """

    name: str
    title: str
    description: str
    reader: Literal["planetoid", "npz", "wikics", "digits", "words"]
    folder: str
    files: tuple[RawFile, ...]
    nodes: int
    edges: int
    features: int
    classes: int
    content_sha256: str | None = None


def _read_table() -> tuple[Benchmark, ...]:
    table = tomllib.loads((resources.files(__package__) / "benchmarks.toml").read_text(encoding="utf-8"))
    benchmarks = []
    for name, entry in table.items():
        url, sums = entry.pop("url", ""), entry.pop("files", {})
        files = tuple(RawFile(file, url + file, sha256 or None) for file, sha256 in sums.items())
        benchmarks.append(Benchmark(name=name, files=files, **entry))
    return tuple(benchmarks)


BENCHMARKS = _read_table()


def load_benchmark(benchmark: Benchmark, *, data_dir: str | os.PathLike[str] | None = None) -> Data:
    """The graph of one benchmark, from a data folder, the cache or its original source, in that order.

    The SHA-256 of every download (for DBLP, of its content) is checked before it is used or kept in the cache.
    In a data folder the pickles of Planetoid are checked before they are opened; NPZ and JSON files, which
    cannot run code, are not.
    """
    if benchmark.reader == "digits":
        data = _digits()
    elif benchmark.reader == "words":
        data = _words()
    else:
        raw = _in_data_folder(benchmark, data_dir)
        if raw is None:
            data = _from_cache(benchmark)
        else:
            if benchmark.reader == "planetoid":
                _check_sums(benchmark, raw)
            data = _read(benchmark, raw)
    data.name = benchmark.name
    return data


def is_benchmark(data: Data) -> bool:
    """Whether a graph with a benchmark's name has its content; only its sizes if nobody recorded that."""
    (benchmark,) = (each for each in BENCHMARKS if each.name == data.name)
    sizes = (data.num_nodes, data.num_edges // 2, data.num_features)
    if sizes != (benchmark.nodes, benchmark.edges, benchmark.features):
        return False
    return benchmark.content_sha256 in (None, content_digest(data))


def content_digest(data: Data) -> str:
    """SHA-256 of the content of a graph, independent of how its file was packed and whether x is sparse.

    The canonical form is little-endian: int64 for the shape of x, the columns of ``edge_index`` sorted by (row,
    column), the (row, column) of every non-zero of x in row order, and the labels; then these non-zeros as float32.
    """
    import numpy as np

    from costa.nn.sparse import is_csr, to_scipy

    x = to_scipy(data.x.cpu()) if is_csr(data.x) else data.x.cpu().numpy()
    places = np.stack(x.nonzero(), axis=1)
    values = np.asarray(x[places[:, 0], places[:, 1]], dtype="<f4").ravel()
    edges = data.edge_index.cpu().numpy()
    edges = edges[:, np.lexsort((edges[1], edges[0]))]
    digest = hashlib.sha256()
    for part in (np.array(data.x.shape), edges.T, places, data.y.cpu().numpy()):
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    digest.update(values.tobytes())
    return digest.hexdigest()


def _in_data_folder(benchmark: Benchmark, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The first read-only folder that has this dataset, or None."""
    for origin, given in (("data_dir", data_dir), ("COSTA_DATA", os.environ.get("COSTA_DATA"))):
        if not given:
            continue
        root = Path(given).expanduser()
        if not root.is_dir():
            raise InputError(f"the data folder {str(root)!r} ({origin}) does not exist; give a folder that does.")
        folder = root / benchmark.folder
        if not folder.is_dir():
            logger.info("%s has no %s; trying the next source", root, benchmark.folder)
            continue
        for file in benchmark.files:
            if not (folder / "raw" / file.name).is_file():
                raise InputError(
                    f"the file {str(folder / 'raw' / file.name)!r} is missing; copy it there from {file.url} "
                    f"or remove the folder {str(folder)!r}."
                )
        return folder / "raw"
    return None


def _check_sums(benchmark: Benchmark, raw: Path) -> None:
    for file in benchmark.files:
        with open(raw / file.name, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != file.sha256:
            raise InputError(
                f"the file {str(raw / file.name)!r} has the wrong SHA-256 ({digest[:12]}…, expected "
                f"{(file.sha256 or '')[:12]}…) and was not opened; replace it with {file.url}."
            )


def _from_cache(benchmark: Benchmark) -> Data:
    """Read from the user's cache, after downloading files that are missing or have a wrong checksum."""
    import platformdirs

    raw = Path(platformdirs.user_cache_dir("costa")) / "data" / benchmark.folder / "raw"
    _download(benchmark, raw)
    try:
        data = _read(benchmark, raw)
        unpinned = not all(file.sha256 for file in benchmark.files)
        if unpinned and benchmark.content_sha256 not in (None, content_digest(data)):
            raise InputError(
                f"what {benchmark.files[0].url} gave is not the {benchmark.title} graph "
                f"(its content has the wrong SHA-256) and was discarded; try again later, or {_ELSEWHERE}."
            )
    except InputError:
        # A file without a known checksum is checked only now; a bad one must not stay for the next call.
        for file in benchmark.files:
            if file.sha256 is None:
                (raw / file.name).unlink(missing_ok=True)
        raise
    return data


_ELSEWHERE = "point --data-dir or COSTA_DATA at a folder that has it"


def _download(benchmark: Benchmark, raw: Path) -> None:
    import pooch

    store = pooch.create(
        path=raw,
        base_url="",
        registry={file.name: file.sha256 and f"sha256:{file.sha256}" for file in benchmark.files},
        urls={file.name: file.url for file in benchmark.files},
    )
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty())
    # pooch announces every file on stderr, but a failure should print one sentence.
    pooch_logger = pooch.get_logger()
    level = pooch_logger.level
    pooch_logger.setLevel(logging.WARNING)
    try:
        for file in benchmark.files:
            try:
                store.fetch(file.name, downloader=downloader)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise InputError(
                    f"{benchmark.name} could not be fetched from {file.url} into {str(raw)!r} ({reason}); "
                    f"check the network, or {_ELSEWHERE}."
                ) from error
            except ValueError as error:
                raise InputError(
                    f"what {file.url} gave for {benchmark.name} has the wrong SHA-256 and was discarded; "
                    f"try again later, or {_ELSEWHERE}."
                ) from error
    finally:
        pooch_logger.setLevel(level)


def _read(benchmark: Benchmark, raw: Path) -> Data:
    if benchmark.reader == "planetoid":
        return _read_planetoid(raw, benchmark.name)
    path = raw / benchmark.files[0].name
    try:
        return _read_npz(path) if benchmark.reader == "npz" else _read_wikics(path)
    except (OSError, EOFError, LookupError, TypeError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise InputError(
            f"the file {str(path)!r} could not be read as {benchmark.title} ({type(error).__name__}); "
            f"replace it with {benchmark.files[0].url}."
        ) from error


def _read_planetoid(raw: Path, prefix: str) -> Data:
    from torch_geometric.io import read_planetoid_data

    from costa.nn.sparse import SparseMatrix, sparse_if_faster

    with warnings.catch_warnings():  # the reader adds a process-wide filter and leaves it there
        data = read_planetoid_data(str(raw), prefix)
    x = sparse_if_faster(data.x)
    data.x = x.a if isinstance(x, SparseMatrix) else x
    return data


def _read_npz(path: Path) -> Data:
    import numpy as np
    from scipy.sparse import csr_array
    from torch_geometric.io.npz import parse_npz

    from costa.nn.sparse import SPARSE_BELOW, from_scipy

    with np.load(path, allow_pickle=False) as file:
        parts = dict(file)
    indptr, shape = parts["attr_indptr"], tuple(parts["attr_shape"].tolist())
    features = csr_array((parts["attr_data"], parts["attr_indices"], indptr), shape, dtype=np.float32)
    adjacency = (parts[f"adj_{part}"] for part in ("data", "indices", "indptr"))
    for matrix in (features, csr_array(tuple(adjacency), tuple(parts["adj_shape"].tolist()))):
        matrix.check_format(full_check=True)  # an index out of range would be read from other memory
    x = from_scipy(features)
    x.values()[x.values() > 0] = 1
    # The reader would write the features out, so it gets a column of zeros instead.
    empty = {f"attr_{part}": parts[f"attr_{part}"][:0] for part in ("data", "indices")}
    zeros = {**empty, "attr_indptr": np.zeros_like(indptr), "attr_shape": np.array([shape[0], 1])}
    data = parse_npz(parts | zeros, to_undirected=True)
    data.x = x if x.values().numel() < SPARSE_BELOW * x.numel() else x.to_dense()
    return data


def _read_wikics(path: Path) -> Data:
    from torch_geometric.data import InMemoryDataset
    from torch_geometric.datasets import WikiCS

    class InPlace(WikiCS):
        """PyG's class, reading the file in place and processing it in a temporary folder."""

        raw_dir = str(path.parent)

        def __init__(self, root: str) -> None:
            self.is_undirected = True
            InMemoryDataset.__init__(self, root, log=False)
            self.load(self.processed_paths[0])

    with tempfile.TemporaryDirectory() as root:
        return InPlace(root)[0]


def _digits() -> Data:
    """scikit-learn's digits: pixels / 16, each image joined to its 6 nearest, made undirected.

    Many images have several sixth-nearest neighbours, and scikit-learn's choice among them depends on the number
    of threads. Pixels are whole numbers, so squared distances are exact, and here ties always go to the smallest index.
    """
    import numpy as np
    import torch
    from sklearn.datasets import load_digits
    from sklearn.metrics import euclidean_distances
    from torch_geometric.data import Data
    from torch_geometric.utils import to_undirected

    pixels, labels = load_digits(return_X_y=True)
    distances = euclidean_distances(pixels, squared=True)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :6]
    edges = np.stack([np.repeat(np.arange(len(pixels)), 6), nearest.ravel()])
    return Data(
        x=torch.from_numpy(pixels / 16).float(),
        edge_index=to_undirected(torch.from_numpy(edges), num_nodes=len(pixels)),
        y=torch.from_numpy(labels).long(),
    )


def _words() -> Data:
    """The bundle that comes with the package."""
    from costa.graphs.files import read_files

    with resources.as_file(resources.files(__package__) / "words.npz") as path:
        return read_files(path)
