import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import beta

from costa.augment import make_sketch
from costa.augment.bounds import Guarantee, Statistics
from costa.graphs.synthetic import planted_partition
from reproduction import bounds, bounds_page, tables
from reproduction.targets import Request, Setup


@pytest.fixture
def small(monkeypatch):
    """A few draws, one spectrum, a small graph instead of Cora."""

    def load(name, data_dir=None):
        graph = planted_partition(60, 2, 8, seed=0)
        graph.name = name
        return graph

    monkeypatch.setattr(bounds, "load_graph", load)
    monkeypatch.setattr(bounds, "SPECTRA", {"flat": bounds.flat})
    monkeypatch.setattr(bounds, "SKETCHES", {name: bounds.SKETCHES[name] for name in ("gaussian", "svd", "noise")})
    for name, value in (("ROWS", (16,)), ("SMALL_ROWS", (4, 16)), ("DRAWS", 20), ("SMALL_DRAWS", 30)):
        monkeypatch.setattr(bounds, name, value)
    original = bounds.presets.resolve
    monkeypatch.setattr(bounds.presets, "resolve", lambda *a, **k: original(*a, **k, epochs=1))


def setup(said=None):
    announce = (lambda text: None) if said is None else said.append
    return Setup(torch.device("cpu"), jobs=1, announce=announce)


class TestSpectra:
    def test_they_are_what_they_are_called(self):
        one, flat, dominant = (Statistics(make()) for make in bounds.SPECTRA.values())
        assert one.stable_rank == pytest.approx(1, abs=1e-6)
        assert flat.stable_rank == pytest.approx(16, rel=1e-5)
        assert float(dominant.shares.max()) == pytest.approx(0.99, abs=1e-6)

    def test_a_line_counts_its_own_draws(self):
        h = bounds.rank_one()
        line = bounds.measure_one("rank-one", "gaussian", 16, h, draws=50)
        counts = {failed["eps"]: failed["count"] for failed in line["failures"]}
        assert line["draws"] == 50
        assert sorted(counts.values(), reverse=True) == list(counts.values())
        # the median is an error that half of the draws exceed
        assert [count >= 25 for eps, count in counts.items()] == [eps <= line["median"] for eps in counts]
        guarantee = Guarantee(Statistics(h), make_sketch("gaussian", k=16, center=False))
        assert line["proved_eps"] == guarantee.proved_eps(0.05)
        assert [failed["stated"] for failed in line["failures"]] == [guarantee.stated(eps) for eps in bounds.EPS]

    def test_noise_is_as_strong_as_h(self):
        line = bounds.measure_one("flat", "noise", 0, 7 * bounds.flat(), draws=20)
        assert line["rows"] == 200
        assert line["measured_moment"] == pytest.approx(line["second_moment"], rel=0.1)


class TestStore:
    def test_what_is_there_is_not_measured_again(self, small, tmp_path):
        request, said = Request(tmp_path, tmp_path / "docs" / "figures"), []
        bounds.measure(request, setup(said))
        folder = tmp_path / "experiments" / "bounds"
        lines = {path.stem: path.read_text().splitlines() for path in folder.iterdir()}
        assert {name: len(rows) for name, rows in lines.items()} == {"cora-centred": 4, "cora-uncentred": 4, "flat": 5}
        assert json.loads(lines["cora-centred"][0])["settings"]["train.epochs"] == 1
        assert said[0].startswith("training costa-sv on cora")
        assert len(said) == 14
        again = []
        bounds.measure(request, setup(again))
        assert again == []
        (folder / "flat.jsonl").unlink()
        bounds.measure(request, setup(again))
        assert len(again) == 5

    def test_the_target_from_the_store(self, small, reproduction, tmp_path):
        out = tmp_path / "docs" / "figures"
        arguments = ("fig-bounds", "--no-run", "--results", tmp_path, "--out", out)
        missing = reproduction(*arguments)
        assert missing.code == 2
        assert "make them with `python -m reproduction fig-bounds`" in missing.err
        bounds.measure(Request(tmp_path), setup())
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
