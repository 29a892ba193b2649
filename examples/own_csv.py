"""Your own graph, from CSV files to vectors with ids: python examples/own_csv.py [FOLDER]

Two circles of friends who share a few acquaintances are written as edges.csv and features.csv, a model is trained on
them, and its vectors name the people nearest to the first one.
"""

import csv
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from costa import COSTA, load_graph
from costa.runs.vectors import write_vectors

CIRCLES, MEMBERS = ("north", "south"), 20


def write_graph(folder: Path) -> None:
    """Eighty acquaintances within each circle and ten across; each person has an age and a shoe size."""
    rng = random.Random(0)
    people = {circle: [f"{circle}-{i:02d}" for i in range(MEMBERS)] for circle in CIRCLES}
    links = [rng.sample(members, 2) for members in people.values() for _ in range(80)]
    links += [[rng.choice(members) for members in people.values()] for _ in range(10)]
    with (folder / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *links])
    with (folder / "features.csv").open("w", newline="") as file:
        rows = [[name, rng.randint(20, 60), rng.randint(36, 46)] for members in people.values() for name in members]
        csv.writer(file).writerows([["id", "age", "shoe"], *rows])


def main(folder: Path) -> None:
    """Write, train, write the vectors, and use them."""
    write_graph(folder)
    graph = load_graph(folder)
    # Ages and shoe sizes say nothing about the circles; a GCN mixes them along the edges in every epoch.
    model = COSTA(epochs=50, settings={"encoder.kind": "gcn"}).fit(graph)
    write_vectors(folder / "vectors.csv", model.transform(graph), graph.node_ids)

    with (folder / "vectors.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    ids = [row[0] for row in rows]
    z = np.array([row[1:] for row in rows], dtype=float)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    nearest = np.argsort(-(z @ z[0]))[1:6]
    print(f"nearest to {ids[0]}: {', '.join(ids[i] for i in nearest)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
