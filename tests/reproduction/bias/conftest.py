import pytest
import torch

from costa.graphs.synthetic import planted_partition
from reproduction.bias import page, study, toy
from reproduction.targets import TARGETS, Request, Setup


@pytest.fixture(scope="session")
def small_store(tmp_path_factory):
    """A store with everything that the targets measure, on a small graph with few draws."""
    request = Request(results=tmp_path_factory.mktemp("results"))
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        for name in page.OF_FIGURE:
            TARGETS[name].measure(request, Setup(torch.device("cpu"), jobs=1))
    return request.results


@pytest.fixture
def small(monkeypatch, small_store):
    """The settings that the small store was measured with."""
    shrink(monkeypatch)
    return small_store


def shrink(patch):
    def load(name, data_dir=None):
        graph = planted_partition(80, 2, 12, degree=5, seed=0)
        graph.name = name
        return graph

    small = {"train.epochs": 2, "encoder.width": 8, "head.width": 8}
    resolve = study.resolve
    patch.setattr(study, "load_graph", load)
    patch.setattr(
        study,
        "resolve",
        lambda method, graph, given=None, preset="none": resolve(
            method, graph, preset=preset, given=(given or {}) | (small if method.name == "costa-sv" else {})
        ),
    )
    patch.setattr(study, "DRAWS", 12)
    patch.setattr(study, "SETTINGS", {**study.SETTINGS, "draws": 12})
    patch.setattr(study, "SEEDS", (0, 1))
    patch.setattr(study, "SAMPLES", 2)
    patch.setattr(study, "HIDDEN", 8)
    fewer = {
        name: options | {"k": 4} if "k" in options else options for name, options in study.STUDIED_SKETCHES.items()
    }
    patch.setattr(study, "STUDIED_SKETCHES", fewer)
    patch.setattr(toy, "SETTINGS", {**toy.SETTINGS, "points": 30, "steps": 3, "seeds": 2})
