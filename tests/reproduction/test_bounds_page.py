from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import beta

from reproduction import bounds, bounds_page, tables
from reproduction.targets import Request, Setup


class TestPage:
    def line(self, **changed):
        return bounds.measure_one("flat", "gaussian", 4, bounds.flat(), draws=20) | changed

    def test_intervals_are_clopper_and_pearsons(self):
        low, high = bounds_page.interval(3, 40)
        assert (low, high) == pytest.approx((beta.ppf(0.025, 3, 38), beta.ppf(0.975, 4, 37)))

    def test_a_false_statement_is_counted(self):
        failed = {"eps": 0.1, "count": 20, "stated": 0.5, "proved": 1.0}
        table = bounds_page.failures([self.line(failures=[failed, failed | {"count": 9}, failed | {"stated": 1.0}])])
        row = next(line for line in table.splitlines() if line.startswith("| gaussian"))
        assert "| 1 of 2 | flat spectrum, k = 4, ε = 0.1: 100.0% failed (83.2 to 100.0), stated 50.0% | 0 |" in row

    def test_a_p_without_a_lemma_is_held_against_the_gaussian_one(self):
        failed = {"eps": 0.5, "count": 0, "stated": None, "proved": 1.0}
        for sketch, stated in (("countsketch", np.exp(-0.25 * 4 / 8)), ("selection as printed", None)):
            (point,) = bounds_page.points([self.line(sketch=sketch, failures=[failed])])
            assert point["stated"] == (stated if stated is None else pytest.approx(stated, rel=1e-4))


def test_the_target_from_the_store(few_draws, reproduction, tmp_path):
    out = tmp_path / "docs" / "figures"
    arguments = ("fig-bounds", "--no-run", "--results", tmp_path, "--out", out)
    missing = reproduction(*arguments)
    assert missing.code == 2
    assert "make them with `python -m reproduction fig-bounds`" in missing.err
    bounds.measure(Request(tmp_path), Setup(torch.device("cpu"), jobs=1))
    page = out.parent / "theory.md"
    page.parent.mkdir()
    page.write_text("\n".join(f"<!-- {name} -->\n<!-- end of {name} -->" for name in bounds_page.TABLES))
    assert reproduction(*arguments).code == 0
    assert sorted(path.name for path in out.iterdir()) == [f"fig-bounds.{kind}" for kind in ("csv", "png", "svg")]
    for name, table in bounds_page.TABLES.items():
        assert table(bounds.load(["cora"], tmp_path)) in page.read_text(), name
    page.write_text("of other graphs")
    assert reproduction(*arguments, "--datasets", "cora").code == 0
    assert page.read_text() == "of other graphs"


def test_the_page_is_what_the_store_gives(tmp_path):
    root = Path(__file__).parents[2]
    page = tmp_path / "theory.md"
    committed = (root / "docs" / "theory.md").read_text(encoding="utf-8")
    page.write_text(committed, encoding="utf-8")
    lines = bounds.load(bounds.DATASETS, root / "results")
    for name, table in bounds_page.TABLES.items():
        tables.fill(page, name, table(lines))
    assert page.read_text(encoding="utf-8") == committed
    points = bounds_page.points(lines)
    drawn = (root / "docs" / "figures" / "fig-bounds.csv").read_text(encoding="utf-8").splitlines()
    assert len(drawn) == len(points) + 1
    assert drawn[1].split(",")[:3] == ["cora-centred", "gaussian", "16"]
