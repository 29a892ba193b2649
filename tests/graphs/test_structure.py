import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from costa.graphs.storage import open_stored, store
from costa.graphs.structure import POSITIONS, degree_if_made, structural_features
from costa.graphs.synthetic import planted_partition


def twin(edge_index: torch.Tensor, weight: torch.Tensor | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Degrees and D_τ^-½ A D_τ^-½, written out."""
    a = np.zeros((n, n))
    a[tuple(edge_index.numpy())] = 1 if weight is None else weight.numpy()
    d = a.sum(1)
    return d, a / np.sqrt(np.outer(d + d.mean(), d + d.mean()))


def random_graph(n: int, edges: int, weighted: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    # the last node has no edge
    edge_index = to_undirected(torch.randint(n - 1, (2, edges), generator=generator), num_nodes=n)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    weight = None
    if weighted:
        symmetric = torch.rand(n, n, generator=generator)
        weight = (symmetric + symmetric.T)[edge_index[0], edge_index[1]]
    return edge_index, weight


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [60, 300])  # all eigenvectors, and some
def test_against_the_formula_in_float64(n: int, weighted: bool) -> None:
    edge_index, weight = random_graph(n, 6 * n, weighted)
    x = structural_features(edge_index, weight, n)
    degree, matrix = twin(edge_index, weight, n)
    np.testing.assert_allclose(x[:, 0], np.log1p(degree), rtol=1e-5)
    values = np.linalg.eigvalsh(matrix)[::-1][:POSITIONS]
    u = x[:, 1:].double().numpy() / np.sqrt(n)
    np.testing.assert_allclose(matrix @ u, u * values, atol=1e-4)
    np.testing.assert_allclose(u.T @ u, np.eye(POSITIONS), atol=1e-4)
    assert ((u**3).sum(0) > 0).all()


def test_the_order_of_the_nodes_does_not_matter() -> None:
    n = 300
    edge_index, _ = random_graph(n, 6 * n, weighted=False)
    place = torch.randperm(n, generator=torch.Generator().manual_seed(1))
    x = structural_features(edge_index, None, n)
    moved = structural_features(place[edge_index], None, n)
    torch.testing.assert_close(moved[place], x, rtol=1e-3, atol=1e-3)


def test_the_same_bits_every_time() -> None:
    n = 300
    edge_index, _ = random_graph(n, 3 * n, weighted=False)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert torch.equal(structural_features(edge_index, None, n), structural_features(edge_index, None, n))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_a_graph_in_pieces_is_placed_within_its_largest() -> None:
    # Two triangles and a ring of 40: without τ the first three eigenvectors would say which piece a node is in.
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    chords = torch.stack([torch.arange(40), (torch.arange(40) + 2) % 40])
    triangles = torch.tensor([[40, 41, 42, 43, 44, 45], [41, 42, 40, 44, 45, 43]])
    x = structural_features(to_undirected(torch.cat([ring, chords, triangles], 1)), None, 46)
    assert x[:40, 1:4].abs().amax(0).min() > 0.5
    assert x[40:, 1:4].abs().max() < 1e-3


def test_few_nodes_leave_zeros() -> None:
    x = structural_features(torch.tensor([[0, 1], [1, 0]]), None, 2)
    assert x.shape == (2, 1 + POSITIONS)
    assert x[:, 3:].count_nonzero() == 0
    assert x[:, :3].count_nonzero() == 6


def test_communities_are_told_apart() -> None:
    graph: Data = planted_partition(400, 4, 1, seed=0)
    x = structural_features(graph.edge_index, None, graph.num_nodes)
    means = torch.stack([x[graph.y == label, 1:5].mean(0) for label in range(4)])
    nearest = torch.cdist(x[:, 1:5], means).argmin(1)
    assert (nearest == graph.y).float().mean() > 0.9


@pytest.mark.parametrize("weighted", [False, True])
def test_features_that_were_made_are_recognised_and_give_the_degrees(weighted, tmp_path):
    edge_index, weight = random_graph(80, 300, weighted)
    degree, _ = twin(edge_index, weight, 80)
    graph = Data(structural_features(edge_index, weight, 80), edge_index, edge_weight=weight, num_nodes=80)
    store(graph, tmp_path)
    for each in (graph, open_stored(tmp_path, 2**26)):
        np.testing.assert_allclose(degree_if_made(each), degree, rtol=1e-5)
        each.x = each.x + 1
        assert degree_if_made(each) is None
        each.x = each.x[:, 1:]
        assert degree_if_made(each) is None
