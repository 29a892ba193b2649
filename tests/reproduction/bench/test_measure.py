from types import SimpleNamespace

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from reproduction.bench import measure
from reproduction.bench.contestants import GRACE, SV, Contestant
from reproduction.bench.measure import Row

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graph():
    return planted_partition(100, 2, 8, seed=0)


class Sham:
    """A contestant whose epochs take as long as it is told, on a clock that only it moves."""

    def __init__(self, monkeypatch, seconds):
        self.seconds = seconds
        self.now, self.counts = 0.0, []
        monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def build(self, graph, device):
        self.graph = graph
        return self

    def run(self, epochs):
        self.now += epochs * self.seconds(len(self.counts))
        self.counts.append(epochs)

    def embed(self):
        return torch.eye(self.graph.num_nodes)

    def measure(self, graph, epochs):
        return measure.measure(Contestant("sham", self.build), graph, CPU, epochs=epochs)


def test_the_median_round_is_reported_and_the_first_is_not_counted(graph, monkeypatch):
    rounds = [900, 4, 1, 2, 3, 9]
    sham = Sham(monkeypatch, lambda call: 1e-3 * ([80, 50, 1, *rounds, 7][call]))
    row = sham.measure(graph, 10)
    assert sham.counts == [1, measure.FIRST_EPOCHS - 1, 1] + [10] * 6 + [measure.PROBED_EPOCHS]
    assert row.ms_per_epoch == pytest.approx(3)
    assert row.ms_spread == pytest.approx(8)
    assert row.seconds_to_probed == pytest.approx(0.7)
    assert (row.graph, row.nodes, row.contestant) == ("planted-partition", 100, "sham")
    assert row.edges == graph.num_edges // 2
    assert row.peak_memory_bytes is None
    assert row.status == "ok"


@pytest.mark.parametrize(("seconds", "count"), [(0.1, 10), (0.3, 3)])
def test_slow_epochs_make_short_rounds(graph, monkeypatch, seconds, count):
    sham = Sham(monkeypatch, lambda call: seconds)
    sham.measure(graph, 20)
    assert sham.counts[3:9] == [count] * 6


def test_very_slow_epochs_make_few_rounds(graph, monkeypatch):
    sham = Sham(monkeypatch, lambda call: 1.1)
    sham.measure(graph, 20)
    assert sham.counts == [1] * 6


def test_who_would_train_too_long_is_not_probed(graph, monkeypatch):
    sham = Sham(monkeypatch, lambda call: 1.3)
    row = sham.measure(graph, 5)
    assert (row.status, row.ms_per_epoch, row.seconds_to_probed) == ("not-probed", pytest.approx(1300), None)
    assert measure.PROBED_EPOCHS not in sham.counts


@pytest.mark.parametrize(
    "problem",
    [torch.OutOfMemoryError("full"), MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")],
    ids=["cuda", "python", "cpu"],
)
def test_to_run_out_of_memory_is_a_result(graph, problem):
    def build(graph, device):
        raise problem

    row = measure.measure(Contestant("large", build), graph, CPU, epochs=1)
    assert row == Row("planted-partition", 100, graph.num_edges // 2, "large", status="out-of-memory")


def test_what_was_timed_before_the_memory_ran_out_is_kept(graph, monkeypatch):
    def probe(*args, **options):
        raise MemoryError

    monkeypatch.setattr(measure.runs, "probe_graph", probe)
    row = Sham(monkeypatch, lambda call: 0.002).measure(graph, 1)
    assert (row.status, row.ms_per_epoch, row.seconds_to_probed) == ("out-of-memory", pytest.approx(2), None)


def test_another_failure_is_one(graph):
    def build(graph, device):
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        measure.measure(Contestant("broken", build), graph, CPU, epochs=1)


def test_the_global_generator_is_left_as_it_was(graph, monkeypatch):
    monkeypatch.setattr(measure, "PROBED_EPOCHS", 1)
    before = torch.get_rng_state()
    measure.warm_up([GRACE], CPU)
    measure.measure(GRACE, graph, CPU, epochs=1)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("contestant", [GRACE, SV], ids=lambda contestant: contestant.name)
def test_peak_memory_is_the_contestant_s_own(contestant, monkeypatch):
    monkeypatch.setattr(measure, "PROBED_EPOCHS", 1)
    graph, cuda = planted_partition(2000, 2, 64, seed=0), torch.device("cuda")
    alone = measure.measure(contestant, graph, cuda, epochs=2).peak_memory_bytes
    assert alone >= graph.x.nbytes
    ballast = torch.zeros(2**26, device=cuda)
    beside = measure.measure(contestant, graph, cuda, epochs=2).peak_memory_bytes
    assert beside < alone + ballast.nbytes / 2
