import csv
import json
import statistics
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from costa import settings
from costa.errors import InputError
from costa.methods import get_method
from reproduction import figures, grid, paper, store
from reproduction.bench import contestants

TIMES = {"plain GRACE": [8.0, 16.5, None], "costa-sv": [0.5, 1.0, 2.0], "costa-sv (plain path)": [4.0, 5.0, 6.0]}
DATASETS = ["cora", "citeseer"]


def write_bench(results, device, times):
    """A file as `python -m reproduction bench-runtime` writes it: milliseconds on 1,000, 2,000 and 3,000 nodes."""
    rows = [
        {
            "nodes": nodes,
            "edges": 3 * nodes,
            "contestant": name,
            "ms_per_epoch": ms,
            "status": "out-of-memory" if ms is None else "ok",
        }
        for name, column in times.items()
        for nodes, ms in zip((1000, 2000, 3000), column, strict=True)
    ]
    (results / "bench").mkdir(parents=True, exist_ok=True)
    (results / "bench" / f"runtime-{device}.json").write_text(json.dumps({"device": device, "rows": rows}))


def add_runs(results, cell, accuracies, status="ok"):
    """Runs of a cell as the store has them: seed s reaches ``accuracies[s]`` on split s, and nothing on any other."""
    flat = settings.flatten(get_method(cell.method).Settings()) | cell.fixed_settings
    for seed, accuracy in enumerate(accuracies):
        per_split = [accuracy if split == seed else 0.0 for split in range(20)]
        # under any other protocol, half of it
        probes = [
            {
                "protocol": name,
                "accuracy": {"per_split": [per_split, [a / 2 for a in per_split]][name != "random-10-10-80"]},
            }
            for name in grid.EVALUATED_BY
        ]
        run = {"method": cell.method, "dataset": cell.dataset, "seed": seed, "status": status}
        store.append(cell.root(results), run | {"probes": probes if status == "ok" else []}, flat)


def accuracies(place):
    """Three seeds' at the place-th point of a figure."""
    return [0.7 + 0.004 * place + shift for shift in (0.0, 0.01, 0.05)]


@pytest.fixture
def drawn(monkeypatch):
    """The figures, instead of their files."""
    kept = []

    def keep(figure, stem):
        kept.append(figure)
        return [stem.with_suffix(".svg"), stem.with_suffix(".png")]

    monkeypatch.setattr(figures, "_save", keep)
    return kept


def cells_of(name):
    """The cells of a figure, in its order."""
    return paper.varied_cells(figures.FIGURES[name][0], DATASETS)


def make(name, results, out, *, leave=(), datasets=DATASETS, seeds=3):
    """Fill the store, but for the points at the places in ``leave``; draw; the rows of the figure's data."""
    for place, cell in enumerate(cells_of(name)):
        if place not in leave:
            add_runs(results, cell, accuracies(place))
    paths = figures.fig_accuracy(name, results, out, datasets, seeds)
    assert paths == [out / f"fig-{name}.{kind}" for kind in ("svg", "png", "csv")]
    return list(csv.DictReader(paths[2].open()))


class TestRuntime:
    def test_its_contestants_exist(self):
        there = {item.name for item in vars(contestants).values() if isinstance(item, contestants.Contestant)}
        assert set(figures.STYLES) <= there
        assert {twin.name for twin in contestants.TWINS} <= set(figures.STYLES)
        assert len(set(figures.STYLES.values())) == len(figures.STYLES)

    def test_its_data(self, tmp_path):
        write_bench(tmp_path, "cpu", TIMES)
        paths = figures.fig_runtime(tmp_path, tmp_path / "figures")
        assert paths == [tmp_path / "figures" / f"fig-runtime.{kind}" for kind in ("svg", "png", "csv")]
        assert [
            (row["contestant"], row["nodes"], row["seconds"], row["status"]) for row in csv.DictReader(paths[2].open())
        ] == [
            ("plain GRACE", "1000", "8.0", "ok"),
            ("plain GRACE", "2000", "16.5", "ok"),
            ("plain GRACE", "3000", "", "out-of-memory"),
            ("costa-sv", "1000", "0.5", "ok"),
            ("costa-sv", "2000", "1.0", "ok"),
            ("costa-sv", "3000", "2.0", "ok"),
        ]

    def test_lines_show_the_data_on_a_logarithmic_scale_with_the_device_above(self, tmp_path, drawn):
        write_bench(tmp_path, "cpu", TIMES)
        write_bench(tmp_path, "gpu", {"costa-mv": [1.0, 2.0, 3.0]})
        figures.fig_runtime(tmp_path, tmp_path)
        first, second = drawn[0].axes
        assert first.get_yscale() == "log"
        assert ("cpu" in first.get_title(), "gpu" in second.get_title()) == (True, True)
        lines = {line.get_label(): line.get_xydata().tolist() for line in first.lines}
        assert list(lines) == ["plain GRACE", "costa-sv"]
        assert lines["costa-sv"] == [[1000, 0.5], [2000, 1.0], [3000, 2.0]]
        assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["plain GRACE", "costa-mv", "costa-sv"]

    def test_the_same_data_make_the_same_files(self, tmp_path):
        write_bench(tmp_path, "cpu", TIMES)
        made = [figures.fig_runtime(tmp_path, tmp_path / out) for out in ("a", "b")]
        for first, second in zip(*made, strict=True):
            assert first.read_bytes() == second.read_bytes()

    def test_missing_data_name_the_command_that_makes_them(self, tmp_path):
        with pytest.raises(InputError, match="measure them with `python -m reproduction bench-runtime`"):
            figures.fig_runtime(tmp_path, tmp_path / "figures")
        assert not (tmp_path / "figures").exists()

    @pytest.mark.parametrize("text", ["{", "[]", '{"device": "cpu", "rows": [{}]}'])
    def test_a_damaged_file_is_named(self, tmp_path, text):
        (tmp_path / "bench").mkdir()
        (tmp_path / "bench" / "runtime-cpu.json").write_text(text)
        with pytest.raises(InputError, match=r"runtime-cpu.json is damaged"):
            figures.fig_runtime(tmp_path, tmp_path)


class TestAccuracies:
    @pytest.mark.parametrize(
        ("name", "column"), [("ablation", "projection"), ("ratio", "ratio"), ("density", "density")]
    )
    def test_the_data_are_mean_and_deviation_of_seed_s_on_split_s_in_percent(self, tmp_path, name, column):
        rows = make(name, tmp_path, tmp_path / "figures")
        keys = paper.VARIATIONS[figures.FIGURES[name][0]]
        assert list(rows[0]) == ["dataset", column, "mean", "std", "runs"]
        assert [(row["dataset"], row[column]) for row in rows] == [
            (dataset, str(key)) for dataset in DATASETS for key in keys
        ]
        for place, row in enumerate(rows):
            percent = [100 * accuracy for accuracy in accuracies(place)]
            assert float(row["mean"]) == pytest.approx(statistics.mean(percent), abs=1e-4)
            assert float(row["std"]) == pytest.approx(statistics.stdev(percent), abs=1e-4)
            assert row["runs"] == "3"

    @pytest.mark.parametrize("name", ["ratio", "density"])
    def test_lines_and_bands_show_the_data(self, tmp_path, drawn, name):
        rows = make(name, tmp_path, tmp_path)
        (axes,) = drawn[0].axes
        bands = [shape for shape in axes.collections if isinstance(shape, PolyCollection)]
        for dataset, title, band in zip(DATASETS, ("Cora", "CiteSeer"), bands, strict=True):
            selected = [row for row in rows if row["dataset"] == dataset]
            x, mean, std = (np.array([float(row[column]) for row in selected]) for column in (name, "mean", "std"))
            (line,) = [line for line in axes.lines if line.get_label() == title]
            np.testing.assert_array_equal(line.get_xydata(), np.c_[x, mean])
            corners = {(a, round(b, 6)) for a, b in band.get_paths()[0].vertices}
            assert corners == {(a, round(b, 6)) for a, b in zip([*x, *x], [*(mean - std), *(mean + std)], strict=True)}
        looks = {
            (line.get_color(), line.get_marker()) for line in axes.lines if line.get_label() in ("Cora", "CiteSeer")
        }
        assert len({colour for colour, _ in looks}) == len({marker for _, marker in looks}) == 2

    def test_bars_stand_in_their_dataset_s_group_and_show_the_data(self, tmp_path, drawn):
        rows = make("ablation", tmp_path, tmp_path)
        (axes,) = drawn[0].axes
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Cora", "CiteSeer"]
        bars = [container for container in axes.containers if hasattr(container, "patches")]
        assert [group.get_label() for group in bars] == list(paper.VARIATIONS["projections"])
        assert len({group.patches[0].get_hatch() for group in bars}) == len(bars)
        for group in bars:
            selected = [row for row in rows if row["projection"] == group.get_label()]
            for place, (bar, row) in enumerate(zip(group.patches, selected, strict=True)):
                assert bar.get_height() == float(row["mean"])
                assert round(bar.get_x() + bar.get_width() / 2) == place
            segments = group.errorbar.lines[2][0].get_segments()
            for (low, high), row in zip(segments, selected, strict=True):
                assert (high[1] - low[1]) / 2 == pytest.approx(float(row["std"]))

    def test_the_bars_axis_starts_near_the_data_at_a_tick_and_says_so(self, tmp_path, drawn):
        rows = make("ablation", tmp_path, tmp_path)
        (axes,) = drawn[0].axes
        bottom, top = axes.get_ylim()
        low = min(float(row["mean"]) - float(row["std"]) for row in rows)
        high = max(float(row["mean"]) + float(row["std"]) for row in rows)
        assert 0 < low - bottom < 5
        assert 0 < top - high < 5
        assert bottom in axes.get_yticks()
        assert f"the axis starts at {bottom:g}" in axes.get_ylabel()

    @pytest.mark.parametrize("level", [0.0, 1.0])
    def test_the_bars_axis_does_not_leave_what_an_accuracy_can_be(self, tmp_path, drawn, level):
        for cell in paper.varied_cells("projections", ["cora"]):
            add_runs(tmp_path, cell, [level, level])
        figures.fig_accuracy("ablation", tmp_path, tmp_path, ["cora"], 2)
        bottom, top = drawn[0].axes[0].get_ylim()
        assert 0 <= bottom < top <= 100

    def test_as_many_rows_as_nodes_are_marked(self, tmp_path, drawn):
        make("ratio", tmp_path, tmp_path)
        (axes,) = drawn[0].axes
        assert [1, 1] in [list(line.get_xdata()) for line in axes.lines]
        assert {text.get_text() for text in axes.texts} == {"downsampling", "upsampling"}

    def test_densities_double_from_tick_to_tick(self, tmp_path, drawn):
        make("density", tmp_path, tmp_path)
        (axes,) = drawn[0].axes
        assert (axes.get_xscale(), axes.xaxis.get_transform().base) == ("log", 2)
        drawn[0].canvas.draw()
        assert [tick.get_text() for tick in axes.get_xticklabels()] == [str(density) for density in paper.DENSITIES]

    @pytest.mark.parametrize("name", figures.FIGURES)
    def test_the_title_says_the_protocol_and_the_seeds_that_were_found(self, tmp_path, drawn, name):
        make(name, tmp_path, tmp_path, leave=[1], seeds=20)
        add_runs(tmp_path, cells_of(name)[1], [0.8, 0.9])
        figures.fig_accuracy(name, tmp_path, tmp_path, DATASETS, 20)
        before, after = (figure.axes[0].get_title() for figure in drawn)
        assert "random-10-10-80" in before
        assert "over 3 seeds" in before
        assert "over 2 to 3 seeds" in after

    def test_no_more_seeds_than_asked_for(self, tmp_path):
        rows = make("ratio", tmp_path, tmp_path, seeds=2)
        assert {row["runs"] for row in rows} == {"2"}
        assert float(rows[0]["mean"]) == pytest.approx(70.5)

    @pytest.mark.parametrize("name", ["ratio", "density"])
    def test_a_point_without_runs_is_a_gap(self, tmp_path, drawn, name):
        rows = make(name, tmp_path, tmp_path, leave=[2])
        assert [(row["mean"], row["std"], row["runs"]) for row in rows if row["runs"] != "3"] == [("", "", "0")]
        y = drawn[0].axes[0].lines[0].get_ydata()
        assert np.flatnonzero(np.isnan(y)).tolist() == [2]

    def test_a_bar_without_runs_is_left_out_and_the_others_stay_where_they_are(self, tmp_path, drawn):
        first, second = "fresh in each epoch", "fixed"
        for leave in ((), (0, 4)):
            make("ablation", tmp_path / str(len(leave)), tmp_path, leave=leave)
        whole, partial = (
            {
                group.get_label(): [bar.get_x() for bar in group.patches]
                for group in figure.axes[0].containers
                if hasattr(group, "patches")
            }
            for figure in drawn
        )
        assert partial == {first: [whole[first][1]], second: [whole[second][0]], "none": whole["none"]}

    @pytest.mark.parametrize("name", figures.FIGURES)
    def test_a_dataset_without_runs_is_not_shown(self, tmp_path, drawn, name):
        rows = make(name, tmp_path, tmp_path, datasets=["cora", "dblp"])
        assert {row["runs"] for row in rows if row["dataset"] == "dblp"} == {"0"}
        (axes,) = drawn[0].axes
        shown = [text.get_text() for text in (*drawn[0].legends[0].get_texts(), *axes.get_xticklabels())]
        assert "Cora" in shown
        assert "DBLP" not in shown

    @pytest.mark.parametrize("name", figures.FIGURES)
    def test_without_any_run_the_command_that_makes_them_is_named(self, tmp_path, name):
        # runs that came to nothing have no accuracy either
        add_runs(tmp_path, cells_of(name)[0], [0.8], status="diverged")
        problem = f"there are no runs for fig-{name} in {tmp_path}; make them with `python -m reproduction fig-{name}`."
        with pytest.raises(InputError) as caught:
            figures.fig_accuracy(name, tmp_path, tmp_path / "figures", DATASETS, 3)
        assert str(caught.value) == problem
        assert not (tmp_path / "figures").exists()

    @pytest.mark.parametrize("name", figures.FIGURES)
    def test_the_same_data_make_the_same_files(self, tmp_path, name):
        make(name, tmp_path, tmp_path / "a")
        for first, second in zip(
            sorted((tmp_path / "a").iterdir()),
            sorted(figures.fig_accuracy(name, tmp_path, tmp_path / "b", DATASETS, 3)),
            strict=True,
        ):
            assert first.read_bytes() == second.read_bytes()
        assert (tmp_path / "a" / f"fig-{name}.png").read_bytes().startswith(b"\x89PNG")
        ElementTree.parse(tmp_path / "a" / f"fig-{name}.svg")


def test_every_projection_has_a_bar_of_its_own():
    assert list(figures.BARS) == list(paper.VARIATIONS["projections"])
    assert len(set(figures.BARS.values())) == len(figures.BARS)
