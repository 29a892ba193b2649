import json

import pytest
import torch

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.insight import degrees
from costa.insight.bias import Subject, measure
from reproduction.bias import page, study, toy
from reproduction.targets import TARGETS, Request, Setup


def test_each_encoder_variant_and_seed_has_a_line(small):
    lines = study.read(small, "nodes", "cora")
    assert {(line["encoder"], line["variant"], line["seed"]) for line in lines} == {
        (encoder, variant, seed) for encoder in study.ENCODERS for variant in study.VARIANTS for seed in (0, 1)
    }
    for line in lines:
        assert line["settings"] == {"draws": 12, "edge_rate": 0.3, "mask_rate": 0.3}
        assert {"commit", "versions", "device"} <= set(line)
        for of in ("augmented", "noise"):
            assert sum(line[of]["histogram"]) <= 80
            assert sum(row["nodes"] for row in line[of]["by_degree"]) == 80


def test_lines_are_strict_json(small):
    def refuse(constant):
        raise ValueError(constant)

    for path in small.rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            json.loads(line, parse_constant=refuse)


def test_trained_and_untrained_differ_and_so_do_the_variants(small):
    found = {
        (line["encoder"], line["variant"]): line["augmented"]["distance"][1]
        for line in study.read(small, "nodes", "cora")
        if line["seed"] == 0
    }
    assert len(set(found.values())) == len(found)


def test_what_is_there_is_not_measured_again(small, monkeypatch):
    before = {path: path.read_bytes() for path in small.rglob("*.jsonl")}

    def refuse(*arguments, **keywords):
        raise AssertionError("a graph was asked for")

    monkeypatch.setattr(study, "load_graph", refuse)
    monkeypatch.setattr(toy, "run", refuse)
    for name in page.OF_FIGURE:
        TARGETS[name].measure(Request(results=small), Setup(torch.device("cpu")))
    assert {path: path.read_bytes() for path in small.rglob("*.jsonl")} == before


def test_lines_of_other_settings_are_left_out(small, monkeypatch):
    monkeypatch.setattr(study, "SETTINGS", {**study.SETTINGS, "edge_rate": 0.5})
    assert study.read(small, "nodes", "cora") == []
    assert study.read(small, "nodes", "citeseer") == []


def test_every_sketch_has_a_line(small):
    lines = {line["variant"]: line for line in study.read(small, "sketches", "cora")}
    assert list(lines) == list(study.STUDIED_SKETCHES)
    assert lines["noise"]["errors"] > lines["gaussian"]["errors"]
    assert lines["svd"]["floor"] == pytest.approx(0, abs=1e-6)


def test_a_summary_is_of_the_floorless_bias():
    graph = planted_partition(60, 3, 12, degree=4, seed=0)
    degree = degrees.degrees(graph)
    subject = Subject(lambda x, adjacency, mask: adjacency @ x, graph.x, graph.edge_index)
    bias = measure(subject.draw(edge_rate=0.3), subject.h, 30, torch.Generator().manual_seed(0))
    found = study.summary(bias, degree)
    assert found["relative_bias"][1] == pytest.approx(float(bias.relative.median()), rel=0.1)
    assert found["correlation"]["bias"] == pytest.approx(degrees.rank_correlation(degree, bias.squared.clamp(min=0)))
    assert found["correlation"]["distance"] != found["correlation"]["bias"]
    assert found["exceeding"] == float(bias.exceeds().double().mean())


def test_length_and_direction_are_told_apart():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    across = torch.stack([-x[:, 1], x[:, 0], -x[:, 3], x[:, 2]], dim=1)  # at right angles, as long
    shifts = {"gnn_e": 0.5 * x.double(), "gnn_a": -0.25 * x.double(), "gnn_ea": across.double()}
    (row,) = study.lengths(x, shifts, torch.ones(6, dtype=torch.int64))
    assert (row["degree"], row["nodes"]) == ("1", 6)
    assert [row[f"length {name}"] for name in study.LENGTHS] == pytest.approx([1.5, 0.75, 2**0.5])
    assert [row[f"cosine {name}"] for name in study.LENGTHS] == pytest.approx([1, 1, 0.5**0.5])
    assert row["between"] == pytest.approx(-1)


def test_the_plane_s_noise_is_as_strong_as_its_graph_augmentation(small):
    (line,) = study.read(small, "plane", "cora")
    original = torch.tensor(line["original"])
    strength = {
        name: float((torch.tensor(line[name]["points"]) - original).square().sum(1).mean())
        for name in ("graph", "noise")
    }
    assert len(line["graph"]["points"]) == 12
    assert 0.3 < strength["noise"] / strength["graph"] < 3
    mean = torch.tensor(line["graph"]["points"]).mean(0)
    assert line["graph"]["distance"] == pytest.approx(float((mean - original).norm()), rel=1e-3)


def test_missing_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"there is no thing in .*; measure it with `python -m reproduction fig-x`\."):
        raise study.missing("thing", tmp_path, "fig-x")
