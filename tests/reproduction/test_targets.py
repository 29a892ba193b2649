import re
from dataclasses import replace
from pathlib import Path

import pytest

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings import presets
from reproduction import paper, targets
from reproduction.targets import Request


class TestRequests:
    def test_unknown_names_are_refused_before_anything_is_done(self, tmp_path):
        meant = re.escape("unknown target 'fig-x' (did you mean 'fig-time'?); there are: table-main, table-citation")
        with pytest.raises(InputError, match=meant):
            targets.reproduce(["fig-runtime", "fig-x"], Request(tmp_path, tmp_path / "figures"))
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
            "parts": set(),
            "defaults": set(),
            "scaling": set(),
        }

    def test_a_second_time_needs_the_first_and_a_store_of_its_own(self):
        first = targets.cells(["table-main", "table-citation"], Request(methods=["costa-sv", "costa-mv"]))
        first = [cell for cell in first if cell.preset != "none"]
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
        assert len(some) == 2 + len(paper.RATIOS)  # as it was tuned, and the defaults

    def test_cells_of_one_dataset_follow_each_other(self):
        names = [cell.dataset for cell in targets.cells(["table-sketches", "table-ablation", "fig-ratio"], Request())]
        assert names == sorted(names, reverse=True)  # Cora comes first in the paper


@pytest.mark.parametrize("target", targets.TARGETS)
def test_the_settings_of_every_cell_agree(target):
    graph = planted_partition(40, 2, 8, seed=0)
    for cell in targets.cells([target], Request()):
        graph.name = cell.dataset
        presets.resolve(get_method(cell.method), graph, preset=cell.preset, given=dict(cell.given))
