import re
from pathlib import Path

import pytest

from reproduction.bias import page, targets

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "bias.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_store_gives(tmp_path):
    copy = tmp_path / "bias.md"
    copy.write_text(TEXT, encoding="utf-8")
    page.write(page.TABLES, ROOT / "results", tmp_path / "figures")
    assert copy.read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize("name", targets.PARTS)
def test_the_figures_data_are_what_the_store_gives(tmp_path, monkeypatch, name):
    from reproduction import figures
    from reproduction.targets import Request

    monkeypatch.setattr(figures, "_save", lambda figure, stem: [])
    targets.PARTS[name].draw(Request(ROOT / "results", tmp_path))
    committed = ROOT / "docs" / "figures" / f"{name}.csv"
    assert (tmp_path / f"{name}.csv").read_bytes() == committed.read_bytes()


def test_its_figures_and_links_are_there():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target


def test_it_names_every_target():
    for name in targets.PARTS:
        assert name in TEXT
