"""What is measured on the spot has the graph's shapes, and leaves nothing behind."""

import numpy as np
import pytest
import torch

from costa.graphs.sizes import Sizes
from costa.nn.hops import ROWS
from costa.nn.sparse import is_csr
from costa.runs import pace


def test_the_sample_has_the_graphs_columns_and_density():
    sample = pace.sample_graph(Sizes(10**6, 10**7, 24))
    assert sample.x.shape == (ROWS, 24)
    assert sample.num_nodes == ROWS
    sparse = pace.sample_graph(Sizes(10**6, 10**7, 500, entries=5 * 10**6)).x
    assert is_csr(sparse)
    assert sparse.values().numel() / ROWS == pytest.approx(5, rel=0.05)
    assert pace.sample_graph(Sizes(7, 0, 3)).x.shape == (7, 3)


def test_a_part_of_an_adjacency_has_the_products_of_the_whole():
    row, col = torch.tensor([0, 0, 2]), torch.tensor([1, 2, 1])
    adjacency = pace._on_disk(row, col, 4)
    product = adjacency.multiply(torch.eye(4) * adjacency.scale, torch.empty(4, 4))
    dense = torch.eye(4)
    dense[row, col] = 1
    scale = dense.sum(1).rsqrt()
    assert torch.allclose(product, scale[:, None] ** 2 * dense * scale)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["{}", "person {}"])
def test_the_first_links_are_laid_out(tmp_path, weighted, name):
    pytest.importorskip("pyarrow")
    file = tmp_path / "edges.csv"
    lines = [f"{name.format(i)},{name.format((i * 7) % 50)}{',2.5' * weighted}" for i in range(50)]
    file.write_text("\n".join(["source,target" + ",weight" * weighted, *lines]))
    x = tmp_path / "x.npy"
    np.save(x, np.ones((50, 3), dtype="float32"))
    sizes = Sizes(50, 50, 3, weighted=weighted, on_disk=True, read=False, edge_file=file, feature_file=x)
    place = tmp_path / "place"
    place.mkdir()
    seconds, ends = pace._read(sizes, place)
    assert seconds > 0
    assert sorted(ends.tolist()) == sorted([*range(50), *((7 * i) % 50 for i in range(50))])
    assert {path.name for path in place.iterdir()} >= {"crow.npy", "col.npy"}


@pytest.mark.parametrize(("edges", "columns"), [(0, 3), (40, 1), (10**5, 600)])
@pytest.mark.parametrize("workspace", [None, 2**26])
def test_a_product_is_timed_whatever_the_shape(edges, columns, workspace):
    for ends in (None, torch.arange(60)):
        assert pace._product(Sizes(50, edges, columns), columns, workspace, ends) > 0


def test_neighbours_are_taken_from_all_over_a_graph_on_disk(tmp_path):
    assert pace._ends_in(tmp_path) is None
    np.save(tmp_path / "col.npy", np.arange(4 * pace.EDGES, dtype=np.int32))
    ends = pace._ends_in(tmp_path)
    assert len(ends) == pace.EDGES
    assert ends.max() > 3 * pace.EDGES
