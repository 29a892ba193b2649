"""``metrics.json``: written, read, older, damaged."""

import json
from dataclasses import replace

import pytest

from costa.errors import InputError
from costa.evaluate.baselines import Baseline
from costa.evaluate.clustering import Clustering
from costa.evaluate.health import Health
from costa.evaluate.links import LinkProbe, LinkScore
from costa.evaluate.samples import Sample
from costa.evaluate.scores import ProbeResult, Score
from costa.runs import metrics as module
from costa.runs.metrics import Metrics
from costa.training import Watched

PROTOCOL = "random-10-10-80"
LINK = LinkScore(0.8, 0.7, {10: 0.5, 50: None})


def probe(*accuracies, split=None):
    score = Score.of(accuracies, PROTOCOL)
    return ProbeResult(PROTOCOL, 0.1, score, score, trained_on=20, classes=2, split=split)


@pytest.fixture
def metrics():
    return Metrics(
        "costa-sv",
        "communities",
        3,
        "ok",
        epochs=9,
        seconds=1.5,
        embed_seconds=0.1,
        trained_together=2,
        peak_memory_bytes=10**9,
        commit="abc-dirty",
        versions={"costa": "0.1"},
        health=Health(5.5, 0.1),
        watch=Watched(0.002, 32, stopped=True),
        probes=[probe(0.8, 0.9)],
        clustering=Clustering(0.5, 0.4),
        sample=Sample(50_000, 10**6),
        baselines={"raw": Baseline(0.7, 0.3), "untrained": Baseline(0.85, 0.2)},
        links=LinkProbe((9, 18), (40, 40), {"dot": 0.8}, "dot", 10.0, {"dot": LINK}, {"adamic-adar": LINK}),
    )


def test_they_come_back_from_json(metrics, tmp_path):
    assert Metrics.from_dict(json.loads(json.dumps(metrics.to_dict()))) == metrics
    module.write_metrics(tmp_path, metrics)
    assert module.read_metrics(tmp_path) == metrics
    bare = Metrics("raw", "communities", 0, "diverged", probes=[])
    module.write_metrics(tmp_path, bare)
    assert module.read_metrics(tmp_path) == bare


def test_a_notebook_shows_the_scores_beside_the_baselines(metrics):
    shown = replace(metrics, dataset="<mine>")._repr_html_()
    assert "<caption>costa-sv on &lt;mine&gt;, seed 3</caption>" in shown
    (probe,) = metrics.probes
    assert f"<th>accuracy, {probe.protocol}</th><td>{probe.accuracy.percent}</td>" in shown
    assert "<th>baseline: raw features</th><td>70.0 %</td>" in shown
    assert "<th>NMI of k-means</th><td>0.500</td>" in shown
    assert "accuracy" not in Metrics("raw", "d", 0, "diverged")._repr_html_()


def test_a_file_of_an_earlier_version_is_read(metrics, tmp_path):
    entry = metrics.to_dict()
    later = (
        "embed_seconds",
        "trained_together",
        "versions",
        "health",
        "watch",
        "clustering",
        "sample",
        "floor",
        "links",
    )
    for name in later:
        del entry[name]
    (tmp_path / "metrics.json").write_text(json.dumps(entry))
    older = module.read_metrics(tmp_path)
    missing = dict.fromkeys(("embed_seconds", "health", "watch", "clustering", "sample", "baselines", "links"))
    assert older == replace(metrics, trained_together=1, versions={}, **missing)


@pytest.mark.parametrize(
    "damage",
    [
        {"probes": [{"protocol": "public"}]},
        {"health": {"rank": 3}},
        {"watch": {}},
        {"floor": {"raw": 0.5}},
        {"clustering": [1]},
        {"links": {"edges": [1, 2]}},
    ],
)
def test_a_damaged_file_is_one_sentence(metrics, tmp_path, damage):
    (tmp_path / "metrics.json").write_text(json.dumps(metrics.to_dict() | damage))
    with pytest.raises(InputError, match=r"metrics.json is damaged; train the run again into another folder"):
        module.read_metrics(tmp_path)


def test_the_best_baseline_is_named(metrics):
    assert metrics.best_baseline() == ("the untrained network", 0.85)
    assert metrics.best_baseline("nmi") == ("raw features", 0.3)
    assert replace(metrics, baselines=None).best_baseline() is None


def test_a_run_is_compared_with_the_best_baseline(metrics):
    for accuracy in (0.75, 0.85):
        assert replace(metrics, probes=[probe(accuracy)]).not_above() == ("the untrained network", 0.85, accuracy)
    assert replace(metrics, probes=[probe(0.9)]).not_above() is None
    assert replace(metrics, method="raw").not_above() is None


def test_pairs_are_seed_s_on_split_s(metrics):
    collected = [replace(metrics, seed=seed, probes=[probe(0.1 * seed, 0.2 + 0.1 * seed)]) for seed in (0, 1)]
    mean, pairs = module.pair_scores(collected)[PROTOCOL]
    assert mean == pytest.approx(0.15)
    assert pairs == pytest.approx([0.0, 0.3])
    single = [replace(metrics, seed=seed, probes=[probe(0.5 + 0.1 * seed, split=seed)]) for seed in (4, 5)]
    assert module.pair_scores(single)[PROTOCOL][1] == pytest.approx([0.9, 1.0])
