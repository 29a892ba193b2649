import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from costa import settings
from costa.methods import get_method
from costa.settings import presets
from reproduction import grid, paper
from reproduction.grid import Cell

REPORTED = tomllib.loads((Path(paper.__file__).parent / "paper.toml").read_text(encoding="utf-8"))


class TestReported:
    def test_each_is_an_accuracy_in_percent_or_out_of_memory(self):
        found = [number for table in REPORTED.values() for row in table.values() for number in row.values()]
        numbers = [number for number in found if number != "out of memory"]
        assert len(found) - len(numbers) == 2
        for number in numbers:
            mean, *deviation = re.fullmatch(r"(\d\d\.\d\d?)(?: ± (\d\.\d\d?))?", number).groups()
            assert 40 < float(mean) < 100, number
            assert [float(other) < 1 for other in deviation if other] in ([], [True]), number

    @pytest.mark.parametrize(
        ("table", "rows", "datasets"),
        [
            ("main", paper.TABLE_METHODS, paper.MAIN),
            ("citation", paper.TABLE_METHODS, paper.CITATION),
            ("sketches", list(paper.VARIATIONS["sketches"]), paper.ABLATED),
            ("ablation", list(paper.VARIATIONS["ablation"]), paper.ABLATED),
        ],
    )
    def test_each_stands_in_a_row_and_a_column_that_are_reproduced(self, table, rows, datasets):
        assert set(REPORTED[table]) <= set(rows)
        for row, numbers in REPORTED[table].items():
            assert set(numbers) == set(datasets), row
            assert [paper.reported(table, row, dataset) for dataset in numbers] == list(numbers.values())


class TestVariations:
    @pytest.mark.parametrize("experiment", paper.VARIATIONS)
    def test_a_cell_differs_from_the_tuned_one_in_what_its_key_says(self, experiment):
        for dataset in ("cora", "citeseer"):
            tuned = paper.varied_cell(experiment, "tuned", dataset)
            assert tuned == Cell("costa-sv", dataset)
            before = settings.flatten(get_method("costa-sv").Settings()) | tuned.fixed_settings
            cells = {key: paper.varied_cell(experiment, key, dataset) for key in paper.VARIATIONS[experiment]}
            assert len(set(cells.values())) == len(cells)
            for key, cell in cells.items():
                said = dict(paper.VARIATIONS[experiment][key])
                assert dict(cell.given).items() >= said.items()
                assert cell == replace(tuned, given=cell.given, experiment=experiment)
                changed = {name for name, value in cell.fixed_settings.items() if value != before[name]}
                # an SVD may also need fewer rows
                assert changed <= said.keys() | ({"sketch.k"} if key == "svd" else set())

    def test_what_is_compared_differs_in_one_thing(self):
        for dataset in paper.CITATION:
            for title, (first, second) in paper.comparisons(dataset).items():
                changed = {
                    key for key in first.fixed_settings if first.fixed_settings[key] != second.fixed_settings.get(key)
                }
                groups = {key.split(".")[0] for key in changed}
                assert len(groups) == 1 + (title == "the features augmented, minus the graph"), title

    @pytest.mark.parametrize(("ratio", "width", "rows"), [(0.5, 128, 128), (0.01, 128, 0), (0.5, 2000, 0)])
    def test_the_svd_gets_as_many_rows_as_it_can_have(self, monkeypatch, ratio, width, rows):
        chosen = {"sketch.ratio": ratio, "encoder.width": width}
        monkeypatch.setattr(presets, "load_preset", lambda name, method, dataset: chosen)
        assert paper.varied_cell("sketches", "svd", "cora").fixed_settings["sketch.k"] == rows
        assert paper.varied_cell("sketches", "gaussian", "cora").fixed_settings["sketch.k"] == 0


def test_a_tuned_method_has_its_own_encoder_untrained(two_tuned):
    cell = paper.untrained_cell("costa-sv", "cora")
    assert cell.fixed_settings["encoder.width"] == 64
    assert cell.fixed_settings["features.scaling"] == "rows"
    assert cell in paper.main_cells(["cora"])
    assert paper.untrained_cell("dgi", "cora") is None  # an encoder of one layer


def test_timed_runs_are_few():
    assert len(paper.timed_cell("raw", "cora").seeds(20)) == grid.TIMINGS
    assert len(paper.timed_cell("costa-sv", "cora").seeds(2)) == 2
