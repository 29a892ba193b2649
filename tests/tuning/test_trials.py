"""One trial: its checkpoints, its scores, and what happens when memory runs out."""

from dataclasses import make_dataclass, replace

import pytest
import torch

from costa import training
from costa.methods import METHODS, get_method
from costa.methods.base import GradientMethod
from costa.settings import Encoder, Train, presets
from costa.settings.layers import flatten
from costa.tuning import study as studies
from costa.tuning import trials

CPU = torch.device("cpu")
TRAINED = [name for name in METHODS if issubclass(get_method(name), GradientMethod)]
UNSCHEDULED = [name for name in TRAINED if not get_method(name).scheduled]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (4, [4]),
        (10, [10]),
        (1000, [10, 20, 50, 100, 200, 300, 500, 700, 1000]),
        (2100, [10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 2100]),
    ],
)
def test_checkpoints_end_at_the_limit(limit, expected):
    assert trials.checkpoints(limit) == expected


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, {"encoder.kind": "gcn", "augment.edge_rate": 0.3}) for name in UNSCHEDULED),
        *((name, {"encoder.kind": "hops", "train.batch": 50}) for name in ("costa-sv", "costa-mv", "grace")),
    ],
)
def test_a_checkpoint_is_what_training_so_long_gives(graph, name, values, a_job):
    job = a_job(graph, name)
    known = flatten(job.method.Settings())
    values = {"train.lr": 1e-3} | {key: value for key, value in values.items() if key in known}
    at_twelve = dict(trials._vectors(job, values, [1000, 1001], [7, 12]))[12]
    for seed, z in zip((1000, 1001), at_twelve, strict=True):
        settings = presets.resolve(job.method, graph, preset="none", given=values, epochs=12).values
        method = training.build(job.method, settings, graph, seed, CPU)
        training.train(method, graph, settings.train)
        assert torch.equal(z, method.embed(graph))


def test_a_training_that_depends_on_its_length_is_evaluated_at_the_last_epoch_only(
    graph, tmp_path, monkeypatch, a_job, searched
):
    job = a_job(graph, "bgrl", epochs=25)
    seen, vectors = [], trials._vectors

    def heard(job, values, seeds, places):
        seen.append(list(places))
        yield from vectors(job, values, seeds, places)

    monkeypatch.setattr(trials, "_vectors", heard)
    searched(tmp_path / "study.log", job, 1)
    assert seen == [[25]]


def test_the_best_checkpoint_says_the_epochs_of_each_score(graph, tmp_path, monkeypatch, a_job, searched):
    course = {"strict": [0.5, 0.8, 0.8], "tuned": [0.5, 0.6, 0.9]}  # all before the pruner: evaluated together
    with monkeypatch.context() as patch:
        patch.setattr(trials, "_accuracies", lambda *arguments, **coarse: course)
        study, ended = searched(tmp_path / "study.log", a_job(graph, epochs=25), 1)
    assert (ended[0].accuracy, ended[0].epochs) == (0.8, 20)
    (trial,) = studies.finished(study)
    assert trial.value == 0.8
    assert trial.intermediate_values == {10: 0.5, 20: 0.8, 25: 0.8}
    assert trial.user_attrs["tuned"] == {"accuracy": 0.9, "epochs": 25}
    finals = list(studies.evaluate_finalists(a_job(graph, epochs=25), study, 3, 2))
    assert [(final.preset, final.epochs, len(final.accuracies)) for final in finals] == [
        ("strict", 20, 2),
        ("tuned", 25, 2),
    ]


def test_what_does_worse_than_the_median_is_given_up(graph, tmp_path, monkeypatch, a_job, searched):
    found = iter([0.9, 0.9, 0.1])  # at two checkpoints, then at one
    monkeypatch.setattr(trials, "_accuracies", lambda *arguments, **coarse: {"strict": [next(found)], "tuned": [0.9]})
    monkeypatch.setattr(studies, "START_UP", 1)
    monkeypatch.setattr(trials, "WARM_UP", 10)
    monkeypatch.setattr(studies, "WARM_UP", 10)
    _, ended = searched(tmp_path / "study.log", a_job(graph, epochs=12), 2)
    assert [trial.why for trial in ended] == [None, "below the median"]


def test_a_trial_pins_every_setting_that_it_uses(graph, monkeypatch, a_job):
    job = a_job(graph, "costa-mv")
    drawn = {"encoder.kind": "gcn", "encoder.layers": 1, "augment.edge_rate": [0.1, 0.2], "sketch.kind": "gaussian"}
    values = trials.pinned(job, drawn)
    before = presets.resolve(job.method, graph, given=values).values
    unused = job.method.unused(before)
    assert {"encoder.hidden", "sketch.density"} <= unused.keys()
    assert values.keys() == flatten(before).keys() - unused.keys()
    assert values.items() >= (drawn | {"features.scaling": "standard"}).items()
    assert trials.pinned(job, values) == values
    other = replace(before, encoder=Encoder(hidden=7), train=Train(7, 0.7, 0.7, kernels="plain"))
    monkeypatch.setattr(
        job.method, "Settings", make_dataclass("Other", [(k, object, v) for k, v in vars(other).items()])
    )
    after = flatten(presets.resolve(job.method, graph, given=values).values)
    assert {key: value for key, value in after.items() if value != flatten(before)[key]} == {"encoder.hidden": 7}


def test_seeds_that_do_not_fit_are_halved(graph, tmp_path, monkeypatch, a_job, searched):
    job, built = a_job(graph), trials._built
    study, _ = searched(tmp_path / "study.log", job, 1)
    values = studies.finished(study)[0].user_attrs["settings"]
    whole = trials.train_again(job, values, {"strict": 3, "tuned": 2}, range(1100, 1105))

    def small(job, chosen, seeds):
        if len(seeds) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return built(job, chosen, seeds)

    monkeypatch.setattr(trials, "_built", small)
    assert trials.train_again(job, values, {"strict": 3, "tuned": 2}, range(1100, 1105)) == whole
    assert [len(accuracies) for accuracies in whole.values()] == [5, 5]
