"""A graph on disk."""

from costa.graphs import load_graph
from costa.memory import IMPORTS


def test_beside_other_processes_a_graph_has_less_memory():
    graph = load_graph("digits", memory="4GiB")
    whole = graph.memory
    assert graph.beside(3).memory == whole - 2 * IMPORTS
    assert graph.memory == whole
    assert graph.beside(3).num_edges == graph.num_edges
