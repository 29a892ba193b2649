"""What the tests share: benchmark data, the command line, one small run."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


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
def costa(monkeypatch, capsys):
    """The command's own entry point, in this process: costa("train", "digits") → code, out, err."""
    from costa.cli import main

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["costa", *map(str, arguments)])
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


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory) -> Path:
    """A finished run of COSTA on digits, three epochs; tests read it, or copy it."""
    import torch

    from costa import runs
    from costa.graphs import load_graph
    from costa.methods import get_method

    folder = tmp_path_factory.mktemp("runs") / "digits"
    graph = load_graph("digits")
    resolved = runs.resolve(get_method("costa-sv"), graph, epochs=3)
    runs.claim(folder, "costa-sv", "digits", 0, resume=False)
    runs.execute(folder, graph, "digits", "costa-sv", resolved, seed=0, device=torch.device("cpu"))
    return folder
