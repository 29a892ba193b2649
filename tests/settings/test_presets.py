import json
from dataclasses import make_dataclass, replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition
from costa.methods import METHODS, get_method
from costa.settings import presets
from reproduction import paper

PUBLISHED = {
    # lr, width, head, edge drop 1/2, mask, τ, ratio, epochs, as the authors released them
    "cora": (1e-4, 256, 256, (0.2, 0.4), 0.3, 0.4, 0.5, 700),
    "citeseer": (1e-3, 256, 256, (0.2, 0.0), 0.3, 0.1, 0.5, 700),
    "wikics": (1e-5, 512, 512, (0.0, 0.1), 0.5, 0.2, 0.8, 30),
    "amazon-photo": (1e-4, 512, 512, (0.0, 0.1), 0.5, 0.3, 0.5, 10),
    "amazon-computers": (1e-4, 512, 512, (0.0, 0.1), 0.5, 1.0, 0.8, 10),
    "coauthor-cs": (1e-3, 512, 512, (0.0, 0.1), 0.5, 0.4, 0.5, 20),
    "coauthor-physics": (1e-3, 512, 512, (0.0, 0.1), 0.5, 0.4, 0.25, 5),
}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_papers_settings_are_the_published_ones(dataset):
    values = presets.load_preset("paper", "costa-mv", dataset)
    merged, _ = settings.merge(get_method("costa-mv").Settings, [("paper", values)])
    lr, width, head, edges, mask, tau, ratio, epochs = PUBLISHED[dataset]
    assert (merged.train.lr, merged.train.epochs, merged.train.weight_decay) == (lr, epochs, 0)
    assert (merged.encoder.width, merged.head.width) == (width, head)
    assert (merged.augment.edge_rate, merged.augment.mask_rate) == (edges, (mask,))
    assert (merged.loss.kind, merged.loss.tau, merged.sketch.ratio) == ("cross", tau, ratio)
    assert (merged.sketch.kind, merged.sketch.center, merged.features.scaling) == ("gaussian", False, "rows")


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
@pytest.mark.parametrize("given_in", ["given", "config"])
def test_asking_for_a_gcn_gives_the_settings_made_for_it_whatever_the_default_is(name, given_in, tmp_path):
    """Those of the studies of bias, bounds and speed; another default encoder does not change them."""
    expected = json.loads((Path(__file__).parent / "gcn.json").read_text())[name]
    (tmp_path / "gcn.toml").write_text('encoder.kind = "gcn"\n')
    ask = {"given": {"encoder.kind": "gcn"}} if given_in == "given" else {"config": tmp_path / "gcn.toml"}
    resolved = presets.resolve(get_method(name), load_graph("digits"), **ask)
    assert json.loads(json.dumps(settings.flatten(resolved.values))) == expected
    # what the base leaves to the graph has a default, which must not move either
    base, _ = settings.merge(get_method(name).Settings, [("base", presets.load_base(name))])
    differing = {key for key, value in expected.items() if json.loads(json.dumps(settings.flatten(base)))[key] != value}
    assert differing <= {"features.scaling"}


def test_nothing_is_published_for_one_view_pubmed_or_dblp():
    assert presets.load_preset("paper", "costa-sv", "cora") is None
    assert set(presets.published("paper", "costa-mv")) == set(PUBLISHED)


def all_presets():
    """(method, preset, dataset) of every preset that the package has."""
    return [
        (name, preset, dataset)
        for name in METHODS
        for preset in ("paper", "tuned", "strict")
        for dataset in presets.published(preset, name)
    ]


def test_every_preset_pins_every_setting():
    """A new setting needs its neutral value in ``[base]`` of each method that has it."""
    lacking = {}
    for name, preset, dataset in all_presets():
        keys = settings.flatten(get_method(name).Settings())
        pinned = {key for _, values in presets.preset_layers(preset, name, dataset) for key in values}
        for key in keys.keys() - pinned:
            # what is chosen from the graph differs from dataset to dataset
            own = f"{name}.toml [paper.{dataset}]" if preset == "paper" else f"{preset}/{name}/{dataset}.toml"
            lacking.setdefault(own if key in presets.FROM_GRAPH else f"{name}.toml [base]", set()).add(key)
    assert not lacking, f"these files of src/costa/settings lack settings: {lacking}"


def test_what_is_chosen_from_the_graph_beats_the_base():
    graph = planted_partition(20_000, 2, 4, seed=0)
    resolved = presets.resolve(get_method("costa-sv"), graph, given={"encoder.kind": "gcn"})
    assert resolved.values.sketch.ratio * 20_000 == pytest.approx(4096)
    assert resolved.origins["sketch.ratio"] == resolved.origins["features.scaling"] == "graph"


@pytest.fixture(params=["the defaults", "other defaults"])
def method_named(request, monkeypatch):
    """Methods as they are, and with other defaults and other choices from the graph."""
    if request.param == "the defaults":
        return get_method

    def changed(name):
        method = get_method(name)
        defaults = method.Settings()
        train = replace(defaults.train, epochs=77, lr=0.077, weight_decay=0.077, kernels="plain")
        encoder = replace(defaults.encoder, width=77, activation="elu", norm="batch")
        groups = {"encoder": encoder, "train": train}
        if hasattr(encoder, "steps"):
            groups["encoder"] = replace(encoder, kind="appnp", hidden=77, layers=7, steps=7, teleport=0.77)
        if hasattr(defaults, "head"):
            groups["head"] = replace(defaults.head, width=77, activation="prelu")
        if hasattr(defaults, "sketch"):
            groups["sketch"] = settings.Sketch("selection", 0.7, 7, 0.7, 0.7, True, False, "printed")
        if hasattr(defaults, "augment"):
            groups["augment"] = replace(defaults.augment, edge_rate=(0.7,), mask_rate=(0.7,), centrality="pagerank")
        other = make_dataclass("Other", [(key, object, value) for key, value in (vars(defaults) | groups).items()])
        monkeypatch.setattr(method, "Settings", other)
        return method

    return changed


def test_presets_are_what_they_were_when_the_tables_were_made(method_named):
    """Whatever the defaults and the graph are; ``presets.json`` has the values on the benchmark graphs."""
    known = json.loads(Path(__file__).with_name("presets.json").read_text(encoding="utf-8"))
    seen = []
    for name, lines in known.items():
        keys, method = lines.pop("settings"), method_named(name)
        for title, values in lines.items():
            preset, dataset = title.split()
            # measurements, and so many nodes that the rows of a sketch would be limited
            graph = Data(x=torch.linspace(-9, 9, 50_000)[:, None], name=dataset)
            flat = settings.flatten(presets.resolve(method, graph, preset=preset).values)
            assert json.loads(json.dumps([flat[key] for key in keys])) == values, (name, title)
            seen.append((name, preset, dataset))
    assert len(seen) == 160


def test_a_config_file_is_read_or_refused_in_a_sentence(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[sketch]\nkind = "sparse"\n[train]\nlr = 0.01\n')
    assert presets.load_config(file) == {"sketch.kind": "sparse", "train.lr": 0.01}
    with pytest.raises(InputError, match="there is no settings file"):
        presets.load_config(tmp_path / "other.toml")
    file.write_text("kind = [")
    with pytest.raises(InputError, match="is not a TOML file"):
        presets.load_config(file)
    with pytest.raises(InputError, match="unknown preset"):
        presets.load_preset("best", "costa-sv", "cora")


def test_what_validation_chose_has_a_file_for_each_dataset(tmp_path, monkeypatch):
    assert presets.load_preset("tuned", "costa-mv", "digits")["encoder.norm"] == "batch"
    measured = paper.MEASURED
    for method in ("costa-sv", "costa-mv"):
        assert set(presets.published("tuned", method)) == {"digits", *measured}
        assert set(presets.published("strict", method)) == set(measured)
    for family in ("auto-encoders", "contrastive", "without negatives"):
        for method in paper.FAMILIES[family]:
            assert set(presets.published("tuned", method)) == set(measured)
    monkeypatch.setattr(presets, "ROOT", tmp_path)
    assert presets.published("strict", "costa-sv") == []
    folder = tmp_path / "strict" / "costa-sv"
    folder.mkdir(parents=True)
    (folder / "amazon-photo.toml").write_text("# Chosen.\nloss.tau = 2.0\naugment.edge_rate = [0.1]\n")
    assert presets.published("strict", "costa-sv") == ["amazon-photo"]
    assert presets.load_preset("strict", "costa-sv", "amazon-photo") == {"loss.tau": 2.0, "augment.edge_rate": [0.1]}
    assert presets.load_preset("tuned", "costa-sv", "amazon-photo") is None
    assert presets.load_preset("strict", "costa-sv", "../costa-sv/amazon-photo") is None


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("paper", "no settings are published for costa-mv on my-own .*cora.*use the preset tuned or none"),
        ("strict", "there are no strict settings for costa-mv on my-own"),
    ],
)
def test_asking_for_a_preset_that_is_not_there_is_an_error(preset, message):
    graph = planted_partition(40, 2, 4, degree=4, seed=0)
    graph.name = "my-own"
    with pytest.raises(InputError, match=message):
        presets.resolve(get_method("costa-mv"), graph, preset=preset)
    tuned = presets.resolve(get_method("costa-mv"), graph, preset="tuned")
    assert tuned.note.startswith("no tuned settings for costa-mv on my-own")


def test_without_a_preset_a_benchmark_gets_the_defaults_and_what_its_graph_suggests():
    graph = planted_partition(40, 2, 4, degree=4, seed=0)
    graph.name = "cora"
    resolved = presets.resolve(get_method("costa-mv"), graph)
    assert (set(resolved.origins.values()), resolved.note) == ({"default", "graph"}, None)
    tuned = presets.resolve(get_method("costa-mv"), graph, preset="tuned")
    assert set(tuned.origins.values()) == {"base", "preset tuned"}
