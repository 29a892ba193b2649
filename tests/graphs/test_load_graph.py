import random
from pathlib import Path

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.graphs import BENCHMARKS, load_graph, name_files


def write_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    np.save(folder / "features.npy", np.eye(3))
    return folder


def test_names_win_and_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "digits")
    monkeypatch.chdir(tmp_path)
    assert load_graph("digits").num_nodes == 1797
    for path in ("./digits", str(tmp_path / "digits"), Path("digits")):
        graph = load_graph(path)
        assert graph.num_nodes == 3
        assert graph.name == "digits-folder"  # its runs must not pass for the benchmark's
    monkeypatch.chdir(tmp_path / "digits")
    assert load_graph(".").name == "digits-folder"


def test_by_name_from_a_data_folder(data_dir: Path) -> None:
    graph = load_graph("cora", data_dir=data_dir)
    assert (graph.num_nodes, graph.name) == (2708, "cora")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("coraa", "cora"), ("Cora", "cora"), ("Photo", "amazon-photo"), ("computers", "amazon-computers")],
)
def test_an_unknown_name_names_the_known_and_the_nearest(given: str, meant: str) -> None:
    with pytest.raises(InputError) as error:
        load_graph(given)
    sentence = str(error.value)
    assert f"did you mean {meant!r}" in sentence
    assert all(benchmark.name in sentence for benchmark in BENCHMARKS)


def test_nothing_near_gives_no_suggestion() -> None:
    with pytest.raises(InputError, match=r"unknown graph '/no/such/xyzzy': give") as error:
        load_graph("/no/such/xyzzy")
    assert "did you mean" not in str(error.value)


def test_a_file_of_edges_is_a_graph(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine")
    alone = load_graph(folder / "edges.csv")
    assert (alone.name, alone.num_nodes, alone.num_features) == ("mine", 3, 33)
    graph = load_graph(folder / "edges.csv", features=folder / "features.npy")
    assert torch.equal(graph.x, torch.eye(3))
    assert graph.edge_index.equal(load_graph(folder).edge_index)


def test_a_file_named_as_a_benchmark_is_not_the_benchmark(tmp_path: Path) -> None:
    np.savez(tmp_path / "cora.npz", edge_index=np.array([[0], [1]]), x=np.eye(2))
    assert load_graph(tmp_path / "cora.npz").name == "cora-file"


def test_files_named_one_by_one_are_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "my data")
    (folder / "people.csv").write_text("id,label\n0,a\n1,b\n2,a\n")
    monkeypatch.chdir(folder)
    for chosen in (
        {"features": "features.npy"},
        {"nodes": "people.csv"},
        {"features": "features.npy", "nodes": "people.csv"},
    ):
        text = name_files(None, "edges.csv", **chosen)
        monkeypatch.chdir("/")  # it says where the files are, wherever it is read
        graph, direct = load_graph(text), load_graph(folder / "edges.csv", **{k: folder / v for k, v in chosen.items()})
        monkeypatch.chdir(folder)
        assert torch.equal(graph.x, direct.x)
        assert torch.equal(graph.y, direct.y)
    assert name_files("cora", None) == "cora"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((None, None), "no graph was given; give a name, a folder, or a file of edges with --edges."),
        (("cora", "e.csv"), "the graph 'cora' and a file of edges were both given; give one of them."),
        (("cora", None, "x.npy"), "--features goes with --edges; a GRAPH brings its own."),
        (("cora", None, None, "n.csv"), "--nodes goes with --edges; a GRAPH brings its own."),
    ],
)
def test_what_cannot_be_named_together(arguments: tuple[str | None, ...], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        name_files(*arguments)
    assert str(error.value) == sentence


@pytest.mark.parametrize("name", ["digits", "."])
def test_features_go_with_a_file_of_edges(name: str) -> None:
    with pytest.raises(InputError, match="features and nodes go with a file of edges, which"):
        load_graph(name, features="x.npy")


@pytest.mark.parametrize("name", ["cora", "digits"])
def test_a_data_folder_that_does_not_exist(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere' does not exist"):
        load_graph(name, data_dir=tmp_path / "nowhere")


def test_a_folder_is_checked_as_a_graph(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine")
    (folder / "edges.csv").write_text("source,target\n")
    np.save(folder / "features.npy", np.ones((1, 3)))
    with pytest.raises(InputError, match="at least 2 nodes"):
        load_graph(folder)


def test_the_global_generators_are_left_as_found(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine")
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    load_graph("digits")
    load_graph(folder)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]
