"""What a file of hops gives back, of either type."""

import numpy as np
import pytest
import torch

from costa.graphs.ahead import ReadAhead
from costa.graphs.hop_files import HALF, Halves, HopFiles, create_hop, open_hop, write_columns
from costa.nn import FeatureReduction, FeatureScaling, Preparation
from costa.nn.ranks import ALONE, Ranks
from costa.writing import replacing


def stored(path, x, kind, at_once=2):
    create_hop(path, *x.shape, kind)
    for start in range(0, x.shape[1], at_once):
        write_columns(path, start, x[:, start : start + at_once])
    return open_hop(path)


@pytest.fixture
def x():
    """Columns of very different sizes, one of them zero."""
    sizes = 10.0 ** torch.tensor([-38, -20, -4, 0, 3, 30, 38])
    x = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    return x * torch.cat([sizes, torch.zeros(1)])


def test_float32_comes_back_as_it_was(tmp_path, x):
    hop = stored(tmp_path / "1.npy", x, "float32")
    assert torch.equal(hop.block[:], x)
    assert np.load(tmp_path / "1.npy").shape == x.shape


def test_float16_is_off_by_one_rounding_whatever_a_columns_unit_is(tmp_path, x):
    hop = stored(tmp_path / "1-float16.npy", x, HALF)
    read = hop.block[:]
    assert hop.array.dtype == np.float16
    assert read.dtype == torch.float32
    assert (read[:, -1] == 0).all()
    large = slice(1, 7)  # the smallest column is below the smallest unit
    assert ((read - x).abs() <= x.abs() / 2048)[:, large].all()
    assert (read != x)[:, large].any(0).all()


def test_numbers_down_to_two_to_the_minus_28_of_the_largest_keep_eleven_bits(tmp_path):
    x = 1.2345 * 2.0 ** -torch.arange(40.0)[:, None]
    read = stored(tmp_path / "1-float16.npy", x, HALF).block[:]
    assert ((read - x).abs() <= x / 2048).flatten().tolist()[:29] == [True] * 29
    assert (read - x)[29:].abs().max() < x[28] / 2**11


@pytest.mark.parametrize("largest", [65504.0, 65536.0, 2.0**15 - 2**-9, 2.0**15, 3e38])
def test_nothing_overflows(tmp_path, largest):
    x = torch.tensor([[largest], [-largest / 3], [0.0]])
    assert torch.allclose(stored(tmp_path / "1-float16.npy", x, HALF).block[:], x, rtol=1 / 2048, atol=0)


def test_rows_are_read_a_few_at_a_time(tmp_path, x):
    hop = stored(tmp_path / "1-float16.npy", x, HALF)
    block, whole = hop.block, hop.block[:]
    assert isinstance(block, Halves)
    assert (len(block), block.shape, block.device.type) == (50, (50, 8), "cpu")
    rows = torch.tensor([7, 49, 7])
    assert torch.equal(block[rows], whole[rows])
    assert torch.equal(block[::7], whole[::7])
    parts = list(block.split(20))
    assert [len(part) for part in parts] == [20, 20, 10]
    assert torch.equal(torch.cat(parts), whole)
    ReadAhead([hop.array]).prefetch(rows)  # the row of exponents is not one of those


@pytest.mark.parametrize("kind", ["float32", HALF])
def test_a_range_of_rows_is_mapped_by_itself(tmp_path, x, kind):
    whole = stored(tmp_path / "1.npy", x, kind).block[:]
    hop = open_hop(tmp_path / "1.npy", range(17, 40))
    assert torch.equal(hop.block[:], whole[17:40])
    assert len(hop.array) == 23
    ReadAhead([hop.array]).prefetch(torch.tensor([0, 22]))


def test_a_name_tells_the_type_but_x_is_float32(tmp_path):
    preparation = Preparation(FeatureScaling("none", 3), FeatureReduction(0, 3))
    full, half = (HopFiles.of(str(tmp_path), preparation, 10, 0.1, kind) for kind in ("float32", HALF))
    assert [full.path(key).name for key in (0, 4, -1)] == ["0.npy", "4.npy", "pagerank-10-0.1.npy"]
    assert [half.path(key).name for key in (0, 4, -1)] == ["0.npy", "4-float16.npy", "pagerank-10-0.1-float16.npy"]
    assert half.of_rank(ALONE) == half
    part = half.of_rank(Ranks(1, 3))
    assert [part.path(key).name for key in (0, 4)] == ["0.part-1-of-3.npy", "4-float16.part-1-of-3.npy"]


def test_parts_are_joined_if_all_are_here(tmp_path, x):
    files = HopFiles(tmp_path, 10, 0.1, HALF)
    stored(tmp_path / "whole", x, HALF)
    parts = [files.of_rank(Ranks(rank, 2)).path(1) for rank in range(2)]
    whole = np.load(tmp_path / "whole")
    np.save(parts[0], np.concatenate([whole[:25], whole[-1:]]))
    np.save(files.of_rank(Ranks(0, 3)).path(1), whole)  # the only one of another training
    files.join(1)
    assert files.lacks(1)
    np.save(parts[1], whole[25:])
    files.join(1)
    assert np.array_equal(np.load(files.path(1)), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1-float16.npy", "1-float16.part-0-of-3.npy", "whole"]


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    files = HopFiles(tmp_path, 10, 0.1)
    with replacing(files.path(0)) as abandoned:
        abandoned.touch()
        with files.locked(ALONE):
            assert not list(tmp_path.iterdir())
        abandoned.touch()
