"""Training on a CUDA device: the same start as on a CPU, the same bits when asked for, the same quality."""

import pytest
import torch

from costa import training
from costa.evaluate.probe import linear_probe
from costa.graphs import load_graph
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
KINDS = ["gaussian", "rademacher", "sparse", "countsketch", "selection", "svd", "noise", "none"]


@pytest.fixture(scope="module")
def graph():
    return planted_partition(300, 3, 40, seed=0)


@pytest.fixture(scope="module")
def train(merged):
    def train(graph, device, name="costa-mv", **values):
        values = merged(name, graph, **values)
        built = training.build(get_method(name), values, graph, 0, torch.device(device))
        start = built.encoder.layers[0].weight.detach().cpu().clone()
        outcome = training.train(built, graph, values.train)
        assert outcome.status == "ok"
        return start, built.embed(graph).cpu()

    return train


def test_a_seed_starts_from_the_same_weights_on_both_devices(train, graph):
    assert torch.equal(train(graph, "cuda", train__epochs=1)[0], train(graph, "cpu", train__epochs=1)[0])


@pytest.mark.parametrize("edges", ["drop", "permute"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_sketch_trains(train, graph, kind, edges):
    _, z = train(
        graph, "cuda", sketch__kind=kind, sketch__k=20, sketch__noise_std=0.1, sketch__density=0.1,
        augment__edges=edges, train__epochs=3,
    )  # fmt: skip
    assert z.isfinite().all()


@pytest.mark.parametrize(
    # of a CountSketch with as many rows as nodes not all are contrasted
    ("kind", "k", "noise"),
    [*((kind, 20, 0.1) for kind in KINDS), ("countsketch", 300, 0.0)],
)
def test_deterministic_means_the_same_bits(train, graph, kind, k, noise):
    training.make_deterministic()
    try:
        first, second = (
            train(graph, "cuda", sketch__kind=kind, sketch__k=k, sketch__noise_std=noise, train__epochs=5)[1]
            for _ in range(2)
        )
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(first, second)


def test_the_devices_agree_in_quality(train):
    graph = load_graph("digits")
    scores = [
        linear_probe(train(graph, device, train__epochs=50)[1], graph.y, repeats=10).accuracy.mean
        for device in ("cpu", "cuda")
    ]
    assert abs(scores[0] - scores[1]) < 0.02
