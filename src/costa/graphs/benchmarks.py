"""The nine datasets of the paper and the embedded digits graph: sources, checksums, readers.

PyTorch Geometric's own readers do the reading, so the graphs equal those of its dataset classes, but no
``processed/`` folder is ever written. The readers work as follows:

- Planetoid (Cora, CiteSeer, PubMed): features as published, self-loops and duplicate edges removed, the public
  split as ``train_mask``, ``val_mask`` and ``test_mask``. CiteSeer's 15 isolated test nodes, which the source
  leaves out, get zero features and class 0.
- NPZ (Amazon, Coauthor, DBLP): every positive feature becomes 1, self-loops are removed, and the graph is made
  undirected.
- WikiCS: made undirected, self-loops kept, its 20 splits as the columns of ``train_mask``, ``val_mask`` and
  ``stopping_mask``; all splits share one ``test_mask``.

A data folder (``data_dir``, ``COSTA_DATA``) has the layout of those classes' root, ``FOLDER/raw/FILE``. It is
only read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from costa.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)

_PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data/"
_GNN_BENCHMARK_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/"
_GRAPH2GAUSS_URL = "https://github.com/abojchevski/graph2gauss/raw/master/data/"
_WIKICS_URL = "https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset/"


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
        reader: The format of its files; ``digits`` has no files.
        folder: Its folder below a data folder.
        files: What ``FOLDER/raw`` holds.
        nodes: The number of nodes.
        edges: The number of undirected edges, duplicates merged.
        features: The number of feature columns.
        classes: The number of classes.
        content_sha256: ``content_digest`` of the graph, for a source without a known file checksum.
    """

    name: str
    title: str
    description: str
    reader: Literal["planetoid", "npz", "wikics", "digits"]
    folder: str
    files: tuple[RawFile, ...]
    nodes: int
    edges: int
    features: int
    classes: int
    content_sha256: str | None = None


def _planetoid_files(prefix: str, sums: dict[str, str]) -> tuple[RawFile, ...]:
    names = {f"ind.{prefix}.{part}": sha256 for part, sha256 in sums.items()}
    return tuple(RawFile(name, _PLANETOID_URL + name, sha256) for name, sha256 in names.items())


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        name="wikics",
        title="WikiCS",
        description="Wikipedia articles on computer science, hyperlinks, averaged word vectors; by branch",
        reader="wikics",
        folder="WikiCS",
        files=(
            # Its authors publish no checksum; two public projects that pin the file record this one.
            RawFile(
                "data.json",
                _WIKICS_URL + "data.json",
                "9bf8cb3ef8eeae81b25e6ccbe0ea195600c205d7edf63ce04f2ec8d9c7dcb3d8",
            ),
        ),
        nodes=11_701,
        edges=216_123,
        features=300,
        classes=10,
    ),
    Benchmark(
        name="amazon-computers",
        title="Amazon-Computers",
        description="products bought together, words of their reviews; by category",
        reader="npz",
        folder="Computers",
        files=(
            RawFile(
                "amazon_electronics_computers.npz",
                _GNN_BENCHMARK_URL + "amazon_electronics_computers.npz",
                "736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c",
            ),
        ),
        nodes=13_752,
        edges=245_861,
        features=767,
        classes=10,
    ),
    Benchmark(
        name="amazon-photo",
        title="Amazon-Photo",
        description="photography products bought together, words of their reviews; by category",
        reader="npz",
        folder="Photo",
        files=(
            RawFile(
                "amazon_electronics_photo.npz",
                _GNN_BENCHMARK_URL + "amazon_electronics_photo.npz",
                "bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a",
            ),
        ),
        nodes=7_650,
        edges=119_081,
        features=745,
        classes=8,
    ),
    Benchmark(
        name="coauthor-cs",
        title="Coauthor-CS",
        description="computer scientists who wrote together, keywords of their papers; by field",
        reader="npz",
        folder="CS",
        files=(
            RawFile(
                "ms_academic_cs.npz",
                _GNN_BENCHMARK_URL + "ms_academic_cs.npz",
                "933c745734e78908c7eb77172a673fee0503f30e26e5a99b36814d88534c42e3",
            ),
        ),
        nodes=18_333,
        edges=81_894,
        features=6_805,
        classes=15,
    ),
    Benchmark(
        name="coauthor-physics",
        title="Coauthor-Physics",
        description="physicists who wrote together, keywords of their papers; by field",
        reader="npz",
        folder="Physics",
        files=(
            RawFile(
                "ms_academic_phy.npz",
                _GNN_BENCHMARK_URL + "ms_academic_phy.npz",
                "e4d68468eba5fb8f6b280ffd406bd53e6e4295ba1dd2967d6fe99b978e4b3375",
            ),
        ),
        nodes=34_493,
        edges=247_962,
        features=8_415,
        classes=5,
    ),
    Benchmark(
        name="cora",
        title="Cora",
        description="machine-learning papers, citations, words; by topic",
        reader="planetoid",
        folder="Cora",
        files=_planetoid_files(
            "cora",
            {
                "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
                "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
                "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
                "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
                "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
                "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
                "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
                "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
            },
        ),
        nodes=2_708,
        edges=5_278,
        features=1_433,
        classes=7,
    ),
    Benchmark(
        name="citeseer",
        title="CiteSeer",
        description="computer-science papers, citations, words; by topic",
        reader="planetoid",
        folder="CiteSeer",
        files=_planetoid_files(
            "citeseer",
            {
                "x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
                "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
                "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
                "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
                "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
                "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
                "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
                "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
            },
        ),
        nodes=3_327,
        edges=4_552,
        features=3_703,
        classes=6,
    ),
    Benchmark(
        name="pubmed",
        title="PubMed",
        description="papers on diabetes, citations, TF-IDF words; by type of diabetes",
        reader="planetoid",
        folder="PubMed",
        files=_planetoid_files(
            "pubmed",
            {
                "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
                "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
                "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
                "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
                "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
                "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
                "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
                "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
            },
        ),
        nodes=19_717,
        edges=44_324,
        features=500,
        classes=3,
    ),
    Benchmark(
        name="dblp",
        title="DBLP",
        description="computer-science papers, citations, words of their titles; by area",
        reader="npz",
        folder="dblp",
        files=(RawFile("dblp.npz", _GRAPH2GAUSS_URL + "dblp.npz", None),),
        nodes=17_716,
        edges=52_867,
        features=1_639,
        classes=4,
        content_sha256="6c1790e23b998651cd7cc248e9fa266eb1837e7e7219b41b91d631e554094240",
    ),
    Benchmark(
        name="digits",
        title="Digits",
        description="handwritten digits, each joined to its 6 nearest, pixels; by digit (needs no download)",
        reader="digits",
        folder="digits",
        files=(),
        nodes=1_797,
        edges=7_522,
        features=64,
        classes=10,
    ),
)


def load_benchmark(benchmark: Benchmark, *, data_dir: str | os.PathLike[str] | None = None) -> Data:
    """The graph of one benchmark, from a data folder, the cache or its original source, in that order.

    The SHA-256 of every download (for DBLP, of its content) is checked before it is used or kept in the cache.
    In a data folder the pickles of Planetoid are checked before they are opened; NPZ and JSON files, which
    cannot run code, are not.
    """
    if benchmark.reader == "digits":
        data = _digits()
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


def content_digest(data: Data) -> str:
    """SHA-256 of the content of a graph with binary features, independent of how its file was packed.

    The canonical form is little-endian int64 throughout: the shape of x, the columns of ``edge_index`` sorted by
    (row, column), the (row, column) of every non-zero of x in row order, and the labels.
    """
    import numpy as np

    edges = data.edge_index.numpy()
    edges = edges[:, np.lexsort((edges[1], edges[0]))]
    digest = hashlib.sha256()
    for part in (np.array(data.x.shape), edges.T, data.x.nonzero().numpy(), data.y.numpy()):
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
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
        if benchmark.content_sha256 not in (None, content_digest(data)):
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

    with warnings.catch_warnings():  # the reader adds a process-wide filter and leaves it there
        return read_planetoid_data(str(raw), prefix)


def _read_npz(path: Path) -> Data:
    from torch_geometric.io import read_npz

    # read_npz keeps NumPy's default, allow_pickle=False.
    return read_npz(str(path), to_undirected=True)


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
