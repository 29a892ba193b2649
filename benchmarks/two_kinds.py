"""How a table of two kinds of nodes should be given: accuracy of the planted classes, of shops made with five seeds.

    python -m benchmarks.two_kinds     # adds a line for each way to results/bench/two-kinds-cpu.jsonl

The shop is that of the tests (tests/shop.py): 500 customers and 300 products of four interests, which buying, words and
a few columns tell. The score is a logistic regression on the vectors of a tenth of all nodes, tested on the others; the
agreement is of k-means with four clusters with the interests.
"""

from __future__ import annotations

import copy
import json
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas
import torch
from torch_geometric.data import Data, HeteroData

from costa import COSTA, linear_probe
from costa.evaluate.clustering import cluster
from costa.graphs import as_graph, load_graph
from costa.runs.provenance import commit, versions
from tests.shop import write_shop

STORE = Path("results/bench/two-kinds-cpu.jsonl")
SEEDS = 5
KINDS = ("customer", "product")
HOPS = (0, 1, 2)


def without(graph: Data, *dropped: str) -> Data:
    """The graph without the features whose names have one of these in them."""
    graph = copy.copy(graph)
    kept = [place for place, name in enumerate(graph.feature_names) if not any(part in name for part in dropped)]
    x, names = graph.x.to_dense()[:, kept].contiguous(), [graph.feature_names[place] for place in kept]
    for name in ("table", "columns"):
        del graph[name]
    graph.x, graph.feature_names = x, names
    return graph


def typed(folder: Path, nodes: pandas.DataFrame, *, standardised: bool) -> Data:
    """The same nodes and purchases as a HeteroData, each kind's columns prepared alone."""
    data, row, links = HeteroData(), {}, pandas.read_csv(folder / "edges.csv", dtype=str)
    for kind in KINDS:
        own = nodes[nodes.kind == kind].drop(columns=["kind", "name", "label"]).dropna(axis=1, how="all")
        graph = as_graph(pandas.DataFrame({"source": [own.id.iloc[0]], "target": [own.id.iloc[1]]}), own)
        x = graph.x.to_dense()
        data[kind].x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6) if standardised else x
        data[kind].node_ids = own.id.tolist()
        row |= {node: (kind, place) for place, node in enumerate(own.id)}
    ends = [sorted((row[source], row[target])) for source, target in zip(links.From, links.To, strict=True)]
    index = torch.tensor([[customer[1], product[1]] for customer, product in ends]).T
    data["customer", "buys", "product"].edge_index = index
    data["customer", "buys", "product"].edge_weight = torch.tensor(links.weight.astype(float).to_numpy())
    return as_graph(data)


def ways(folder: Path) -> Iterator[tuple[str, Data]]:
    """The same shop, given in several ways."""
    nodes = pandas.read_csv(folder / "nodes.csv", dtype={"entity_id": str}).rename(columns={"entity_id": "id"})
    table = load_graph(folder)
    gaps = [f"{name}: missing" for name in ("town", "age", "price", "newsletter")]
    yield "one table, gaps and kind", table
    yield "one table, gaps, no kind", without(table, "kind=")
    yield "one table, neither kind nor where gaps are", without(table, "kind=", *gaps)
    split = nodes.assign(**{f"about {kind}": nodes.about.where(nodes.kind == kind) for kind in KINDS})
    with tempfile.TemporaryDirectory() as other:
        split.drop(columns="about").to_csv(Path(other) / "nodes.csv", index=False)
        (Path(other) / "edges.csv").write_bytes((folder / "edges.csv").read_bytes())
        yield "one table, the text in a column per kind", load_graph(other)
    yield "HeteroData", typed(folder, nodes, standardised=False)
    yield "HeteroData, each block standardised", typed(folder, nodes, standardised=True)


def main() -> None:
    """Measure every way, with the hops that the default chooses and with those of up to two edges."""
    logging.disable(logging.WARNING)
    scores: dict[tuple[str, str], list[tuple[float, float]]] = {}
    chosen: dict[tuple[str, str], list[str]] = {}
    for seed in range(SEEDS):
        with tempfile.TemporaryDirectory() as place:
            truth = write_shop(Path(place) / "shop", seed=seed)
            for way, graph in ways(Path(place) / "shop"):
                interests = sorted({interest for _, interest in truth.values()})
                y = torch.tensor([interests.index(truth[node][1]) for node in graph.node_ids])
                for hops in ("chosen", "0, 1, 2"):
                    model = COSTA(random_state=seed, settings={} if hops == "chosen" else {"encoder.powers": HOPS})
                    z = model.fit_transform(graph)
                    found = cluster(torch.from_numpy(z), y)
                    accuracy = linear_probe(z, y).accuracy.mean
                    scores.setdefault((way, hops), []).append((accuracy, found.nmi))
                    chosen.setdefault((way, hops), []).append(" ".join(map(str, model.settings_.encoder.powers)))
    STORE.parent.mkdir(parents=True, exist_ok=True)
    with STORE.open("a", encoding="utf-8") as file:
        for (way, hops), each in scores.items():
            accuracy, nmi = np.array(each).T
            line = {"way": way, "hops": hops, "chosen": chosen[way, hops], "seeds": SEEDS}
            line |= {"accuracy": accuracy.round(4).tolist(), "nmi": nmi.round(4).tolist()}
            file.write(json.dumps(line | {"commit": commit(), "versions": versions()}) + "\n")
            mean, spread = 100 * accuracy.mean(), 100 * accuracy.std(ddof=1)
            print(f"{way:45} {hops:8} {mean:5.1f} ± {spread:3.1f}   NMI {nmi.mean():.2f}   {chosen[way, hops]}")


if __name__ == "__main__":
    main()
