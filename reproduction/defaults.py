"""How good the defaults are on graphs that no one tuned for: COSTA against baselines that need no training.

    python -m reproduction.defaults [--graphs NAME …] [--methods NAME …] [--seeds 5] [--development]
    python -m reproduction defaults        # the page

The graphs are made ones (planted partitions, neighbours in scikit-learn's data, bags of words, power laws, edges that
mislead), benchmarks, and real graphs from the folder ``development`` beside the benchmarks' data. For each method and
seed the linear probe gives accuracy and macro-F1 on 20 splits, with 10% and with 2% of the labels; the scores are
lines of ``results/experiments/defaults/GRAPH.jsonl``. ``--development`` stores nothing: it prints validation accuracies
with seeds and splits from 1000 up, for trying ``--set KEY=VALUE``.

Differences are taken split by split, after averaging the seeds. *Below* means by more than half a point and by more
than two standard errors; *above* by more than two standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from costa import training
from costa.evaluate import health
from costa.evaluate.baselines import BASELINES
from costa.evaluate.probe import linear_probe
from costa.graphs import as_graph, load_graph
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.runs.provenance import commit, versions
from costa.settings.layers import parse_assignments
from costa.settings.presets import resolve

STORE = Path("results/experiments/defaults")
PROTOCOLS = {"10%": "random-10-10-80", "2%": "random-2-2-96"}
GCN = {"encoder.kind": "gcn"}
CONTESTANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: (name, {}) for name in BASELINES},
    "two views": ("costa-mv", {}),
    "one view": ("costa-sv", {}),
    "two views, GCN": ("costa-mv", GCN),
    "one view, GCN": ("costa-sv", GCN),
}
"""What is compared: the method and what is set. The GCNs are the defaults before hops."""
OURS = "two views"
BELOW = 0.5
SPLITS = 20
FEW = 1000
"""Graphs with fewer nodes are not probed with 2% of the labels."""
NEIGHBOURS = 6


def neighbours(x: np.ndarray, y: np.ndarray) -> Data:
    """Link each row to its six nearest rows by standardised columns; the features stay unscaled."""
    links = kneighbors_graph(StandardScaler().fit_transform(x), NEIGHBOURS)
    return as_graph(links, x.astype("float32"), labels=y)


def blobs(seed: int, **settings: float) -> Data:
    """scikit-learn's ``make_classification`` with a neighbour graph."""
    return neighbours(*datasets.make_classification(random_state=seed, **settings))


def words(n: int, classes: int, seed: int) -> Data:
    """A planted partition whose features are bags of words: 500 binary columns, each class using some more often."""
    graph = planted_partition(n, classes, 2, degree=5, homophily=0.75, seed=seed)
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random((classes, 500)) < 0.1, 0.06, 0.015)
    graph.x = torch.from_numpy((rng.random((n, 500)) < rates[graph.y.numpy()]).astype("float32"))
    return graph


def counts(n: int, classes: int, seed: int) -> Data:
    """A planted partition whose features are 200 word counts: one class uses a word three times as often as another."""
    graph = planted_partition(n, classes, 2, degree=6, homophily=0.7, seed=seed)
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random((classes, 200)) < 0.1, 0.3, 0.1)
    lengths = rng.gamma(2.0, 0.5, (n, 1))
    graph.x = torch.from_numpy(rng.poisson(lengths * rates[graph.y.numpy()]).astype("float32"))
    return graph


def power_law(n: int, classes: int, features: int, seed: int) -> Data:
    """A few nodes with very many neighbours: edges are drawn by Pareto weights, 7 in 10 within a class."""
    graph = planted_partition(n, classes, features, degree=0, signal=1.5, seed=seed)
    rng = np.random.default_rng(seed)
    y, weight = graph.y.numpy(), rng.pareto(1.5, n) + 0.3
    source = rng.choice(n, 3 * n, p=weight / weight.sum())
    target = np.empty_like(source)
    within = rng.random(source.size) < 0.7
    for c in range(classes):
        for same, members in ((True, y == c), (False, y != c)):
            edges = (y[source] == c) & (within == same)
            target[edges] = rng.choice(n, edges.sum(), p=members * weight / (members * weight).sum())
    return as_graph(np.stack([source, target]), graph.x.numpy(), labels=y)


def geometric(n: int, seed: int) -> Data:
    """Points in the unit square, joined if they are close; the nine classes are squares, the features are noisy."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    y = (places * 3).astype(int) @ [3, 1]
    x = rng.standard_normal((n, 16)) + 2 * np.eye(9, 16)[y]
    return as_graph(radius_neighbors_graph(places, (5 / np.pi / n) ** 0.5), x.astype("float32"), labels=y)


def weighted(seed: int) -> Data:
    """Overlapping clusters; each point is linked to its ten nearest, and longer edges weigh less."""
    x, y = datasets.make_blobs(900, 8, centers=5, cluster_std=5.0, random_state=seed)
    links = kneighbors_graph(x, 10, mode="distance")
    links.data = np.exp(-((links.data / links.data.mean()) ** 2))
    return as_graph(links, x.astype("float32"), labels=y)


def diabetes() -> Data:
    """Disease progression after a year, in thirds."""
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    return neighbours(x, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])))


Makers = Mapping[str, Callable[[], Data]]
MADE: Makers = {
    "breast-cancer": lambda: neighbours(*datasets.load_breast_cancer(return_X_y=True)),
    "blobs": lambda: blobs(0, n_samples=1500, n_features=40, n_informative=8, n_classes=4, n_clusters_per_class=2),
    "blobs-wide": lambda: blobs(1, n_samples=800, n_features=300, n_informative=20, n_classes=3),
    "words-2000": lambda: words(2000, 6, 0),
    "words-600": lambda: words(600, 3, 1),
    "planted-300": lambda: planted_partition(300, 3, 20, degree=6, homophily=0.7, signal=1.5, seed=0),
    "planted-1200": lambda: planted_partition(1200, 5, 50, degree=8, homophily=0.7, signal=1.5, seed=1),
    "planted-dense": lambda: planted_partition(1200, 5, 50, degree=60, homophily=0.4, signal=1.0, seed=2),
    "planted-thin": lambda: planted_partition(1200, 4, 30, degree=2, homophily=0.8, signal=2.0, seed=3),
    "planted-mixed": lambda: planted_partition(1200, 4, 30, degree=10, homophily=0.4, signal=2.0, seed=4),
    "planted-4000": lambda: planted_partition(4000, 8, 64, degree=10, homophily=0.6, signal=1.5, seed=5),
    "wine": lambda: neighbours(*datasets.load_wine(return_X_y=True)),
    "iris": lambda: neighbours(*datasets.load_iris(return_X_y=True)),
    "blobs-1000": lambda: blobs(1000, n_samples=1000, n_features=30, n_informative=6, n_classes=3),
    "words-1500": lambda: words(1500, 5, 1000),
    "planted-500": lambda: planted_partition(500, 4, 24, degree=7, homophily=0.75, signal=1.5, seed=1001),
    "planted-1500": lambda: planted_partition(1500, 6, 40, degree=5, homophily=0.6, signal=1.5, seed=1002),
    "planted-3000": lambda: planted_partition(3000, 5, 32, degree=30, homophily=0.4, signal=1.0, seed=1003),
    "planted-few-columns": lambda: planted_partition(1000, 3, 5, degree=6, homophily=0.7, signal=1.5, seed=1004),
    "planted-many-columns": lambda: planted_partition(700, 3, 200, degree=4, homophily=0.7, signal=3.0, seed=1005),
    "planted-apart": lambda: planted_partition(1000, 4, 20, degree=10, homophily=0.1, signal=1.5, seed=1006),
    "planted-by-chance": lambda: planted_partition(800, 3, 16, degree=6, homophily=0.33, signal=2.0, seed=1007),
    "power-law": lambda: power_law(1500, 4, 30, 1008),
    "geometric": lambda: geometric(900, 1009),
    "weighted": lambda: weighted(1010),
    "counts": lambda: counts(1000, 4, 1011),
    "diabetes": diabetes,
}


BENCHMARKS = ("digits", "cora", "citeseer", "pubmed", "dblp", "amazon-photo")
REAL = ("facebook", "twitch-de", "twitch-engb", "minesweeper", "cornell", "wisconsin", "wordnet")


def graph_called(name: str) -> Data:
    """One of the graphs; real ones are files in the folder ``development`` of ``COSTA_DATA``."""
    if name in MADE:
        return MADE[name]()
    if name in REAL:
        return load_graph(str(Path(os.environ["COSTA_DATA"]) / "development" / f"{name}.npz"))
    return load_graph(name)


def embedder(
    contestant: str, graph: Data, device: torch.device, given: Mapping[str, Any] | None = None
) -> Callable[[int], tuple[torch.Tensor, str, float]]:
    """Of a seed: vectors, how training ended, and seconds of both; ``given`` are settings of trained methods."""
    name, fixed = CONTESTANTS[contestant]
    method = get_method(name)
    trained = hasattr(method.Settings(), "train")
    resolved = resolve(method, graph, given={**fixed, **(given or {})} if trained else {})
    where = device if trained else torch.device("cpu")

    def embed(seed: int) -> tuple[torch.Tensor, str, float]:
        began = time.perf_counter()
        trained, outcome, z = training.train_and_embed(method, resolved.values, graph, seed=seed, device=where)
        status = health.ending(trained, outcome, z, graph.x)
        return z.float(), status, time.perf_counter() - began

    return embed


def run(
    name: str,
    contestants: Iterable[str],
    seeds: Sequence[int],
    device: torch.device,
    store: Path = STORE,
    *,
    probe: bool = True,
) -> None:
    """Train, probe and store each contestant with each seed on one graph; a method without randomness has one seed.

    Without ``probe`` a line only says how training ended.
    """
    graph = graph_called(name)
    store.mkdir(parents=True, exist_ok=True)
    for contestant in contestants:
        random = get_method(CONTESTANTS[contestant][0]).random
        embed = embedder(contestant, graph, device)
        for seed in seeds if random else [0]:
            z, status, seconds = embed(seed)
            scores = {}
            for label, protocol in PROTOCOLS.items():
                if probe and (label == "10%" or graph.num_nodes >= FEW):
                    result = linear_probe(z, graph.y, protocol, repeats=SPLITS, device=device)
                    scores[label] = {
                        "accuracy": result.accuracy.per_split,
                        "macro_f1": result.macro_f1.per_split,
                    }
            line = {
                "graph": name,
                "nodes": graph.num_nodes,
                "contestant": contestant,
                "seed": seed,
                "status": status,
                "seconds": round(seconds, 3),
                "device": device.type,
                "scores": scores,
                "commit": commit(),
                "versions": versions(),
            }
            with (store / f"{name}.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


Scores = Mapping[str, np.ndarray]
"""The mean over the seeds on each split, for each contestant."""


def read(name: str, label: str, measure: str = "accuracy", store: Path = STORE) -> Scores:
    """The stored scores of a graph, in percent; the last line of a contestant and seed that has any counts."""
    lines = [line for line in lines_of(name, store) if line["scores"]]
    latest = {(line["contestant"], line["seed"]): line["scores"].get(label) for line in lines}
    found: dict[str, list[Sequence[float]]] = {}
    for (contestant, _), scores in latest.items():
        if scores is not None:
            found.setdefault(contestant, []).append(scores[measure])
    return {contestant: 100 * np.mean(values, axis=0) for contestant, values in found.items()}


def lines_of(name: str, store: Path = STORE) -> list[dict[str, Any]]:
    """The stored lines of a graph."""
    path = store / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def difference(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """The mean difference over the splits, and its standard error.

    >>> difference(np.array([2.0, 4.0]), np.array([1.0, 1.0]))
    (2.0, 1.0)
    """
    apart = ours - theirs
    return float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(len(apart))


def verdict(mean: float, error: float) -> str:
    """``above``, ``below`` or ``level``.

    >>> verdict(0.3, 0.1), verdict(-0.4, 0.1), verdict(-0.6, 0.1), verdict(-0.6, 0.5)
    ('above', 'level', 'below', 'level')
    """
    if mean > 2 * error:
        return "above"
    return "below" if mean < -BELOW and mean < -2 * error else "level"


def graph_names(store: Path = STORE) -> list[str]:
    """The graphs that have stored scores: benchmarks, real graphs, made ones."""
    return [name for name in (*BENCHMARKS, *REAL, *MADE) if (store / f"{name}.jsonl").exists()]


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=[*BENCHMARKS, *REAL, *MADE])
    parser.add_argument("--methods", nargs="*", default=list(CONTESTANTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--no-probe", action="store_true", help="only train, to see how training ends")
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    device = training.resolve_device("auto")
    for name in options.graphs:
        if options.development:
            _print_validation(name, options.methods, options.seeds, device, parse_assignments(options.set))
        else:
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            run(name, options.methods, seeds, device, probe=not options.no_probe)


def _print_validation(
    name: str, contestants: Sequence[str], seeds: int, device: torch.device, given: Mapping[str, Any]
) -> None:
    graph = graph_called(name)
    for contestant in contestants:
        embed = embedder(contestant, graph, device, given)
        for label, protocol in PROTOCOLS.items():
            scores: list[float] = []
            for seed in range(1000, 1000 + seeds):
                z, _, _ = embed(seed)
                result = linear_probe(z, graph.y, protocol, first_split=1000, device=device)
                scores += result.validation.per_split if result.validation else []
            print(f"{name:22} {contestant:16} {label:>4} {100 * statistics.mean(scores):.1f}", flush=True)


if __name__ == "__main__":
    main()
