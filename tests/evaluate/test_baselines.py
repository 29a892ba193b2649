"""The baselines: what they are, and that their cache is only a cache."""

import pytest

from costa.evaluate import baselines
from costa.graphs.synthetic import planted_partition


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    return tmp_path


@pytest.fixture(scope="module")
def graph():
    return planted_partition(200, 2, 8, seed=0)


def test_once_for_a_graph_and_a_protocol(graph, empty_cache):
    told = []
    first = baselines.baseline_scores(graph, "random-10-10-80", 3, announce=told.append)
    again = baselines.baseline_scores(graph, "random-10-10-80", 3, announce=told.append)
    assert first == again
    assert len(told) == 1
    assert set(first) == {"raw", "diffused", "hops", "untrained"}
    assert min(first[name].accuracy for name in ("untrained", "diffused", "hops")) > first["raw"].accuracy
    other = planted_partition(200, 2, 8, seed=1)
    baselines.baseline_scores(graph, "random-20-80", 3, announce=told.append)
    baselines.baseline_scores(other, "random-10-10-80", 3, announce=told.append)
    assert len(told) == 3


def test_a_damaged_cache_is_made_anew(graph, empty_cache):
    first = baselines.baseline_scores(graph, "random-10-10-80", 2)
    (file,) = (empty_cache / "costa" / "floors").iterdir()
    file.write_text("{")
    assert baselines.baseline_scores(graph, "random-10-10-80", 2) == first


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(graph, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "file"))
    assert baselines.baseline_scores(graph, "random-10-10-80", 2)["raw"].accuracy > 0
