import numpy as np
import pytest
import torch

from costa import runs
from costa.augment import make_sketch
from costa.augment.bounds import Guarantee, Statistics, gaussian_rows
from costa.errors import InputError
from costa.insight import sketch_rows


class TestSurvey:
    H = torch.randn(80, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([4.0, 2, 1, 1, 1, 1]) + 3

    def test_it_is_about_the_centred_h(self):
        found = sketch_rows.survey(self.H, ["gaussian"], [8, 32])
        centred = Statistics(self.H - self.H.mean(0))
        assert (found.nodes, found.columns) == (80, 6)
        assert found.largest == pytest.approx(centred.largest)
        assert found.eps == pytest.approx(centred.largest / 4)
        guarantee = Guarantee(centred, make_sketch("gaussian", k=32, center=False))
        assert found.rows[1].proved_eps == pytest.approx(guarantee.proved_eps(0.05))
        assert found.rows[1].q95 < found.rows[0].q95

    def test_the_smallest_k_that_is_enough(self):
        found = sketch_rows.survey(self.H, ["gaussian"], [256, 16, 2048], eps=0.2)
        assert [row.k for row in found.rows] == [16, 256, 2048]
        enough = next(row.k for row in found.rows if row.q95 <= 0.2)
        assert found.advice[0].startswith(
            f"Take k = {enough} for gaussian: 95 of 100 draws keep the covariance within 0.2"
        )
        assert f"stated by the lemma for k ≥ {gaussian_rows(0.2, 0.05):,})" in found.advice[0]

    @pytest.mark.parametrize(("k", "says"), [(2048, True), (64, False)])
    def test_more_rows_than_nodes_are_no_sketch(self, k, says):
        (advice,) = sketch_rows.survey(self.H, ["gaussian"], [k], eps=0.5).advice
        assert advice.startswith(f"Take k = {k:,}")
        assert advice.endswith("more than the 80 nodes: sketch.kind = none has fewer rows and is exact.") == says

    def test_where_no_k_is_enough_it_says_about_how_many_rows(self):
        found = sketch_rows.survey(self.H, ["countsketch"], [16], eps=0.1)
        about = int(found.advice[0].split("about k = ")[1].split(" ")[0].replace(",", ""))
        assert found.advice[0].startswith("None of these k is large enough for countsketch: about k = ")
        assert sketch_rows.survey(self.H, ["countsketch"], [about], eps=0.1).rows[0].q95 == pytest.approx(0.1, rel=0.25)

    def test_svd_says_its_k_exactly(self):
        found = sketch_rows.survey(self.H, ["svd"], [2], eps=0.1)
        sigma = np.linalg.svd(self.H.numpy() - self.H.numpy().mean(0), compute_uv=False)
        k = int((sigma**2 / (sigma**2).sum() > 0.1).sum())
        assert found.advice[0].startswith(
            f"Take k = {k} for svd: it is the smallest k that keeps the covariance within 0.1"
        )
        assert found.rows[0].draws == 1

    def test_proved_rows_are_the_fewest(self):
        known = Statistics(self.H)
        for kind in ("gaussian", "rademacher", "selection"):
            k = sketch_rows.proved_rows(known, kind, 0.3)
            proved = [Guarantee(known, make_sketch(kind, k=rows, center=False)).proved(0.3) for rows in (k - 1, k)]
            assert proved[0] > 0.05 >= proved[1]

    def test_bad_requests(self):
        with pytest.raises(InputError, match="no k to choose"):
            sketch_rows.survey(self.H, ["noise"], [4])
        with pytest.raises(InputError, match="above 0 and below 1"):
            sketch_rows.survey(self.H, ["gaussian"], [4], eps=1.5)
        with pytest.raises(InputError, match="there is no sketch 'magic'"):
            sketch_rows.survey(self.H, ["magic"], [4])


def test_of_a_model_with_hops_the_codes_are_sketched(hops_run):
    folder, graph = hops_run
    h = sketch_rows.features_of(graph, torch.device("cpu"), run=folder)
    model = runs.load_model(folder, torch.device("cpu"))
    assert h.shape == (50, 2 * 6)
    model.encoder.eval()
    torch.testing.assert_close(h, model.encoder(model.inputs(graph).blocks).detach())
