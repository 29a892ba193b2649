"""The plain file and the package compute the same loss and the same gradients from the same weights and draws."""

import dataclasses
import importlib.util
import re
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from costa.augment import make_sketch
from costa.augment.topology import edge_ids, keep_mask, mask_attributes
from costa.methods import get_method
from costa.nn import Adjacency
from costa.settings import merge
from costa.training import build

EXAMPLE = Path(__file__).parents[2] / "examples/plain_costa.py"
NODES, FEATURES, WIDTH = 150, 12, 16
TAU = {"costa-sv": 2.0, "costa-mv": 0.5}
RATIO = {"gaussian": 0.5, "countsketch": 1.0}
"""With as many rows as nodes, a CountSketch has many empty rows, and the package leaves some of them out beforehand."""
RATES = {
    ("costa-sv", False): ((0.0,), (0.0,)),
    ("costa-sv", True): ((0.3,), (0.2,)),
    ("costa-mv", False): ((0.0, 0.0), (0.0, 0.0)),
    ("costa-mv", True): ((0.3, 0.5), (0.2, 0.4)),
}
"""Rates of dropped edges and of masked attributes, one for each view."""
TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 1e-6}, torch.float64: {"rtol": 1e-10, "atol": 1e-12}}
PARAMETERS = {
    "encoder.w1": "encoder.layers.0.weight",
    "encoder.b1": "encoder.layers.0.bias",
    "encoder.w2": "encoder.layers.1.weight",
    "encoder.b2": "encoder.layers.1.bias",
    "head.w1": "head.first.weight",
    "head.b1": "head.first.bias",
    "head.w2": "head.second.weight",
    "head.b2": "head.second.bias",
}
"""The package's name of each parameter of the plain file."""


def load_example():
    spec = importlib.util.spec_from_file_location("plain_costa", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plain = load_example()


@pytest.fixture(scope="module")
def graph():
    """A random graph whose last nodes have no edges."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.triu_indices(NODES - 5, NODES - 5, offset=1)
    edges = pairs[:, torch.rand(pairs.shape[1], generator=generator) < 0.03]
    x = torch.randn(NODES, FEATURES, generator=generator)
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def each_edge_once(edge_index):
    return edge_index[0] < edge_index[1]


def package_method(name, sketch, rates, graph, dtype):
    """The package's method, prepared for the graph, with random weights and biases."""
    edge_rates, mask_rates = rates
    values = {
        "features.scaling": "none",
        "encoder.kind": "gcn",
        "encoder.steps": 0,
        "encoder.width": WIDTH,
        "encoder.activation": "elu",
        "encoder.norm": "none",
        "head.width": WIDTH,
        "sketch.kind": sketch,
        "sketch.ratio": RATIO[sketch],
        "augment.edge_rate": edge_rates,
        "augment.mask_rate": mask_rates,
        "loss.tau": TAU[name],
    }
    cls = get_method(name)
    method = build(cls, merge(cls.Settings, [("test", values)])[0], graph, 0, torch.device("cpu")).to(dtype)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in method.parameters():  # biases are zero otherwise
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator, dtype=dtype)
    if dtype == torch.float32:
        method.prepare(graph)
    else:
        # The package reads every graph in float32; here it is given the same inputs in float64.
        layout = Adjacency(graph.edge_index, NODES, dtype=dtype)
        adjacency, x = layout.normalized(), graph.x.to_dense().to(dtype)
        inputs = dataclasses.replace(method.inputs(graph), x=x, mixed=adjacency @ x, layout=layout, adjacency=adjacency)
        method.inputs = lambda graph, rows=None: inputs
    return method


def package_draws(method, rates, graph, generator, dtype):
    """What the package draws in one epoch: the kept edges and attributes of each view, then P."""
    ids, once = edge_ids(graph.edge_index, NODES), each_edge_once(graph.edge_index)
    views = []
    for edge_rate, mask_rate in zip(*rates, strict=True):
        keep, mask = torch.ones_like(once), torch.ones(FEATURES)
        if edge_rate:
            keep = keep_mask(ids, edge_rate, generator)
        if mask_rate:
            mask = mask_attributes(FEATURES, mask_rate, generator=generator)
        views.append((keep[once], mask.bool()))
    p = method.sketch.draw(torch.empty(NODES, WIDTH, dtype=dtype), generator).matrix()
    return views, p


def as_plain(name, tensor):
    """The package's head holds its weights transposed."""
    return tensor.T if name in ("head.w1", "head.w2") else tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("augmented", [False, True], ids=["unaugmented", "augmented"])
@pytest.mark.parametrize("sketch", ["gaussian", "countsketch"])
@pytest.mark.parametrize("name", ["costa-sv", "costa-mv"])
def test_the_package_has_the_same_loss_and_gradients(name, sketch, augmented, dtype, graph):
    rates = RATES[name, augmented]
    method = package_method(name, sketch, rates, graph, dtype)
    generator = torch.Generator()
    generator.set_state(method.generator.get_state())
    package_loss = method.loss(graph)
    package_loss.backward()

    draws, p = package_draws(method, rates, graph, generator, dtype)
    assert torch.equal(generator.get_state(), method.generator.get_state())
    assert (sketch == "countsketch") == bool((~p.any(dim=1)).any())  # only a CountSketch has empty rows
    assert all(keep.all() != augmented and mask.all() != augmented for keep, mask in draws)

    package_parameters = dict(method.named_parameters())
    assert sorted(PARAMETERS.values()) == sorted(package_parameters)
    model = plain.COSTA(FEATURES, WIDTH, torch.Generator()).to(dtype)
    model.load_state_dict({key: as_plain(key, package_parameters[theirs]) for key, theirs in PARAMETERS.items()})
    x, edges = graph.x.to_dense().to(dtype), graph.edge_index[:, each_edge_once(graph.edge_index)]
    plain_loss = model.loss([plain.make_view(x, edges, *draw) for draw in draws], p, TAU[name])
    plain_loss.backward()

    assert plain_loss.dtype == package_loss.dtype == dtype
    torch.testing.assert_close(plain_loss, package_loss, **TOLERANCE[dtype])
    for key, parameter in model.named_parameters():
        package_gradient = as_plain(key, package_parameters[PARAMETERS[key]].grad)
        assert package_gradient.abs().max() > 1e-5, key  # far above the tolerance
        torch.testing.assert_close(
            parameter.grad, package_gradient, **TOLERANCE[dtype], msg=lambda m, k=key: f"{k}: {m}"
        )


def test_a_countsketch_is_the_packages_own():
    ours = plain.draw_p("countsketch", 40, 60, torch.Generator().manual_seed(3))
    package = make_sketch("countsketch", k=40).draw(torch.empty(60, 1), torch.Generator().manual_seed(3))
    assert torch.equal(ours, package.matrix())


def test_a_gaussian_p_has_variance_one_over_k():
    p = plain.draw_p("gaussian", 200, 500, torch.Generator().manual_seed(3))
    # The mean of N squares of a standard normal number has the standard deviation √(2/N), and their own mean 1/√N.
    assert abs(200 * p.square().mean() - 1) < 5 * (2 / p.numel()) ** 0.5
    assert abs(200**0.5 * p.mean()) < 5 / p.numel() ** 0.5


def test_a_view_drops_edges_and_masks_attributes_at_its_rates():
    n, width = 500, 4000
    edges = torch.triu_indices(n, n, offset=1)
    x, adjacency = plain.draw_view(torch.ones(n, width), edges, 0.3, 0.6, torch.Generator().manual_seed(0))
    dense = adjacency.to_dense()
    assert torch.equal(dense, dense.T)
    assert torch.equal(x, x[:1].expand(n, width))  # an attribute is masked for all nodes or for none
    kept = (dense != 0).sum() - n
    for share, rate, count in ((kept / 2 / edges.shape[1], 0.3, edges.shape[1]), (x[0].mean(), 0.6, width)):
        assert abs(share - (1 - rate)) < 5 * (rate * (1 - rate) / count) ** 0.5


def test_main_prints_the_accuracies(capsys):
    plain.main(epochs=3)
    rows = [re.fullmatch(r"(.+?) +([\d.]+) ± [\d.]+ % .*", line) for line in capsys.readouterr().out.splitlines()]
    accuracy = {row[1]: float(row[2]) for row in rows}
    assert list(accuracy) == ["raw features", "untrained encoder", "costa-sv", "costa-mv"]
    assert min(accuracy["costa-sv"], accuracy["costa-mv"]) > accuracy["raw features"] + 4
