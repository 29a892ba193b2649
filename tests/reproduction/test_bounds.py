import json

import pytest
import torch

from costa.augment import make_sketch
from costa.augment.bounds import Guarantee, Statistics
from reproduction import bounds
from reproduction.targets import Request, Setup


def setup(said):
    return Setup(torch.device("cpu"), jobs=1, announce=said.append)


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
    def test_what_is_there_is_not_measured_again(self, few_draws, tmp_path):
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
