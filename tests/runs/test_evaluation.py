"""Scores of a run's vectors in ``metrics.json``."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from costa import runs
from costa.runs import evaluation, execution


@pytest.fixture(autouse=True)
def few_splits(monkeypatch):
    monkeypatch.setattr(evaluation, "REPEATS", 2)


def test_vectors_are_evaluated_once_and_written(a_job, finished, monkeypatch):
    job = a_job(probe=True)
    (metrics,) = evaluation.evaluate_all(job, [finished], [runs.read_metrics(finished)])
    assert [probe.protocol for probe in metrics.probes] == list(runs.DEFAULT_PROTOCOLS)
    assert set(metrics.baselines) == {"raw", "diffused", "hops", "untrained"}
    assert runs.read_metrics(finished).probes == [probe_as_written(probe) for probe in metrics.probes]
    monkeypatch.setattr(evaluation, "linear_probes", None)
    assert evaluation.evaluate_all(job, [finished], [metrics]) == [metrics]


def probe_as_written(probe):
    return type(probe).from_dict(json.loads(json.dumps(probe.to_dict())))


def test_what_did_not_end_well_or_has_no_labels_is_not_evaluated(a_job, finished, small_graph):
    metrics = runs.read_metrics(finished)
    assert evaluation.evaluate_all(a_job(), [finished], [metrics]) == [metrics]
    bare = small_graph.clone()
    bare.y = None
    job = type(a_job())(**vars(a_job(probe=True)) | {"graph": bare})
    assert evaluation.evaluate_all(job, [finished], [metrics]) == [metrics]


def test_a_protocol_that_needs_more_labels_is_announced_and_skipped(small_graph):
    few = small_graph.clone()
    few.y = torch.where(torch.arange(200) < 30, small_graph.y, -1)
    said = []
    (scores,) = evaluation.evaluate([small_graph.x], few, torch.device("cpu"), announce=said.append)
    assert [probe.protocol for probe in scores["probes"]] == ["random-10-10-80"]
    assert any("Not evaluated: the protocol 'random-2-2-96' needs at least 50" in line for line in said)


def test_paired_seeds_are_evaluated_on_their_own_split(a_job, tmp_path):
    job = a_job(probe=True, paired=True, protocols=["random-10-10-80"])
    metrics = [execution.execute(job, tmp_path / str(seed), seed) for seed in (0, 3)]
    assert [(run.probes[0].split, len(run.probes[0].accuracy.per_split)) for run in metrics] == [(0, 1), (3, 1)]
    z = runs.load_embeddings(tmp_path / "3")
    whole = runs.probe_graph(z, job.graph, "random-10-10-80", 4).accuracy.per_split
    assert metrics[1].probes[0].accuracy.mean == pytest.approx(whole[3])


def test_a_probe_replaces_an_earlier_one_of_its_protocol(finished, small_graph):
    z = runs.load_embeddings(finished)
    results = [runs.probe_graph(z, small_graph, name, 2) for name in ("random-10-10-80", "random-20-80")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda result: runs.add_probe(finished, result), results * 3))
    probes = {probe.protocol: len(probe.accuracy.per_split) for probe in runs.read_metrics(finished).probes}
    assert probes == {"random-10-10-80": 2, "random-20-80": 2}
