import pytest
import torch

from costa.errors import InputError
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


def test_a_run_with_hops_is_told_that_it_augments_no_graph(hops_run):
    folder, graph = hops_run
    with pytest.raises(InputError, match=r"was trained with encoder\.kind = hops, which augments no graph"):
        distortion.trained(folder, graph, torch.device("cpu"))


def test_pictures_and_numbers_are_written(tmp_path):
    graph = planted_partition(50, 2, 8, degree=4, seed=0)
    model = distortion.untrained(graph, torch.device("cpu"))
    measured = distortion.distortion(model, graph, edge_rate=0.3, mask_rate=0.2, draws=3)
    picture, nodes = distortion.write(measured, graph, tmp_path / "new")
    assert picture.read_bytes().startswith(b"\x89PNG")
    head, *rows = nodes.read_text().splitlines()
    assert head == "node,degree,edges dropped: bias/length,attributes masked: bias/length,both: bias/length"
    assert len(rows) == 50
