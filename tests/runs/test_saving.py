"""Models in folders: written, read, refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from costa import COSTA, runs
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.runs import saving
from costa.settings.presets import resolve

SMALL = {"encoder.width": 16, "head.width": 16}


@pytest.fixture(scope="module")
def graph():
    return planted_partition(120, 3, 12, seed=0)


KINDS = {
    "gcn": {"encoder.kind": "gcn", "augment.edge_rate": (0.2, 0.4)},
    "hops": {
        **{"encoder.kind": "hops", "encoder.powers": "0,4", "encoder.norm": "batch", "encoder.columns": 12},
        **{"train.batch": 50, "features.rank": 8},
    },
}


@pytest.fixture(scope="module", params=KINDS)
def model(graph, request):
    return COSTA(views=2, epochs=2, settings=SMALL | KINDS[request.param], random_state=np.int64(3)).fit(graph)


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_comes_back_as_it_was(graph, model, saved):
    again = COSTA.load(saved)
    np.testing.assert_array_equal(again.transform(graph), model.transform(graph))
    assert (again.views, again.epochs, again.random_state, again.device) == (2, 2, 3, "auto")
    assert again.settings_ == model.settings_
    assert again.origins_ == model.origins_
    assert again.choices_ == model.choices_
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(clone(again).fit_transform(graph), model.transform(graph))


def test_feature_scaling_travels_with_the_model(graph, model, saved):
    other = planted_partition(50, 3, 12, seed=1)
    other.x = 5 * other.x + 3
    np.testing.assert_array_equal(COSTA.load(saved).transform(other), model.transform(other))
    assert model.settings_.features.scaling == "standard"


def test_a_loaded_model_can_be_saved_again(graph, model, saved, tmp_path):
    COSTA.load(saved).save(tmp_path / "again")
    assert (tmp_path / "again" / "config.json").read_text() == (saved / "config.json").read_text()
    np.testing.assert_array_equal(COSTA.load(tmp_path / "again").transform(graph), model.transform(graph))


def test_there_are_two_files_of_the_same_rights_and_nothing_beside(saved):
    assert {path.name for path in saved.iterdir()} == {"config.json", "model.safetensors"}
    assert [path.name for path in saved.parent.iterdir()] == ["model"]
    assert len({path.stat().st_mode for path in saved.iterdir()}) == 1


def run(folder, graph, method, **given):
    resolved = resolve(get_method(method), graph, given={"encoder.width": 8, "head.width": 8} | given, epochs=2)
    runs.execute(runs.Job(graph, "graph", method, resolved, torch.device("cpu"), probe=False), folder, 5)


def test_a_run_can_be_loaded(graph, tmp_path):
    run(tmp_path / "run", graph, "costa-sv", **{"sketch.kind": "sparse", "sketch.density": 0.2})
    model = COSTA.load(tmp_path / "run")
    np.testing.assert_array_equal(model.transform(graph), np.load(tmp_path / "run" / "embeddings.npy"))
    assert (model.views, model.epochs, model.random_state) == (1, 2, 5)
    np.testing.assert_array_equal(clone(model).fit_transform(graph), model.transform(graph))


def test_costa_embed_takes_a_saved_model(costa, own_graph, tmp_path):
    model = COSTA(epochs=1, settings=SMALL).fit(own_graph)
    model.save(tmp_path / "model")
    ended = costa("embed", tmp_path / "model", own_graph, "--out", tmp_path / "z.npy")
    assert ended.code == 0, ended.err
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), model.transform(own_graph))


def test_a_run_of_another_method_is_refused(graph, tmp_path):
    run(tmp_path / "run", graph, "grace")
    with pytest.raises(InputError, match="holds a model of grace, not of COSTA; `costa embed`"):
        COSTA.load(tmp_path / "run")


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        COSTA().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_over(model, saved, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for taken in (saved, tmp_path / "file", tmp_path / "full"):
        with pytest.raises(InputError, match="already exists and is not overwritten"):
            model.save(taken)
    assert (tmp_path / "file").read_text() == (tmp_path / "full" / "notes.txt").read_text() == "mine"


def test_a_model_is_written_over_if_that_is_asked_for_and_nothing_else_is(model, graph, saved, tmp_path):
    other = clone(model).set_params(random_state=8).fit(graph)
    other.save(saved, overwrite=True)
    np.testing.assert_array_equal(COSTA.load(saved).transform(graph), other.transform(graph))
    assert {path.name for path in saved.parent.iterdir()} == {saved.name}
    with pytest.raises(InputError, match="choose another folder or give overwrite=True"):
        model.save(saved)
    (saved / "notes.txt").write_text("mine")
    run(tmp_path / "run", graph, "costa-mv")
    for taken in (saved, tmp_path / "run"):
        with pytest.raises(InputError, match=r"is not a model that `COSTA\.save` wrote, so it is kept"):
            model.save(taken, overwrite=True)


def test_an_empty_folder_and_one_in_a_new_place_are_fine(model, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "new" / "place"):
        model.save(folder)
        assert COSTA.load(str(folder)).random_state == 3


def test_a_place_that_cannot_be_written_is_one_sentence(model, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"cannot be written \(.+\); choose another folder"):
        model.save(tmp_path / "file" / "model")


def test_a_save_that_fails_leaves_nothing(model, tmp_path, monkeypatch):
    def full(folder, state):
        assert not (tmp_path / "model").exists()
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "save_state", full)
    with pytest.raises(InputError, match="No space left on device"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def rewrite(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (
            lambda folder: rewrite(folder, schema=2),
            r"newer version of costa \(schema 2; this version reads 1\); update",
        ),
        (lambda folder: cut(folder / "config.json", 100), "config.json is damaged: it is not a JSON object"),
        (lambda folder: (folder / "config.json").write_text("[1]"), "config.json is damaged: it is not a JSON object"),
        (lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe"), "config.json is damaged: it is not a JSON"),
        (lambda folder: rewrite(folder, in_features="many"), "config.json is damaged: its 'in_features' is missing"),
        (lambda folder: rewrite(folder, settings=None), "config.json is damaged: its 'settings' is missing or wrong"),
        (lambda folder: rewrite(folder, parameters={"view": 1}), "config.json is damaged: its 'parameters' is missing"),
        (lambda folder: rewrite(folder, origins=[]), "config.json is damaged: its 'origins' is missing or wrong"),
        (lambda folder: rewrite(folder, schema=None), "config.json is missing, damaged or of another version"),
        (lambda folder: rewrite(folder, method="costa-xv"), "costa-xv"),
        (lambda folder: rewrite(folder, settings={"encoder.size": 3}), "unknown setting 'encoder.size'"),
        (lambda folder: rewrite(folder, in_features=13), "is not the model of"),
        (lambda folder: cut(folder / "model.safetensors", 500), "model.safetensors is missing or is not the model"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "config.json").unlink(), "there is no model in .*: it has no config.json"),
        (shutil.rmtree, "there is no model in .*: it has no config.json"),
    ],
)
def test_a_damaged_model_is_one_sentence(saved, damage, says):
    damage(saved)
    with pytest.raises(InputError, match=says):
        COSTA.load(saved)
