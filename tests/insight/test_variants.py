"""The MLP that shares a GCN's weights, and what each variant augments."""

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from costa.insight.bias import Subject, measure
from costa.insight.distortion import untrained
from costa.insight.variants import MLP, VARIANTS, stream, subject
from costa.nn import GCN


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def graph():
    return planted_partition(60, 3, 12, degree=4, seed=0)


def test_an_mlp_does_not_see_edges(graph):
    mlp = MLP(GCN(12, (8, 4), activation="elu", generator=generator()))
    subject = Subject(lambda x, adjacency, mask: mlp(x, mask), graph.x, graph.edge_index)
    assert not measure(subject.draw(edge_rate=0.5), subject.h, 5, generator()).strength.any()
    assert measure(subject.draw(mask_rate=0.5), subject.h, 5, generator()).strength.all()


def test_an_mlp_is_the_gcn_of_a_graph_without_edges(graph):
    gcn = GCN(12, (8, 4), activation="elu", generator=generator())
    alone = Subject(gcn, graph.x, torch.empty(2, 0, dtype=torch.long))
    torch.testing.assert_close(MLP(gcn)(graph.x), alone.h)
    assert {id(parameter) for parameter in MLP(gcn).parameters()} == {id(parameter) for parameter in gcn.parameters()}


def test_a_method_has_two_subjects(graph):
    method = untrained(graph, torch.device("cpu"))
    found = {mlp: subject(method, graph, mlp=mlp) for mlp in (False, True)}
    assert not measure(found[True].draw(edge_rate=0.5), found[True].h, 3, generator()).strength.any()
    assert measure(found[False].draw(edge_rate=0.5), found[False].h, 3, generator()).strength.any()


@pytest.mark.parametrize(
    ("name", "edge_rate", "mask_rate", "rescale"),
    [("nn_a", 0, 0.2, False), ("gnn_a ÷", 0, 0.2, True), ("gnn_e", 0.3, 0, False), ("gnn_ea", 0.3, 0.2, False)],
)
def test_a_variant_augments_what_its_name_says(name, edge_rate, mask_rate, rescale):
    expected = {"edge_rate": edge_rate, "mask_rate": mask_rate, "rescale": rescale}
    assert VARIANTS[name].rates(0.3, 0.2) == expected
    assert VARIANTS[name].mlp == name.startswith("nn")


def test_each_seed_has_its_own_draws():
    first, again, other = (torch.rand(5, generator=stream(seed, torch.device("cpu"))) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
