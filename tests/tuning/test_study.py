"""The search for settings: what it sees, what survives an interruption, what it writes."""

import math
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
import torch

from costa import training
from costa.errors import InputError
from costa.evaluate import probe
from costa.evaluate.protocols import splits
from costa.graphs.synthetic import planted_partition
from costa.methods import METHODS, get_method
from costa.methods.base import GradientMethod
from costa.settings import presets
from costa.settings.layers import flatten
from costa.tuning import jobs, space, trials
from costa.tuning import study as studies

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graph():
    return planted_partition(120, 3, 8, degree=4, homophily=0.6, signal=1.0, seed=0)


TRAINED = [name for name in METHODS if issubclass(get_method(name), GradientMethod)]
UNSCHEDULED = [name for name in TRAINED if not get_method(name).scheduled]
NOT_SEARCHED = {
    *("encoder.hidden", "predictor.activation", "augment.edges", "diffusion.k", "loss.negatives", "train.epochs"),
    *("sketch.k", "sketch.noise_std", "sketch.fixed", "sketch.scaling", "loss.include_self", "train.kernels"),
}


def a_job(graph, method="costa-sv", **options):
    return jobs.TuningJob(
        graph, get_method(method), CPU, **{"epochs": 3, "seeds": 1, "splits": 2, "final_splits": 2} | options
    )


def searched(path, job, trials, seed=0):
    study = studies.open_study(path, job, seed=seed)
    return study, list(studies.search(job, study, trials))


class TestSpace:
    @pytest.mark.parametrize("method", TRAINED)
    def test_it_serves_every_method_that_is_trained(self, graph, method):
        chosen = get_method(method)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        searched = set()
        for _ in range(20):
            values = space.sample(study.ask(), chosen, graph)
            searched |= set(values)
            settings = presets.resolve(chosen, graph, preset="none", given=values, epochs=5).values
            chosen.build(settings, 8, torch.Generator())
            rates = values.get("augment.edge_rate")
            assert rates is None or (isinstance(rates, list) and len(rates) == 2) == (chosen.views == 2)
        assert set(flatten(chosen.Settings())) - searched <= NOT_SEARCHED

    @pytest.mark.parametrize("method", ["costa-sv", "costa-mv"])
    def test_every_sample_is_legal(self, graph, method):
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

    def test_what_is_kept_is_not_drawn(self, graph):
        chosen = get_method("costa-mv")
        kept = {"encoder.width": 96, "sketch.ratio": 2.5, "sketch.noise_std": 0.1, "augment.edge_rate": [0.0, 0.0]}
        kept |= {"augment.mask_rate": [0.0, 0.0], "sketch.density": 0.3}
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        kinds = set()
        for _ in range(40):
            trial = study.ask()
            values = space.sample(trial, chosen, graph, kept)
            kinds.add(values["sketch.kind"])
            # a density is of use to one kind alone, a centrality where something is dropped
            idle = {"sketch.density"} if values["sketch.kind"] != "sparse" else set()
            assert {key: values.get(key) for key in kept} == kept | dict.fromkeys(idle)
            assert "augment.centrality" not in values
            assert not any(name.startswith(key) for name in trial.params for key in kept)
            presets.resolve(chosen, graph, preset="none", given=values, epochs=5)
        assert len(kinds) == 4
        rates = {"augment.edge_rate": [0.3, 0.0]}
        assert "augment.centrality" in space.sample(study.ask(), chosen, graph, rates | {"augment.mask_rate": [0, 0]})

    @pytest.mark.parametrize("nodes", [50, 8193, 10_000, 34_493, 1_000_000])
    def test_a_large_graph_has_no_more_rows_than_the_most(self, nodes):
        low, high = space._ratios(nodes)
        assert 0 < low < high <= 1.5
        assert round(high * nodes) <= space.MOST_ROWS
        assert high * nodes > 0.98 * min(1.5 * nodes, space.MOST_ROWS)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(30):
            values = space.sample(study.ask(), get_method("costa-sv"), SimpleNamespace(num_nodes=nodes))
            assert values["sketch.ratio"] <= high

    def test_a_method_samples_only_the_keys_that_it_has(self, graph):
        values = space.sample(optuna.create_study().ask(), get_method("untrained"), graph)
        encoder = {f"encoder.{key}" for key in ("width", "layers", "activation", "norm", "steps", "kind")}
        assert set(values) - {"encoder.teleport"} == {"features.scaling"} | encoder

    @pytest.mark.parametrize(
        ("limit", "expected"),
        [
            (4, [4]),
            (10, [10]),
            (1000, [10, 20, 50, 100, 200, 300, 500, 700, 1000]),
            (2100, [10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 2100]),
        ],
    )
    def test_checkpoints_end_at_the_limit(self, limit, expected):
        assert trials.checkpoints(limit) == expected


class TestSearch:
    def test_it_goes_on_where_it_was_stopped(self, graph, tmp_path, monkeypatch):
        path, job = tmp_path / "deep" / "study.log", a_job(graph)
        study, ended = searched(path, job, 2)
        assert [trial.number for trial in ended] == [0, 1]

        def interrupted(*arguments):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(training, "build", interrupted)
            with pytest.raises(KeyboardInterrupt):
                list(studies.search(job, study, 4))
        study, ended = searched(path, job, 4)
        assert [trial.number for trial in ended] == [3, 4]  # 2 was interrupted and does not count
        assert len(studies.finished(study)) == 4
        assert ended[-1].best == max(trial.value for trial in studies.finished(study))
        assert searched(path, job, 4)[1] == []

    def test_it_begins_with_what_the_graph_gets_untuned(self, graph, tmp_path):
        for method in ("costa-sv", "costa-mv"):
            job = a_job(graph, method)
            study, _ = searched(tmp_path / f"{method}.log", job, 1)
            tried = studies.finished(study)[0].user_attrs["settings"]
            untuned, same = (
                flatten(presets.resolve(job.method, graph, preset="none", given=given).values) for given in ({}, tried)
            )
            # a rate for both views, or the same one twice
            once = [{key: set(v) if isinstance(v, tuple) else v for key, v in flat.items()} for flat in (same, untuned)]
            assert once[0] == once[1]

    @pytest.mark.filterwarnings("error")
    def test_settings_to_start_from_are_tried_once(self, graph, tmp_path):
        start = tmp_path / "start.toml"
        # a weight decay of 0, sixteen steps and a rate between two tenths are legal, but not searched
        start.write_text(
            "encoder.width = 128\nencoder.steps = 16\nloss.tau = 0.912\ntrain.weight_decay = 0.0\n"
            "augment.edge_rate = 0.37\n"
        )
        job, path = a_job(graph), tmp_path / "study.log"
        for count in (2, 3):
            study = studies.open_study(path, job, starts=[start], seed=0)
            list(studies.search(job, study, count))
        tried = [trial.user_attrs["settings"] for trial in studies.finished(study)]
        assert (tried[1]["encoder.width"], tried[1]["loss.tau"], tried[1]["augment.edge_rate"]) == (128, 0.912, 0.4)
        assert tried[1]["train.weight_decay"] == 1e-6
        assert tried[1]["encoder.steps"] in (0, 2, 4, 8, 16)
        assert [values["loss.tau"] == 0.912 for values in tried] == [False, True, False]

    def test_the_first_trial_keeps_to_what_is_searched(self, tmp_path):
        """On 20,000 nodes the untuned ratio, exactly 4,096 rows, is a little beyond the largest of three digits."""
        large = planted_partition(20_000, 2, 4, degree=2, seed=0)
        job = a_job(large)
        (trial,) = studies.open_study(tmp_path / "study.log", job).trials
        fixed = trial.system_attrs["fixed_params"]
        assert presets.resolve(job.method, large, preset="none").values.sketch.ratio > fixed["sketch.ratio"] == 0.204

    def test_only_tuning_seeds_are_used(self, graph, tmp_path, monkeypatch):
        seeds, firsts = set(), set()
        build, accuracy = training.build, probe.validation_accuracies

        def seen_build(method, settings, graph, seed, device):
            seeds.add(seed)
            return build(method, settings, graph, seed, device)

        def seen_accuracy(*arguments, first_split, **options):
            firsts.add(first_split)
            return accuracy(*arguments, first_split=first_split, **options)

        monkeypatch.setattr(training, "build", seen_build)
        monkeypatch.setattr(probe, "validation_accuracies", seen_accuracy)
        job = a_job(graph, seeds=2)
        study, _ = searched(tmp_path / "study.log", job, 1)
        assert seeds == {1000, 1001}
        assert firsts == {1000}
        list(studies.evaluate_finalists(job, study, 1, 3))
        assert seeds == {1000, 1001, 1100, 1101, 1102}
        assert firsts == {1000, 1100}

    def test_no_test_node_is_predicted(self, graph, tmp_path, monkeypatch):
        def unwanted(*arguments, **options):
            raise AssertionError("the test part was predicted")

        monkeypatch.setattr(probe, "_select", unwanted)
        study, ended = searched(tmp_path / "study.log", a_job(graph), 1)
        assert ended[0].why is None
        assert len(list(studies.evaluate_finalists(a_job(graph), study, 1, 1))) == 2

    def test_labels_outside_the_fifth_do_not_touch_the_strict_choice(self, graph, tmp_path):
        outside = splits("strict-10-10-80", graph.y, repeats=1)[0].test
        other = graph.clone()
        other.y[outside] = (graph.y[outside] + torch.arange(len(outside))) % 3
        chosen = []
        for number, given in enumerate((graph, other)):
            job = a_job(given)
            study, ended = searched(tmp_path / f"{number}.log", job, 5)
            list(studies.evaluate_finalists(job, study, 2, 1))
            files = studies.write_presets(job, study, 2, 1, tmp_path / str(number))
            numbers = [(trial.accuracy, trial.epochs) for trial in ended]
            others = [trial.user_attrs["tuned"]["accuracy"] for trial in studies.finished(study)]
            chosen.append((numbers, files[0].read_text(), others))
        assert chosen[0][:2] == chosen[1][:2]
        assert chosen[0][2] != chosen[1][2]
        assert len(set(chosen[0][0])) > 1

    def test_settings_that_fail_do_not_end_it(self, graph, tmp_path, monkeypatch):
        build, built = training.build, []

        def troubled(*arguments):
            method = build(*arguments)
            built.append(method)
            match len(built):
                case 1:
                    next(method.parameters()).data.fill_(math.nan)
                case 2:
                    raise torch.OutOfMemoryError("CUDA out of memory.")
                case 3:
                    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")
                case 4:
                    raise InputError("these settings cannot be.")
                case 5:
                    method.embed = lambda graph: torch.ones(graph.num_nodes, 4)
            return method

        monkeypatch.setattr(training, "build", troubled)
        study, ended = searched(tmp_path / "study.log", a_job(graph), 6)
        why = ["diverged", "out of memory", "out of memory", "these settings cannot be.", "collapsed", None]
        assert [trial.why for trial in ended] == why
        assert [trial.accuracy is None for trial in ended] == [True] * 5 + [False]
        assert [trial.best is None for trial in ended] == [True] * 5 + [False]
        assert [trial.user_attrs.get("why") for trial in studies.finished(study)] == why

    def test_a_mistake_of_our_own_is_not_swallowed(self, graph, tmp_path, monkeypatch):
        def broken(*arguments):
            raise RuntimeError("shapes do not match")

        study = studies.open_study(tmp_path / "study.log", a_job(graph))
        monkeypatch.setattr(training, "build", broken)
        with pytest.raises(RuntimeError, match="shapes"):
            list(studies.search(a_job(graph), study, 1))
        assert studies.finished(study) == []

    def test_what_does_worse_than_the_median_is_given_up(self, graph, tmp_path, monkeypatch):
        found = iter([0.9, 0.9, 0.1])  # at two checkpoints, then at one
        monkeypatch.setattr(
            trials, "_accuracies", lambda *arguments, **coarse: {"strict": [next(found)], "tuned": [0.9]}
        )
        monkeypatch.setattr(studies, "START_UP", 1)
        monkeypatch.setattr(trials, "WARM_UP", 10)
        monkeypatch.setattr(studies, "WARM_UP", 10)
        _, ended = searched(tmp_path / "study.log", a_job(graph, epochs=12), 2)
        assert [trial.why for trial in ended] == [None, "below the median"]

    def test_the_best_checkpoint_says_the_epochs_of_each_number(self, graph, tmp_path, monkeypatch):
        course = {"strict": [0.5, 0.8, 0.8], "tuned": [0.5, 0.6, 0.9]}  # all before the pruner: judged together
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

    def test_led_by_the_other_number_it_chooses_tuned_settings_alone(self, graph, tmp_path, monkeypatch):
        course = {"strict": [0.5, 0.8, 0.8], "tuned": [0.5, 0.6, 0.9]}
        job = a_job(graph, epochs=25, guide="tuned")
        with monkeypatch.context() as patch:
            patch.setattr(trials, "_accuracies", lambda *arguments, **coarse: course)
            study, ended = searched(tmp_path / "study.log", job, 1)
        assert (ended[0].accuracy, ended[0].epochs, ended[0].best) == (0.9, 25, 0.9)
        (trial,) = studies.finished(study)
        assert trial.intermediate_values == {10: 0.5, 20: 0.6, 25: 0.9}
        finals = list(studies.evaluate_finalists(job, study, 3, 2))
        assert [(final.preset, final.epochs) for final in finals] == [("tuned", 25)]
        written = studies.write_presets(job, study, 3, 2, tmp_path)
        assert written == [tmp_path / "tuned" / "costa-sv" / f"{graph.name}.toml"]
        assert "random-10-10-80" in written[0].read_text()

    @pytest.mark.parametrize("name", UNSCHEDULED)
    def test_a_checkpoint_is_what_training_so_long_gives(self, graph, name):
        job = a_job(graph, name)
        rate = {"augment.edge_rate": 0.3} if "augment.edge_rate" in flatten(job.method.Settings()) else {}
        values = {"train.lr": 1e-3} | rate
        at_twelve = dict(trials._vectors(job, values, [1000, 1001], [7, 12]))[12]
        for seed, z in zip((1000, 1001), at_twelve, strict=True):
            settings = presets.resolve(job.method, graph, preset="none", given=values, epochs=12).values
            method = training.build(job.method, settings, graph, seed, CPU)
            training.train(method, graph, settings.train)
            assert torch.equal(z, method.embed(graph))

    def test_of_a_training_that_knows_its_length_the_last_epoch_alone_is_judged(self, graph, tmp_path, monkeypatch):
        job = a_job(graph, "bgrl", epochs=25)
        seen, vectors = [], trials._vectors

        def heard(job, values, seeds, places):
            seen.append(list(places))
            yield from vectors(job, values, seeds, places)

        monkeypatch.setattr(trials, "_vectors", heard)
        searched(tmp_path / "study.log", job, 1)
        assert seen == [[25]]

    def test_time_that_is_over_keeps_what_there_is(self, graph, tmp_path, monkeypatch):
        path = tmp_path / "study.log"
        searched(path, a_job(graph), 1)
        late = a_job(graph, until=0.0)
        study = studies.open_study(path, late)
        with pytest.raises(jobs.OutOfTime):
            list(studies.search(late, study, 2))
        with pytest.raises(jobs.OutOfTime):
            list(studies.evaluate_finalists(late, study, 1, 1))
        assert len(searched(path, a_job(graph), 2)[1]) == 1

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"method": get_method("raw")}, "raw has no loss, so there is nothing to tune"),
            ({"seeds": 3}, "was started with seeds = 1, not 3; use that or choose another"),
            ({"epochs": 4}, "was started with epochs = 3, not 4"),
            ({"guide": "tuned"}, "was started with guide = strict, not tuned"),
            ({"guide": "test"}, "--guide must be strict or tuned, not 'test'"),
            ({"given": {"loss.tau": "0.5"}}, r"was started with set = {}, not {'loss.tau': 0.5}"),
            ({"given": {"loss.tua": "0.5"}}, r"unknown setting 'loss.tua' \(--set\); did you mean loss.tau"),
            ({"given": {"train.epochs": "50"}}, "train.epochs cannot be fixed, because the search chooses it; limit it with --epochs"),
        ],
    )
    def test_another_job_is_refused(self, graph, tmp_path, change, message):
        job, path, start = a_job(graph), tmp_path / "study.log", tmp_path / "start.toml"
        start.write_text("loss.tau = 0.3\n")
        studies.open_study(path, job)
        with pytest.raises(InputError, match=message):
            studies.open_study(path, jobs.TuningJob(**vars(job) | change), starts=[start])
        assert len(studies.open_study(path, job).trials) == 1  # a command that was refused has changed nothing

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (None, "has no labels of two classes, so settings cannot be validated"),
            (torch.full((120,), -1), "settings cannot be validated"),
            (torch.where(torch.arange(120) < 9, torch.arange(120) % 2, -1), "needs at least 10 labelled nodes"),
        ],
    )
    def test_labels_are_asked_for_first(self, graph, tmp_path, y, message):
        bare = graph.clone()
        bare.y = y
        with pytest.raises(InputError, match=message):
            studies.open_study(tmp_path / "study.log", a_job(bare))

    @pytest.mark.parametrize("text", ["no journal\n" * 2, "[1]\n[2]\n", '{"op_code": 1}\n{}\n'])
    def test_another_file_is_refused(self, graph, tmp_path, text):
        (tmp_path / "notes.txt").write_text(text)
        with pytest.raises(InputError, match=r"notes.txt is not a study, or is damaged"):
            studies.open_study(tmp_path / "notes.txt", a_job(graph))

    def test_without_optuna_it_says_what_to_install(self, graph, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "optuna", None)
        with pytest.raises(InputError, match=r"pip install 'costa-gcl\[tune\]'"):
            studies.open_study(tmp_path / "study.log", a_job(graph))

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_on_cuda_the_seeds_are_one_program(self, graph, tmp_path):
        job = jobs.TuningJob(graph, get_method("costa-mv"), torch.device("cuda"), epochs=30, seeds=3, splits=2)
        study, ended = searched(tmp_path / "study.log", job, 3)
        assert [trial.why for trial in ended] == [None] * 3
        finals = list(studies.evaluate_finalists(job, study, 2, 4))
        assert all(len(final.accuracies) == 4 for final in finals)
        values = studies.finished(study)[0].user_attrs["settings"]
        (_, together), (_, alone) = (
            next(trials._vectors(job, values, seeds, [2])) for seeds in ([1000, 1001, 1002], [1001])
        )
        assert together[0].is_cuda
        torch.testing.assert_close(together[1], alone[0], rtol=0.02, atol=0.02)


class TestFinalists:
    @pytest.fixture
    def study(self, graph, tmp_path):
        return searched(tmp_path / "study.log", a_job(graph), 3)[0]

    def test_they_are_not_trained_twice(self, graph, study, tmp_path, monkeypatch):
        job = a_job(graph)
        everyone = {(final.preset, final.number) for final in studies._finalists(a_job(graph), study, 2, 2)}
        first = next(studies.evaluate_finalists(job, study, 2, 2))
        assert len(first.accuracies) == 2
        study = studies.open_study(tmp_path / "study.log", job)
        rest = [(final.preset, final.number) for final in studies.evaluate_finalists(job, study, 2, 2)]
        assert set(rest) == {(preset, number) for preset, number in everyone if number != first.number}
        assert len(set(rest)) == len(rest)
        monkeypatch.setattr(studies, "train_again", lambda *arguments: "trained")
        assert list(studies.evaluate_finalists(job, study, 2, 2)) == []
        # with other seeds or splits it is another question
        assert next(studies.evaluate_finalists(job, study, 2, 3)).why == "trained"
        assert next(studies.evaluate_finalists(a_job(graph, final_splits=3), study, 2, 2)).why == "trained"

    def test_another_process_takes_what_is_not_begun(self, graph, study):
        finals = studies._finalists(a_job(graph), study, 3, 1)
        for final in finals:
            if final.number != 2:
                study.set_user_attr(f"begun {final.number}", True)
        taken = [final.number for final in studies.evaluate_finalists(a_job(graph), study, 3, 1)]
        assert taken[0] == 2
        assert sorted(taken) == [0, 0, 1, 1, 2, 2]

    def test_seeds_that_do_not_fit_are_halved(self, graph, study, monkeypatch):
        job, built = a_job(graph), trials._built
        values = studies.finished(study)[0].user_attrs["settings"]
        whole = trials.train_again(job, values, {"strict": 3, "tuned": 2}, range(1100, 1105))

        def small(job, chosen, seeds):
            if len(seeds) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return built(job, chosen, seeds)

        monkeypatch.setattr(trials, "_built", small)
        assert trials.train_again(job, values, {"strict": 3, "tuned": 2}, range(1100, 1105)) == whole
        assert [len(accuracies) for accuracies in whole.values()] == [5, 5]

    def test_one_that_fails_is_not_chosen(self, graph, study, tmp_path, monkeypatch):
        job = a_job(graph)
        best = studies._finalists(a_job(graph), study, 3, 1)[0].number
        again = trials.train_again
        failing = studies.finished(study)[best].user_attrs["settings"]
        monkeypatch.setattr(
            studies, "train_again", lambda j, v, *rest: "diverged" if v == failing else again(j, v, *rest)
        )
        finals = list(studies.evaluate_finalists(job, study, 3, 1))
        assert {final.why for final in finals if final.number == best} == {"diverged"}
        for path in studies.write_presets(job, study, 3, 1, tmp_path):
            assert tomllib.loads(path.read_text())["loss"]["tau"] != failing["loss.tau"]
        monkeypatch.setattr(studies, "train_again", lambda *arguments: "diverged")
        list(studies.evaluate_finalists(job, study, 3, 2))
        with pytest.raises(InputError, match="none of the 3 trials gave settings that can be used"):
            studies.write_presets(job, study, 3, 2, tmp_path)

    def test_a_finalist_without_rivals_is_said_to_be_alone(self, graph, tmp_path):
        job = a_job(graph, "costa-sv", final_splits=4)
        study, _ = searched(tmp_path / "study.log", job, 1)
        list(studies.evaluate_finalists(job, study, 1, 1))
        for path in studies.write_presets(job, study, 1, 1, tmp_path):
            assert "the one finalist of 1 trial. Untested" in path.read_text().replace("\n# ", " ")

    @pytest.mark.parametrize("method", ["costa-sv", "costa-mv"])
    def test_what_is_written_is_what_was_chosen(self, graph, tmp_path, monkeypatch, method):
        job = a_job(graph, method, final_splits=4)
        study, _ = searched(tmp_path / "study.log", job, 3)
        finals = list(studies.evaluate_finalists(job, study, 2, 2))
        paths = studies.write_presets(job, study, 2, 2, tmp_path)
        assert paths == [tmp_path / preset / method / "planted-partition.toml" for preset in ("strict", "tuned")]
        monkeypatch.setattr(presets, "ROOT", tmp_path)
        for path, (preset, protocol) in zip(paths, jobs.GUIDES.items(), strict=True):
            rivals = [final for final in finals if final.preset == preset]
            values = presets.load_preset(preset, method, "planted-partition")
            best = next(
                final
                for final in rivals
                if studies.finished(study)[final.number].user_attrs["settings"] | {"train.epochs": final.epochs}
                == values
            )
            assert best.mean == max(final.mean for final in rivals)
            expected = presets.resolve(job.method, graph, preset="none", given=values).values
            assert presets.resolve(job.method, graph, preset="none", config=path).values == expected
            assert presets.resolve(job.method, graph, preset=preset).values == expected
            comment = " ".join(line.removeprefix("# ") for line in path.read_text().split("\n") if line[:1] == "#")
            assert comment == (
                f"Chosen by validation accuracy ({protocol}, tuning seeds 1100 … 1101 × 4 splits): {best.percent} over"
                f" the seeds, the best of {len(rivals)} finalists of 3 trials. Untested: reported numbers use other"
                " seeds."
            )


class TestCommand:
    def test_from_a_folder_of_ones_own_to_settings_that_train_takes(self, costa, own_graph, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        options = ("--trials", 2, "--epochs", 4, "--seeds", 1, "--splits", 2, "--finalists", 1, "--final-seeds", 1)
        result = costa("tune", own_graph, *options)
        assert result.code == 0, result.err
        assert result.err == ""
        lines = result.out.splitlines()
        assert "COSTA, one view on friends: 60 nodes" in lines[0]
        assert lines[1] == "tuning/costa-sv-friends.log: 0 of 2 trials"
        assert [line.split()[:4] for line in lines[2:4]] == [
            ["trial", "0", "strict", "validation"],
            ["trial", "1", "strict", "validation"],
        ]
        assert "after 4 epochs" in lines[2]
        assert "the best so far" in lines[3]
        assert sorted(line.split()[2] for line in lines[4:-2]) == ["strict", "tuned"]
        assert lines[-2:] == ["tuning/strict/costa-sv/friends.toml", "tuning/tuned/costa-sv/friends.toml"]
        again = costa("tune", own_graph, *options)
        assert again.code == 0, again.err
        assert again.out.splitlines()[1:] == ["tuning/costa-sv-friends.log: 2 of 2 trials", *lines[-2:]]
        trained = costa("train", own_graph, "--config", lines[-1], "--out", "run", "--no-probe")
        assert trained.code == 0, trained.err
        assert "tuning/tuned/costa-sv/friends.toml" in trained.out

    def test_a_setting_that_is_set_is_kept(self, costa, own_graph, tmp_path):
        options = ("--method", "costa-mv", "--epochs", 2, "--seeds", 1, "--splits", 2, "--finalists", 1)
        options += ("--final-seeds", 1, "--study", tmp_path / "s.log", "--out", tmp_path / "out", "--trials", 2)
        kept = ("--set", "encoder.width=12", "--set", "augment.edge_rate=0.3,0.55")
        result = costa("tune", own_graph, *options, *kept)
        assert result.code == 0, result.err
        for path in result.out.splitlines()[-2:]:
            text = Path(path).read_text(encoding="utf-8")
            assert tomllib.loads(text)["encoder"]["width"] == 12
            assert tomllib.loads(text)["augment"]["edge_rate"] == [0.3, 0.55]
            assert "trials that kept encoder.width, augment.edge_rate. Untested" in text.replace("\n# ", " ")
        assert "2 of 2 trials" in costa("tune", own_graph, *options, *kept).out
        assert "started with set" in costa("tune", own_graph, *options).err
        misspelt = costa("tune", own_graph, "--set", "encoder.widht=12", "--study", tmp_path / "other.log")
        assert "did you mean encoder.width" in misspelt.err
        assert not (tmp_path / "other.log").exists()

    def test_no_finalists_and_no_time_write_no_settings(self, costa, own_graph, tmp_path):
        options = ("--epochs", 2, "--seeds", 1, "--splits", 1, "--study", tmp_path / "s.log", "--out", tmp_path / "out")
        result = costa("tune", own_graph, *options, "--trials", 1, "--finalists", 0)
        assert result.code == 0, result.err
        stopped = costa("tune", own_graph, *options, "--trials", 2, "--timeout", 0)
        assert stopped.code == 0, stopped.err
        assert "1 of 2 trials" in stopped.out
        assert "run the same command to continue" in stopped.out
        assert not (tmp_path / "out").exists()
        assert "Note" not in stopped.out

    def test_few_labels_get_a_note(self, costa, own_graph, tmp_path):
        lines = (own_graph / "nodes.csv").read_text().splitlines()
        kept = [line if i < 34 else line.split(",")[0] + "," for i, line in enumerate(lines)]
        (own_graph / "nodes.csv").write_text("\n".join(kept) + "\n")
        result = costa("tune", own_graph, "--timeout", 0, "--study", tmp_path / "s.log")
        assert "Note: strict-10-10-80 learns 2 classes from only 3 nodes, so its score says little." in result.out

    def test_a_graph_without_labels_gets_a_sentence(self, costa, own_graph):
        (own_graph / "nodes.csv").write_text("id\n" + "".join(f"person {i:02d}\n" for i in range(60)))
        result = costa("tune", own_graph)
        assert result.code == 2
        assert "friends has no labels of two classes, so settings cannot be validated" in result.err
