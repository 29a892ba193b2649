"""Which folders a run may use, and which settings and nodes it may be resumed with."""

import copy
import hashlib
import json
from pathlib import Path

import pytest
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.runs import folder as folders


def test_a_new_and_an_empty_folder_are_accepted(small_graph, tmp_path):
    for folder in (tmp_path / "new", tmp_path):
        folders.claim(folder, "costa-sv", small_graph, 0, resume=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("method", "seed", "resume", "says"),
    [
        ("costa-sv", 0, False, "already holds this run .costa-sv on planted-partition, seed 0.; it has ended"),
        ("costa-sv", 1, True, "already holds another run"),
        ("raw", 0, True, "already holds another run"),
    ],
)
def test_a_run_is_not_overwritten(small_graph, finished, method, seed, resume, says):
    with pytest.raises(InputError, match=says):
        folders.claim(finished, method, small_graph, seed, resume=resume)
    folders.claim(finished, "costa-sv", small_graph, 0, resume=True)


def test_a_run_that_has_not_ended_can_be_resumed(small_graph, finished):
    (finished / "metrics.json").unlink()
    with pytest.raises(InputError, match="choose another --out, or continue it with --resume"):
        folders.claim(finished, "costa-sv", small_graph, 0, resume=False)


def test_other_peoples_files_are_left_alone(small_graph, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    for folder in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(InputError, match="exists and is not a run of costa; choose another --out"):
            folders.claim(folder, "costa-sv", small_graph, 0, resume=False)


def test_resuming_needs_a_run(small_graph, tmp_path):
    with pytest.raises(InputError, match="there is no run to resume"):
        folders.claim(tmp_path / "new", "costa-sv", small_graph, 0, resume=True)
    folders.claim(tmp_path / "new", "costa-sv", small_graph, 0, resume=True, fresh_is_fine=True)


def test_an_ended_run_keeps_all_its_settings(a_job, finished):
    flat = settings.flatten(a_job().resolved.values)
    folders.check_same_settings(finished, flat)
    with pytest.raises(InputError, match=r"started with loss.tau = .*, not 0.9; resume it with its own settings"):
        folders.check_same_settings(finished, flat | {"loss.tau": 0.9})
    with pytest.raises(InputError, match=r"has ended after its 2 epochs, .* cannot go on to 9; train again"):
        folders.check_same_settings(finished, flat | {"train.epochs": 9})
    (finished / "metrics.json").unlink()
    folders.check_same_settings(finished, flat | {"train.epochs": 9})


def test_nodes_are_known_by_their_ids_and_their_order(small_graph):
    named, turned = copy.copy(small_graph), copy.copy(small_graph)
    named.node_ids = [str(node) for node in range(200)]
    turned.node_ids = named.node_ids[::-1]
    assert folders.nodes_digest(small_graph) is None
    assert folders.nodes_digest(named) != folders.nodes_digest(turned)


@pytest.mark.parametrize("ids", [[], ["x"], ['a "b"', "ü", "c"], [1, 2, 3, 4, 5, 6, 7]])
def test_the_digest_of_many_ids_is_that_of_one_list(ids, monkeypatch):
    monkeypatch.setattr(folders, "IDS", 3)
    whole = json.dumps([str(node) for node in ids]).encode()
    assert folders.nodes_digest(Data(node_ids=ids)) == hashlib.sha256(whole).hexdigest()


def test_a_graph_that_has_gone_is_one_sentence(a_job, finished):
    config = (finished / "config.json").read_text()
    (finished / "config.json").write_text(config.replace('"graph": "communities"', '"graph": "/no/such/graph.npz"'))
    with pytest.raises(InputError, match=r"was trained on /no/such/graph.npz, which no longer exists; put it back"):
        folders.load_run_graph(finished, None)


def test_folders_are_named_after_the_run(a_job, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = a_job()
    name = "planted-partition-costa-sv"
    assert folders.claim_folders(job, [3], None, several=False) == {3: Path("runs") / f"{name}-3"}
    assert folders.claim_folders(job, [3], tmp_path / "x", several=False) == {3: tmp_path / "x"}
    assert folders.claim_folders(job, [0, 1], tmp_path / "x", several=True) == {
        seed: tmp_path / "x" / f"{name}-{seed}" for seed in (0, 1)
    }
