"""``costa datasets`` and ``costa methods``."""

from __future__ import annotations

from costa.cli.console import print_table, say


def datasets() -> None:
    """List the graphs that are known by name."""
    from costa.graphs.benchmarks import BENCHMARKS

    counts = ("nodes", "edges", "features", "classes")
    print_table(
        ("name", *counts, "what"),
        [[graph.name, *(f"{getattr(graph, count):,}" for count in counts), graph.description] for graph in BENCHMARKS],
        right=counts,
    )
    say(
        "\nAll but digits and words are downloaded once, checked and cached; --data-dir or COSTA_DATA names a folder"
        " with them."
    )


def methods() -> None:
    """List the available methods."""
    from costa.methods import get_method, method_names

    known = [(name, get_method(name)) for name in method_names()]
    print_table(("name", "what", "paper"), [[name, method.title, method.citation()] for name, method in known])
