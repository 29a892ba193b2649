"""Rows on disk that are asked for are read, those and few others, and only once reading had to wait."""

import ctypes
import mmap
import os
import time

import numpy as np
import pytest
import torch

from costa.graphs import ahead
from costa.graphs.ahead import ReadAhead, page_faults
from costa.graphs.storage import open_array

ROWS, FAR = 40_000, [7, 12_345, 30_011, 39_999]


def pages_in_memory(array):
    """Whether each page of the array's file is in memory."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    length = array.ctypes.data + array.nbytes - start
    there = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(length), there) == 0
    return np.frombuffer(there, dtype=np.uint8) & 1 == 1


def pages_of(array, rows):
    width, header = array.strides[0], array.offset
    spans = [
        ((header + row * width) // mmap.PAGESIZE, (header + (row + 1) * width - 1) // mmap.PAGESIZE) for row in rows
    ]
    return sorted({page for first, last in spans for page in range(first, last + 1)})


@pytest.fixture(params=[64, 300, 2000])  # whole rows in a page, rows across two, rows of several
def stored(request, tmp_path):
    """Two arrays on disk, no page of which is in memory."""
    arrays = []
    for name in "ab":
        path = tmp_path / f"{name}.npy"
        rows = ROWS * 64 // request.param
        np.save(path, np.arange(rows * request.param, dtype=np.float32).reshape(rows, -1))
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        arrays.append(open_array(path))
        if pages_in_memory(arrays[-1]).mean() > 0.01:
            pytest.skip("this file system keeps its files in memory")
    return arrays


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="pages cannot be dropped")
def test_rows_that_are_asked_for_are_read_and_hardly_any_other(stored):
    rows = [row * len(stored[0]) // ROWS for row in FAR]
    ReadAhead(stored).prefetch(torch.tensor(rows))
    for array in stored:
        wanted, until = pages_of(array, rows), time.monotonic() + 10
        while not pages_in_memory(array)[wanted].all() and time.monotonic() < until:
            time.sleep(0.01)
        there = pages_in_memory(array)
        assert there[wanted].all()
        assert there.sum() <= 4 * len(wanted) + 1  # the file's header, and what the file system rounds up to
        assert np.array_equal(array[rows].ravel()[:3], rows[0] * array.shape[1] + np.arange(3))


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="pages cannot be dropped")
def test_a_page_that_is_not_in_memory_is_a_page_fault(stored):
    before = page_faults()
    stored[0][len(stored[0]) // 2].sum()
    assert page_faults() > before


@pytest.mark.parametrize(
    ("faults", "waits"), [([0, 0], [False, False]), ([3, 3], [False, False]), ([4, 0], [True, True])]
)
def test_waiting_is_noticed_unless_it_is_rare(faults, waits, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros((1000, 2), np.float32))
    files, seen = ReadAhead([open_array(tmp_path / "x.npy")] * 3), []
    for count in faults:
        counts = iter([50, 50 + count])
        monkeypatch.setattr(ahead, "page_faults", lambda counts=counts: next(counts))
        with files.reading(torch.arange(100)):
            pass
        seen.append(files.waits)
    assert seen == waits


def test_a_system_without_advice_reads_as_before(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros((10, 2), np.float32))
    monkeypatch.delattr(mmap, "MADV_WILLNEED")
    ReadAhead([open_array(tmp_path / "x.npy")]).prefetch(torch.arange(10))
