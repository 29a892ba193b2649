import json

import joblib
import pytest
import torch

from costa import training
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.runs import evaluation, several
from costa.settings import presets
from reproduction import grid, store
from reproduction.grid import Cell

QUICK = (("train.epochs", 2), ("encoder.width", 8), ("head.width", 8))
CPU = torch.device("cpu")


@pytest.fixture
def small(monkeypatch):
    """Every dataset is a small graph of two communities."""

    def load(name, data_dir=None):
        graph = planted_partition(120, 2, 12, seed=0)
        graph.name = name
        return graph

    grid._graph.cache_clear()
    monkeypatch.setattr(grid, "load_graph", load)
    yield
    grid._graph.cache_clear()


def _vectors(cell, seed):
    """What the cell's run gives, trained here."""
    graph, method = grid._graph(cell.dataset, None), get_method(cell.method)
    values = presets.resolve(method, graph, preset=cell.preset, given=dict(cell.given)).values
    model = training.build(method, values, graph, seed, CPU)
    training.train(model, graph, getattr(values, "train", None))
    return model.embed(graph).float()


class TestWhatTheStoreHas:
    cell = Cell("costa-sv", "cora", "none", (("loss.tau", 0.3),))

    def test_a_run_with_these_settings_is_found(self, add, tmp_path):
        add(tmp_path, self.cell, 0)
        add(tmp_path, self.cell, 2)
        assert list(grid.find(self.cell, tmp_path, 3)) == [0, 2]
        assert grid.missing([self.cell, self.cell], tmp_path, 3) == [(self.cell, [1])]

    def test_the_same_settings_under_two_names_are_trained_once(self, tmp_path, monkeypatch):
        monkeypatch.setattr(presets, "load_preset", lambda name, method, dataset: {"loss.tau": 0.3})
        tuned, strict = Cell("costa-sv", "cora"), Cell("costa-sv", "cora", "strict")
        other = Cell("costa-sv", "cora", given=(("train.epochs", 7),))
        assert grid.missing([tuned, other, strict], tmp_path, 2) == [(tuned, [0, 1]), (other, [0, 1])]

    @pytest.mark.parametrize("changed", [{"loss.tau": 0.4}, {"train.batch": 7}, {"train.kernels": "plain"}])
    def test_one_with_others_is_not(self, add, tmp_path, changed):
        add(tmp_path, self.cell, 0, **changed)
        assert grid.find(self.cell, tmp_path, 1) == {}

    def test_what_the_graph_chooses_may_be_anything_until_it_is_asked_for(self, add, tmp_path):
        chosen = {"sketch.ratio": 0.123, "features.scaling": "rows", "encoder.powers": [0, 2], "train.epochs": 7}
        add(tmp_path, self.cell, 0, **chosen)
        assert list(grid.find(self.cell, tmp_path, 1)) == [0]
        fixed = Cell("costa-sv", "cora", "none", (("loss.tau", 0.3), ("sketch.ratio", 0.5)))
        assert grid.find(fixed, tmp_path, 1) == {}

    def test_unless_somebody_had_set_it(self, line_of, tmp_path):
        """DGI's published settings differ from its defaults in what the graph would choose, and in nothing else."""
        metrics, flat = line_of(self.cell, 0)
        store.append(tmp_path, metrics | {"set": ["features.scaling"]}, flat)
        assert grid.find(self.cell, tmp_path, 1) == {}
        fixed = Cell("costa-sv", "cora", "none", (("loss.tau", 0.3), ("features.scaling", flat["features.scaling"])))
        assert list(grid.find(fixed, tmp_path, 1)) == [0]

    def test_a_setting_that_an_older_run_did_not_know_had_its_default(self, line_of, tmp_path):
        metrics, flat = line_of(self.cell, 0)
        del flat["train.kernels"]
        store.append(tmp_path, metrics, flat)
        assert list(grid.find(self.cell, tmp_path, 1)) == [0]

    def test_a_run_that_lacks_a_protocol_is_made_again(self, line_of, tmp_path):
        metrics, flat = line_of(self.cell, 0)
        metrics["probes"].pop()
        store.append(tmp_path, metrics, flat)
        assert grid.missing([self.cell], tmp_path, 1) == [(self.cell, [0])]

    def test_one_that_collapsed_is_not_but_has_no_accuracy(self, add, tmp_path):
        add(tmp_path, self.cell, 0, status="collapsed")
        add(tmp_path, self.cell, 1)
        assert grid.missing([self.cell], tmp_path, 2) == []
        found = grid.find(self.cell, tmp_path, 2)
        assert grid.pairs(self.cell, found, "random-10-10-80", 2) == pytest.approx({1: 0.81})

    def test_of_a_seed_that_was_run_twice_the_last_counts(self, add, tmp_path):
        add(tmp_path, self.cell, 0, accuracy=0.1)
        add(tmp_path, self.cell, 0, accuracy=0.5)
        found = grid.find(self.cell, tmp_path, 1)
        assert grid.pairs(self.cell, found, "random-10-10-80", 1) == {0: 0.5}

    def test_pairs_are_seed_s_on_split_s(self, add, tmp_path):
        for seed in range(3):
            add(tmp_path, self.cell, seed)
        found = grid.find(self.cell, tmp_path, 20)
        assert grid.pairs(self.cell, found, "strict-10-10-80", 20) == pytest.approx({0: 0.80, 1: 0.81, 2: 0.82})

    def test_without_randomness_one_run_is_paired_with_every_split(self, add, tmp_path):
        raw = Cell("raw", "cora")
        add(tmp_path, raw, 0)
        assert grid.missing([raw], tmp_path, 20) == []
        assert len(grid.pairs(raw, grid.find(raw, tmp_path, 20), "random-10-10-80", 20)) == 20

    def test_experiments_have_stores_of_their_own(self, add, tmp_path):
        cell = Cell("costa-sv", "cora", "none", experiment="ratio")
        add(tmp_path, cell, 0)
        assert (tmp_path / "experiments" / "ratio" / "costa-sv" / "cora.jsonl").exists()
        assert list(grid.find(cell, tmp_path, 1)) == [0]
        assert grid.find(Cell("costa-sv", "cora", "none"), tmp_path, 1) == {}


class TestMakingWhatIsMissing:
    def test_no_run_is_taken_for_one_of_another_cell(self, small, tmp_path):
        published, default = Cell("dgi", "cora", "paper", QUICK[:2]), Cell("dgi", "cora", "none", QUICK[:2])
        grid.fill([(published, [0])], tmp_path, CPU, jobs=1)
        assert list(grid.find(published, tmp_path, 1)) == [0]
        assert grid.find(default, tmp_path, 1) == {}

    def test_runs_are_made_evaluated_and_found_again(self, small, tmp_path):
        cells = [Cell("costa-sv", "cora", "none", QUICK), Cell("raw", "cora")]
        ended = []
        grid.fill(grid.missing(cells, tmp_path, 2), tmp_path, CPU, jobs=1, report=ended.append)
        assert [(done.cell.method, [metrics["seed"] for metrics in done.metrics]) for done in ended] == [
            ("costa-sv", [0]),
            ("costa-sv", [1]),
            ("raw", [0]),
        ]
        assert grid.missing(cells, tmp_path, 2) == []
        lines = store.read(tmp_path / "costa-sv" / "cora.jsonl")
        assert [probe["protocol"] for probe in lines[0]["probes"]] == list(grid.EVALUATED_BY)
        assert lines[0]["settings"]["train.epochs"] == 2
        assert [[probe["split"] for probe in line["probes"]] for line in lines] == [[0] * 4, [1] * 4]
        for cell in cells:
            whole = evaluation.evaluate(
                [_vectors(cell, seed) for seed in cell.seeds(2)], grid._graph("cora", None), CPU
            )
            expected = {s: whole[s % len(whole)]["probes"][0].accuracy.per_split[s] for s in range(2)}
            assert grid.pairs(cell, grid.find(cell, tmp_path, 2), grid.EVALUATED_BY[0], 2) == expected

    def test_only_what_is_missing_is_made(self, add, small, tmp_path):
        cell = Cell("costa-sv", "cora", "none", QUICK)
        add(tmp_path, cell, 0)
        before = cell.file(tmp_path).read_text()
        grid.fill(grid.missing([cell], tmp_path, 2), tmp_path, CPU, jobs=1)
        assert cell.file(tmp_path).read_text().startswith(before)
        assert [json.loads(line)["seed"] for line in cell.file(tmp_path).read_text().splitlines()] == [0, 1]

    def test_what_was_made_before_an_interrupt_is_kept(self, small, tmp_path, monkeypatch):
        cell = Cell("costa-sv", "cora", "none", QUICK)
        train = grid._train

        def interrupted(cell, seeds, device, data_dir):
            done = train(cell, seeds, device, data_dir)
            if seeds == [1]:
                done.metrics[0]["status"] = "interrupted"
            return done

        monkeypatch.setattr(grid, "_train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            grid.fill(grid.missing([cell], tmp_path, 3), tmp_path, CPU, jobs=1)
        assert list(grid.find(cell, tmp_path, 3)) == [0]

    @pytest.mark.parametrize(
        ("problem", "why"),
        [
            (InputError("this cannot be."), "this cannot be."),
            (torch.OutOfMemoryError("CUDA out of memory."), "there is not enough memory for it."),
        ],
    )
    def test_what_cannot_be_trained_is_said_and_the_others_go_on(self, small, tmp_path, monkeypatch, problem, why):
        bad, good = Cell("grace", "cora", given=(("train.epochs", 1),)), Cell("raw", "cora")
        execute = several.execute

        def fails(job, *arguments):
            if job.method == "grace":
                raise problem
            return execute(job, *arguments)

        monkeypatch.setattr(several, "execute", fails)
        ended = []
        grid.fill(grid.missing([bad, good], tmp_path, 1), tmp_path, CPU, jobs=1, report=ended.append)
        assert [(done.cell, done.seeds, len(done.metrics), done.why) for done in ended] == [
            (bad, [0], 0, why),
            (good, [0], 1, None),
        ]
        assert grid.missing([bad, good], tmp_path, 1) == [(bad, [0])]

    def test_on_a_gpu_the_seeds_of_a_cell_are_one_task(self):
        cell = Cell("costa-sv", "cora")
        assert list(grid._tasks([(cell, [0, 1])], torch.device("cuda"))) == [(cell, [0, 1])]
        assert list(grid._tasks([(cell, [0, 1])], CPU)) == [(cell, [0]), (cell, [1])]

    def test_but_for_those_that_cannot_be_one_program(self):
        svd = Cell("costa-sv", "cora", given=(("sketch.kind", "svd"), ("sketch.k", 8)))
        walks = Cell("deepwalk", "cora")
        assert list(grid._tasks([(svd, [0, 1]), (walks, [0, 1])], torch.device("cuda"))) == [
            (svd, [0]),
            (svd, [1]),
            (walks, [0, 1]),
        ]


class TestAlone:
    """Runs whose seconds are measured."""

    shared = Cell("costa-sv", "cora", "none", QUICK)
    alone = Cell("costa-sv", "cora", "none", QUICK, alone=True)

    def test_they_and_those_of_a_table_are_never_taken_for_each_other(self, line_of, tmp_path):
        # both cells look into the same file, and both lines are evaluated under every protocol
        metrics, flat = line_of(self.shared, 0)
        store.append(tmp_path, metrics | {"trained_together": 1}, flat)
        assert (list(grid.find(self.shared, tmp_path, 1)), grid.find(self.alone, tmp_path, 1)) == ([0], {})
        store.append(tmp_path, metrics | {"seed": 1, "alone": True}, flat)
        assert list(grid.find(self.shared, tmp_path, 2)) == [0]
        assert list(grid.find(self.alone, tmp_path, 2)) == [1]

    def test_a_time_is_of_a_few_runs_even_without_randomness(self):
        assert list(self.alone.seeds(20)) == list(range(grid.TIMINGS))
        assert list(Cell("raw", "cora", alone=True).seeds(2)) == [0, 1]

    def test_even_on_a_gpu_each_seed_is_a_task(self):
        work = [(self.alone, [0, 1]), (self.shared, [0, 1])]
        assert list(grid._tasks(work, torch.device("cuda"))) == [
            (self.alone, [0]),
            (self.alone, [1]),
            (self.shared, [0, 1]),
        ]

    def test_they_run_one_by_one_after_all_others_are_stored_and_not_by_joblib(self, tmp_path, monkeypatch):
        calls, ended, sent = [], [], []

        def train(cell, seeds, device, data_dir):
            calls.append((cell.alone, seeds, len(ended)))
            return grid.Done(cell, seeds, [], {})

        def delayed(function):
            return lambda *arguments: sent.append(arguments[0]) or (function, arguments, {})

        monkeypatch.setattr(grid, "_train", train)
        monkeypatch.setattr(joblib, "delayed", delayed)
        work = [(self.alone, [0, 1]), (self.shared, [0, 1])]
        grid.fill(work, tmp_path, CPU, jobs=1, report=ended.append)
        assert calls == [(False, [0], 0), (False, [1], 1), (True, [0], 2), (True, [1], 3)]
        assert sent == [self.shared, self.shared]

    def test_they_are_warmed_up_and_then_trained_in_full(self, small, tmp_path, monkeypatch):
        epochs = []
        train = training.train_together

        def listen(methods, graph, settings, **keywords):
            epochs.append(settings.epochs)
            return train(methods, graph, settings, **keywords)

        monkeypatch.setattr(training.loop, "train_together", listen)
        cell = Cell("costa-sv", "cora", "none", (("train.epochs", 9), *QUICK[1:]), "time", alone=True)
        grid.fill(grid.missing([cell], tmp_path, 1), tmp_path, CPU, jobs=1)
        assert epochs == [grid.FIRST_EPOCHS, 9]
        (line,) = store.read(tmp_path / "experiments" / "time" / "costa-sv" / "cora.jsonl")
        assert (line["alone"], line["trained_together"], line["epochs"]) == (True, 1, 9)
        assert [probe["protocol"] for probe in line["probes"]] == ["random-10-10-80"]
        assert grid.missing([cell], tmp_path, 1) == []

    @pytest.mark.parametrize(("method", "moves"), [("raw", False), ("deepwalk", False), ("untrained", True)])
    def test_a_method_without_weights_computes_on_the_cpu(self, small, method, moves):
        if method == "deepwalk":
            pytest.importorskip("gensim")
        # it stands for a GPU: not equal to the CPU, and works everywhere
        device = torch.device("cpu", 0)
        graph = grid.load_graph("cora")
        given = {"walks.length": 5, "walks.number": 2, "walks.dimension": 4} if method == "deepwalk" else {}
        values = presets.resolve(get_method(method), graph, given=given).values
        assert grid._warm_up(method, values, graph, device) == (device if moves else CPU)


def test_the_label_names_what_was_changed():
    assert Cell("costa-mv", "cora", alone=True).label == "costa-mv on cora, alone"
    assert Cell("costa-mv", "cora", "paper").label == "costa-mv (paper) on cora"
    assert Cell("costa-sv", "cora", given=(("sketch.ratio", 0.1),)).label == "costa-sv on cora, sketch.ratio 0.1"
