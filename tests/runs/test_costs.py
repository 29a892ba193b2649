"""What stages cost, by formula."""

import numpy as np
import pytest
import torch

from costa import training
from costa.graphs.sizes import Sizes
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.reach import ALL, FAR
from costa.nn.held_out import FEWER, MANY
from costa.runs import costs
from costa.runs.costs import WORK, Shape
from costa.runs.vectors import write_rows
from costa.settings.presets import resolve


@pytest.mark.parametrize(("on_disk", "products"), [(True, 10), (False, 14)])
def test_work_is_counted_in_the_units_of_the_docstring(on_disk, products):
    shape = Shape(10**6, 10**7, 128, (1, 4), 10, 2, on_disk)
    assert (shape.products, shape.hops, shape.files) == (products, 3, 4)
    work = {stage: units(shape) for stage, units in WORK.items()}
    assert work["read"] == 10**7 + 8 * 10**6
    assert work["propagate"] == 10**7 * 128 * products
    assert work["train"] == 2 * 10**6 * 128 * 3
    assert work["embed"] == 10**6 * 128 * 3
    assert work["parquet"] == 10**6
    assert work["choose"] == 10**7 * 2 * FEWER * products


def test_x_is_one_of_its_hops_files():
    assert Shape(9, 9, 4, *ALL).files == 4
    assert Shape(9, 9, 4, *FAR).files == 3


def test_all_work_grows_with_the_graph():
    small, large = Shape(MANY + 1, 10 * MANY, 64, (4,), 10, 1), Shape(2 * MANY + 2, 20 * MANY, 64, (4,), 10, 1)
    for stage, units in WORK.items():
        assert units(large) / units(small) == pytest.approx(2, rel=1e-5), stage


def test_memory_on_disk_stays_below_the_limit_unless_nodes_alone_take_more():
    room = 2**30
    sizes = Sizes(10**6, 10**7, 128, on_disk=True)
    assert costs.memory_on_disk(sizes, 128, room) <= room + costs.IMPORTS
    many = Sizes(10**9, 10**10, 128, on_disk=True)
    assert costs.memory_on_disk(many, 128, room) > room + costs.IMPORTS


def test_parts_and_fewer_columns_save_memory():
    sizes = Sizes(10**6, 10**7, 128)
    whole = costs.memory_of_layers(sizes, (256, 256), 2, 10**6)
    assert costs.memory_of_layers(sizes, (256, 256), 2, 10**4) < whole
    assert costs.memory_of_layers(sizes, (64, 64), 2, 10**6) < whole
    assert costs.memory_of_hops(sizes, 64, 2, 512) < costs.memory_of_hops(sizes, 128, 2, 512)


@pytest.mark.parametrize("stored_as", ["float32", "float16"])
def test_disk_is_what_files_take(tmp_path, monkeypatch, stored_as):
    """Of a graph that stays on disk, its hops and its vectors."""
    pytest.importorskip("pyarrow")
    from costa.graphs import graph_sizes, load_graph

    graph = planted_partition(3000, 3, 40, degree=10, seed=0)
    links = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T
    lines = ["source,target", *(f"{a},{b}" for a, b in links.tolist())]
    (tmp_path / "edges.csv").write_text("\n".join(lines))
    np.save(tmp_path / "features.npy", graph.x.numpy().astype("float64"))
    told = graph_sizes(tmp_path, memory="1GiB")
    stored = load_graph(tmp_path, memory="1GiB")
    arrays, _ = costs.disk_of_graph(told)

    def written(pattern):
        return sum(path.stat().st_size for path in told.folder.glob(pattern) if path.is_file())

    assert arrays == pytest.approx(written("*"), rel=0.05)
    method = get_method("costa-mv")
    values = resolve(method, stored, given={"encoder.stored": stored_as}).values
    built = training.build(method, values, stored, 0, torch.device("cpu"))
    built.prepare(stored)
    shape = Shape(3000, stored.num_edges // 2, 40, values.encoder.powers, values.encoder.steps)
    assert costs.disk_of_hops(shape, stored_as) == pytest.approx(written("hops/*/*"), rel=0.01)
    write_rows(tmp_path / "z.npy", built.embed_rows(stored), 3000)
    taken = (tmp_path / "z.npy").stat().st_size
    assert costs.disk_of_vectors(3000, built.vector_width, table=False) == pytest.approx(taken, rel=0.01)
    assert costs.disk_of_graph(graph_sizes(tmp_path, memory="1GiB")) == (0, 0)
