"""Two tables of ``docs/performance.md``: what training on parts takes, and what each method means by a part.

The first is from ``benchmarks/parts.py``. In the second, whether a method takes parts is what its class says.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from costa.memory import size
from costa.methods import METHODS, get_method
from costa.settings.groups import Train
from reproduction.tables import NOT_MEASURED, bench_lines, markdown, write_page

SKETCH = (
    "P has rows for a share of the group's nodes, so a row of the sketch is contrasted with fewer others, and H is"
    " centred over the group. `sketch.fixed = true`, one P for all nodes, is refused"
)
COLUMNS = "the moments of a column are those of the group's nodes, which vary from group to group"
WALKS = "its walks visit one node after the other, and no step reads the graph"
ON_PARTS: dict[str, tuple[str, str]] = {
    "costa-sv": ("no", SKETCH),
    "costa-mv": ("no", SKETCH),
    "grace": ("no", "a node's negatives are the other nodes of its group: fewer, and alike if parts are large"),
    "gca": ("no", "as GRACE; the centralities that weigh edges and attributes stay those of the whole graph"),
    "dgi": ("no", "the summary is the mean of the group, and rows change places within it"),
    "gmi": ("", "its negatives, edges and neighbours' means are laid out once, for all nodes"),
    "mvgrl": ("", "its second view is the diffusion of the whole graph"),
    "gbt": ("an estimate", COLUMNS),
    "gae": ("no", "edges to other groups are not reconstructed, and pairs without an edge are drawn within the group"),
    "vgae": ("no", "as GAE; the divergence, divided by the number of nodes, weighs more the smaller the group"),
    "bgrl": ("yes", "the loss is a mean over nodes, and each is compared with itself in the other view alone"),
    "cca-ssg": ("an estimate", COLUMNS),
    "node2vec": ("", WALKS),
    "deepwalk": ("", WALKS),
    "deepwalk-x": ("", WALKS),
    "raw": ("", "it is not trained"),
    "diffused": ("", "it is not trained"),
    "hops": ("", "it is not trained"),
    "untrained": ("", "it is not trained"),
}
"""Whether a method's loss on parts that no edge leaves is that of the graph, on average over the nodes; and why.

Empty for methods that take no parts.
"""


def write(results: Path, out: Path) -> list[Path]:
    """Fill the tables in ``performance.md``, next to the folder of figures."""
    tables = {"table-parts": measured, "table-on-parts": on_parts}
    return [write_page(out.parent / "performance.md", tables, results)]


def on_parts(results: Path) -> str:
    """A row for each method of the registry; the store is not read."""
    rows = []
    for name in METHODS:
        same, why = ON_PARTS[name]
        rows.append([f"`{name}`", "yes" if get_method(name).takes_parts else "no", same or "–", why])
    return markdown(["method", "takes parts", "the same loss", "why"], rows)


def measured(results: Path) -> str:
    """A row for the last line of each run, after what a step on the whole graph would be."""
    lines = list({line["run"]: line for line in bench_lines(results, "parts-cpu")}.values())
    rows, said = [], ""
    for line in lines:
        accuracies = [100 * accuracy for accuracy in line["accuracy"]]
        row = [line["run"], *["–"] * 7, f"{statistics.fmean(accuracies):.1f}"]
        if "parts" in line:
            groups = Train(parts=line["parts"], group=line.get("group", Train.group)).groups
            row[1:6] = [f"{number:,}" for number in (line["parts"], line["nodes"] // groups, line["epochs"])] + [
                f"{line[stage]:.0f}" for stage in ("train_seconds", "seconds")
            ]
            row[6:8] = [size(line[f"peak_{kind}_bytes"]) for kind in ("anonymous", "resident")]
            said = said or whole(line["nodes"], groups)
        rows.append(row)
    header = ["", "parts", "nodes in a step", "epochs", "training, s", "in all, s", "anonymous", "resident", "accuracy"]
    return f"{said}\n\n{markdown(header, rows)}" if rows else NOT_MEASURED


def whole(nodes: int, groups: int) -> str:
    """What GRACE compares in an epoch on the whole graph, and on groups.

    >>> print(whole(1000, 10))
    GRACE on the whole graph compares each of n = 1,000 nodes with all others: n² = 1.00·10⁶ similarities between the
    views and as many within each, of which one matrix of float32 would have 0.0 GB. The 10 groups of an epoch compare
    10·(n/10)² = n²/10.
    """
    mantissa, exponent = f"{nodes**2:.2e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return (
        f"GRACE on the whole graph compares each of n = {nodes:,} nodes with all others: n² = {mantissa}·10{power}"
        " similarities between the\nviews and as many within each, of which one matrix of float32 would have"
        f" {4 * nodes**2 / 1e9:.1f} GB. The {groups} groups of an epoch compare\n{groups}·(n/{groups})² = n²/{groups}."
    )
