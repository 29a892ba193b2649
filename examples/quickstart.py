"""Vectors for the nodes of a graph: evaluated, clustered, saved and loaded.

    python examples/quickstart.py

The graph is 1,797 handwritten digits, each linked to its nearest neighbours; it needs no download. Labels are used only
to evaluate, never to train.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from costa import COSTA, linear_probe, load_graph


def main() -> None:
    """Fit, evaluate, cluster, save, load."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # explains the chosen settings
    graph = load_graph("digits")
    model = COSTA(views=1, epochs=30, random_state=0).fit(graph)
    z = model.transform(graph)
    print(f"\n{len(z)} nodes, {z.shape[1]} numbers each, columns {', '.join(model.get_feature_names_out()[:2])}, …")

    # the classifier is trained on two nodes in a hundred
    for what, vectors in (("pixels", graph.x), ("COSTA's vectors", z)):
        print(f"linear probe on {what:<16} {linear_probe(vectors, graph.y, 'random-2-2-96').accuracy}")
    for what, vectors in (("pixels", graph.x), ("COSTA's vectors", z)):
        clusters = KMeans(10, n_init=4, random_state=0).fit_predict(vectors)
        print(f"k-means on {what:<21} NMI {normalized_mutual_info_score(graph.y, clusters):.2f} with the ten digits")

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "digits-model"
        model.save(folder)
        again = COSTA.load(folder)
        print(f"saved as {' and '.join(sorted(file.name for file in folder.iterdir()))}")
        print(f"loaded, it gives the same vectors: {bool((again.transform(graph) == z).all())}")


if __name__ == "__main__":
    main()
