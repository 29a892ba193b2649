import json

import pytest

from reproduction import scale_page
from reproduction.tables import NOT_MEASURED


@pytest.fixture
def store(tmp_path):
    """A store, and a function that adds a measurement to it."""
    path = tmp_path / "bench" / "scale-cpu.jsonl"
    path.parent.mkdir()

    def add(nodes, scale=1.0, **changes):
        line = {
            **{"nodes": nodes, "edges": 10 * nodes, "columns": 64, "memory": 2**32, "hops": [[1, 4], 10], "epochs": 1},
            "stages": dict.fromkeys(scale_page.WORK, scale * nodes / 10**6),
            **{"peak_anonymous_bytes": 2**30, "peak_resident_bytes": 2**31},
            "disk": {"graph": 2**10 * nodes, "vectors": 2**12 * nodes},
        }
        with path.open("a") as file:
            file.write(json.dumps(line | changes) + "\n")

    return tmp_path, add


def test_without_measurements_the_tables_say_so(tmp_path):
    assert scale_page.scale(tmp_path) == scale_page.slopes(tmp_path) == scale_page.larger(tmp_path) == NOT_MEASURED
    assert scale_page.half(tmp_path) == scale_page.limits(tmp_path) == NOT_MEASURED
    assert scale_page.accuracy(tmp_path) == scale_page.processes(tmp_path) == NOT_MEASURED


def test_the_last_measurement_of_a_graph_is_shown(store):
    results, add = store
    add(10**6, 5.0)
    add(10**6, 4.0, memory=2**31)
    add(10**6, 7.0, stages={"read": 7.0, "train": 2.0})
    rows = scale_page.scale(results).splitlines()[2:]
    assert rows[1] == "| 1,000,000 | 10,000,000 | 64 | 4.0 GiB | 7 | – | – | 2 | – | – | 9 | – | 1.0 GiB | 2.0 GiB |"
    assert len(rows) == 2


def test_what_was_told_before_is_compared_with_what_it_took(store):
    results, add = store
    add(10**6, stages={"read": 4.0, "train": 6.0}, estimate={"stages": {"read": 5.0, "train": 10.0, "embed": 9.0}})
    assert "| 10 | 1.50 | 1.0 GiB |" in scale_page.scale(results)


def test_the_slope_of_a_stage_is_over_graphs_of_one_shape(store):
    results, add = store
    add(10**5)
    add(10**6)
    add(10**7, 2.0)
    add(10**6, 9.0, columns=128)
    add(10**6, 9.0, memory=2**30)
    add(10**6, 9.0, edges=10**6)
    slope, c, ratio = scale_page.slopes(results).splitlines()[2].split(" | ")[1:]
    assert float(slope) == pytest.approx(1 + 0.301 / 2, abs=0.01)  # twice the seconds a node over two decades
    assert c == "143 ns"  # of 20 s, for 10⁸ edges and a sixteenth of 64 columns of 10⁷ nodes
    assert float(ratio.rstrip(" |")) == 0.5


def test_a_larger_graph_takes_as_much_a_unit_of_work(store):
    results, add = store
    add(10**7)
    row = scale_page.larger(results).splitlines()[2].strip("| ").split(" | ")
    assert row[:2] == ["10⁸", "1"]
    assert row[2:9] == ["2 min"] * 6 + ["10 min"]
    assert row[10:] == ["95.4 GiB", "381.5 GiB"]


def test_several_machines_share_some_stages_and_wait_for_the_network(store, monkeypatch):
    results, add = store
    add(10**7)
    monkeypatch.setattr(scale_page, "MACHINES", (4,))
    monkeypatch.setattr(scale_page, "LARGER", (10**8,))

    def row():
        return scale_page.larger(results).splitlines()[2].strip("| ").split(" | ")

    monkeypatch.setattr(scale_page, "NETWORK", 1e30)
    assert row()[2:9] == ["2 min", "2 min", "25 s", "25 s", "25 s", "2 min", "6 min"]
    assert row()[9] == "read"
    # ten products of 64 columns: the rows that three of four machines hold
    monkeypatch.setattr(scale_page, "NETWORK", 4 * 10 * 10**8 * 64 * 0.75 / 600)
    assert row()[4] == "10 min"
    assert row()[9] == "propagate"


def test_what_float16_costs_is_the_difference_of_each_seed(tmp_path):
    (tmp_path / "bench").mkdir()
    for new in (0.1, 0.8):  # the last line counts
        line = {
            **{"graph": "made", "nodes": 1000, "views": 2, "hops": [[0, 4], 10]},
            "accuracy": {
                "float32": {"10%": [[0.8, 0.9], [0.6, 0.8]]},
                "float16": {"10%": [[0.8, 0.91], [0.6, new]]},
            },
            "disk": {"x": 2048, "float32": 4096, "float16": 2048},
        }
        with (tmp_path / "bench" / "half-cpu.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
    said, _, *rows = scale_page.half(tmp_path).splitlines()
    assert said == (
        "Accuracy changes by +0.25 ± 0.25 points with 10% of the labels (mean ± standard error), "
        "and the hops but X take 50% of the space."
    )
    row = "| made | 1,000 | 2 | 0, 4, PageRank | 77.50 | +0.25 ± 0.25 | 2.0 KiB | 4.0 KiB | 2.0 KiB |"
    assert rows[2:] == [row]


def test_what_a_limit_is_worth_is_the_last_measurement_or_that_it_was_refused(tmp_path):
    (tmp_path / "bench").mkdir()
    for memory, kind, peak, refused in (
        (2**31, "two seeds", 2**30, None),
        (2**30, "one process", 2**30, None),
        (2**30, "one process", 2**29, None),
        (2**30, "two seeds", 2**28, "this needs more."),
    ):
        line = {"nodes": 1000, "edges": 9000, "columns": 64, "memory": memory, "kind": kind}
        with (tmp_path / "bench" / "limits-cpu.jsonl").open("a") as file:
            file.write(json.dumps(line | {"peak_anonymous_bytes": peak, "refused": refused}) + "\n")
    assert scale_page.limits(tmp_path).splitlines()[2:] == [
        "| 1,000 | 9,000 | 64 | one process | 1.0 GiB | 512.0 MiB | 50% |",
        "| 1,000 | 9,000 | 64 | two seeds | 1.0 GiB | refused | – |",
        "| 1,000 | 9,000 | 64 | two seeds | 2.0 GiB | 1.0 GiB | 50% |",
    ]


def test_accuracy_stands_beside_the_baselines(store):
    results, add = store
    add(10**5)
    add(10**6, accuracy=0.86, baselines={"raw": 0.25, "hops": 0.8})
    header, _, *rows = scale_page.accuracy(results).splitlines()
    assert header == "| nodes | columns | raw features | hops of the features | COSTA, the default |"
    assert rows == ["| 1,000,000 | 64 | 25.0 | 80.0 | 86.0 |"]


def test_two_processes_are_compared_with_one_case_by_case(tmp_path):
    (tmp_path / "bench").mkdir()
    with (tmp_path / "bench" / "processes-cpu.jsonl").open("a") as file:
        for two in (9.0, 0.011):
            line = {"case": "a step", "seconds": {"1 × 2": 0.01, "2 × 1": two}, "bytes": 1000, "wire": 1010}
            file.write(json.dumps(line) + "\n")
        file.write(json.dumps({"case": "a job", "seconds": {"1 × 2": 50, "2 × 1": 60}}) + "\n")
    assert scale_page.processes(tmp_path).splitlines()[2:] == [
        "| a step | 10.0 ms | 11.0 ms | 1.10 | 1,000 | 1,010 |",
        "| a job | 50 s | 60 s | 1.20 | – | – |",
    ]
