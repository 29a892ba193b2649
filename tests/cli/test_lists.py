"""``costa datasets`` and ``costa methods``."""

from costa.graphs.benchmarks import BENCHMARKS
from costa.methods import METHODS, get_method


def test_every_dataset_has_a_line(costa):
    lines = {line.split()[0]: line for line in costa("datasets").out.splitlines() if line.strip()}
    for graph in BENCHMARKS:
        assert f"{graph.nodes:,}" in lines[graph.name]
        assert graph.description in lines[graph.name]


def test_every_method_has_a_line(costa):
    lines = {line.split()[0]: line for line in costa("methods").out.splitlines() if line.strip()}
    for name in METHODS:
        assert get_method(name).title in lines[name]
