import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costa.errors import InputError
from costa.methods.costa import OneViewSettings, TwoViewSettings
from costa.settings.layers import SYNONYMS, flatten, merge, nested_to_flat, parse_assignments


def test_the_later_layer_wins_and_is_remembered():
    layers = [
        ("graph", {"sketch.ratio": 0.3, "train.lr": 0.1}),
        ("preset paper", {"sketch.ratio": 0.8}),
        ("--set", {"sketch.ratio": "0.25"}),
    ]
    settings, origins = merge(TwoViewSettings, layers)
    assert settings.sketch.ratio == 0.25
    assert settings.train.lr == 0.1
    assert origins["sketch.ratio"] == "--set"
    assert origins["train.lr"] == "graph"
    assert origins["loss.tau"] == "default"
    assert origins.keys() == flatten(settings).keys()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("encoder.dim", "encoder.width"),
        ("learning_rate", "train.lr"),
        ("train.learning-rate", "train.lr"),
        ("loss.temperature", "loss.tau"),
        ("encoder.dropout", "augment.mask_rate"),
        ("hidden", "encoder.hidden"),
        ("powers", "encoder.powers"),
        ("sketch.ratioo", "sketch.ratio"),
    ],
)
def test_the_setting_that_was_meant_is_named(typed, meant):
    with pytest.raises(InputError, match=rf"unknown setting '{typed}' \(--set\); did you mean {meant}\?"):
        merge(TwoViewSettings, [("--set", {typed: "1"})])


def test_every_synonym_is_of_a_setting_and_none_itself():
    known = flatten(TwoViewSettings())
    assert set(SYNONYMS.values()) <= set(known)
    assert not set(SYNONYMS) & set(known)


def test_settings_cannot_be_changed():
    settings, _ = merge(TwoViewSettings, [])
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.train.lr = 1.0


def test_flat_values_come_back_as_they_went():
    settings, _ = merge(TwoViewSettings, [("x", {"augment.edge_rate": [0.2, 0.4], "sketch.fixed": True})])
    again, _ = merge(TwoViewSettings, [("config.json", flatten(settings))])
    assert again == settings


def test_the_one_view_contrasts_itself_by_default():
    assert merge(OneViewSettings, [("test", {"loss.tau": 0.3})])[0].loss.kind == "self"
    assert merge(TwoViewSettings, [("test", {"loss.tau": 0.3})])[0].loss.kind == "cross"


@pytest.mark.parametrize("powers", ["", (), []])
def test_no_powers_leave_pagerank_alone(powers):
    given = {"encoder.kind": "hops", "encoder.powers": powers, "encoder.steps": 10}
    assert merge(TwoViewSettings, [("--set", given)])[0].encoder.powers == ()


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("sketch.rato", "0.5", "did you mean sketch.ratio"),
        ("zzz", "1", "there are: features.scaling"),
        ("sketch.ratio", "many", "is not a number"),
        ("sketch.ratio", "nan", "is not a number"),
        ("sketch.k", "1.5", "is not a whole number"),
        ("sketch.kind", "gausian", "one of gaussian, rademacher"),
        ("sketch.fixed", "maybe", "true or false"),
        ("augment.edge_rate", "0.2,1.0", "below 1"),
        ("augment.mask_rate", "a,b", "separated by commas"),
        ("encoder.kind", "gat", "one of gcn, appnp"),
        ("encoder.width", True, "is not a whole number"),
        ("train.lr", "-1", "above 0"),
        ("train.lr", [1, 2], "is not a number"),
        ("features.scaling", "log", "one of auto, none, rows, standard"),
    ],
)
def test_a_wrong_setting_is_one_sentence(key, value, says):
    with pytest.raises(InputError) as raised:
        merge(TwoViewSettings, [("--set", {key: value})])
    message = str(raised.value)
    assert says in message
    assert key in message
    assert "\n" not in message
    assert message.endswith((".", "?"))


def test_assignments_need_a_key_and_a_value():
    assert parse_assignments(["a.b=1", " c.d = x=y "]) == {"a.b": "1", "c.d": "x=y"}
    for text in ("sketch.ratio", "=0.5"):
        with pytest.raises(InputError, match="KEY=VALUE"):
            parse_assignments([text])


@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), st.integers(), min_size=1)))
def test_nested_tables_and_dotted_keys_mean_the_same(tree):
    flat = nested_to_flat(tree)
    assert flat == {f"{a}.{b}": value for a, inner in tree.items() for b, value in inner.items()}
    assert nested_to_flat(flat) == flat
