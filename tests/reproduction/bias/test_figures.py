import csv
import xml.etree.ElementTree as ElementTree

import pytest

from costa.errors import InputError
from reproduction import figures as look
from reproduction.bias import page, study
from reproduction.targets import TARGETS, Request, reproduce


@pytest.fixture
def drawn(monkeypatch):
    """The figures, instead of their files."""
    kept = []
    monkeypatch.setattr(look, "_save", lambda figure, stem: kept.append(figure) or [])
    return kept


def rows(out, name):
    return list(csv.DictReader((out / f"{name}.csv").open(encoding="utf-8")))


@pytest.mark.parametrize("name", page.OF_FIGURE)
def test_a_target_is_drawn_from_the_store_alone_and_always_the_same(small, tmp_path, name):
    assert TARGETS[name].measure is not None
    made = [reproduce([name], Request(small, tmp_path / side / "figures")) for side in ("a", "b")]
    figure = [path for path in made[0] if path.suffix != ".md"]
    assert [path.name for path in figure] == [f"{name}.{kind}" for kind in ("svg", "png", "csv")]
    for first, second in zip(*made, strict=True):
        assert first.read_bytes() == second.read_bytes()
    ElementTree.parse(figure[0])
    assert figure[1].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", page.OF_FIGURE)
def test_an_empty_store_names_the_command_that_fills_it(small, tmp_path, name):
    with pytest.raises(InputError, match=f"measure it with `python -m reproduction {name}`"):
        reproduce([name], Request(tmp_path, tmp_path / "figures"))
    assert not (tmp_path / "figures").exists()


def test_a_histogram_counts_every_node_of_every_seed(small, tmp_path, drawn):
    reproduce(["fig-bias-distribution"], Request(small, tmp_path / "figures"))
    table = rows(tmp_path / "figures", "fig-bias-distribution")
    lines = study.read(small, "nodes", "cora")
    for variant in ("nn_a", "gnn_ea"):
        counted = sum(
            int(row["nodes"])
            for row in table
            if (row["encoder"], row["variant"], row["of"]) == ("trained", variant, "noise")
        )
        stored = [
            sum(line["noise"]["histogram"])
            for line in lines
            if (line["encoder"], line["variant"]) == ("trained", variant)
        ]
        assert counted == sum(stored)
    assert len(drawn[0].axes) == 8


def test_bias_against_degree_is_drawn_with_its_correlation(small, tmp_path, drawn):
    reproduce(["fig-bias-degree"], Request(small, tmp_path / "figures"))
    table = rows(tmp_path / "figures", "fig-bias-degree")
    selected = [
        row for row in table if (row["encoder"], row["variant"], row["of"]) == ("untrained", "gnn_e", "augmented")
    ]
    axes = drawn[0].axes[0]
    (line,) = [container.lines[0] for container in axes.containers if container.get_label().startswith("gnn_e,")]
    assert line.get_ydata().tolist() == [float(row["median"]) for row in selected]
    rho = [
        entry["augmented"]["correlation"]["relative_bias"]
        for entry in study.read(small, "nodes", "cora")
        if (entry["encoder"], entry["variant"]) == ("untrained", "gnn_e")
    ]
    assert float(selected[0]["spearman"]) == pytest.approx(sum(rho) / 2, rel=1e-3)
    assert f"gnn_e, ρ = {float(selected[0]['spearman']):+.2f}" in axes.get_legend_handles_labels()[1]


def test_degrees_are_shares_of_all_nodes(small, tmp_path, drawn):
    reproduce(["fig-degrees"], Request(small, tmp_path / "figures"))
    cora = [row for row in rows(tmp_path / "figures", "fig-degrees") if row["dataset"] == "cora"]
    assert sum(int(row["nodes"]) for row in cora) == 80
    assert float(cora[0]["share_at_least"]) == 1.0
    assert float(cora[-1]["share_at_least"]) == pytest.approx(int(cora[-1]["nodes"]) / 80)


def test_tables_go_to_their_places_and_words_stay(small, tmp_path, drawn):
    request = Request(small, tmp_path / "docs" / "figures")
    (path,) = [path for path in reproduce(["fig-degrees"], request) if path.suffix == ".md"]
    path.write_text(path.read_text().replace("# Bias", "# Bias\n\nWords of a person."))
    reproduce(list(page.OF_FIGURE), request)
    text = path.read_text()
    assert "Words of a person." in text
    assert "not measured" not in text
    assert "| untrained | gnn_e: GCN, edges dropped |" in text
    assert "| Cora | 54% |" in text
    for name, table in page.TABLES.items():
        assert table(small) in text, name


def test_another_dataset_leaves_the_page_alone(small, tmp_path):
    request = Request(small, tmp_path / "docs" / "figures", datasets=["cora"])
    assert {path.suffix for path in reproduce(["fig-degrees"], request)} == {".svg", ".png", ".csv"}
