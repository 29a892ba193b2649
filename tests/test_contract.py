"""Names and fields that others rely on; a change here is a change of the interface."""

import json

import pytest

from costa import __all__ as front_door
from costa.evaluate.protocols import PROTOCOLS
from costa.graphs.benchmarks import BENCHMARKS
from costa.methods import METHODS


def test_names_of_commands():
    from costa.cli import app

    names = {command.callback.__name__ for command in app.registered_commands}
    assert names == {
        "demo", "train", "estimate", "probe", "embed", "report", "datasets", "methods", "compare", "tune", "bias",
        "bounds", "links", "predict", "similar", "clusters",
    }  # fmt: skip


def test_names_of_methods():
    assert list(METHODS) == [
        "costa-sv",
        "costa-mv",
        "grace",
        "gca",
        "dgi",
        "gmi",
        "mvgrl",
        "gbt",
        "gae",
        "vgae",
        "bgrl",
        "cca-ssg",
        "node2vec",
        "deepwalk",
        "deepwalk-x",
        "raw",
        "diffused",
        "hops",
        "untrained",
    ]


def test_names_of_datasets():
    assert {graph.name for graph in BENCHMARKS} == {
        "wikics",
        "amazon-computers",
        "amazon-photo",
        "coauthor-cs",
        "coauthor-physics",
        "cora",
        "citeseer",
        "pubmed",
        "dblp",
        "digits",
        "words",
    }


def test_names_of_protocols():
    assert set(PROTOCOLS) == {
        "random-10-10-80",
        "random-10-90-cv",
        "random-20-80",
        "random-10-80-10",
        "random-2-2-96",
        "strict-10-10-80",
        "public",
    }


def test_the_front_door():
    assert set(front_door) == {
        "COSTA",
        "load_graph",
        "linear_probe",
        "RandomProjection",
        "RademacherProjection",
        "SparseProjection",
        "CountSketch",
        "RowSelection",
        "SVDSketch",
        "NoiseInjection",
    }


SCORE = {"mean": float, "std": float, "per_split": list}
BASELINE = {"accuracy": float, "nmi": float}
METRICS = {
    "schema": int,
    "method": str,
    "dataset": str,
    "seed": int,
    "status": str,
    "epochs": int,
    "seconds": float,
    "embed_seconds": float,
    "trained_together": int,
    "processes": int,
    "peak_memory_bytes": int,
    "device": str,
    "commit": (str, type(None)),
    "versions": dict,
    "loss_fell": (bool, type(None)),  # None after few epochs
    "health": {"effective_rank": float, "mean_cosine": float},
    "watch": type(None),  # or weight_decay, since_epoch and stopped
    "probes": [
        {
            "protocol": str,
            "label_fraction": float,
            "trained_on": int,
            "classes": int,
            "accuracy": SCORE,
            "macro_f1": SCORE,
        }
    ],
    "clustering": {"nmi": float, "ari": float},
    "sample": type(None),  # or nodes and of
    "floor": {"raw": BASELINE, "diffused": BASELINE, "hops": BASELINE, "untrained": BASELINE},
    "links": type(None),  # or the scores of costa probe --task links
}


def check(value, shape, where="metrics"):
    if isinstance(shape, dict):
        assert value.keys() == shape.keys(), where
        for key, inner in shape.items():
            check(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        assert value, where
        for item in value:
            check(item, shape[0], f"{where}[]")
    else:
        assert isinstance(value, shape), where


def test_schema_of_metrics(digits_run):
    metrics = json.loads((digits_run / "metrics.json").read_text())
    check(metrics, METRICS)
    assert metrics["schema"] == 1
    assert metrics["status"] in ("ok", "interrupted", "diverged", "collapsed")
    assert [(probe["protocol"], probe["label_fraction"]) for probe in metrics["probes"]] == [
        ("random-10-10-80", 0.1),
        ("random-2-2-96", 0.02),
    ]
    for probe in metrics["probes"]:
        assert len(probe["accuracy"]["per_split"]) == 20
        assert 0 < probe["accuracy"]["mean"] <= 1  # fractions, not percent


def test_files_of_a_run(digits_run):
    assert {path.name for path in digits_run.iterdir()} == {
        "model.safetensors",
        "config.json",
        "embeddings.npy",
        "metrics.json",
        "log.csv",
    }


@pytest.mark.parametrize("key", ["schema", "method", "graph", "seed", "settings", "origins", "in_features", "memory"])
def test_fields_of_the_config(digits_run, key):
    assert key in json.loads((digits_run / "config.json").read_text())
