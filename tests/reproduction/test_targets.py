import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from reproduction import grid, paper, targets
from reproduction.targets import Request


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


class TestRequests:
    def test_unknown_names_are_refused_before_anything_is_done(self, reproduction, tmp_path):
        meant = re.escape("unknown target 'fig-x' (did you mean 'fig-time'?); there are: table-main, table-citation")
        with pytest.raises(InputError, match=meant):
            targets.reproduce(["fig-runtime", "fig-x"], Request(tmp_path, tmp_path / "figures"))
        for option, name in (("--datasets", "koala"), ("--methods", "magic")):
            result = reproduction("table-main", option, f"cora,{name}" if option == "--datasets" else name)
            assert (result.code, f"unknown {option[2:-1]} '{name}'; there are: " in result.err) == (2, True)
        assert not (tmp_path / "figures").exists()

    def test_a_target_asks_for_the_papers_graphs_but_wikics(self):
        datasets = {
            name: {cell.dataset for cell in targets.cells([name], Request())}
            for name, target in targets.TARGETS.items()
        }
        amazon_and_coauthor = set(paper.MAIN) - {"wikics"}
        assert datasets == {
            "table-main": amazon_and_coauthor,
            "table-citation": set(paper.CITATION),
            "table-overview": set(paper.MEASURED),
            "table-rivals": set(paper.MEASURED),
            "table-again": set(paper.MEASURED),
            "table-sketches": {"cora", "citeseer"},
            "table-ablation": {"cora", "citeseer"},
            "table-differences": set(paper.CITATION),
            "fig-ablation": set(paper.CITATION),
            "fig-ratio": {"cora", "citeseer"},
            "fig-density": {"cora", "citeseer"},
            "fig-runtime": set(),
            "fig-time": {"amazon-photo", "cora"},
            "fig-bounds": set(),
            "fig-bias-2d": set(),
            "fig-bias-distribution": set(),
            "fig-bias-degree": set(),
            "fig-degrees": set(),
            "fig-counterexample": set(),
            "performance": set(),
        }

    def test_a_second_time_needs_the_first_and_a_store_of_its_own(self):
        first = targets.cells(["table-main", "table-citation"], Request(methods=["costa-sv", "costa-mv"]))
        both = targets.cells(["table-again"], Request())
        assert set(both) == {*first, *(replace(cell, experiment="again") for cell in first)}
        assert {cell.root(Path("results")) for cell in both} == {Path("results"), Path("results/experiments/again")}

    @pytest.mark.parametrize(
        ("target", "requested", "said"),
        [
            ("table-again", {"methods": ["grace"]}, "for grace; choose from: costa-sv, costa-mv"),
            ("table-main", {"datasets": ["cora"]}, "for cora; choose from: amazon-computers, amazon-photo"),
        ],
    )
    def test_what_a_target_has_nothing_of_is_said(self, target, requested, said):
        with pytest.raises(InputError, match=f"{target}: no runs are needed {said}"):
            targets.cells([target], Request(**requested))
        # another target may have it
        assert targets.cells([target, "table-overview"], Request(**requested))

    def test_datasets_and_methods_restrict_it(self):
        some = targets.cells(["table-main", "fig-ratio"], Request(datasets=["wikics"], methods=["costa-sv"]))
        assert {(cell.dataset, cell.method) for cell in some} == {("wikics", "costa-sv")}
        assert len(some) == 1 + len(paper.RATIOS)

    def test_cells_of_one_dataset_follow_each_other(self):
        names = [cell.dataset for cell in targets.cells(["table-sketches", "table-ablation", "fig-ratio"], Request())]
        assert names == sorted(names, reverse=True)  # Cora comes first in the paper

    def test_the_help_lists_the_targets(self, reproduction):
        shown = reproduction("--help").out
        for name, target in targets.TARGETS.items():
            assert f"{name:<21} {target.description}" in shown


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
