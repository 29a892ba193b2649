import json
import re

import pytest

from costa.errors import InputError
from reproduction import tables, targets
from reproduction.targets import Request


def row(graph, contestant, ms, memory=None, probed=None):
    return {
        "graph": graph,
        "nodes": 1000,
        "contestant": contestant,
        "ms_per_epoch": ms,
        "peak_memory_bytes": memory,
        "seconds_to_probed": probed,
    }


TWINS = ("plain COSTA one view", "plain COSTA two views", "plain GRACE", "plain GCA")


@pytest.fixture
def results(tmp_path):
    """A store with made-up numbers, as the benches and ``store.record`` write it."""
    bench = tmp_path / "results" / "bench"
    bench.mkdir(parents=True)

    def write(suite, rows, device="nvidia-h200", **more):
        (bench / f"{suite}-{device}.json").write_text(json.dumps({"rows": rows} | more))

    def race(graph):
        plain = [row(graph, name, 8.0 * (i + 1), 2**30) for i, name in enumerate(TWINS)]
        return [*plain, row(graph, "costa-sv", 0.5, 2**28), row(graph, "costa-mv", 2.0, 2**29)]

    write("runtime", race("small") + race("large"))
    write("physics", [r | {"ms_per_epoch": None} if r["contestant"] == "plain GRACE" else r for r in race("physics")])
    write("cora", race("cora"))
    write("cora", [*race("cora"), row("cora", "costa-sv (countsketch 0.25)", 1.6)], "cpu", threads=2)
    write("memory", [row("m", "fast", 1.0, 10 * 2**20), row("m", "plain", 9.0, 90 * 2**20)])
    write("seeds", [row("cora", "one", None, probed=0.25), row("cora", "twenty", None, probed=0.6)])
    write("profile", [{"part": part, "us": 100.0, "floor_us": 40.0, "kernels": 3.0} for part in ("sketch", "rest")])
    for method in ("costa-sv", "costa-mv"):
        for dataset in tables.KERNELS:
            folder = tmp_path / "results" / "experiments" / "kernels" / method
            folder.mkdir(parents=True, exist_ok=True)
            lines = [
                json.dumps({"settings": {"train.kernels": form}, "probes": [{"accuracy": {"mean": mean}}]})
                for form, means in (("plain", (0.80, 0.82)), ("fast", (0.81, 0.82)))
                for mean in means
            ]
            (folder / f"{dataset}.jsonl").write_text("\n".join(lines) + "\n")
    folder = tmp_path / "results" / "experiments" / "frugal" / "costa-sv"
    folder.mkdir(parents=True)
    lines = [
        json.dumps({"settings": {"sketch.kind": kind}, "probes": [{"accuracy": {"mean": mean}}]})
        for kind, means in (("gaussian", (0.80, 0.82)), ("countsketch", (0.81, 0.83)))
        for mean in means
    ]
    (folder / "cora.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "results"


@pytest.fixture
def page(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    places = "\n".join(f"<!-- {name} -->\nold\n<!-- end of {name} -->" for name in tables.TABLES)
    (docs / "performance.md").write_text(f"before\n{places}\nafter\n")
    return docs / "performance.md"


def cells(table):
    return [re.split(r"\s*\|\s*", line.strip("| ")) for line in table.splitlines()]


def test_speed_is_the_ratio_to_each_twin(results):
    table = cells(tables.speed(results))
    assert ["small", "H200", "costa-sv", "0.50", "0.25 GiB", "16.0", "48.0", "64.0"] in table
    assert ["small", "H200", "costa-mv", "2.00", "0.50 GiB", "8.0", "12.0", "16.0"] in table
    assert ["physics", "H200", "costa-sv", "0.50", "0.25 GiB", "16.0", "out of memory", "64.0"] in table
    assert table[-1] == ["cora", "2 CPU cores", "costa-sv (countsketch 0.25)", "1.60", "", "10.0", "15.0", "20.0"]
    assert {line[0] for line in table[2:]} == {"small", "large", "physics", "cora"}


def test_the_other_tables(results):
    assert cells(tables.memory(results))[-1] == ["1,000", "10 MiB", "90 MiB"]
    assert cells(tables.seeds(results))[-1] == ["twenty", "0.60", "2.40"]
    assert cells(tables.profile(results))[-1] == ["all", "200", "80", "6"]
    assert cells(tables.kernels(results))[-1] == [
        "amazon-photo", "costa-mv", "81.00 ± 1.41", "81.50 ± 0.71", "+0.50",
    ]  # fmt: skip
    assert cells(tables.frugal(results))[-1] == ["CountSketch 0.25, width 128", "82.00 ± 1.41"]


def test_the_page_gets_them_in_their_places_twice_alike(results, page):
    for _ in range(2):
        assert targets.reproduce(["performance"], Request(results, page.parent / "figures")) == [page]
        text = page.read_text()
        assert text.startswith("before\n<!-- table-speed -->\n| graph | device |")
        assert text.endswith("<!-- end of table-frugal -->\nafter\n")
        assert "old" not in text


def test_what_is_missing_is_named_before_the_page_is_touched(results, page):
    (results / "experiments" / "kernels" / "costa-mv" / "cora.jsonl").unlink()
    before = page.read_text()
    with pytest.raises(InputError, match=r"costa train cora --method costa-mv --set encoder.kind=gcn --seeds 5"):
        targets.reproduce(["performance"], Request(results, page.parent / "figures"))
    frugal = results / "experiments" / "frugal" / "costa-sv" / "cora.jsonl"
    lines = frugal.read_text()
    frugal.unlink()
    with pytest.raises(InputError) as problem:
        tables.frugal(results)
    assert "costa train cora --method costa-sv --set encoder.kind=gcn --seeds 5 --out FOLDER" in str(problem.value)
    assert "--set sketch.kind=countsketch --set sketch.ratio=0.25 --set encoder.width=128" in str(problem.value)
    assert f"reproduction.store.record('{results}/experiments/frugal', FOLDER)" in str(problem.value)
    frugal.write_text(lines)
    (results / "bench" / "seeds-nvidia-h200.json").write_text("{")
    with pytest.raises(InputError, match="measure it with `python -m reproduction bench-seeds`"):
        targets.reproduce(["performance"], Request(results, page.parent / "figures"))
    assert page.read_text() == before


def test_a_page_without_the_place_says_how_to_mark_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(InputError, match="put <!-- t --> and <!-- end of t --> on lines of their own"):
        tables.fill(page, "t", "| a |")
