import csv
import json
import re
from dataclasses import replace
from functools import partial

import pytest
import torch

from costa import runs
from costa.graphs.synthetic import planted_partition
from reproduction import grid, paper, targets
from reproduction.bench import contestants, measure, suites
from reproduction.bench.measure import Row

ROW = {
    "graph": str,
    "nodes": int,
    "edges": int,
    "contestant": str,
    "ms_per_epoch": float,
    "ms_spread": float,
    "peak_memory_bytes": type(None),
    "seconds_to_probed": float,
    "status": str,
}


@pytest.fixture
def small(monkeypatch):
    """Every dataset is a small graph of two communities, and one view is quick."""

    def load(name, data_dir=None):
        graph = planted_partition(120, 2, 12, seed=0)
        graph.name = name
        return graph

    quick = (("train.epochs", 2), ("encoder.width", 8), ("head.width", 8))
    grid._graph.cache_clear()
    monkeypatch.setattr(grid, "load_graph", load)
    sparse = {density: (("sketch.kind", "sparse"), ("sketch.density", density)) for density in (0.1, 0.2)}
    monkeypatch.setitem(paper.VARIATIONS, "density", sparse)
    real = paper.varied_cell

    def varied_cell(*arguments):
        cell = real(*arguments)
        return replace(cell, preset="none", given=cell.given + quick)

    monkeypatch.setattr(paper, "varied_cell", varied_cell)
    yield
    grid._graph.cache_clear()


@pytest.fixture
def brief(monkeypatch):
    """A few epochs of three contestants, probed on one split."""
    field = [contestants.PLAIN_SV, contestants.PLAIN_MV, contestants.SV]
    monkeypatch.setattr(contestants, "standard", lambda device: field)
    for name in ("FIRST_EPOCHS", "REPEATS", "PROBED_EPOCHS"):
        monkeypatch.setattr(measure, name, 1)
    monkeypatch.setattr(runs, "probe_graph", partial(runs.probe_graph, repeats=1))


class TestCommand:
    def test_missing_runs_are_made_once_then_drawn(self, small, reproduction, tmp_path):
        arguments = (
            "fig-density", "--datasets", "cora", "--seeds", 2, "--device", "cpu", "--jobs", 1,
            "--results", tmp_path / "results", "--out", tmp_path / "docs" / "figures",
        )  # fmt: skip
        result = reproduction(*arguments)
        assert result.code == 0, result.err
        lines = result.out.splitlines()
        assert lines[0] == "2 cells, 4 runs to make"
        assert lines[1].startswith("1/4  costa-sv (none) on cora, sketch.kind sparse, sketch.density 0.1")
        assert "seed 0, " in lines[1]
        assert " left" in lines[1]
        assert lines[5].startswith("4 runs in ")
        assert [line.rsplit(".")[-1] for line in lines[6:]] == ["svg", "png", "csv"]
        store = tmp_path / "results" / "experiments" / "density" / "costa-sv" / "cora.jsonl"
        before = store.read_text()
        assert [json.loads(line)["seed"] for line in before.splitlines()] == [0, 1, 0, 1]
        again = reproduction(*arguments)
        assert again.out.splitlines()[0] == "2 cells, 0 runs to make: all are in the store"
        assert store.read_text() == before

    def test_a_cell_that_cannot_be_run_is_told_and_the_rest_is_drawn(self, small, reproduction, tmp_path, monkeypatch):
        train = grid._train

        def fails(cell, *arguments):
            done = train(cell, *arguments)
            dense = dict(cell.given)["sketch.density"] > 0.1
            return replace(done, metrics=[], why="it cannot be.") if dense else done

        monkeypatch.setattr(grid, "_train", fails)
        result = reproduction(
            "fig-density", "--datasets", "cora", "--seeds", 1, "--device", "cpu", "--jobs", 1,
            "--results", tmp_path / "results", "--out", tmp_path / "docs" / "figures",
        )  # fmt: skip
        assert result.code == 2
        assert result.err == "costa: 1 run could not be made; the lines above say why.\n"
        lines = result.out.splitlines()
        assert lines[2].startswith("2/2  costa-sv (none) on cora, sketch.kind sparse, sketch.density 0.2,")
        assert lines[2].endswith(" could not be run: it cannot be. 0 s left")
        assert lines[3].startswith("1 run in ")
        assert [line.rsplit(".")[-1] for line in lines[4:]] == ["svg", "png", "csv"]

    def test_times_are_taken_once_then_drawn(self, small, reproduction, tmp_path):
        arguments = (
            "fig-time", "--datasets", "cora", "--methods", "raw,untrained", "--seeds", 2,
            "--device", "cpu", "--jobs", 1, "--results", tmp_path / "results", "--out", tmp_path / "docs" / "figures",
        )  # fmt: skip
        result = reproduction(*arguments)
        assert result.code == 0, result.err
        lines = result.out.splitlines()
        assert lines[0] == "4 cells, 7 runs to make"  # raw has one for its accuracy, and two for its time
        assert [", alone" in line for line in lines[1:8]] == [False] * 3 + [True] * 4
        assert lines[8].startswith("7 runs in ")
        assert [line.rsplit(".")[-1] for line in lines[9:]] == ["svg", "png", "csv"]
        rows = csv.DictReader((tmp_path / "docs" / "figures" / "fig-time.csv").open())
        assert [row["method"] for row in rows if row["timings"] == "2"] == ["raw", "untrained"]
        assert reproduction(*arguments).out.splitlines()[0] == "4 cells, 0 runs to make: all are in the store"

    def test_no_run_only_writes_what_there_is(self, reproduction, tmp_path):
        out = tmp_path / "docs" / "figures"
        result = reproduction("table-sketches", "--no-run", "--results", tmp_path / "results", "--out", out)
        assert (result.code, result.out.strip()) == (0, str(tmp_path / "docs" / "results.md"))
        assert not (tmp_path / "results").exists()

    def test_an_interrupt_says_what_was_kept(self, small, reproduction, tmp_path, monkeypatch):
        def stop(*arguments, **keywords):
            raise KeyboardInterrupt

        monkeypatch.setattr(grid, "fill", stop)
        result = reproduction("fig-density", "--seeds", 1, "--results", tmp_path, "--out", tmp_path / "figures")
        assert result.code == 130
        assert f"Stopped after 0 of 4 runs. They are in {tmp_path}; run the same command to continue." in result.out

    def test_missing_measurements_name_the_command_that_makes_them(self, reproduction, tmp_path):
        result = reproduction("fig-runtime", "--results", tmp_path, "--out", tmp_path / "figures")
        assert result.code == 2
        assert "measure them with `python -m reproduction bench-runtime`." in result.err
        assert not (tmp_path / "figures").exists()

    def test_pages_are_all_targets_from_the_store_alone(self, reproduction, tmp_path, monkeypatch):
        made = []
        monkeypatch.setattr(targets, "reproduce", lambda names, request: made.extend(names) or [])
        monkeypatch.setattr(grid, "fill", None)
        result = reproduction("pages", "--results", tmp_path, "--out", tmp_path / "figures")
        assert (result.code, result.out) == (0, "")
        assert made == list(targets.TARGETS)

    def test_what_cannot_be_written_gets_a_sentence(self, reproduction, tmp_path):
        (tmp_path / "file").write_text("")
        result = reproduction("table-sketches", "--no-run", "--out", tmp_path / "file" / "docs" / "figures")
        assert result.code == 2
        assert result.err.startswith(f"costa: {tmp_path / 'file'}")
        assert result.err.endswith("check the path, its permissions and the space on the disk.\n")

    @pytest.mark.parametrize(("option", "name"), [("--datasets", "koala"), ("--methods", "magic")])
    def test_unknown_names_are_refused_before_anything_is_done(self, reproduction, tmp_path, option, name):
        given = f"cora,{name}" if option == "--datasets" else name
        result = reproduction("table-main", option, given, "--results", tmp_path, "--out", tmp_path / "figures")
        assert (result.code, f"unknown {option[2:-1]} '{name}'; there are: " in result.err) == (2, True)
        assert not any(tmp_path.iterdir())

    def test_the_help_lists_the_targets(self, reproduction):
        shown = reproduction("--help").out
        for name, target in targets.TARGETS.items():
            assert f"{name:<21} {target.description}" in shown


class TestBenches:
    def test_the_command_writes_what_it_prints(self, reproduction, tmp_path, brief):
        result = reproduction("bench-digits", "--epochs", 2, "--device", "cpu", "--results", tmp_path)
        assert result.code == 0, result.err
        (path,) = (tmp_path / "bench").iterdir()
        assert path.name == "digits-cpu.json"
        assert str(path) in result.out
        record = json.loads(path.read_text())
        assert record.keys() == {"schema", "suite", "device", "versions", "commit", "threads", "rows"}
        assert (record["schema"], record["suite"], record["device"]) == (1, "digits", "cpu")
        assert record["threads"] == torch.get_num_threads()
        assert {"costa", "torch", "torch-geometric", "python"} <= record["versions"].keys()
        for row in record["rows"]:
            assert {key: type(value) for key, value in row.items()} == ROW
        assert {(row["graph"], row["nodes"], row["edges"], row["status"]) for row in record["rows"]} == {
            ("digits", 1797, 7522, "ok")
        }

        one, two, ours = (row["ms_per_epoch"] for row in record["rows"])
        shown = [line.split() for line in result.out.splitlines()]
        (table,) = (words for words in shown if words[:1] == ["costa-sv"])
        assert table[1] == f"{ours:.2f}"
        assert table[3] == f"{min(one, two) / ours:.2f}"
        speeds = f"{one / ours:.2f} × plain COSTA one view, {two / ours:.2f} × plain COSTA two views"
        assert f"costa-sv, speed: {speeds}" in result.out

    def test_who_was_not_timed_is_not_compared(self, reproduction, tmp_path, monkeypatch):
        row = Row("small", 9, 9, "costa-sv", 2.0, 0.1, 3 * 2**20, 1.0)
        full = Row("small", 9, 9, "plain GRACE", status="out-of-memory")
        monkeypatch.setitem(suites.SUITES, "digits", lambda job: iter([[full, row], [full]]))
        result = reproduction("bench-digits", "--results", tmp_path)
        assert result.code == 0, result.err
        assert re.search(r"costa-sv +2\.00 +0\.10 +– +3 +1\.0 +ok ", result.out)
        assert re.search(r"plain GRACE +– +– +– +– +– +out-of-memory", result.out)
        assert "speed:" not in result.out

    def test_the_help_names_every_suite(self, reproduction):
        shown = reproduction("--help").out
        for name in (*suites.SUITES, suites.PROFILE):
            assert f"\n  bench-{name} " in shown

    def test_an_unknown_suite_is_refused_before_anything_runs(self, reproduction, tmp_path):
        result = reproduction("bench-digits", "bench-karate", "--results", tmp_path)
        assert result.code == 2
        assert (
            result.err == "costa: unknown bench 'bench-karate'; there are: bench-runtime, bench-physics, bench-cora,"
            " bench-digits, bench-memory, bench-seeds, bench-profile.\n"
        )
        assert not (tmp_path / "bench").exists()
