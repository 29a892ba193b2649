import json
import shutil

import numpy as np
import pytest
import torch

from costa.augment.bounds import relative_covariance_error
from costa.augment.registry import make_sketch
from costa.errors import InputError
from costa.report.facts import gather, read_losses, sketch_errors, spectrum
from costa.report.page import render

from .conftest import train


def test_facts_of_a_run(small_run):
    facts, graph = small_run.facts, small_run.graph
    assert facts.shape == np.load(small_run.folder / "embeddings.npy").shape
    assert [epoch for epoch, _ in facts.losses] == list(range(1, 9))
    assert facts.edges == graph.num_edges // 2
    assert sum(count for _, count in facts.degrees) == 60
    assert facts.nodes.ids == graph.node_ids
    assert sum(facts.spectrum) == pytest.approx(1)


def test_the_sketch_is_the_runs_own(small_run):
    z = torch.from_numpy(np.load(small_run.folder / "embeddings.npy"))
    found = small_run.facts.sketched
    assert (found.kind, found.rows, found.nodes) == ("countsketch", 30, 60)
    h = z - z.mean(0)
    sketch = make_sketch("countsketch", k=30, generator=torch.Generator().manual_seed(7))
    beside = [float(relative_covariance_error(h, sketch(h))) for _ in range(100)]
    assert np.median(found.errors) == pytest.approx(np.median(beside), rel=0.15)
    assert max(found.errors) < found.proved


def test_svd_is_drawn_once_and_no_sketch_is_left_out(small_run):
    config, z = small_run.facts.config, torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    changed = config | {"settings": config["settings"] | {"sketch.kind": "svd", "sketch.k": 3}}
    found = sketch_errors(changed, z)
    sigma = torch.linalg.svdvals((z - z.mean(0)).double()).square()
    assert found.errors == pytest.approx([float(sigma[3] / sigma.sum())], rel=1e-4)
    assert sketch_errors(config | {"settings": config["settings"] | {"sketch.kind": "none"}}, z) is None
    assert sketch_errors(config | {"method": "grace"}, z) is None


def test_noise_that_a_run_adds_is_left_out_of_its_sketch(small_run):
    config, z = small_run.facts.config, torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    noisy = sketch_errors(config | {"settings": config["settings"] | {"sketch.noise_std": 100.0}}, z)
    assert noisy.noise
    assert noisy.errors == sketch_errors(config, z).errors


def test_perturbing_moves_vectors(small_run):
    found = small_run.facts.distortion
    assert not found.as_trained
    assert (found.edge_rate, found.mask_rate) == (0.3, 0.3)
    assert sum(entry["nodes"] for entry in found.bins) <= 60
    assert all(entry["quartiles"][1] > 0 for entry in found.bins)


def test_a_run_that_is_not_trained(small_run, tmp_path):
    facts = gather(train(small_run.facts.config["graph"], tmp_path / "raw", method="raw"))
    assert facts.losses == []
    assert facts.sketched is None
    assert facts.distortion is None
    assert facts.nodes is not None


@pytest.mark.parametrize(("value", "status"), [(np.nan, "diverged"), (1.0, "collapsed")])
def test_vectors_that_are_not_alive_have_no_map(small_run, tmp_path, value, status):
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    np.save(folder / "embeddings.npy", np.full((60, 4), value, dtype=np.float32))
    metrics = json.loads((folder / "metrics.json").read_text()) | {"status": status, "health": None}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    facts = gather(folder)
    assert facts.nodes is None
    assert facts.sketched is None
    assert (facts.metrics.health is None) == (status == "diverged")


def test_a_graph_that_has_changed_is_told(small_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    np.save(folder / "embeddings.npy", np.ones((59, 4), dtype=np.float32))
    with pytest.raises(InputError, match="59 rows and friends has 60 nodes: the graph has changed since the run"):
        gather(folder)


def test_a_log_that_was_cut_off(tmp_path):
    path = tmp_path / "log.csv"
    assert read_losses(path) == []
    path.write_text("epoch,loss,seconds\n1,2.5,0.1\n2,nan,0.2\n3,")
    found = read_losses(path)
    assert found[0] == (1, 2.5)
    assert [epoch for epoch, _ in found] == [1, 2]


def test_spectrum_of_a_line_and_of_one_point():
    line = torch.arange(10.0)[:, None] * torch.ones(3)
    assert spectrum(line) == pytest.approx([1, 0, 0], abs=1e-9)
    assert spectrum(torch.ones(4, 3)) == []
    assert spectrum(torch.full((4, 3), float("nan"))) == []


def test_with_parts_the_rows_of_a_group_are_sketched(small_run, tmp_path):
    source = small_run.folder.parent / "friends"
    given = {"encoder.kind": "gcn", "train.epochs": 2, "encoder.width": 8, "train.parts": 8, "train.group": 4}
    facts = gather(train(source, tmp_path / "run", "costa-mv", **given))
    assert 20 < facts.sketched.nodes < 40
    assert facts.sketched.rows == round(0.25 * facts.sketched.nodes)


@pytest.mark.parametrize("batch", [0, 20])
def test_with_hops_the_codes_of_a_batch_are_sketched_and_no_graph_is_perturbed(small_run, tmp_path, batch):
    source = small_run.folder.parent / "friends"
    given = {"encoder.kind": "hops", "train.epochs": 2, "encoder.width": 8, "sketch.k": 10, "train.batch": batch}
    facts = gather(train(source, tmp_path / "run", "costa-mv", **given))
    assert (facts.sketched.rows, facts.sketched.nodes) == (10, batch or 60)
    assert facts.distortion is None
    text = render(facts)
    assert "which reads no edge" in text
    assert "which reads no edge" not in small_run.page.read_text()
