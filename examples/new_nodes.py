"""New nodes after training: a model fitted on yesterday's graph embeds the nodes of today.

    python examples/new_nodes.py

A fifth of the digits has not arrived yet. The model is fitted once, on the others. When the new digits arrive, with
their features and links, it gives them vectors, and a classifier trained before on the old vectors classifies them.
"""

from __future__ import annotations

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from costa import COSTA, load_graph


def main() -> None:
    """Fit on four fifths of the nodes, predict the last fifth."""
    today = load_graph("digits")
    arrived = torch.rand(today.num_nodes, generator=torch.Generator().manual_seed(0)) < 0.8
    yesterday = today.subgraph(arrived)

    model = COSTA(views=1, epochs=30, random_state=0).fit(yesterday)
    print(f"fitted on {yesterday.num_nodes} nodes and {yesterday.num_edges // 2} edges")

    # rows of length one, as in the linear probe
    classifier = make_pipeline(Normalizer(), LogisticRegression(C=100, max_iter=1000))
    z, y = model.transform(yesterday), yesterday.y.numpy()
    labelled = slice(0, 100)
    classifier.fit(z[labelled], y[labelled])
    print(f"trained on 100 labels; accuracy on the other old nodes: {classifier.score(z[100:], y[100:]):.1%}")

    new = (~arrived).numpy()
    print(f"{new.sum()} nodes arrive, with {(today.num_edges - yesterday.num_edges) // 2} edges")
    z_new, y_new = model.transform(today)[new], today.y.numpy()[new]
    print(f"accuracy on the new nodes: {classifier.score(z_new, y_new):.1%}")
    pixels = LogisticRegression(C=100, max_iter=1000).fit(yesterday.x[labelled], y[labelled])
    print(f"the same from pixels, without the graph: {pixels.score(today.x[~arrived], y_new):.1%}")


if __name__ == "__main__":
    main()
