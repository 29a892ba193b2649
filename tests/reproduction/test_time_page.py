import csv
import statistics
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from costa.errors import InputError
from reproduction import figures, paper, store, targets, time_page
from reproduction.grid import Cell
from reproduction.targets import Request

H200 = "NVIDIA H200"
ALL = [method for methods in paper.FAMILIES.values() for method in methods]
FRONT = {"raw": (0.03, 0.60), "untrained": (0.05, 0.75), "costa-sv": (0.5, 0.80), "costa-mv": (2.0, 0.81)}
"""Seconds and accuracy; each is slower and better than the one before."""


@pytest.fixture
def put(line_of, tmp_path):
    """Add the runs of a method: the table's with seeds 0 and 1, and three that were timed, the middle one ``seconds``.

    Seed s on split s has the accuracy plus s percent.
    """

    def add(method, seconds, accuracy, *, dataset="cora", device=H200, evaluated=True, timed=True, status="ok"):
        if evaluated:
            cell = Cell(method, dataset)
            for seed in cell.seeds(2):
                store.append(cell.root(tmp_path), *line_of(cell, seed, accuracy=accuracy))
        if timed:
            cell = paper.timed_cell(method, dataset)
            for seed, factor in enumerate((1.0, 0.5, 3.0)):
                metrics, flat = line_of(cell, seed, accuracy=accuracy, status=status)
                metrics |= {"alone": True, "seconds": factor * seconds, "device": device}
                store.append(cell.root(tmp_path), metrics, flat)

    return add


@pytest.fixture
def drawn(monkeypatch):
    """The figures, instead of their files."""
    kept = []
    monkeypatch.setattr(figures, "_save", lambda figure, stem: kept.append(figure) or [])
    return kept


def write(tmp_path, datasets=("cora",), seeds=3):
    """The rows of the figure's data, by method."""
    paths = time_page.write(tmp_path, tmp_path / "docs" / "figures", datasets, seeds)
    (data,) = [path for path in paths if path.suffix == ".csv"]
    return {row["method"]: row for row in csv.DictReader(data.open()) if row["dataset"] == datasets[0]}


def points(axes):
    return {bar.get_label(): bar[0] for bar in axes.containers}


class TestData:
    def test_a_row_has_the_tables_accuracy_and_the_seconds_of_the_runs_alone(self, put, drawn, tmp_path):
        put("costa-sv", 2.0, 0.8)
        row = write(tmp_path)["costa-sv"]
        assert (row["family"], row["device"], row["runs"], row["timings"]) == ("COSTA", H200, "2", "3")
        assert [float(row[key]) for key in ("fastest", "seconds", "slowest")] == [1.0, 2.0, 6.0]
        assert float(row["mean"]) == pytest.approx(80.5)
        assert float(row["std"]) == pytest.approx(statistics.stdev([80, 81]), abs=1e-4)
        assert float(row["mean_of_timed"]) == pytest.approx(81.0)

    def test_making_the_vectors_counts(self, line_of, put, drawn, tmp_path):
        put("diffused", 0.0, 0.8, timed=False)
        cell = paper.timed_cell("diffused", "cora")
        timed = {"alone": True, "seconds": 0.25, "embed_seconds": 0.5, "device": "cpu"}
        metrics, flat = line_of(cell, 0)
        store.append(cell.root(tmp_path), metrics | timed, flat)
        assert float(write(tmp_path)["diffused"]["seconds"]) == 0.75

    def test_every_method_of_the_tables_has_a_row_in_each_dataset(self, put, drawn, tmp_path):
        put("raw", 0.1, 0.6)
        assert sorted(ALL) == sorted(paper.TABLE_METHODS)
        time_page.write(tmp_path, tmp_path, ["cora", "amazon-photo"], 3)
        rows = list(csv.DictReader((tmp_path / "fig-time.csv").open()))
        assert [(row["dataset"], row["method"]) for row in rows] == [
            (dataset, method) for dataset in ("cora", "amazon-photo") for method in ALL
        ]

    def test_the_front_is_what_none_beats_in_both(self, put, drawn, tmp_path):
        for method, numbers in FRONT.items():
            put(method, *numbers)
        put("grace", 3.0, 0.805)  # slower and worse than two views
        put("dgi", 2.0, 0.70)  # as slow, and worse
        put("gca", 2.5, 0.81)  # slower, and as good
        put("gbt", 0.01, 0.9, timed=False)
        put("bgrl", 0.01, 0.9, evaluated=False)
        rows = write(tmp_path)
        assert {method for method, row in rows.items() if row["front"] == "True"} == set(FRONT)

    def test_two_that_are_equal_are_both_on_it(self, put, drawn, tmp_path):
        put("grace", 1.0, 0.8)
        put("gca", 1.0, 0.8)
        rows = write(tmp_path)
        assert (rows["grace"]["front"], rows["gca"]["front"]) == ("True", "True")

    def test_datasets_do_not_beat_each_other(self, put, drawn, tmp_path):
        put("grace", 1.0, 0.8)
        put("grace", 0.5, 0.9, dataset="amazon-photo")
        assert write(tmp_path, ("cora", "amazon-photo"))["grace"]["front"] == "True"


class TestWhatIsMissing:
    def test_runs_that_shared_the_device_give_no_time(self, put, line_of, drawn, tmp_path):
        put("raw", 0.1, 0.6)
        put("costa-sv", 1.0, 0.8, timed=False)
        put("costa-mv", 1.0, 0.8, evaluated=False)
        # a line of the table, in the place of the times
        cell = paper.timed_cell("costa-sv", "cora")
        metrics, flat = line_of(Cell("costa-sv", "cora"), 0)
        store.append(cell.root(tmp_path), metrics | {"seconds": 1.0, "device": H200, "trained_together": 1}, flat)
        rows = write(tmp_path)
        assert (rows["costa-sv"]["runs"], rows["costa-sv"]["seconds"]) == ("2", "")
        assert (rows["costa-mv"]["runs"], rows["costa-mv"]["seconds"]) == ("0", "1.0")
        (axes,) = drawn[0].axes
        assert list(points(axes)) == ["raw"]
        said = axes.get_xlabel().replace("\n", " ")
        without_accuracy, without_time = said.split("no accuracy: ")[1].split(" not timed alone: ")
        assert "COSTA-MV" in without_accuracy
        assert "COSTA-SV" not in without_accuracy
        assert "COSTA-SV" in without_time
        assert "COSTA-MV" not in without_time

    def test_a_run_that_came_to_nothing_has_no_time(self, put, drawn, tmp_path):
        put("raw", 0.1, 0.6)
        put("grace", 1.0, 0.8, status="diverged")
        assert write(tmp_path)["grace"]["timings"] == "0"

    @pytest.mark.parametrize("only", ["evaluated", "timed"])
    def test_with_one_of_the_two_alone_the_command_is_named(self, put, tmp_path, only):
        put("grace", 1.0, 0.8, evaluated=only == "evaluated", timed=only == "timed")
        with pytest.raises(
            InputError, match=r"no method has both an accuracy and a time in .*`python -m reproduction fig-time`"
        ):
            write(tmp_path)
        assert not (tmp_path / "docs").exists()


class TestDevices:
    def test_those_of_a_cpu_are_hollow_and_the_legend_says_so(self, put, drawn, tmp_path):
        put("deepwalk", 30.0, 0.7, device="cpu")
        put("grace", 1.0, 0.8)
        write(tmp_path)
        found = points(drawn[0].axes[0])
        assert found["deepwalk"].get_markerfacecolor() == "white"
        assert found["grace"].get_markerfacecolor() == time_page.LOOKS["contrastive"][0]
        legend = [text.get_text() for text in drawn[0].legends[0].get_texts()]
        assert legend == [
            "random walks",
            "contrastive",
            "hollow: timed on a CPU",
            "none is both quicker and better",
        ]
        assert f"alone on one {H200}" in drawn[0].get_suptitle()

    def test_on_a_cpu_alone_the_title_says_that(self, put, drawn, tmp_path):
        put("grace", 1.0, 0.8, device="cpu")
        write(tmp_path)
        assert "alone on a CPU, median of 3 runs" in drawn[0].get_suptitle()

    @pytest.mark.parametrize("other", ["dgi", "grace"])
    def test_two_gpus_do_not_share_an_axis(self, put, tmp_path, other):
        put("grace", 1.0, 0.8)
        put(other, 1.0, 0.8, device="NVIDIA A100")
        if other == "grace":  # one seed here, the others there
            path = paper.timed_cell("grace", "cora").file(tmp_path)
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join([*lines[:2], lines[5]]))
        with pytest.raises(InputError, match=r"are from several devices \(NVIDIA A100, NVIDIA H200\)"):
            write(tmp_path)


class TestDrawing:
    def test_points_bars_and_front_show_the_data(self, put, drawn, tmp_path):
        for method, numbers in FRONT.items():
            put(method, *numbers)
        put("grace", 1.0, 0.7)
        rows = write(tmp_path)
        (axes,) = drawn[0].axes
        assert axes.get_xscale() == "log"
        for bar in axes.containers:
            row = rows[bar.get_label()]
            x, y, std = (float(row[key]) for key in ("seconds", "mean", "std"))
            assert bar[0].get_xydata().tolist() == [[x, y]]
            (level,), (upright,) = (whisker.get_segments() for whisker in bar[2])
            assert level[:, 0].tolist() == pytest.approx([float(row["fastest"]), float(row["slowest"])])
            assert upright[:, 1].tolist() == pytest.approx([y - std, y + std])
        (front,) = [line for line in axes.lines if line.get_label() == "front"]
        corners = front.get_xydata()
        reached = [(float(rows[method]["seconds"]), float(rows[method]["mean"])) for method in FRONT]
        assert [tuple(corner) for corner in corners[::2]] == reached
        assert corners[1::2, 1].tolist() == [y for _, y in reached]
        assert corners[1::2, 0].tolist() == [*(x for x, _ in reached[1:]), axes.get_xlim()[1]]

    def test_what_takes_next_to_no_time_is_at_the_axis_s_beginning_and_says_so(self, put, drawn, tmp_path):
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "results.md").touch()
        put("raw", 5e-6, 0.6, device="cpu")
        put("grace", 1.0, 0.8)
        assert write(tmp_path)["raw"]["seconds"] == "5e-06"
        (axes,) = drawn[0].axes
        assert points(axes)["raw"].get_xdata().tolist() == [0.01]
        assert axes.get_xlim()[0] > 1e-3
        assert [text.get_text() for text in axes.texts] == ["raw\n(< 10 ms)", "GRACE"]
        assert "| Raw features | < 0.01 | CPU |" in (tmp_path / "docs" / "results.md").read_text()

    def test_families_differ_without_colour(self):
        assert list(time_page.LOOKS) == list(paper.FAMILIES)
        assert len({marker for _, marker in time_page.LOOKS.values()}) == len(time_page.LOOKS)
        assert len({colour for colour, _ in time_page.LOOKS.values()}) == len(time_page.LOOKS)

    def test_a_panel_a_dataset_and_the_protocol_above(self, put, drawn, tmp_path):
        put("grace", 1.0, 0.8)
        put("grace", 1.0, 0.9, dataset="amazon-photo")
        write(tmp_path, ("amazon-photo", "cora"))
        assert [axes.get_title() for axes in drawn[0].axes] == ["Amazon-Photo", "Cora"]
        assert "random-10-10-80, mean ± standard deviation over 2 seeds" in drawn[0].get_suptitle()

    def test_every_point_has_its_name_and_no_name_covers_another(self, put, drawn, tmp_path):
        for place, method in enumerate(ALL):
            put(method, 1.0 + 0.05 * (place % 5), 0.80 + 0.003 * (place % 4))
        write(tmp_path)
        (axes,) = drawn[0].axes
        assert len(axes.texts) == len(ALL)
        canvas = FigureCanvasAgg(drawn[0])
        canvas.draw()
        boxes = [super(type(text), text).get_window_extent(canvas.get_renderer()) for text in axes.texts]
        for place, box in enumerate(boxes):
            assert box.count_overlaps(boxes[:place]) == 0, axes.texts[place].get_text()

    def test_the_same_data_make_the_same_files(self, put, tmp_path):
        for method, numbers in FRONT.items():
            put(method, *numbers)
        made = [time_page.write(tmp_path, tmp_path / out, ["cora"], 3) for out in ("a", "b")]
        assert [path.name for path in made[0]] == ["fig-time.svg", "fig-time.png", "fig-time.csv"]
        for first, second in zip(*made, strict=True):
            assert first.read_bytes() == second.read_bytes()
        ElementTree.parse(made[0][0])


class TestSection:
    def test_a_page_gets_it_once_at_its_end_and_then_in_its_place(self, put, drawn, tmp_path):
        page = tmp_path / "docs" / "results.md"
        page.parent.mkdir()
        page.write_text("# Results\n\nWords of a person.\n")
        put("grace", 1.234, 0.8)
        write(tmp_path)
        first = page.read_text()
        assert first.startswith("# Results\n\nWords of a person.\n\n## Accuracy against time\n<!-- fig-time -->\n![")
        assert "](figures/fig-time.png)" in first
        assert f"| Cora | GRACE | 1.2 | {H200} | 80.50 ± 0.71 |" in first
        page.write_text(first + "\n## After it\n")
        put("raw", 0.001, 0.6, device="cpu")
        write(tmp_path)
        again = page.read_text()
        assert again.count("Accuracy against time") == 1
        assert again.endswith("<!-- end of fig-time -->\n\n## After it\n")
        rows = [line for line in again.splitlines() if line.startswith("| Cora")]
        assert [line.split(" | ")[1] for line in rows] == ["Raw features", "GRACE"]

    def test_a_figure_of_some_graphs_leaves_the_page(self, put, drawn, tmp_path):
        put("grace", 1.0, 0.8)
        page = tmp_path / "docs" / "results.md"
        page.parent.mkdir()
        page.write_text("of all graphs")
        targets.reproduce(["fig-time"], Request(tmp_path, page.parent / "figures", datasets=["cora"]))
        assert page.read_text() == "of all graphs"

    def test_without_a_page_none_is_begun(self, put, drawn, tmp_path):
        put("grace", 1.0, 0.8)
        write(tmp_path)
        assert not (tmp_path / "docs" / "results.md").exists()


def test_what_is_timed_is_what_the_table_has():
    cells = targets.cells(["fig-time"], targets.Request())
    for dataset in paper.TIMED:
        for method in paper.TABLE_METHODS:
            evaluated, timed = Cell(method, dataset), paper.timed_cell(method, dataset)
            assert timed.fixed_settings == evaluated.fixed_settings
            assert {evaluated, timed} <= set(cells)
    assert len(cells) == 2 * len(paper.TIMED) * len(paper.TABLE_METHODS)
