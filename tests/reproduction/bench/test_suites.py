import json

import pytest
import torch

from costa.graphs import load_graph
from reproduction.bench import suites
from reproduction.bench.measure import Row

CPU = torch.device("cpu")


def test_a_subgraph_is_induced_and_holds_the_smaller():
    graph = load_graph("digits")
    graph.number = torch.arange(graph.num_nodes)
    small, large = suites.subgraph(graph, 200), suites.subgraph(graph, 500)
    assert set(small.number.tolist()) < set(large.number.tolist())
    assert (small.num_nodes, small.name, graph.name) == (200, "digits-200", "digits")
    assert torch.equal(small.x, graph.x[small.number])
    assert torch.equal(small.y, graph.y[small.number])
    inside = torch.isin(graph.edge_index, small.number).all(0)
    wanted = set(map(tuple, graph.edge_index[:, inside].T.tolist()))
    assert set(map(tuple, small.number[small.edge_index].T.tolist())) == wanted


def test_the_runtime_suite_is_the_paper_s(data_dir):
    sizes = [(graph.name, graph.num_nodes) for graph in suites.computers(data_dir)]
    assert sizes == [(f"amazon-computers-{n}000", n * 1000) for n in range(1, 9)] + [("amazon-computers", 13752)]


def test_an_interrupted_suite_keeps_the_earlier_file_and_its_own_rows(tmp_path, monkeypatch):
    def suite(job):
        yield [Row("small", 9, 9, "costa-sv", 2.0)]
        raise KeyboardInterrupt

    (tmp_path / "digits-cpu.json").write_text("earlier")
    monkeypatch.setitem(suites.SUITES, "digits", suite)
    with pytest.raises(KeyboardInterrupt):
        suites.run_suite("digits", suites.Bench(CPU, 1), tmp_path)
    assert (tmp_path / "digits-cpu.json").read_text() == "earlier"
    assert len(json.loads((tmp_path / "digits-cpu.partial").read_text())["rows"]) == 1
