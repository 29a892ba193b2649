"""Several initialisations in one: the losses, weights and vectors that each would have alone."""

import dataclasses

import pytest
import torch

from costa import settings, training
from costa.methods import get_method
from costa.methods.base import stack, state_of
from costa.nn import Adjacency, SparseMatrix

CPU = torch.device("cpu")
SEEDS = [0, 1, 7]
CASES = {
    "gaussian": {"sketch.kind": "gaussian"},
    "rademacher, both views' negatives": {"sketch.kind": "rademacher", "loss.kind": "both"},
    "sparse": {"sketch.kind": "sparse", "sketch.density": 0.05},
    "countsketch": {"sketch.kind": "countsketch"},
    "fixed": {"sketch.fixed": True},
    "fixed countsketch": {"sketch.kind": "countsketch", "sketch.fixed": True, "sketch.center": False},
    "noise on a sketch": {"sketch.noise_std": 0.3},
    "noise": {"sketch.kind": "noise", "sketch.noise_std": 0.3},
    "none": {"sketch.kind": "none"},
    "edges dropped": {"augment.edge_rate": 0.3},
    "by degree": {"augment.edge_rate": 0.3, "augment.mask_rate": 0.3, "augment.centrality": "degree"},
    "attributes masked": {"augment.mask_rate": 0.3},
    "both": {"augment.edge_rate": 0.3, "augment.mask_rate": 0.3, "sketch.kind": "countsketch"},
    "batch norm": {"encoder.norm": "batch", "augment.edge_rate": 0.2},
    "prelu": {"encoder.activation": "prelu", "head.activation": "prelu", "augment.mask_rate": 0.2},
    "no head": {"head.width": 0},
}


def merged(name, graph, values):
    plain = {"augment.edge_rate": 0.0, "augment.mask_rate": 0.0, "encoder.width": 12, "head.width": 10}
    method = get_method(name)
    return settings.merge(method.Settings, [("graph", method.choose(graph)), ("test", plain | values)])[0]


def alone(name, graph, values, seed):
    return training.build(get_method(name), merged(name, graph, values), graph, seed, CPU)


def together(name, graph, values, seeds=SEEDS):
    method = training.stacked(get_method(name), merged(name, graph, values), graph, seeds, CPU)
    assert method is not None
    assert method.stack_size == len(seeds)
    return method


def run(method, graph, lr=1e-3):
    """Five losses of each initialisation, epochs × initialisations."""
    return training.Steps(method, graph, settings.Train(lr=lr)).run(5)


def train(method, graph, lr=1e-3):
    method.prepare(graph)
    return run(method, graph, lr)


def train_in_double(method, graph):
    """Adam divides a gradient by its size: in single precision a bias that does not matter follows the rounding."""
    method.prepare(graph)
    inputs = method.inputs(graph)
    method.double()
    layout = Adjacency(inputs.edge_index, graph.num_nodes, dtype=torch.float64)
    x = method.scaling(graph.x.double())
    doubled = dataclasses.replace(
        inputs,
        x=SparseMatrix.from_dense(x) if isinstance(inputs.x, SparseMatrix) else x,
        mixed=None if inputs.mixed is None else layout.normalized() @ x,
        layout=layout,
        adjacency=layout.normalized(),
    )
    method._prepared = (graph, doubled)
    return run(method, graph)


def assert_trains_like_each_alone(name, graph, values):
    exact = {"rtol": 1e-8, "atol": 1e-9}
    stacked = together(name, graph, values)
    losses = train_in_double(stacked, graph)
    assert losses.shape == (5, len(SEEDS))
    vectors = stacked.embed(graph)
    assert vectors.shape == (len(SEEDS), graph.num_nodes, 12)
    for index, seed in enumerate(SEEDS):
        single = alone(name, graph, values, seed)
        torch.testing.assert_close(losses[:, index : index + 1], train_in_double(single, graph), rtol=0, atol=1e-6)
        own, expected = state_of(stacked, index), single.state_dict()
        assert own.keys() == expected.keys()
        for key, tensor in expected.items():
            torch.testing.assert_close(own[key], tensor, **exact, msg=lambda m, k=key: f"{k}: {m}")
        torch.testing.assert_close(vectors[index], single.embed(graph), **exact)


def assert_losses_of_each_alone(name, graph, values):
    """In single precision, as they are trained; by steps too small for Adam to make a difference of rounding."""
    losses = train(together(name, graph, values), graph, lr=1e-5)
    for index, seed in enumerate(SEEDS):
        single = train(alone(name, graph, values, seed), graph, lr=1e-5)
        torch.testing.assert_close(losses[:, index : index + 1], single, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
@pytest.mark.parametrize("case", CASES)
def test_each_trains_as_it_would_alone(graph, name, case):
    values = CASES[case]
    if name == "costa-mv" and "augment.edge_rate" in values:
        values = values | {"augment.edge_rate": [0.0, 0.4]}  # views may differ
    assert_trains_like_each_alone(name, graph, values)
    assert_losses_of_each_alone(name, graph, values)


@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
def test_sparse_features_serve_the_whole_stack(bag_of_words, name):
    values = {"augment.edge_rate": 0.3, "augment.mask_rate": 0.3, "features.scaling": "none"}
    method = together(name, bag_of_words, values)
    method.prepare(bag_of_words)
    assert isinstance(method.inputs(bag_of_words).x, SparseMatrix)
    assert_trains_like_each_alone(name, bag_of_words, values)


def test_a_stack_of_one(graph):
    values = {"encoder.norm": "none"}  # a bias before BatchNorm follows rounding
    method, single = together("costa-mv", graph, values, [4]), alone("costa-mv", graph, values, 4)
    torch.testing.assert_close(train(method, graph), train(single, graph))
    torch.testing.assert_close(method.embed(graph)[0], single.embed(graph))


def test_seeds_differ_and_a_repeated_one_does_not(graph):
    losses = train(together("costa-sv", graph, {}, [3, 4, 3]), graph)
    torch.testing.assert_close(losses[:, 0], losses[:, 2])
    assert (losses[:, 0] - losses[:, 1]).abs().min() > 1e-4


def test_stacking_and_taking_apart_are_a_round_trip(graph):
    values = {"encoder.norm": "batch", "encoder.activation": "prelu"}
    methods = [alone("costa-mv", graph, values, seed) for seed in SEEDS]
    before = [{key: tensor.clone() for key, tensor in method.state_dict().items()} for method in methods]
    generators = [method.generator for method in methods]
    shell = alone("costa-mv", graph, values, 99)
    stacked = stack(shell, methods)
    assert stacked is shell
    assert [id(generator) for generator in stacked.generator] == [id(generator) for generator in generators]
    for key, tensor in stacked.state_dict().items():
        shared = key.split(".")[0] not in stacked.STACKED
        assert tensor.shape == (before[0][key].shape if shared else (3, *before[0][key].shape)), key

    for parameter in stacked.parameters():  # the methods keep their own
        parameter.data += 1
    for method, state in zip(methods, before, strict=True):
        assert all(torch.equal(tensor, state[key]) for key, tensor in method.state_dict().items())
    for index, method in enumerate(methods):
        method.load_state_dict(state_of(stacked, index))
        parameters = {key for key, _ in method.named_parameters()}
        for key, tensor in method.state_dict().items():
            assert torch.equal(tensor, before[index][key] + (key in parameters)), key


def test_the_learnt_scaling_is_shared(graph):
    values = {"features.scaling": "standard"}
    stacked = together("costa-sv", graph, values)
    train(stacked, graph)
    fresh = [alone("costa-sv", graph, values, 50 + seed) for seed in SEEDS]
    for index, method in enumerate(fresh):
        method.load_state_dict(state_of(stacked, index))
        torch.testing.assert_close(method.scaling.mean, graph.x.mean(0))
        torch.testing.assert_close(method.embed(graph), stacked.embed(graph)[index], rtol=1e-4, atol=1e-5)


def test_the_state_of_a_single_method_is_its_own(graph):
    method = alone("costa-sv", graph, {}, 0)
    assert state_of(method, 0).keys() == method.state_dict().keys()
    assert all(torch.equal(state_of(method, 0)[key], tensor) for key, tensor in method.state_dict().items())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("costa-sv", {"sketch.kind": "selection"}),
        ("costa-sv", {"sketch.kind": "svd", "sketch.k": 4}),
        ("costa-mv", {"augment.edges": "permute", "augment.edge_rate": 0.2}),
        ("costa-mv", {"train.kernels": "plain"}),
    ],
)
def test_what_cannot_be_stacked_says_so(graph, name, values):
    assert training.stacked(get_method(name), merged(name, graph, values), graph, SEEDS, CPU) is None


def test_a_method_without_a_loss_cannot_be_stacked(graph):
    method = get_method("raw")
    values = settings.merge(method.Settings, [("graph", method.choose(graph))])[0]
    assert training.stacked(method, values, graph, SEEDS, CPU) is None


def test_the_global_generator_is_left_as_found(graph):
    before = torch.get_rng_state()
    values = {"augment.edge_rate": 0.2, "augment.mask_rate": 0.2, "sketch.noise_std": 0.1}
    train(together("costa-mv", graph, values), graph)
    assert torch.equal(torch.get_rng_state(), before)
