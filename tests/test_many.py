"""Several seeds at once. Stacks are made on a GPU, but run anywhere: here on the CPU."""

import json

import pytest
import torch

from costa import many, runs, training
from costa.experiments.presets import resolve
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method

CPU = torch.device("cpu")
CUDA = pytest.param(
    "cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")],
)


@pytest.fixture(scope="module")
def graph():
    graph = planted_partition(200, 2, 12, seed=0)
    graph.name = "communities"
    return graph


def make_job(graph, *, device="cpu", epochs=4, method="costa-sv", **more):
    given = {"encoder.width": 16, "head.width": 16, "sketch.k": 40} | more.pop("given", {})
    resolved = resolve(get_method(method), graph, preset="none", given=given, epochs=epochs)
    return runs.Job(graph, "communities", method, resolved, torch.device(device), **more)


def folders_in(place, seeds):
    return {seed: place / f"run-{seed}" for seed in seeds}


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_a_stack_writes_the_runs_that_its_seeds_would_write_alone(graph, tmp_path, device):
    job = make_job(graph, device=device)
    folders = folders_in(tmp_path / "together", (3, 5, 8))
    collected = list(many._stacked(job, folders, None))
    assert [metrics["seed"] for metrics in collected] == [3, 5, 8]
    assert {metrics["trained_together"] for metrics in collected} == {3}
    for metrics, (seed, folder) in zip(collected, folders.items(), strict=True):
        alone = runs.execute(job, tmp_path / f"alone-{seed}", seed)
        assert metrics.keys() == alone.keys()
        assert json.loads((folder / runs.METRICS).read_text()) == metrics
        assert {file.name for file in folder.iterdir()} == {
            file.name for file in (tmp_path / f"alone-{seed}").iterdir()
        }
        own, other = (runs.load_embeddings(place) for place in (folder, tmp_path / f"alone-{seed}"))
        # centred: the last bias has no gradient under a centring sketch, and Adam makes steps of its rounding
        torch.testing.assert_close(own - own.mean(0), other - other.mean(0), rtol=1e-2, atol=3e-3)
        assert metrics["probes"][0]["accuracy"]["mean"] == pytest.approx(
            alone["probes"][0]["accuracy"]["mean"], abs=0.02
        )
        assert runs.load_model(folder, CPU).embed(graph).shape == (200, 16)


@pytest.mark.parametrize("full", [torch.OutOfMemoryError("full"), RuntimeError("CUDA error: out of memory")])
def test_where_they_do_not_fit_fewer_are_stacked(graph, tmp_path, monkeypatch, full):
    real, asked = training.stacked, []

    def stacked(method, settings, graph, seeds, device):
        asked.append(list(seeds))
        if len(seeds) > 2:
            raise full
        return real(method, settings, graph, seeds, device)

    monkeypatch.setattr(training, "stacked", stacked)
    collected = list(many._stacked(make_job(graph, probe=False), folders_in(tmp_path, range(5)), None))
    assert asked == [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4]]
    assert [metrics["trained_together"] for metrics in collected] == [2, 2, 2, 2, 1]


def test_another_error_is_one(graph, tmp_path, monkeypatch):
    def stacked(*arguments):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(training, "stacked", stacked)
    with pytest.raises(RuntimeError, match="shapes"):
        list(many._stacked(make_job(graph), folders_in(tmp_path, range(4)), None))


def test_what_does_not_fit_alone_is_an_error_and_leaves_nothing(graph, tmp_path, monkeypatch):
    def stacked(*arguments):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(training, "stacked", stacked)
    with pytest.raises(torch.OutOfMemoryError):
        list(many._stacked(make_job(graph), folders_in(tmp_path, range(2)), None))
    assert not any(tmp_path.iterdir())


def test_what_cannot_be_stacked_runs_one_by_one(graph, tmp_path):
    job = make_job(graph, probe=False, given={"sketch.kind": "selection"})
    collected = list(many._stacked(job, folders_in(tmp_path, range(2)), None))
    assert [(metrics["seed"], metrics["trained_together"]) for metrics in collected] == [(0, 1), (1, 1)]


def test_resumed_seeds_are_stacked_with_those_that_are_as_far(graph, tmp_path, monkeypatch):
    folders = folders_in(tmp_path, range(4))
    runs.execute(make_job(graph), folders[0], 0)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY_SECONDS", 0.0)
    for seed in (1, 2):
        job = make_job(graph, probe=False)
        runs.begin(job, folders[seed], seed)
        method = training.build(get_method("costa-sv"), job.resolved.values, graph, seed, CPU)
        epochs = iter(range(100))
        training.train(method, graph, job.train, folder=folders[seed], should_stop=lambda e=epochs: next(e) == 1)
    real, asked = training.stacked, []
    monkeypatch.setattr(
        training, "stacked", lambda m, s, g, seeds, d: asked.append(list(seeds)) or real(m, s, g, seeds, d)
    )
    collected = list(many._stacked(make_job(graph, resume=True), folders, None))
    assert asked == [[1, 2], [3]]
    assert [metrics["seed"] for metrics in collected] == [0, 1, 2, 3]
    assert all(metrics["status"] == "ok" and metrics["epochs"] == 4 and metrics["probes"] for metrics in collected)


@pytest.mark.parametrize(
    ("device", "seeds", "method", "cores", "expected"),
    [
        ("cpu", 3, "costa-sv", 2, True),
        ("cpu", 1, "costa-sv", 2, False),
        ("cpu", 3, "costa-sv", 1, False),
        ("cpu", 3, "deepwalk", 2, True),
        ("cpu", 3, "raw", 2, False),
        ("cpu", 3, "untrained", 2, False),
        ("cuda", 3, "costa-sv", 2, False),
    ],
)
def test_processes_are_for_several_trainings_on_several_cores(
    graph, monkeypatch, device, seeds, method, cores, expected
):
    monkeypatch.setattr(many, "cores", lambda: cores)
    resolved = resolve(get_method(method), graph, preset="none")
    job = runs.Job(graph, "communities", method, resolved, torch.device(device))
    assert many.in_processes(job, dict.fromkeys(range(seeds))) is expected
