"""A model on a Hub that is on this machine."""

import json
import logging
import sys

import numpy as np
import pandas
import pytest

from costa import COSTA
from costa.errors import InputError
from costa.graphs import as_graph
from tests.runs.hub_server import serving

NAME = "someone/people"


@pytest.fixture
def served(monkeypatch, tmp_path):
    """The repositories of the Hub that huggingface_hub talks to."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with serving() as (address, repositories):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + template[template.index("/{repo_id}") :]
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("HF_TOKEN", "not-a-secret")
        yield repositories


@pytest.fixture
def people():
    """A graph from tables with secrets of several kinds."""
    rng = np.random.default_rng(0)
    ids = [f"person-{i:02d}" for i in range(40)]
    table = {"id": ids, "age": rng.integers(20, 60, 40), "town": rng.choice(["Bern", "Lyon"], 40)}
    edges = pandas.DataFrame({"source": rng.choice(ids, 150), "target": rng.choice(ids, 150)})
    return as_graph(edges, pandas.DataFrame(table), labels=[f"class-{i % 2}" for i in range(40)])


@pytest.fixture
def model(people):
    return COSTA(epochs=1, settings={"encoder.width": 8, "encoder.powers": (0, 1)}).fit(people)


def test_a_model_comes_back_from_the_hub(served, model, people, caplog):
    assert model.push_to_hub(NAME).endswith(NAME)
    again = COSTA.from_pretrained(NAME)
    np.testing.assert_array_equal(again.transform(people), model.transform(people))
    assert again.get_params()["settings"] == {"encoder.width": 8, "encoder.powers": [0, 1]}
    assert "the model has the values of 'town', and whoever can read someone/people can read them" in caplog.text


def test_no_data_of_the_graph_leaves_but_what_the_card_names(served, model):
    model._about |= {"graph": "/home/me/people", "nodes": "digest", "origins": {"x": "/home/me/settings.toml"}}
    model.push_to_hub(NAME)
    files = served[NAME]["files"]
    assert files.keys() == {"README.md", "config.json", "model.safetensors"}
    everything = b"".join(files.values())
    for secret in (b"person-", b"class-0", b"/home/me", b"digest"):
        assert secret not in everything
    assert b"Bern" in files["config.json"]
    assert "`config.json` has the values of 'town', as they were in that table." in files["README.md"].decode()
    assert served[NAME]["private"] or served[NAME]["visibility"] == "private"


def test_the_card_says_what_was_trained_and_measured(served, digits_run):
    model = COSTA.load(digits_run)
    model.push_to_hub(NAME)
    card = served[NAME]["files"]["README.md"].decode()
    metrics = json.loads((digits_run / "metrics.json").read_text())
    assert f"| random-10-10-80 | {100 * metrics['probes'][0]['accuracy']['mean']:.1f} ±" in card
    assert f"baseline `raw` | {100 * metrics['floor']['raw']['accuracy']:.1f} %" in card
    for said in ("`costa-sv`", "`digits`", "64 features in", "random seed 0", '"encoder.kind": "gcn"', NAME):
        assert said in card


def test_a_model_that_was_not_evaluated_has_a_card_that_says_so(served, model):
    model.push_to_hub(NAME, private=False)
    assert "It was not evaluated." in served[NAME]["files"]["README.md"].decode()
    assert not served[NAME]["private"]


def test_a_folder_needs_no_hub(model, people, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    model.save(tmp_path / "model")
    again = COSTA.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(people), model.transform(people))
    with pytest.raises(InputError, match=r"pip install 'costa-gcl\[hub\]'"):
        COSTA.from_pretrained("someone/people")
    with pytest.raises(InputError, match=r"pip install 'costa-gcl\[hub\]'"):
        model.push_to_hub(NAME)


def test_what_the_hub_refuses_is_one_sentence(served, model, caplog):
    caplog.set_level(logging.ERROR)
    for call, says in (
        (lambda: COSTA.from_pretrained("someone/nothing"), "someone/nothing cannot be read"),
        (lambda: COSTA.from_pretrained("not a name"), "not a name cannot be read"),
        (lambda: model.push_to_hub("a/b/c"), "a/b/c cannot be written"),
    ):
        with pytest.raises(InputError) as refused:
            call()
        assert str(refused.value).startswith(says)
        assert "\n" not in str(refused.value)
