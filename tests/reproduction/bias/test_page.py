import re
from pathlib import Path

import pytest

from reproduction import figures
from reproduction.bias import page
from reproduction.tables import write_page
from reproduction.targets import TARGETS, Request

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "bias.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_store_gives(tmp_path):
    copy = tmp_path / "bias.md"
    copy.write_text(TEXT, encoding="utf-8")
    write_page(copy, page.TABLES, ROOT / "results")
    assert copy.read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize("name", page.OF_FIGURE)
def test_the_figures_data_are_what_the_store_gives(tmp_path, monkeypatch, name):
    monkeypatch.setattr(figures, "_save", lambda figure, stem: [])
    TARGETS[name].make(Request(ROOT / "results", tmp_path / "figures"))
    committed = ROOT / "docs" / "figures" / f"{name}.csv"
    assert (tmp_path / "figures" / f"{name}.csv").read_bytes() == committed.read_bytes()


def test_its_figures_and_links_are_there():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target


def test_it_names_every_target():
    for name in page.OF_FIGURE:
        assert name in TEXT
