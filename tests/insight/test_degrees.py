import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch_geometric.data import Data

from costa.graphs import load_graph
from costa.insight import degrees


def test_a_degree_counts_neighbours_but_not_oneself():
    edges = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
    assert degrees.degrees(Data(edge_index=edges, num_nodes=4)).tolist() == [1, 2, 1, 0]


def test_degrees_on_disk_are_those_in_memory():
    assert torch.equal(degrees.degrees(load_graph("digits", memory="1GiB")), degrees.degrees(load_graph("digits")))


def test_every_node_is_in_one_bin():
    degree = torch.tensor([0, 1, 1, 4, 5, 6, 99, 100, 5000])
    found = degrees.bins(degree)
    assert [name for name, _ in found] == ["0", "1", "4", "5–6", "50–99", "100–199", "≥ 1,000"]
    assert torch.equal(torch.stack([inside for _, inside in found]).sum(0), torch.ones(9, dtype=torch.int64))


def test_quartiles_of_a_bin_leave_out_what_is_no_number():
    degree = torch.tensor([1, 1, 1, 1, 1, 2])
    values = torch.tensor([0.0, 1.0, 2.0, 3.0, float("nan"), float("nan")])
    first, second = degrees.by_degree(degree, values)
    assert (first["degree"], first["nodes"], first["quartiles"]) == ("1", 5, [0.75, 1.5, 2.25])
    assert np.isnan(second["quartiles"]).all()


def test_rank_correlation_is_spearman_s():
    generator = torch.Generator().manual_seed(0)
    degree = torch.randint(1, 6, (50,), generator=generator)
    values = torch.rand(50, generator=generator, dtype=torch.float64) - 0.1 * degree
    assert degrees.rank_correlation(degree, values) == pytest.approx(spearmanr(degree, values).statistic)
    values[3] = float("nan")
    keep = torch.arange(50) != 3
    expected = spearmanr(degree[keep], values[keep]).statistic
    assert degrees.rank_correlation(degree, values) == pytest.approx(expected)
    assert np.isnan(degrees.rank_correlation(torch.ones(50), values))


def test_shares():
    assert degrees.share_below(torch.tensor([1, 2, 3, 4]), (3, 4)) == [0.5, 0.75]
