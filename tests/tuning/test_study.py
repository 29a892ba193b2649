"""The search for settings: what it sees, what survives an interruption, what it writes."""

import itertools
import math
import tomllib

import pytest
import torch

from costa import training
from costa.errors import InputError
from costa.evaluate import probe
from costa.evaluate.protocols import splits
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings import presets
from costa.settings.layers import flatten
from costa.tuning import jobs, trials
from costa.tuning import study as studies


class TestSearch:
    def test_it_goes_on_where_it_was_stopped(self, graph, tmp_path, monkeypatch, a_job, searched):
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

    def test_it_begins_with_what_the_graph_gets_untuned(self, graph, tmp_path, a_job, searched):
        for method, kind in itertools.product(("costa-sv", "costa-mv"), ("gcn", "hops")):
            given = {"encoder.kind": kind}
            job = a_job(graph, method, given=given if kind == "hops" else {})
            study, _ = searched(tmp_path / f"{method}-{kind}.log", job, 1)
            tried = studies.finished(study)[0].user_attrs["settings"]
            untuned, same = (
                flatten(presets.resolve(job.method, graph, given=values).values) for values in (given, tried)
            )
            # a rate for both views, or the same one twice
            once = [{key: set(v) if isinstance(v, tuple) else v for key, v in flat.items()} for flat in (same, untuned)]
            assert once[0] == once[1]

    @pytest.mark.filterwarnings("error")
    def test_settings_to_start_from_are_tried_once(self, graph, tmp_path, a_job):
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
        assert (tried[1]["encoder.width"], tried[1]["loss.tau"], tried[1]["augment.edge_rate"]) == (128, 0.912, [0.4])
        assert tried[1]["train.weight_decay"] == 1e-6
        assert tried[1]["encoder.steps"] in (0, 2, 4, 8, 16)
        assert [values["loss.tau"] == 0.912 for values in tried] == [False, True, False]

    def test_the_first_trial_keeps_to_what_is_searched(self, tmp_path, a_job):
        """On 20,000 nodes the untuned ratio, exactly 4,096 rows, is a little beyond the largest of three digits."""
        large = planted_partition(20_000, 2, 4, degree=2, seed=0)
        job = a_job(large)
        (trial,) = studies.open_study(tmp_path / "study.log", job).trials
        fixed = trial.system_attrs["fixed_params"]
        assert presets.resolve(job.method, large, preset="none").values.sketch.ratio > fixed["sketch.ratio"] == 0.204

    def test_only_tuning_seeds_are_used(self, graph, tmp_path, monkeypatch, a_job, searched):
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

    def test_no_test_node_is_predicted(self, graph, tmp_path, monkeypatch, a_job, searched):
        def unwanted(*arguments, **options):
            raise AssertionError("the test part was predicted")

        monkeypatch.setattr(probe, "_select", unwanted)
        study, ended = searched(tmp_path / "study.log", a_job(graph), 1)
        assert ended[0].why is None
        assert len(list(studies.evaluate_finalists(a_job(graph), study, 1, 1))) == 2

    def test_labels_outside_the_fifth_do_not_touch_the_strict_choice(self, graph, tmp_path, a_job, searched):
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

    def test_settings_that_fail_do_not_end_it(self, graph, tmp_path, monkeypatch, a_job, searched):
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

    def test_a_mistake_of_our_own_is_not_swallowed(self, graph, tmp_path, monkeypatch, a_job):
        def broken(*arguments):
            raise RuntimeError("shapes do not match")

        study = studies.open_study(tmp_path / "study.log", a_job(graph))
        monkeypatch.setattr(training, "build", broken)
        with pytest.raises(RuntimeError, match="shapes"):
            list(studies.search(a_job(graph), study, 1))
        assert studies.finished(study) == []

    def test_guided_by_the_other_score_it_chooses_only_tuned_settings(
        self, graph, tmp_path, monkeypatch, a_job, searched
    ):
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

    def test_time_that_is_over_keeps_what_there_is(self, graph, tmp_path, monkeypatch, a_job, searched):
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
            ({"seeds": 3}, "was started with seeds = 1, not 3; use that or choose another"),
            ({"epochs": 4}, "was started with epochs = 3, not 4"),
            ({"guide": "tuned"}, "was started with guide = strict, not tuned"),
            ({"given": {"loss.tau": "0.5"}}, r"was started with set = {}, not {'loss.tau': 0.5}"),
        ],
    )
    def test_another_job_is_refused(self, graph, tmp_path, change, message, a_job):
        job, path, start = a_job(graph), tmp_path / "study.log", tmp_path / "start.toml"
        start.write_text("loss.tau = 0.3\n")
        studies.open_study(path, job)
        with pytest.raises(InputError, match=message):
            studies.open_study(path, jobs.TuningJob(**vars(job) | change), starts=[start])
        assert len(studies.open_study(path, job).trials) == 1  # a command that was refused has changed nothing

    @pytest.mark.parametrize("text", ["no journal\n" * 2, "[1]\n[2]\n", '{"op_code": 1}\n{}\n'])
    def test_another_file_is_refused(self, graph, tmp_path, text, a_job):
        (tmp_path / "notes.txt").write_text(text)
        with pytest.raises(InputError, match=r"notes.txt is not a study, or is damaged"):
            studies.open_study(tmp_path / "notes.txt", a_job(graph))

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_on_cuda_the_seeds_are_one_program(self, graph, tmp_path, searched):
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
    def study(self, graph, tmp_path, a_job, searched):
        return searched(tmp_path / "study.log", a_job(graph), 3)[0]

    def test_they_are_not_trained_twice(self, graph, study, tmp_path, monkeypatch, a_job):
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

    def test_another_process_takes_what_is_not_begun(self, graph, study, a_job):
        finals = studies._finalists(a_job(graph), study, 3, 1)
        for final in finals:
            if final.number != 2:
                study.set_user_attr(f"begun {final.number}", True)
        taken = [final.number for final in studies.evaluate_finalists(a_job(graph), study, 3, 1)]
        assert taken[0] == 2
        assert sorted(taken) == [0, 0, 1, 1, 2, 2]

    def test_one_that_fails_is_not_chosen(self, graph, study, tmp_path, monkeypatch, a_job):
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

    def test_a_finalist_without_rivals_is_said_to_be_alone(self, graph, tmp_path, a_job, searched):
        job = a_job(graph, "costa-sv", final_splits=4)
        study, _ = searched(tmp_path / "study.log", job, 1)
        list(studies.evaluate_finalists(job, study, 1, 1))
        for path in studies.write_presets(job, study, 1, 1, tmp_path):
            assert "the one finalist of 1 trial. Untested" in path.read_text().replace("\n# ", " ")

    @pytest.mark.parametrize("method", ["costa-sv", "costa-mv"])
    def test_what_is_written_is_what_was_chosen(self, graph, tmp_path, monkeypatch, method, a_job, searched):
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
            assert values.keys() == flatten(expected).keys() - job.method.unused(expected).keys()
            assert presets.resolve(job.method, graph, preset="none", config=path).values == expected
            assert presets.resolve(job.method, graph, preset=preset).values == expected
            comment = " ".join(line.removeprefix("# ") for line in path.read_text().split("\n") if line[:1] == "#")
            assert comment == (
                f"Chosen by validation accuracy ({protocol}, tuning seeds 1100 … 1101 × 4 splits): {best.percent} over"
                f" the seeds, the best of {len(rivals)} finalists of 3 trials. Untested: reported numbers use other"
                " seeds."
            )
