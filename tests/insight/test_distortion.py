import csv

import pytest
import torch

from costa.errors import InputError
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition
from costa.insight import distortion
from costa.insight.bias import Bias


def found(relative, degree):
    """A distortion whose bias is known: vectors of length one, nothing random."""
    relative = torch.tensor(relative, dtype=torch.float64)
    zero = torch.zeros_like(relative)
    return distortion.Distortion(torch.tensor(degree), {"gnn_e": Bias(10, 4, zero + 1, relative, zero)})


class TestWords:
    def test_the_table_has_medians_by_degree_and_a_line_for_all(self):
        table = found([0.4, 0.2, 0.3, 0.1], [1, 1, 1, 7]).table()
        assert table == [["1", "3", "30.0%"], ["7–9", "1", "10.0%"], ["all", "4", "25.0%"]]

    @pytest.mark.parametrize(
        ("relative", "degree", "words"),
        [
            ([0.4, 0.35, 0.3, 0.25], [1, 2, 3, 4], ("strongly distort", "less the more neighbours", "-1.00")),
            ([0.06, 0.07, 0.08, 0.09], [1, 2, 3, 4], ("would distort", "more the more neighbours", "7.5%")),
            ([0.01, 0.02, 0.02, 0.01], [1, 2, 3, 4], ("hardly distort", "about equally at every degree", "1.5%")),
        ],
    )
    def test_the_conclusion_says_how_much_and_to_whom(self, relative, degree, words):
        sentence = found(relative, degree).conclusion()
        assert sentence.startswith("At these rates dropping edges would ")
        assert all(word in sentence for word in words)
        assert sentence.count(".") - sum(character == "." for word in words for character in word) <= 2

    def test_vectors_of_length_zero(self):
        zero = torch.zeros(3).double()
        nothing = distortion.Distortion(torch.tensor([1, 1, 2]), {"gnn_a": Bias(10, 4, zero, zero, zero)})
        assert "every vector of the encoder is zero" in nothing.conclusion()
        assert nothing.table()[-1] == ["all", "3", "–"]


class TestDistortion:
    graph = planted_partition(50, 2, 8, degree=4, seed=0)

    def test_what_has_no_rate_is_not_measured(self):
        model = distortion.untrained(self.graph, torch.device("cpu"))
        for rates, names in (((0.3, 0.0), ["gnn_e"]), ((0.0, 0.3), ["gnn_a"]), ((0.3, 0.2), [*distortion.COLUMNS])):
            measured = distortion.distortion(model, self.graph, edge_rate=rates[0], mask_rate=rates[1], draws=3)
            assert list(measured.biases) == names

    @pytest.mark.parametrize(("rates", "problem"), [((0, 0), "both rates are 0"), ((1.0, 0.1), "edge rate must be")])
    def test_bad_rates_get_a_sentence(self, rates, problem):
        model = distortion.untrained(self.graph, torch.device("cpu"))
        with pytest.raises(InputError, match=problem):
            distortion.distortion(model, self.graph, edge_rate=rates[0], mask_rate=rates[1], draws=3)


class TestCommand:
    def test_digits(self, costa, tmp_path):
        result = costa("bias", "digits", "--draws", 3, "--out", tmp_path / "bias", "--device", "cpu")
        assert result.code == 0, result.err
        lines = result.out.splitlines()
        assert lines[0].startswith("digits: 1,797 nodes")
        assert lines[3].split()[:2] == ["degree", "nodes"]
        assert any(line.split()[:2] == ["all", "1,797"] for line in lines)
        assert "At these rates dropping edges would" in result.out
        assert [line for line in lines if line.endswith(("bias.png", "nodes.csv"))] == lines[-2:]
        assert (tmp_path / "bias" / "bias.png").read_bytes().startswith(b"\x89PNG")

    def test_a_folder_keeps_its_names(self, costa, own_graph, tmp_path):
        result = costa(
            "bias", own_graph, "--draws", 3, "--edge-rate", 0.2, "--mask-rate", 0, "--out", tmp_path / "bias"
        )
        assert result.code == 0, result.err
        assert "attributes masked" not in result.out
        rows = list(csv.DictReader((tmp_path / "bias" / "nodes.csv").open()))
        assert rows[7]["node"] == "person 07"
        graph = load_graph(own_graph)
        assert [int(row["degree"]) for row in rows] == torch.bincount(graph.edge_index[1], minlength=60).tolist()

    def test_a_trained_encoder(self, costa, digits_run, tmp_path):
        out = ("--draws", 3, "--out", tmp_path / "bias", "--device", "cpu")
        trained = costa("bias", "digits", "--run", digits_run, *out)
        assert trained.code == 0, trained.err
        assert str(digits_run) in trained.out.splitlines()[0]
        assert trained.out.splitlines()[4:] != costa("bias", "digits", *out).out.splitlines()[4:]

    def test_a_run_on_other_features_is_refused(self, costa, digits_run, own_graph, tmp_path):
        result = costa("bias", own_graph, "--run", digits_run, "--draws", 3, "--out", tmp_path / "bias")
        assert result.code == 2
        assert "has 6 features" in result.err
        assert not (tmp_path / "bias").exists()

    @pytest.mark.parametrize("arguments", [("--edge-rate", 1), ("--edge-rate", 0, "--mask-rate", 0)])
    def test_bad_rates_are_refused(self, costa, tmp_path, arguments):
        result = costa("bias", "digits", *arguments, "--out", tmp_path / "bias")
        assert (result.code, result.err.startswith("costa: ")) == (2, True)
        assert not (tmp_path / "bias").exists()
