import pytest
import torch

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from reproduction.bench import seeds

CPU = torch.device("cpu")


@pytest.fixture
def graph():
    return planted_partition(60, 2, 8, seed=0)


def test_a_cpu_is_refused_with_a_sentence():
    with pytest.raises(InputError, match=r"^bench-seeds needs a GPU, and this device is a CPU; run it with --device"):
        next(seeds.one_against_twenty(CPU, None))


def test_a_row_has_the_median_time_of_its_seeds(graph, monkeypatch):
    times, trained = iter([3.0, 1.0, 2.0, 30.0, 50.0, 40.0]), []

    def timed(device, work):
        work()
        return next(times)

    monkeypatch.setattr(seeds, "load_graph", lambda name, data_dir=None: graph)
    monkeypatch.setattr(seeds, "train_and_probe", lambda graph, count, device: trained.append(count))
    monkeypatch.setattr(seeds, "seconds", timed)
    (rows,) = seeds.one_against_twenty(torch.device("cuda"), None)
    assert [(row.contestant, row.seconds_to_probed) for row in rows] == [
        ("costa-sv, 1 seed", 2.0),
        ("costa-sv, 20 seeds", 40.0),
    ]
    assert {(row.graph, row.nodes, row.edges) for row in rows} == {("planted-partition", 60, graph.num_edges // 2)}
    assert trained == [1] * 4 + [20] * 4  # once before the clock


def test_each_seed_is_trained_and_probed(graph, monkeypatch):
    resolve = seeds.resolve
    monkeypatch.setattr(seeds, "resolve", lambda *a, **k: resolve(*a, **k, epochs=2))
    monkeypatch.setattr(seeds.runs, "REPEATS", 2)
    first, second = seeds.train_and_probe(graph, 2, CPU)
    (alone,) = seeds.train_and_probe(graph, 1, CPU)
    assert alone.accuracy.mean == pytest.approx(first.accuracy.mean)
    for result in (first, second):
        assert len(result.accuracy.per_split) == 2
        assert 0 < result.accuracy.mean <= 1
