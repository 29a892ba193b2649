"""What a search draws, for every method."""

from types import SimpleNamespace

import optuna
import pytest
import torch

from costa.methods import METHODS, get_method
from costa.methods.base import GradientMethod
from costa.settings import presets
from costa.settings.layers import flatten
from costa.tuning import space

TRAINED = [name for name in METHODS if issubclass(get_method(name), GradientMethod)]
NOT_SEARCHED = {
    *(
        "features.rank",
        "encoder.hidden",
        "predictor.activation",
        "augment.edges",
        "diffusion.k",
        "loss.negatives",
        "train.epochs",
    ),
    *("encoder.powers", "encoder.columns", "encoder.weight", "encoder.stored", "augment.hop_rate"),
    *("train.batch", "train.parts", "train.group"),
    *("sketch.k", "sketch.noise_std", "sketch.fixed", "sketch.scaling", "loss.include_self", "train.kernels"),
}


@pytest.mark.parametrize("method", TRAINED)
def test_it_serves_every_method_that_is_trained(graph, method):
    chosen = get_method(method)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = set()
    for _ in range(20):
        values = space.sample(study.ask(), chosen, graph)
        drawn |= set(values)
        settings = presets.resolve(chosen, graph, preset="none", given=values, epochs=5).values
        chosen.build(settings, 8, torch.Generator())
        rates = values.get("augment.edge_rate")
        assert rates is None or (isinstance(rates, list) and len(rates) == 2) == (chosen.views == 2)
    assert set(flatten(chosen.Settings())) - drawn <= NOT_SEARCHED


@pytest.mark.parametrize("method", ["costa-sv", "costa-mv"])
def test_every_sample_is_legal(graph, method):
    chosen = get_method(method)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = {}
    for _ in range(200):
        values = space.sample(study.ask(), chosen, graph)
        settings = presets.resolve(chosen, graph, preset="none", given=values, epochs=5).values
        merged = flatten(settings)
        assert all(merged[key] == value for key, value in values.items() if not key.startswith("augment."))
        chosen.build(settings, 8, torch.Generator())
        assert ("sketch.density" in values) == (values["sketch.kind"] == "sparse")
        assert ("head.activation" in values) == (values["head.width"] > 0)
        for key, value in values.items():
            seen.setdefault(key, set()).add(str(value))
    assert seen["encoder.activation"] >= {"relu", "elu", "prelu"}
    assert seen["encoder.norm"] >= {"none", "batch"}
    assert seen["encoder.steps"] == {"0", "2", "4", "8", "16"}
    assert seen["encoder.width"] == {"128", "256", "512", "1024", "2048"}
    assert seen["encoder.kind"] == {"gcn", "appnp"}
    assert 0.01 <= min(map(float, seen["encoder.teleport"])) < max(map(float, seen["encoder.teleport"])) <= 0.5
    assert seen["features.scaling"] == {"none", "rows", "standard"}
    assert seen["sketch.kind"] == {"gaussian", "rademacher", "sparse", "countsketch"}
    assert seen["loss.kind"] == ({"self"} if method == "costa-sv" else {"cross", "both"})
    assert seen.get("loss.include_self") == (None if method == "costa-sv" else {"True", "False"})
    if method == "costa-sv":
        assert seen["augment.edge_rate"] == {"0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8"}
    else:
        assert all(len(rate.split(",")) == 2 for rate in seen["augment.mask_rate"])
    assert 0.1 <= min(map(float, seen["loss.tau"])) < 0.2
    assert 4 < max(map(float, seen["loss.tau"])) <= 5


@pytest.mark.parametrize("method", ["costa-sv", "costa-mv", "grace"])
def test_hops_are_searched_where_they_are_asked_for(graph, method):
    chosen, kept = get_method(method), {"encoder.kind": "hops", "train.batch": 50}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = {}
    for _ in range(100):
        values = space.sample(study.ask(), chosen, graph, kept)
        settings = presets.resolve(chosen, graph, given=values, epochs=5).values
        chosen.build(settings, 8, torch.Generator())
        assert not {"augment.edge_rate", "augment.centrality", "encoder.layers"} & set(values)
        assert ("encoder.weight" in values) == (values["encoder.columns"] > 0)
        assert ("encoder.teleport" in values) == (values["encoder.steps"] > 0)
        for key, value in values.items():
            seen.setdefault(key, set()).add(str(value))
    for key, choices in space.HOPS.items():
        assert seen[key] >= set(map(str, choices)), key
    assert seen["encoder.kind"] == {"hops"}
    assert len(seen["augment.hop_rate"]) > 5
    assert set(flatten(chosen.Settings())) - set(seen) <= NOT_SEARCHED | {
        *("augment.edge_rate", "augment.centrality", "encoder.layers"),
    }


@pytest.mark.parametrize("batch", [0, 50, 10**6])
def test_with_hops_a_sketch_is_one_of_a_batch(batch):
    study, kept = optuna.create_study(), {"encoder.kind": "hops", "train.batch": batch}
    large = SimpleNamespace(num_nodes=10**5)
    ratios = [space.sample(study.ask(), get_method("costa-mv"), large, kept)["sketch.ratio"] for _ in range(30)]
    assert (max(ratios) > 0.1) == (batch == 50)
    assert batch == 50 or max(ratios) * 10**5 <= space.MOST_ROWS


@pytest.mark.parametrize(("parts", "several"), [(0, False), (4, False), (100, True)])
def test_with_parts_a_sketch_is_one_of_a_group(parts, several):
    study, kept = optuna.create_study(), {"train.parts": parts, "train.group": 4}
    large = SimpleNamespace(num_nodes=10**5)
    ratios = [space.sample(study.ask(), get_method("costa-mv"), large, kept)["sketch.ratio"] for _ in range(30)]
    assert (max(ratios) > 0.1) == several
    assert max(ratios) * (10**5 / 25 if several else 10**5) <= 1.5 * space.MOST_ROWS


def test_what_is_kept_is_not_drawn(graph):
    chosen = get_method("costa-mv")
    kept = {"encoder.width": 96, "sketch.ratio": 2.5, "sketch.noise_std": 0.1, "augment.edge_rate": [0.0, 0.0]}
    kept |= {"augment.mask_rate": [0.0, 0.0], "sketch.density": 0.3}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    kinds = set()
    for _ in range(40):
        trial = study.ask()
        values = space.sample(trial, chosen, graph, kept)
        kinds.add(values["sketch.kind"])
        # a density is used by one kind only, a centrality only if something is dropped
        unused = {"sketch.density"} if values["sketch.kind"] != "sparse" else set()
        assert {key: values.get(key) for key in kept} == kept | dict.fromkeys(unused)
        assert "augment.centrality" not in values
        assert not any(name.startswith(key) for name in trial.params for key in kept)
        presets.resolve(chosen, graph, preset="none", given=values, epochs=5)
    assert len(kinds) == 4
    rates = {"augment.edge_rate": [0.3, 0.0]}
    assert "augment.centrality" in space.sample(study.ask(), chosen, graph, rates | {"augment.mask_rate": [0, 0]})


@pytest.mark.parametrize("nodes", [50, 8193, 10_000, 34_493, 1_000_000])
def test_a_large_graph_has_no_more_rows_than_the_most(nodes):
    low, high = space._ratios(nodes)
    assert 0 < low < high <= 1.5
    assert round(high * nodes) <= space.MOST_ROWS
    assert high * nodes > 0.98 * min(1.5 * nodes, space.MOST_ROWS)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(30):
        values = space.sample(study.ask(), get_method("costa-sv"), SimpleNamespace(num_nodes=nodes))
        assert values["sketch.ratio"] <= high


def test_a_method_samples_only_the_keys_that_it_has(graph):
    values = space.sample(optuna.create_study().ask(), get_method("untrained"), graph)
    encoder = {f"encoder.{key}" for key in ("width", "layers", "activation", "norm", "steps", "kind")}
    assert set(values) - {"encoder.teleport"} == {"features.scaling"} | encoder


def test_of_given_settings_the_searched_part_is_kept(graph, a_job):
    job = a_job(graph, "costa-mv")
    given = {"encoder.kind": "gcn", "loss.tau": 9, "augment.edge_rate": "0.3,0.55"}
    part = space.searched_part(job, presets.resolve(job.method, graph, given=given).values)
    assert part["loss.tau"] == 5.0  # the largest that is searched
    assert [part[f"augment.edge_rate.{view}"] for view in (1, 2)] == pytest.approx([0.3, 0.6])
    assert "train.epochs" not in part
