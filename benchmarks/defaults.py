"""How good the defaults are on graphs that were not used for tuning: COSTA against baselines that need no training.

    python benchmarks/defaults.py [--seeds 3] [--graphs NAME …] [--development] [--set KEY=VALUE …]

The test graphs are planted partitions and nearest-neighbour graphs of scikit-learn's data; ``--development`` uses other
graphs, of these and more kinds (counts, weights, power laws, uninformative edges), for trying settings: they are scored
by validation accuracy, with training seeds from 1000 up.
The linear probe is ``random-10-10-80`` with 20 splits; numbers are percent, mean ± standard deviation over seeds ×
splits. A CPU needs about ten minutes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping

import numpy as np
import torch
from sklearn import datasets
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from costa import training
from costa.evaluate.probe import linear_probes
from costa.graphs import as_graph, load_graph
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.settings.layers import parse_assignments
from costa.settings.presets import resolve

METHODS = ("raw", "diffused", "hops", "untrained", "costa-sv", "costa-mv")
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
TEST: Makers = {
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
}
DEVELOPMENT: Makers = {
    "digits": lambda: load_graph("digits"),
    "cora": lambda: load_graph("cora"),
    "citeseer": lambda: load_graph("citeseer"),
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


def embed(name: str, graph: Data, seed: int, given: Mapping[str, str]) -> torch.Tensor:
    """Return vectors from the default settings and those chosen from the graph; trained methods also take ``given``."""
    method = get_method(name)
    trained = hasattr(method.Settings(), "train")
    resolved = resolve(method, graph, preset="none", given=given if trained else {})
    built = training.build(method, resolved.values, graph, seed, torch.device("cpu"))
    training.train(built, graph, getattr(resolved.values, "train", None))
    return built.embed(graph).float()


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--graphs", nargs="*")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    makers = DEVELOPMENT if options.development else TEST
    first = 1000 if options.development else 0
    given = parse_assignments(options.set)
    print("| graph | nodes | degree | " + " | ".join(options.methods) + " |")
    print("|---|---|---|" + "---|" * len(options.methods), flush=True)
    for name in options.graphs or makers:
        graph = makers[name]()
        row = [name, str(graph.num_nodes), f"{graph.num_edges / graph.num_nodes:.1f}"]
        for method in options.methods:
            # raw features are the same for every seed
            seeds = range(first, first + (options.seeds if get_method(method).random else 1))
            results = linear_probes([embed(method, graph, s, given) for s in seeds], graph.y, first_split=first)
            scores = [100 * v for r in results for v in (r.validation if options.development else r.accuracy).per_split]
            row.append(f"{statistics.mean(scores):.1f} ± {statistics.stdev(scores):.1f}")
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
