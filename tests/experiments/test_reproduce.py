import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from costa.errors import InputError
from costa.experiments import grid, paper, reproduce
from costa.experiments.reproduce import Request
from costa.graphs.synthetic import planted_partition


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
    monkeypatch.setattr(paper, "DENSITIES", (0.1, 0.2))
    real = paper.density_points

    def points(datasets):
        return [
            paper.Point(
                p.series, p.x, grid.Cell(p.cell.method, p.cell.dataset, "none", p.cell.given + quick, "density")
            )
            for p in real(datasets)
        ]

    monkeypatch.setattr(paper, "density_points", points)
    monkeypatch.setitem(paper.POINTS, "density", points)
    yield
    grid._graph.cache_clear()


class TestRequests:
    def test_unknown_names_are_refused_before_anything_is_done(self, costa, tmp_path):
        meant = re.escape("unknown target 'fig-x' (did you mean 'fig-time'?); there are: table-main, table-citation")
        with pytest.raises(InputError, match=meant):
            reproduce.reproduce(["fig-runtime", "fig-x"], Request(tmp_path, tmp_path / "figures"))
        for option, name in (("--datasets", "koala"), ("--methods", "magic")):
            result = costa("reproduce", "table-main", option, f"cora,{name}" if option == "--datasets" else name)
            assert (result.code, f"unknown {option[2:-1]} '{name}'; there are: " in result.err) == (2, True)
        assert not (tmp_path / "figures").exists()

    def test_a_target_asks_for_the_papers_graphs_but_wikics(self):
        asked = {
            name: {cell.dataset for cell in reproduce.cells([name], Request())}
            for name, target in reproduce.TARGETS.items()
        }
        amazon_and_coauthor = set(paper.MAIN) - {"wikics"}
        assert asked == {
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
        first = reproduce.cells(["table-main", "table-citation"], Request(methods=["costa-sv", "costa-mv"]))
        both = reproduce.cells(["table-again"], Request())
        assert set(both) == {*first, *(replace(cell, experiment="again") for cell in first)}
        assert {cell.root(Path("results")) for cell in both} == {Path("results"), Path("results/experiments/again")}

    @pytest.mark.parametrize(
        ("target", "asked", "said"),
        [
            ("table-again", {"methods": ["grace"]}, "nothing of grace; there is of: costa-sv, costa-mv"),
            ("table-main", {"datasets": ["cora"]}, "nothing of cora; there is of: amazon-computers, amazon-photo"),
        ],
    )
    def test_what_a_target_has_nothing_of_is_said(self, target, asked, said):
        with pytest.raises(InputError, match=f"{target}: there is {said}"):
            reproduce.cells([target], Request(**asked))
        # another target may have it
        assert reproduce.cells([target, "table-overview"], Request(**asked))

    def test_datasets_and_methods_restrict_it(self):
        some = reproduce.cells(["table-main", "fig-ratio"], Request(datasets=["wikics"], methods=["costa-sv"]))
        assert {(cell.dataset, cell.method) for cell in some} == {("wikics", "costa-sv")}
        assert len(some) == 1 + len(paper.RATIOS)

    def test_cells_of_one_dataset_follow_each_other(self):
        names = [cell.dataset for cell in reproduce.cells(["table-sketches", "table-ablation", "fig-ratio"], Request())]
        assert names == sorted(names, reverse=True)  # Cora comes first in the paper

    def test_the_help_lists_the_targets(self, costa):
        shown = costa("reproduce", "--help").out
        for name, target in reproduce.TARGETS.items():
            assert f"{name:<21} {target.description}" in shown


class TestCommand:
    def test_missing_runs_are_made_once_then_drawn(self, small, costa, tmp_path):
        arguments = (
            "reproduce", "fig-density", "--datasets", "cora", "--seeds", 2, "--device", "cpu", "--jobs", 1,
            "--results", tmp_path / "results", "--out", tmp_path / "docs" / "figures",
        )  # fmt: skip
        result = costa(*arguments)
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
        again = costa(*arguments)
        assert again.out.splitlines()[0] == "2 cells, 0 runs to make: all are in the store"
        assert store.read_text() == before

    def test_a_cell_that_cannot_be_run_is_told_and_the_rest_is_drawn(self, small, costa, tmp_path, monkeypatch):
        train = grid._train

        def fails(cell, *arguments):
            done = train(cell, *arguments)
            dense = dict(cell.given)["sketch.density"] > 0.1
            return replace(done, metrics=[], why="it cannot be.") if dense else done

        monkeypatch.setattr(grid, "_train", fails)
        result = costa(
            "reproduce", "fig-density", "--datasets", "cora", "--seeds", 1, "--device", "cpu", "--jobs", 1,
            "--results", tmp_path / "results", "--out", tmp_path / "docs" / "figures",
        )  # fmt: skip
        assert result.code == 2
        assert result.err == "costa: 1 run could not be made; the lines above say why.\n"
        lines = result.out.splitlines()
        assert lines[2].startswith("2/2  costa-sv (none) on cora, sketch.kind sparse, sketch.density 0.2,")
        assert lines[2].endswith(" could not be run: it cannot be. 0 s left")
        assert lines[3].startswith("1 run in ")
        assert [line.rsplit(".")[-1] for line in lines[4:]] == ["svg", "png", "csv"]

    def test_times_are_taken_once_then_drawn(self, small, costa, tmp_path):
        arguments = (
            "reproduce", "fig-time", "--datasets", "cora", "--methods", "raw,untrained", "--seeds", 2,
            "--device", "cpu", "--jobs", 1, "--results", tmp_path / "results", "--out", tmp_path / "docs" / "figures",
        )  # fmt: skip
        result = costa(*arguments)
        assert result.code == 0, result.err
        lines = result.out.splitlines()
        assert lines[0] == "4 cells, 7 runs to make"  # raw has one for its accuracy, and two for its time
        assert [", alone" in line for line in lines[1:8]] == [False] * 3 + [True] * 4
        assert lines[8].startswith("7 runs in ")
        assert [line.rsplit(".")[-1] for line in lines[9:]] == ["svg", "png", "csv"]
        rows = csv.DictReader((tmp_path / "docs" / "figures" / "fig-time.csv").open())
        assert [row["method"] for row in rows if row["timings"] == "2"] == ["raw", "untrained"]
        assert costa(*arguments).out.splitlines()[0] == "4 cells, 0 runs to make: all are in the store"

    def test_no_run_only_writes_what_there_is(self, costa, tmp_path):
        out = tmp_path / "docs" / "figures"
        result = costa("reproduce", "table-sketches", "--no-run", "--results", tmp_path / "results", "--out", out)
        assert (result.code, result.out.strip()) == (0, str(tmp_path / "docs" / "results.md"))
        assert not (tmp_path / "results").exists()

    def test_an_interrupt_says_what_was_kept(self, small, costa, tmp_path, monkeypatch):
        def stop(*arguments, **keywords):
            raise KeyboardInterrupt

        monkeypatch.setattr(grid, "fill", stop)
        result = costa("reproduce", "fig-density", "--seeds", 1, "--results", tmp_path, "--out", tmp_path / "figures")
        assert result.code == 130
        assert f"Stopped after 0 of 4 runs. They are in {tmp_path}; the same command goes on." in result.out

    def test_missing_measurements_name_the_command_that_makes_them(self, costa, tmp_path):
        result = costa("reproduce", "fig-runtime", "--results", tmp_path, "--out", tmp_path / "figures")
        assert result.code == 2
        assert "measure them with `costa bench runtime`." in result.err
        assert not (tmp_path / "figures").exists()
