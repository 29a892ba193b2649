"""A folder for a user's own graph, and what fills it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from torch_geometric.data import Data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people").mkdir()
    return tmp_path / "people"


def write_files(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def listed_edges(data: Data) -> list[list[int]]:
    return data.edge_index.T.tolist()


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    """write(folder, edges__csv=text): text files; a double underscore in a name stands for the dot."""
    return write_files


@pytest.fixture(scope="session")
def edges_of() -> Callable[[Data], list[list[int]]]:
    """edges_of(graph): the edges as pairs of row numbers."""
    return listed_edges
