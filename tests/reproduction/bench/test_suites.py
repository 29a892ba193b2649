import json
import re
from functools import partial

import pytest
import torch

from costa import runs
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition
from reproduction.bench import contestants, measure, suites
from reproduction.bench.measure import Row

CPU = torch.device("cpu")
ROW = {
    "graph": str,
    "nodes": int,
    "edges": int,
    "contestant": str,
    "ms_per_epoch": float,
    "ms_spread": float,
    "peak_memory_bytes": type(None),
    "seconds_to_probed": float,
    "status": str,
}


@pytest.fixture
def brief(monkeypatch):
    """A few epochs of three contestants, probed on one split."""
    field = [contestants.PLAIN_SV, contestants.PLAIN_MV, contestants.SV]
    monkeypatch.setattr(contestants, "standard", lambda device: field)
    for name in ("FIRST_EPOCHS", "REPEATS", "PROBED_EPOCHS"):
        monkeypatch.setattr(measure, name, 1)
    monkeypatch.setattr(runs, "probe_graph", partial(runs.probe_graph, repeats=1))


@pytest.mark.parametrize(
    "contestant",
    [*contestants.standard(torch.device("cuda")), contestants.SV_COUNTSKETCH],
    ids=lambda contestant: contestant.name,
)
def test_every_contestant_trains(contestant):
    graph = planted_partition(80, 2, 8, seed=0)
    trainee = contestant.build(graph, CPU)
    before = trainee.embed()
    trainee.run(2)
    after = trainee.embed()
    assert after.shape == (80, 128)
    assert after.isfinite().all()
    assert not torch.equal(before, after)


def test_a_subgraph_is_induced_and_holds_the_smaller():
    graph = load_graph("digits")
    graph.number = torch.arange(graph.num_nodes)
    small, large = suites.subgraph(graph, 200), suites.subgraph(graph, 500)
    assert set(small.number.tolist()) < set(large.number.tolist())
    assert (small.num_nodes, small.name, graph.name) == (200, "digits-200", "digits")
    assert torch.equal(small.x, graph.x[small.number])
    assert torch.equal(small.y, graph.y[small.number])
    inside = torch.isin(graph.edge_index, small.number).all(0)
    wanted = set(map(tuple, graph.edge_index[:, inside].T.tolist()))
    assert set(map(tuple, small.number[small.edge_index].T.tolist())) == wanted


def test_the_runtime_suite_is_the_paper_s(data_dir):
    sizes = [(graph.name, graph.num_nodes) for graph in suites.computers(data_dir)]
    assert sizes == [(f"amazon-computers-{n}000", n * 1000) for n in range(1, 9)] + [("amazon-computers", 13752)]


def test_the_command_writes_what_it_prints(reproduction, tmp_path, brief):
    result = reproduction("bench-digits", "--epochs", 2, "--device", "cpu", "--results", tmp_path)
    assert result.code == 0, result.err
    (path,) = (tmp_path / "bench").iterdir()
    assert path.name == "digits-cpu.json"
    assert str(path) in result.out
    record = json.loads(path.read_text())
    assert record.keys() == {"schema", "suite", "device", "versions", "commit", "threads", "rows"}
    assert (record["schema"], record["suite"], record["device"]) == (1, "digits", "cpu")
    assert record["threads"] == torch.get_num_threads()
    assert {"costa", "torch", "torch-geometric", "python"} <= record["versions"].keys()
    for row in record["rows"]:
        assert {key: type(value) for key, value in row.items()} == ROW
    assert {(row["graph"], row["nodes"], row["edges"], row["status"]) for row in record["rows"]} == {
        ("digits", 1797, 7522, "ok")
    }

    one, two, ours = (row["ms_per_epoch"] for row in record["rows"])
    shown = [line.split() for line in result.out.splitlines()]
    (table,) = (words for words in shown if words[:1] == ["costa-sv"])
    assert table[1] == f"{ours:.2f}"
    assert table[3] == f"{min(one, two) / ours:.2f}"
    assert f"costa-sv, speed: {one / ours:.2f} × plain COSTA one view, {two / ours:.2f} × plain COSTA two views" in (
        result.out
    )


def test_who_was_not_timed_is_not_compared(reproduction, tmp_path, monkeypatch):
    row = Row("small", 9, 9, "costa-sv", 2.0, 0.1, 3 * 2**20, 1.0)
    full = Row("small", 9, 9, "plain GRACE", status="out-of-memory")
    monkeypatch.setitem(suites.SUITES, "digits", lambda job: iter([[full, row], [full]]))
    result = reproduction("bench-digits", "--results", tmp_path)
    assert result.code == 0, result.err
    assert re.search(r"costa-sv +2\.00 +0\.10 +– +3 +1\.0 +ok ", result.out)
    assert re.search(r"plain GRACE +– +– +– +– +– +out-of-memory", result.out)
    assert "speed:" not in result.out


def test_an_interrupted_suite_keeps_the_earlier_file_and_its_own_rows(tmp_path, monkeypatch):
    def suite(job):
        yield [Row("small", 9, 9, "costa-sv", 2.0)]
        raise KeyboardInterrupt

    (tmp_path / "digits-cpu.json").write_text("earlier")
    monkeypatch.setitem(suites.SUITES, "digits", suite)
    with pytest.raises(KeyboardInterrupt):
        suites.run_suite("digits", suites.Job(CPU, 1), tmp_path)
    assert (tmp_path / "digits-cpu.json").read_text() == "earlier"
    assert len(json.loads((tmp_path / "digits-cpu.partial").read_text())["rows"]) == 1


def test_the_help_names_every_suite(reproduction):
    shown = reproduction("--help").out
    for name in (*suites.SUITES, suites.PROFILE):
        assert f"\n  bench-{name} " in shown


def test_an_unknown_suite_is_refused_before_anything_runs(reproduction, tmp_path):
    result = reproduction("bench-digits", "bench-karate", "--results", tmp_path)
    assert result.code == 2
    assert (
        result.err == "costa: unknown bench 'bench-karate'; there are: bench-runtime, bench-physics, bench-cora,"
        " bench-digits, bench-memory, bench-seeds, bench-profile.\n"
    )
    assert not (tmp_path / "bench").exists()
