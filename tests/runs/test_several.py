"""Several seeds at once. They are trained side by side on a GPU, but can be anywhere: here on the CPU."""

import json
from dataclasses import replace

import pytest
import torch

from costa import runs, training
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition
from costa.memory import IMPORTS, parse_size
from costa.methods import get_method
from costa.runs import estimate, several
from costa.runs.execution import start_run
from costa.runs.files import METRICS
from costa.settings.presets import resolve
from costa.training import loop

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


def hear_of_groups(monkeypatch, most=100, problem=None):
    """Lists of the seeds that are to be trained together, as they are asked for; more than ``most`` are a problem."""
    real, asked = training.train_together, []

    def train_together(methods, *arguments, folders, **options):
        asked.append([int(folder.name.removeprefix("run-")) for folder in folders])
        if len(methods) > most:
            raise problem
        return real(methods, *arguments, folders=folders, **options)

    monkeypatch.setattr(training, "train_together", train_together)
    return asked


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_side_by_side_seeds_write_the_runs_that_each_would_write_alone(graph, tmp_path, device):
    job = make_job(graph, device=device)
    folders = folders_in(tmp_path / "together", (3, 5, 8))
    collected = list(several._side_by_side(job, folders, None))
    assert [metrics.seed for metrics in collected] == [3, 5, 8]
    assert {metrics.trained_together for metrics in collected} == {3}
    for metrics, (seed, folder) in zip(collected, folders.items(), strict=True):
        alone = runs.execute(job, tmp_path / f"alone-{seed}", seed)
        assert json.loads((folder / METRICS).read_text()) == metrics.to_dict()
        assert {file.name for file in folder.iterdir()} == {
            file.name for file in (tmp_path / f"alone-{seed}").iterdir()
        }
        own, other = (runs.load_embeddings(place) for place in (folder, tmp_path / f"alone-{seed}"))
        if device == "cpu":
            assert torch.equal(own, other)
            assert metrics.probes == alone.probes
        # centred: the last bias has no gradient under a centring sketch, and Adam makes steps of its rounding
        torch.testing.assert_close(own - own.mean(0), other - other.mean(0), rtol=1e-2, atol=3e-3)
        assert metrics.probes[0].accuracy.mean == pytest.approx(alone.probes[0].accuracy.mean, abs=0.02)
        assert runs.load_model(folder, CPU).embed(graph).shape == own.shape


@pytest.mark.parametrize("full", [torch.OutOfMemoryError("full"), RuntimeError("CUDA error: out of memory")])
def test_where_they_do_not_fit_fewer_are_trained_together(graph, tmp_path, monkeypatch, full):
    asked = hear_of_groups(monkeypatch, most=2, problem=full)
    collected = list(several._side_by_side(make_job(graph, probe=False), folders_in(tmp_path, range(5)), None))
    assert asked == [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4]]
    assert [metrics.trained_together for metrics in collected] == [2, 2, 2, 2, 1]
    assert [metrics.status for metrics in collected] == ["ok"] * 5


def test_another_error_is_one(graph, tmp_path, monkeypatch):
    asked = hear_of_groups(monkeypatch, most=0, problem=RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes"):
        list(several._side_by_side(make_job(graph), folders_in(tmp_path, range(4)), None))
    assert asked == [[0, 1, 2, 3]]


def test_what_does_not_fit_alone_is_an_error_and_leaves_nothing(graph, tmp_path, monkeypatch):
    asked = hear_of_groups(monkeypatch, most=0, problem=torch.OutOfMemoryError("full"))
    with pytest.raises(torch.OutOfMemoryError):
        list(several._side_by_side(make_job(graph), folders_in(tmp_path, range(2)), None))
    assert asked == [[0, 1], [0]]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("given", [{"sketch.kind": "svd", "sketch.k": 4}, {"train.kernels": "plain"}])
def test_what_is_not_capturable_runs_one_by_one(graph, tmp_path, monkeypatch, given):
    asked = hear_of_groups(monkeypatch)
    job = make_job(graph, probe=False, given=given)
    collected = list(several._side_by_side(job, folders_in(tmp_path, range(2)), None))
    assert asked == []
    assert [(metrics.seed, metrics.trained_together) for metrics in collected] == [(0, 1), (1, 1)]


def test_a_method_without_a_loss_runs_one_by_one(graph, tmp_path):
    resolved = resolve(get_method("raw"), graph, preset="none")
    job = runs.Job(graph, "communities", "raw", resolved, CPU, probe=False)
    collected = list(several._side_by_side(job, folders_in(tmp_path, range(2)), None))
    assert [(metrics.seed, metrics.trained_together) for metrics in collected] == [(0, 1), (1, 1)]


def test_resumed_seeds_are_trained_together_with_those_that_are_as_far(graph, tmp_path, monkeypatch):
    folders = folders_in(tmp_path, range(4))
    runs.execute(make_job(graph), folders[0], 0)
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_SECONDS", 0.0)
    for seed in (1, 2):
        job = make_job(graph, probe=False)
        start_run(job, folders[seed], seed)
        method = training.build(get_method("costa-sv"), job.resolved.values, graph, seed, CPU)
        epochs = iter(range(100))
        training.train(method, graph, job.train, folder=folders[seed], should_stop=lambda e=epochs: next(e) == 1)
    asked = hear_of_groups(monkeypatch)
    collected = list(several._side_by_side(make_job(graph, resume=True), folders, None))
    assert asked == [[1, 2], [3]]
    assert [metrics.seed for metrics in collected] == [0, 1, 2, 3]
    assert all(metrics.status == "ok" and metrics.epochs == 4 and metrics.probes for metrics in collected)


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
    monkeypatch.setattr(estimate, "cores", lambda: cores)
    resolved = resolve(get_method(method), graph, preset="none")
    job = runs.Job(graph, "communities", method, resolved, torch.device(device))
    assert several.in_processes(job, dict.fromkeys(range(seeds))) is expected


def stored_job(memory, **more):
    graph = load_graph("digits", memory=memory)
    return make_job(graph, epochs=1, probe=False, given={"encoder.powers": (0,), "encoder.steps": 2}, **more)


@pytest.mark.parametrize(("memory", "expected"), [("1GiB", 1), ("2GiB", 1), ("2.5GiB", 2), ("5GiB", 5), ("50GiB", 8)])
def test_there_are_as_many_processes_as_the_limit_has_room_for(monkeypatch, memory, expected):
    monkeypatch.setattr(estimate, "cores", lambda: 8)
    assert several._workers(stored_job(memory), dict.fromkeys(range(10))) == expected


def test_the_processes_of_a_graph_on_disk_share_its_memory_and_find_its_hops(tmp_path, monkeypatch):
    import joblib

    graphs, waiting = [], []
    real = several.execute_one

    def execute_one(job, *arguments, **options):
        waiting.extend(path for path in (tmp_path / "cache").rglob("pagerank-*.npy"))
        graphs.append(job.graph)
        return real(job, *arguments, **options)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(estimate, "cores", lambda: 2)
    monkeypatch.setattr(several, "execute_one", execute_one)
    # here instead of in processes
    monkeypatch.setattr(joblib, "Parallel", lambda **_: lambda tasks: [f(*a, **k) for f, a, k in tasks])
    job = stored_job("2.5GiB")
    job = replace(job, spec="digits", memory="2.5GiB")
    collected = list(several.execute(job, folders_in(tmp_path, (0, 1)), None))
    assert [metrics.seed for metrics in collected] == [0, 1]
    assert sum(graph.memory + IMPORTS for graph in graphs) + IMPORTS <= parse_size("2.5GiB")
    assert json.loads((tmp_path / "run-1" / "config.json").read_text())["memory"] == "2.5GiB"
    assert len(waiting) == 2  # before either was trained
