import csv
import json
import xml.etree.ElementTree as ElementTree

import pytest

from costa.bench import contestants
from costa.errors import InputError
from costa.experiments import reproduce


def write_bench(results, device, times):
    """A file as `costa bench runtime` writes it: milliseconds on 1,000, 2,000 and 3,000 nodes."""
    rows = [
        {
            "graph": f"amazon-computers-{nodes}",
            "nodes": nodes,
            "edges": 3 * nodes,
            "contestant": name,
            "ms_per_epoch": ms,
            "ms_spread": 0.0,
            "peak_memory_bytes": None,
            "seconds_to_probed": None,
            "status": "out-of-memory" if ms is None else "ok",
        }
        for name, column in times.items()
        for nodes, ms in zip((1000, 2000, 3000), column, strict=True)
    ]
    (results / "bench").mkdir(parents=True, exist_ok=True)
    record = {"schema": 1, "suite": "runtime", "device": device, "rows": rows}
    (results / "bench" / f"runtime-{device}.json").write_text(json.dumps(record))


TIMES = {"plain GRACE": [8.0, 16.5, None], "costa-sv": [0.5, 1.0, 2.0], "costa-sv (plain path)": [4.0, 5.0, 6.0]}


def test_the_contestants_of_the_figure_exist():
    there = {item.name for item in vars(contestants).values() if isinstance(item, contestants.Contestant)}
    assert set(reproduce.STYLES) <= there
    assert {twin.name for twin in contestants.TWINS} <= set(reproduce.STYLES)
    assert len(set(reproduce.STYLES.values())) == len(reproduce.STYLES)


def test_the_figure_and_its_data(costa, tmp_path):
    write_bench(tmp_path, "cpu", TIMES)
    result = costa("reproduce", "fig-runtime", "--results", tmp_path, "--out", tmp_path / "figures")
    assert result.code == 0, result.err
    paths = [tmp_path / "figures" / f"fig-runtime.{kind}" for kind in ("svg", "png", "csv")]
    assert result.out.split() == list(map(str, paths))
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(paths[0])
    rows = list(csv.DictReader(paths[2].open()))
    assert [(row["contestant"], row["nodes"], row["seconds"], row["status"]) for row in rows] == [
        ("plain GRACE", "1000", "8.0", "ok"),
        ("plain GRACE", "2000", "16.5", "ok"),
        ("plain GRACE", "3000", "", "out-of-memory"),
        ("costa-sv", "1000", "0.5", "ok"),
        ("costa-sv", "2000", "1.0", "ok"),
        ("costa-sv", "3000", "2.0", "ok"),
    ]


def test_lines_show_the_data_on_a_logarithmic_scale_with_the_device_above(tmp_path):
    write_bench(tmp_path, "cpu", TIMES)
    write_bench(tmp_path, "gpu", {"costa-mv": [1.0, 2.0, 3.0]})
    table = [row for name in ("cpu", "gpu") for row in reproduce._runtimes(tmp_path / "bench" / f"runtime-{name}.json")]
    figure = reproduce._draw_runtimes(table)
    first, second = figure.axes
    assert first.get_yscale() == "log"
    assert ("cpu" in first.get_title(), "gpu" in second.get_title()) == (True, True)
    lines = {line.get_label(): line.get_xydata().tolist() for line in first.lines}
    assert list(lines) == ["plain GRACE", "costa-sv"]
    assert lines["costa-sv"] == [[1000, 0.5], [2000, 1.0], [3000, 2.0]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["plain GRACE", "costa-mv", "costa-sv"]


def test_the_same_data_make_the_same_files(tmp_path):
    write_bench(tmp_path, "cpu", TIMES)
    made = [reproduce.reproduce(["fig-runtime"], tmp_path, tmp_path / out) for out in ("a", "b")]
    for first, second in zip(*made, strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_missing_data_name_the_command_that_makes_them(costa, tmp_path):
    result = costa("reproduce", "fig-runtime", "--results", tmp_path, "--out", tmp_path / "figures")
    assert result.code == 2
    assert "measure them with `costa bench runtime`." in result.err
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"device": "cpu", "rows": [{}]}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "runtime-cpu.json").write_text(text)
    with pytest.raises(InputError, match=r"runtime-cpu.json is damaged"):
        reproduce.reproduce(["fig-runtime"], tmp_path, tmp_path)


def test_an_unknown_target_is_refused_before_anything_is_drawn(tmp_path):
    write_bench(tmp_path, "cpu", TIMES)
    with pytest.raises(InputError, match="unknown target 'fig-x'; there are: performance, fig-runtime"):
        reproduce.reproduce(["fig-runtime", "fig-x"], tmp_path, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def test_the_help_lists_the_targets(costa):
    shown = costa("reproduce", "--help").out
    for name, target in reproduce.TARGETS.items():
        assert f"{name}  {target.description}" in shown
