"""What the tests share: benchmark data, the command line, one small run."""

import csv
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
# Before torch is imported, and for the processes that tests start: on problems this small two threads gain nothing, and
# beside another busy process they wait for each other up to fifty times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A console that is made where these are set keeps that width; the workers of `make test` have them from their terminal.
os.environ.pop("COLUMNS", None)
os.environ.pop("LINES", None)

import torch

# Before Triton is imported: without a GPU its kernels are run by their interpreter.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of benchmark graphs: `COSTA_DATA`, or `shared/datasets` beside the repository."""
    beside = Path(__file__).parents[2] / "shared" / "datasets"
    folder = Path(os.environ.get("COSTA_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"benchmark graphs are not here: neither COSTA_DATA nor {beside} is a folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """The user's cache is not the tests'; processes that tests start see the same empty one."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture
def in_process(monkeypatch, capsys):
    """in_process("costa", main): an entry point as a function in this process, its arguments → code, out, err."""

    def command(name, main):
        def run(*arguments):
            monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
            monkeypatch.setenv("COLUMNS", "200")
            capsys.readouterr()
            try:
                main()
                code = 0
            except SystemExit as stop:
                code = stop.code or 0
            captured = capsys.readouterr()
            return SimpleNamespace(code=code, out=captured.out, err=captured.err)

        return run

    return command


@pytest.fixture
def costa(in_process):
    """The command line: costa("train", "digits") → code, out, err."""
    from costa.cli import main

    return in_process("costa", main)


@pytest.fixture
def own_graph(tmp_path) -> Path:
    """A folder of one's own: two communities, string ids, three nodes without a label."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "friends"
    folder.mkdir()
    names = [f"person {i:02d}" for i in range(60)]
    pairs = {(int(a), int(b)) for a, b in rng.integers(60, size=(900, 2)) if a < b and a % 2 == b % 2}
    with (folder / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *((names[a], names[b]) for a, b in sorted(pairs))])
    with (folder / "nodes.csv").open("w", newline="") as file:
        labels = ["" if i < 3 else ["blue", "red"][i % 2] for i in range(60)]
        csv.writer(file).writerows([["id", "label"], *zip(names, labels, strict=True)])
    np.save(folder / "features.npy", rng.normal(size=(60, 6)).astype("float32"))
    return folder


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory) -> Path:
    """A finished run of COSTA with a GCN on digits, three epochs; tests read it, or copy it."""
    from costa import runs
    from costa.graphs import load_graph
    from costa.methods import get_method
    from costa.settings.presets import resolve

    folder = tmp_path_factory.mktemp("runs") / "digits"
    graph = load_graph("digits")
    resolved = resolve(get_method("costa-sv"), graph, given={"encoder.kind": "gcn"}, epochs=3)
    runs.execute(runs.Job(graph, "digits", "costa-sv", resolved, torch.device("cpu")), folder, seed=0)
    return folder
