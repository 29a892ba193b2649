"""``costa bias`` and ``costa bounds``."""

import csv

import pytest
import torch

from costa.graphs import load_graph


class TestBias:
    def test_digits(self, costa, tmp_path):
        result = costa("bias", "digits", "--draws", 3, "--out", tmp_path / "bias", "--device", "cpu")
        assert result.code == 0, result.err
        lines = result.out.splitlines()
        assert lines[0].startswith("digits: 1,797 nodes")
        assert lines[3].split()[:2] == ["degree", "nodes"]
        assert any(line.split()[:2] == ["all", "1,797"] for line in lines)
        assert "At these rates dropping edges would" in result.out
        assert [line for line in lines if line.endswith(("bias.png", "nodes.csv"))] == lines[-2:]
        assert (tmp_path / "bias" / "bias.png").read_bytes().startswith(b"\x89PNG")

    def test_a_folder_keeps_its_names(self, costa, own_graph, tmp_path):
        result = costa(
            "bias", own_graph, "--draws", 3, "--edge-rate", 0.2, "--mask-rate", 0, "--out", tmp_path / "bias"
        )
        assert result.code == 0, result.err
        assert "attributes masked" not in result.out
        rows = list(csv.DictReader((tmp_path / "bias" / "nodes.csv").open()))
        assert rows[7]["node"] == "person 07"
        graph = load_graph(own_graph)
        assert [int(row["degree"]) for row in rows] == torch.bincount(graph.edge_index[1], minlength=60).tolist()

    def test_a_trained_encoder(self, costa, digits_run, tmp_path):
        out = ("--draws", 3, "--out", tmp_path / "bias", "--device", "cpu")
        trained = costa("bias", "digits", "--run", digits_run, *out)
        assert trained.code == 0, trained.err
        assert str(digits_run) in trained.out.splitlines()[0]
        assert trained.out.splitlines()[4:] != costa("bias", "digits", *out).out.splitlines()[4:]

    def test_a_run_on_other_features_is_refused(self, costa, digits_run, own_graph, tmp_path):
        result = costa("bias", own_graph, "--run", digits_run, "--draws", 3, "--out", tmp_path / "bias")
        assert result.code == 2
        assert "has 6 features" in result.err
        assert not (tmp_path / "bias").exists()

    @pytest.mark.parametrize("arguments", [("--edge-rate", 1), ("--edge-rate", 0, "--mask-rate", 0)])
    def test_bad_rates_are_refused(self, costa, tmp_path, arguments):
        result = costa("bias", "digits", *arguments, "--out", tmp_path / "bias")
        assert (result.code, result.err.startswith("costa: ")) == (2, True)
        assert not (tmp_path / "bias").exists()


class TestBounds:
    def test_digits(self, costa):
        result = costa("bounds", "digits", "--raw", "--k", 16, "--k", 32, "--sketch", "selection", "--device", "cpu")
        assert result.code == 0, result.err
        lines = result.out.splitlines()
        assert lines[0].startswith("digits, its features: n = 1,797, d = 64, effective rank ")
        rows = [line.split() for line in lines if line.strip().startswith("selection")]
        assert [row[1] for row in rows] == ["16", "32"]
        assert all(float(row[3]) < float(row[4]) < float(row[6]) < float(row[5]) for row in rows)
        assert " for selection: " in lines[-1]

    def test_a_folder_of_ones_own(self, costa, own_graph):
        result = costa("bounds", own_graph, "--k", 8, "--device", "cpu")
        assert result.code == 0, result.err
        assert "n = 60, d = 512" in result.out

    def test_a_run(self, costa, digits_run):
        result = costa("bounds", "digits", "--run", digits_run, "--k", 8, "--device", "cpu")
        assert result.code == 0, result.err
        both = costa("bounds", "digits", "--run", digits_run, "--raw")
        assert (both.code, "choose the graph's features or a model's vectors" in both.err) == (2, True)
