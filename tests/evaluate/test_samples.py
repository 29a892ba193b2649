"""Large graphs are evaluated on a sample of their labelled nodes."""

import numpy as np
import torch
from torch_geometric.data import Data

from costa.evaluate import baselines, samples
from costa.evaluate.samples import Sample, labels_of, rows_at, sample_of, sampled_nodes
from costa.graphs.storage import mapped, open_array
from costa.graphs.streaming import keep_on_disk
from costa.graphs.synthetic import planted_partition
from costa.runs.evaluation import evaluate

CPU = torch.device("cpu")


def test_only_labelled_nodes_are_drawn_and_always_the_same(monkeypatch):
    monkeypatch.setattr(samples, "MOST", 10)
    y = torch.arange(40) % 4 - 1  # a quarter has no label
    nodes = sampled_nodes(y)
    assert len(nodes) == 10
    assert (y[nodes] >= 0).all()
    assert torch.equal(nodes, sampled_nodes(y))
    assert torch.equal(nodes, nodes.sort().values)
    assert sampled_nodes(y[:12]) is None
    assert sample_of(y) == Sample(10, 30)
    assert sample_of(y[:12]) is None


def test_masks_follow_the_sample():
    graph = Data(y=torch.arange(4), x=torch.eye(4), train_mask=torch.tensor([True, False, True, False]))
    part = labels_of(graph, torch.tensor([1, 2]))
    assert part.y.tolist() == [1, 2]
    assert part.train_mask.tolist() == [False, True]
    assert part.get("x") is None
    assert labels_of(graph, None) is graph


def test_rows_are_found_in_parts():
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(rows_at(z.split(3), torch.tensor([0, 2, 3, 9])), z[[0, 2, 3, 9]])
    assert torch.equal(rows_at(z.split(3), None), z)


def test_rows_of_a_file_are_read_without_the_others(tmp_path):
    np.save(tmp_path / "z.npy", np.arange(40_000, dtype=np.float32).reshape(10_000, 4))
    z = mapped(open_array(tmp_path / "z.npy"))
    rows = rows_at([z], torch.tensor([3, 9_998]))
    assert rows.tolist() == [[12, 13, 14, 15], [39_992, 39_993, 39_994, 39_995]]
    assert rows.untyped_storage().nbytes() == 2 * 4 * 4
    assert rows_at([z], None).data_ptr() == z.data_ptr()


def test_a_run_and_its_baselines_are_scored_on_the_sample(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(samples, "MOST", 120)
    graph = planted_partition(300, 3, 8, degree=6, homophily=0.8, seed=0)
    graph.x = graph.x.sigmoid()  # which is not scaled, by what all nodes or some say
    (scores,) = evaluate([graph.x], graph, CPU, ["random-10-10-80"])
    assert scores["sample"] == Sample(120, 300)
    nodes = sampled_nodes(graph.y)
    sample = Data(x=graph.x[nodes], y=graph.y[nodes], edge_index=torch.empty(2, 0, dtype=torch.long), name="sample")
    (alone,) = evaluate([graph.x[nodes]], sample, CPU, ["random-10-10-80"])
    assert alone["sample"] is None
    assert scores["probes"][0].accuracy == alone["probes"][0].accuracy
    assert scores["clustering"] == alone["clustering"]
    assert scores["baselines"]["raw"] == alone["baselines"]["raw"]
    assert scores["baselines"]["diffused"] != alone["baselines"]["diffused"]  # of all nodes, then sampled


def test_a_baseline_that_does_not_fit_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = planted_partition(300, 3, 8, degree=6, homophily=0.8, seed=0)
    graph.name = "made"
    # another protocol is another entry of the cache
    for memory, protocol in ((2**30, "random-10-10-80"), (2**20, "random-20-80")):
        found = baselines.baseline_scores(keep_on_disk(graph, memory), protocol, 2)
        assert ("untrained" in found) == (memory == 2**30)
        assert {"raw", "diffused", "hops"} <= set(found)
