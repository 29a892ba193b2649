import re

import pytest

from costa.methods import get_method
from costa.settings import presets
from reproduction import grid, pages, paper, targets
from reproduction.grid import Cell
from reproduction.targets import Request


@pytest.fixture
def chosen(monkeypatch):
    """As if one view had strictly chosen settings for Cora."""
    real = presets.published
    monkeypatch.setattr(
        presets,
        "published",
        lambda name, method: ["cora"] if (name, method) == ("strict", "costa-sv") else real(name, method),
    )
    load = presets.load_preset
    monkeypatch.setattr(
        presets,
        "load_preset",
        lambda name, method, dataset: {"loss.tau": 0.9} if name == "strict" else load(name, method, dataset),
    )


def cells(table):
    return [re.split(r"\s*\|\s*", line.strip()[1:-1].strip()) for line in table.splitlines()]


def test_a_score_is_the_mean_over_the_pairs_and_says_what_is_missing(add, tmp_path):
    cell = Cell("costa-sv", "cora", "none")
    assert pages.score(cell, tmp_path, 2) == "not measured"
    add(tmp_path, cell, 0)
    assert pages.score(cell, tmp_path, 1) == "80.00"
    assert pages.score(cell, tmp_path, 2) == "80.00 (1 seed)"
    add(tmp_path, cell, 1)
    assert pages.score(cell, tmp_path, 2) == "80.50 ± 0.71"
    add(tmp_path, cell, 2, status="collapsed")
    assert pages.score(cell, tmp_path, 3) == "80.50 ± 0.71 (1 collapsed)"
    alone = Cell("costa-sv", "dblp", "none")
    add(tmp_path, alone, 0, status="diverged")
    assert pages.score(alone, tmp_path, 1) == "1 diverged"


def test_each_row_has_its_settings_and_its_protocol(add, tmp_path, chosen):
    add(tmp_path, Cell("costa-sv", "cora"), 0, accuracy=0.5)
    add(tmp_path, Cell("costa-sv", "cora", "strict"), 0, accuracy=0.6)
    add(tmp_path, Cell("costa-mv", "cora", "paper"), 0, accuracy=0.7)
    add(tmp_path, Cell("raw", "cora"), 0, accuracy=0.4)
    table = cells(pages.main_table(paper.CITATION, tmp_path, 1))
    assert table[0] == ["method", "", "Cora", "CiteSeer", "PubMed", "DBLP"]
    rows = {(line[0], line[1]): line[2:] for line in table[2:]}
    assert rows["COSTA, one view", "paper"] == ["84.3 ± 0.3", "72.8 ± 0.3", "86.2 ± 0.1", "84.3 ± 0.1"]
    assert rows["COSTA, one view", "ours"] == ["50.00", "not measured", "not measured", "not measured"]
    assert rows["COSTA, one view", "ours, strict"] == ["60.00", "", "", ""]
    assert rows["COSTA, two views", "published settings"] == ["70.00", "not measured", "", ""]
    assert rows["Raw features", "ours"][0].startswith("40.00")
    assert rows["Raw features", "ours, 2% labels"][0].startswith("40.00")
    assert ("Raw features", "published settings") not in rows
    assert ("DGI", "ours, strict") not in rows  # which was not tuned
    assert rows["COSTA, one view", "settings"][0].endswith("`strict/costa-sv/cora.toml`")


def test_a_tuned_method_stands_beside_its_own_encoder_untrained(add, tmp_path, two_tuned):
    add(tmp_path, paper.untrained_cell("costa-sv", "cora"), 0, accuracy=0.45)
    rows = {tuple(line[:2]): line[2:] for line in cells(pages.main_table(paper.CITATION, tmp_path, 1))}
    assert rows["COSTA, one view", "its encoder, untrained"] == ["45.00", "", "", ""]
    assert ("COSTA, two views", "its encoder, untrained") not in rows  # which was not tuned


def test_wikics_says_that_it_was_not_measured(tmp_path):
    rows = cells(pages.main_table(paper.MAIN, tmp_path, 1))
    assert {line[2] for line in rows if line[1] == "ours"} == {"not measured"}


def test_but_where_it_is_run_it_is_shown(add, tmp_path):
    add(tmp_path, Cell("costa-sv", "wikics"), 0)
    add(tmp_path, paper.varied_cell("sketches", "svd", "wikics"), 0)
    rows = {tuple(line[:2]): line[2] for line in cells(pages.main_table(paper.MAIN, tmp_path, 1))}
    assert rows["COSTA, one view", "ours"] == "80.00"
    assert [line[-1] for line in cells(pages.side_by_side("sketches", tmp_path, 1)) if line[0] == "SVD"] == ["80.00"]


@pytest.mark.parametrize(
    ("name", "cell", "first"),
    [
        ("table-sketches", paper.varied_cell("sketches", "svd", "cora"), ["SVD", "82.69"]),
        ("table-ablation", paper.varied_cell("ablation", "graph", "cora"), ["✓", "×", "82.13"]),
    ],
)
def test_ablations_stand_beside_the_paper(add, tmp_path, name, cell, first):
    add(tmp_path, cell, 0)
    add(tmp_path, cell, 1)
    table = cells(pages.TABLES[name](tmp_path, 2))
    (line,) = [line for line in table if line[: len(first)] == first]
    assert line[len(first)] == "80.50 ± 0.71"
    assert line[-1] == "not measured"
    assert len({len(line) for line in table}) == 1


def test_the_overview_has_the_papers_number_in_brackets(add, tmp_path):
    add(tmp_path, Cell("costa-mv", "cora"), 0, accuracy=0.7)
    add(tmp_path, Cell("costa-mv", "cora"), 1, accuracy=0.8)
    table = cells(pages.overview(tmp_path, 2))
    assert table[0][:3] == ["method", "Cora", "CiteSeer"]
    assert len(table[0]) == 1 + len(paper.MEASURED)
    rows = {line[0]: line[1:] for line in table[2:]}
    assert list(rows) == [get_method(name).title for name in paper.TABLE_METHODS]
    assert rows["COSTA, two views"][:2] == ["75.50 (84.3)", "not measured (72.9)"]
    assert rows["GMI"][-2:] == ["not measured (out of memory)"] * 2
    assert rows["BGRL"][0] == "not measured"


def test_the_overview_says_what_collapsed_and_on_how_few_seeds_a_row_stands(add, tmp_path):
    for seed in range(2):
        add(tmp_path, Cell("costa-mv", "cora"), seed, accuracy=0.7)
        add(tmp_path, Cell("gae", "cora"), seed, accuracy=0.6)
    add(tmp_path, Cell("costa-mv", "cora"), 2, status="collapsed")
    rows = {line[0]: line[1:] for line in cells(pages.overview(tmp_path, 3))}
    assert rows["COSTA, two views (1 collapsed)"][0] == "70.50 (84.3)"
    assert rows["GAE (2 seeds)"][:2] == ["60.50 (76.9)", "not measured (60.6)"]


def test_rivals_are_compared_split_by_split(add, tmp_path):
    for seed, (ours, other) in enumerate([(0.80, 0.79), (0.60, 0.57)]):
        add(tmp_path, Cell("costa-mv", "cora"), seed, accuracy=ours)
        add(tmp_path, Cell("gae", "cora"), seed, accuracy=other)
    add(tmp_path, Cell("raw", "cora"), 0, accuracy=0.5)  # one model, and every split was tested with it
    table = cells(pages.rivals(tmp_path, 2))
    assert table[0][:2] == ["minus COSTA, two views", "Cora"]
    rows = {line[0]: line[1:] for line in table[2:]}
    assert list(rows) == [get_method(name).title for name in paper.TABLE_METHODS[:-1]]
    assert rows["GAE"][:2] == ["−2.00 ± 1.00", "not measured"]
    assert rows["Raw features"][0].startswith("−")
    assert "seed" not in rows["Raw features"][0]


def test_a_second_time_is_compared_with_the_first_seed_by_seed(add, tmp_path):
    for preset, protocol, gains in (("tuned", pages.DEFAULT, (0.01, 0.03)), ("strict", pages.STRICT, (0.0, -0.02))):
        cell = Cell("costa-mv", "cora", preset)
        for seed, gain in enumerate(gains):
            add(tmp_path, cell, seed, accuracy=0.7, only=protocol)
            add(tmp_path, paper.again(cell), seed, accuracy=0.7 + gain, only=protocol)
    rows = {tuple(line[:2]): line[2:] for line in cells(pages.again(tmp_path, 2))[2:]}
    assert rows["COSTA, two views", "ours"][:2] == ["+2.00 ± 1.00", "not measured"]
    assert rows["COSTA, two views", "ours, strict"][0] == "−1.00 ± 1.00"
    # none are published for PubMed, nor for one view
    assert rows["COSTA, two views", "published settings"][1:3] == ["not measured", ""]
    assert ("COSTA, one view", "published settings") not in rows


def test_a_difference_is_that_of_runs_with_one_seed(add, tmp_path):
    first, second = Cell("costa-sv", "cora", "none"), Cell("costa-sv", "cora", "none", (("loss.tau", 0.3),))
    assert pages.difference(first, second, tmp_path, 4) == "not measured"
    for seed, (ours, other) in enumerate([(0.80, 0.79), (0.60, 0.57)]):
        add(tmp_path, first, seed, accuracy=ours)
        add(tmp_path, second, seed, accuracy=other)
    assert pages.difference(first, second, tmp_path, 2) == "+2.00 ± 1.00"
    assert pages.difference(second, first, tmp_path, 1) == "−1.00"
    add(tmp_path, first, 2)  # which the second has not
    add(tmp_path, first, 3)
    add(tmp_path, second, 3, status="collapsed")
    assert pages.difference(first, second, tmp_path, 4) == "+2.00 ± 1.00 (2 seeds)"


def test_the_page_is_begun_and_its_places_filled(add, tmp_path):
    request = Request(tmp_path / "results", tmp_path / "docs" / "figures", seeds=1)
    add(request.results, paper.varied_cell("sketches", "gaussian", "cora"), 0)
    page = tmp_path / "docs" / "results.md"
    assert targets.reproduce(["table-sketches"], request) == [page]
    text = page.read_text()
    assert "| random projection | 84.25 | 80.00 |" in text
    assert text.count("not measured") > 3  # the other tables' places
    page.write_text(text.replace("# Results", "# Results\n\nWords of a person."))
    targets.reproduce(["table-main"], request)
    assert "Words of a person." in page.read_text()
    assert "| COSTA, one view | paper | 79.03 ± 0.05 |" in page.read_text()


def test_every_cell_of_a_target_is_one_that_its_table_shows(add, tmp_path):
    """Runs that a target makes must be found by the page: fill the store by its cells, and nothing is missing."""
    request = Request(tmp_path, tmp_path / "docs" / "figures", seeds=1)
    for name in pages.TABLES:
        for cell in targets.cells([name], request):
            add(tmp_path, cell, 0)
            assert list(grid.find(cell, tmp_path, 1)) == [0]
        table = pages.TABLES[name](tmp_path, 1)
        for line in cells(table)[2:]:
            measured = [number for number in line if number == "not measured"]
            assert len(measured) <= 1, line  # WikiCS
